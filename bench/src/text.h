/* SPDX-License-Identifier: ISC */
/* Formatted text, the reason of a failure, and lists with commas. Any thread. */
#ifndef PGWEIR_BENCH_TEXT_H
#define PGWEIR_BENCH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Why something did not work, for a message or for the status of a run. */
struct why {
	char text[512];
};

/* Always false, so that it can be returned. A long reason is cut. */
bool why_set(struct why *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Allocated; never NULL: the program ends when there is no memory for a line of text. */
char *text_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *text_dup(const char *s); /* as text_fmt("%s", s) */
void *text_alloc(size_t n);    /* zeroed, never NULL */

char *text_duration(double seconds); /* "2:05 min" or "1:02:05 h". Allocated. */

/* Texts in the order they were added. All zero is an empty list. */
struct text_list {
	char **items;
	size_t n;
};

void text_list_add(struct text_list *list, const char *item); /* copies */
void text_list_addf(struct text_list *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_list_split(struct text_list *list, const char *s, char separator); /* adds the parts, empty ones left out */
bool text_list_has(const struct text_list *list, const char *item);
void text_list_fini(struct text_list *list);

/* The last line of `text` that says something, without its line end; "" if none does. Allocated. */
char *text_last_line(const char *text);
/* The first line with "error", "fatal" or "panic" in any case, else the last line. Allocated. */
char *text_error_line(const char *text);

#endif
