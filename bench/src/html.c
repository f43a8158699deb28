/* SPDX-License-Identifier: ISC */
#include "html.h"

#include <stdarg.h>
#include <stdio.h>

void
html_text(struct buf *b, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		switch (*p) {
		case '&':
			buf_append_str(b, "&amp;");
			break;
		case '<':
			buf_append_str(b, "&lt;");
			break;
		case '>':
			buf_append_str(b, "&gt;");
			break;
		case '"':
			buf_append_str(b, "&quot;");
			break;
		case '\'':
			buf_append_str(b, "&#39;");
			break;
		default:
			buf_append_u8(b, (uint8_t)*p);
			break;
		}
	}
}

void
html_element(struct buf *b, const char *tag, const char *class, const char *text)
{
	if (class == NULL)
		buf_printf(b, "<%s>", tag);
	else
		buf_printf(b, "<%s class=\"%s\">", tag, class);
	html_text(b, text);
	buf_printf(b, "</%s>", tag);
}

void
html_elementf(struct buf *b, const char *tag, const char *class, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	html_element(b, tag, class, text);
}
