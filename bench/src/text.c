/* SPDX-License-Identifier: ISC */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
why_set(struct why *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return false;
}

static _Noreturn void
no_memory(void)
{
	fputs("pgweir-bench: out of memory\n", stderr);
	exit(1);
}

void *
text_alloc(size_t n)
{
	void *p = calloc(1, n);

	if (p == NULL)
		no_memory();
	return p;
}

char *
text_fmt(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		no_memory();
	va_end(ap);
	return s;
}

char *
text_dup(const char *s)
{
	char *copy = strdup(s);

	if (copy == NULL)
		no_memory();
	return copy;
}

/* Takes the item. */
static void
list_push(struct text_list *list, char *item)
{
	/* One more than is used: a list can serve as argv. */
	char **items = realloc(list->items, (list->n + 2) * sizeof(*items));

	if (items == NULL)
		no_memory();
	items[list->n++] = item;
	items[list->n] = NULL;
	list->items = items;
}

void
text_list_add(struct text_list *list, const char *item)
{
	list_push(list, text_dup(item));
}

void
text_list_addf(struct text_list *list, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		no_memory();
	va_end(ap);
	list_push(list, s);
}

void
text_list_split(struct text_list *list, const char *s, char separator)
{
	while (*s != '\0') {
		const char *end = strchrnul(s, separator);

		if (end > s)
			text_list_addf(list, "%.*s", (int)(end - s), s);
		s = *end == '\0' ? end : end + 1;
	}
}

bool
text_list_has(const struct text_list *list, const char *item)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], item) == 0)
			return true;
	return false;
}

void
text_list_fini(struct text_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct text_list){0};
}

static bool
says_trouble(const char *line)
{
	return strcasestr(line, "error") != NULL || strcasestr(line, "fatal") != NULL ||
	       strcasestr(line, "panic") != NULL;
}

/* The last line that says something or, if wanted, the first that tells of trouble. */
static char *
find_line(const char *text, bool trouble)
{
	struct text_list lines = {0};
	char *found = NULL;

	text_list_split(&lines, text, '\n');
	for (size_t i = 0; trouble && found == NULL && i < lines.n; i++)
		if (says_trouble(lines.items[i]))
			found = text_dup(lines.items[i]);
	for (size_t i = lines.n; found == NULL && i > 0; i--)
		if (strspn(lines.items[i - 1], " \t\r") < strlen(lines.items[i - 1]))
			found = text_dup(lines.items[i - 1]);
	text_list_fini(&lines);
	return found != NULL ? found : text_dup("");
}

char *
text_last_line(const char *text)
{
	return find_line(text, false);
}

char *
text_error_line(const char *text)
{
	return find_line(text, true);
}

char *
text_duration(double seconds)
{
	long s = (long)seconds;

	if (s >= 3600)
		return text_fmt("%ld:%02ld:%02ld h", s / 3600, s / 60 % 60, s % 60);
	return text_fmt("%ld:%02ld min", s / 60, s % 60);
}
