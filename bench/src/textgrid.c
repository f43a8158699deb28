/* SPDX-License-Identifier: ISC */
#include "textgrid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

void
textgrid_init(struct textgrid *t, size_t n_left)
{
	*t = (struct textgrid){.n_left = n_left};
}

static void
add(struct textgrid *t, char *text)
{
	if (t->n % 64 == 0) {
		char **grown = text_alloc((t->n + 64) * sizeof(*grown));
		if (t->n > 0)
			memcpy(grown, t->cells, t->n * sizeof(*grown));
		free(t->cells);
		t->cells = grown;
	}
	t->cells[t->n++] = text;
}

void
textgrid_add(struct textgrid *t, const char *text)
{
	add(t, text_dup(text));
}

void
textgrid_addf(struct textgrid *t, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	textgrid_add(t, text);
}

void
textgrid_end_headings(struct textgrid *t)
{
	t->n_columns = t->n;
}

/* Columns of the terminal, if every character is one wide: the bytes that begin a character. */
static size_t
width_of(const char *text)
{
	size_t n = 0;

	for (const char *p = text; *p != '\0'; p++)
		n += ((unsigned char)*p & 0xc0) != 0x80;
	return n;
}

static size_t
column_width(const struct textgrid *t, size_t column)
{
	size_t widest = 0;

	for (size_t i = column; i < t->n; i += t->n_columns) {
		size_t width = width_of(t->cells[i]);
		widest = width > widest ? width : widest;
	}
	return widest;
}

static void
print_cell(const char *text, size_t width, bool left, bool last, FILE *out)
{
	int pad = (int)(width - width_of(text));

	if (left)
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	else
		fprintf(out, "%*s%s", pad, "", text);
}

void
textgrid_print(const struct textgrid *t, FILE *out)
{
	size_t *widths = text_alloc((t->n_columns + 1) * sizeof(*widths));

	for (size_t i = 0; i < t->n_columns; i++)
		widths[i] = column_width(t, i);
	for (size_t row = 0; t->n_columns > 0 && row + t->n_columns <= t->n; row += t->n_columns) {
		for (size_t i = 0; i < t->n_columns; i++) {
			fputs("  ", out);
			print_cell(t->cells[row + i], widths[i], i < t->n_left, i + 1 == t->n_columns, out);
		}
		fputc('\n', out);
	}
	free(widths);
}

void
textgrid_fini(struct textgrid *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct textgrid){0};
}
