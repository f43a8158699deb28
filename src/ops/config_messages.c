/* SPDX-License-Identifier: ISC */
#include "ops/config_messages.h"

#include "base/log.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void
config_messages_init(struct config_messages *m)
{
	memset(m, 0, sizeof *m);
}

void
config_messages_fini(struct config_messages *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->list[i].text);
	free(m->list);
	config_messages_init(m);
}

static bool
make_room(struct config_messages *m)
{
	size_t cap = m->cap == 0 ? 8 : 2 * m->cap;
	struct config_message *list;

	if (m->n >= CONFIG_MESSAGES_MAX)
		return false;
	if (m->n < m->cap)
		return true;
	list = realloc(m->list, cap * sizeof *list);
	if (list == NULL)
		return false;
	m->list = list;
	m->cap = cap;
	return true;
}

static void __attribute__((format(printf, 4, 0)))
add(struct config_messages *m, bool is_error, struct config_place where, const char *fmt, va_list args)
{
	char body[1024], text[1024 + 512];

	if (is_error)
		m->n_errors++;
	if (!make_room(m))
		return;
	vsnprintf(body, sizeof body, fmt, args);
	if (where.file == NULL)
		snprintf(text, sizeof text, "%s", body);
	else if (where.line == 0)
		snprintf(text, sizeof text, "%.400s: %s", where.file, body);
	else
		snprintf(text, sizeof text, "%.400s:%d: %s", where.file, where.line, body);
	m->list[m->n].text = str_dup(text);
	m->list[m->n].is_error = is_error;
	if (m->list[m->n].text != NULL)
		m->n++;
}

void
config_error(struct config_messages *m, struct config_place where, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add(m, true, where, fmt, args);
	va_end(args);
}

void
config_warning(struct config_messages *m, struct config_place where, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add(m, false, where, fmt, args);
	va_end(args);
}

static size_t
n_errors_kept(const struct config_messages *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += m->list[i].is_error ? 1 : 0;
	return n;
}

void
config_messages_print(const struct config_messages *m, FILE *to)
{
	size_t kept = n_errors_kept(m);

	for (size_t i = 0; i < m->n; i++)
		fprintf(to, "%s%s\n", m->list[i].is_error ? "" : "warning: ", m->list[i].text);
	if (m->n_errors > kept)
		fprintf(to, "and %zu errors more\n", m->n_errors - kept);
}

void
config_messages_log(const struct config_messages *m)
{
	size_t kept = n_errors_kept(m);

	for (size_t i = 0; i < m->n; i++)
		log_event(m->list[i].is_error ? LOG_ERROR_ : LOG_WARN_, "config", LOG_S("msg", m->list[i].text));
	if (m->n_errors > kept)
		log_event(LOG_ERROR_, "config", LOG_U("errors_more", m->n_errors - kept));
}

void
config_nearest_init(struct config_nearest *x, const char *name)
{
	size_t n = strlen(name);

	x->name = name;
	x->best = NULL;
	/* One slip in three letters, three at most: farther off is another word. Long junk is not worth comparing. */
	x->distance = n > 64 ? 0 : (n / 3 < 3 ? (int)(n / 3) : 3) + 1;
}

void
config_nearest_offer(struct config_nearest *x, const char *candidate)
{
	int distance, difference = (int)strlen(candidate) - (int)strnlen(x->name, 100);

	/* The distance is at least the difference in length. */
	if (abs(difference) >= x->distance)
		return;
	distance = str_distance(x->name, candidate);
	if (distance < x->distance) {
		x->distance = distance;
		x->best = candidate;
	}
}
