/* SPDX-License-Identifier: ISC */
/* gnuplot's files made fit for a page: what of them would clash or show through is replaced. */
#include "charts.h"

#include <stdlib.h>
#include <string.h>

#include "style.h"
#include "text.h"

static char *
read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0;
	ssize_t n;

	if (file == NULL)
		return NULL;
	n = getdelim(&text, &cap, '\0', file);
	fclose(file);
	if (n <= 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool
begins_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The symbols that gnuplot defines in every file have the same ids in all of them. */
static const char *const shared_ids[] = {"gpPt", "gpDot", "textbox", "greybox", "gnuplot_canvas"};

/* The length of the id that begins at s; 0: none does. */
static size_t
shared_id(const char *s)
{
	for (size_t i = 0; i < sizeof(shared_ids) / sizeof(shared_ids[0]); i++) {
		if (begins_with(s, shared_ids[i]))
			return strlen(shared_ids[i]);
	}
	return 0;
}

/* Ids stand behind a quote or a #, so the text of a label is left alone. */
static void
append_body(struct buf *html, const char *svg, size_t chart)
{
	for (const char *p = svg; *p != '\0'; p++) {
		buf_append_u8(html, (uint8_t)*p);
		if ((*p == '\'' || *p == '"' || *p == '#') && shared_id(p + 1) > 0)
			buf_printf(html, "c%zu", chart);
	}
}

bool
charts_inline(struct buf *html, const char *dir, const struct charts *charts, size_t i)
{
	char *path = text_fmt("%s/charts/%s", dir, charts->items[i].file);
	char *svg = read_file(path);
	const char *start = svg == NULL ? NULL : strstr(svg, "<svg"), *title = NULL, *end = NULL;

	free(path);
	if (start != NULL)
		title = strstr(start, "<title>");
	if (title != NULL)
		end = strstr(title, "</desc>");
	if (end != NULL) { /* the title would be shown as a tool tip: "chart12" */
		buf_append(html, start, (size_t)(title - start));
		append_body(html, end + strlen("</desc>"), i);
	}
	free(svg);
	return end != NULL;
}

/* A rule for each way in which gnuplot names a colour; they outrank its attributes. */
static void
append_colour(struct buf *html, uint32_t from, const char *to)
{
	static const char *const properties[] = {"stroke", "fill", "color"};
	unsigned red = from >> 16, green = from >> 8 & 0xff, blue = from & 0xff;

	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
		buf_printf(html, "figure [%s=\"rgb(%3u, %3u, %3u)\"]{%s:%s}\n", properties[i], red, green, blue,
		           properties[i], to);
}

void
charts_append_css(struct buf *html)
{
	char to[16];

	buf_append_str(html, "figure svg{display:block;width:100%;height:auto}\n"
	                     "figure text,figure tspan{font-family:inherit}\n"
	                     "figure rect[fill=\"#ffffff\"]{fill:none}\n"
	                     "@media (prefers-color-scheme:dark){\n"
	                     "figure [stroke=black]{stroke:#dee2e6}\n"
	                     "figure [fill=black]{fill:#dee2e6}\n"
	                     "figure [color=black]{color:#dee2e6}\n"
	                     "figure [fill=\"rgb(0,0,0)\"]{fill:#dee2e6}\n");
	append_colour(html, 0x000000, "#dee2e6");
	append_colour(html, 0xc8c8c8, "#454b52");
	for (size_t i = 0; i < STYLE_N_COLOURS; i++) {
		snprintf(to, sizeof(to), "#%06x", style_colours[i].dark);
		append_colour(html, style_colours[i].light, to);
	}
	buf_append_str(html, "}\n");
}
