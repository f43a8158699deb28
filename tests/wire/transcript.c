/* SPDX-License-Identifier: ISC */
#include "transcript.h"

#include "packet.h"
#include "proc.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
transcript_add(struct transcript *t, const char *fmt, ...)
{
	va_list ap;

	t->lines = realloc(t->lines, (t->n + 1) * sizeof(*t->lines));
	if (t->lines == NULL)
		proc_die("no memory");
	va_start(ap, fmt);
	if (vasprintf(&t->lines[t->n++], fmt, ap) < 0)
		proc_die("no memory");
	va_end(ap);
}

void
transcript_free(struct transcript *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->lines[i]);
	free(t->lines);
	*t = (struct transcript){0};
}

/* A growing line. */
struct text {
	char buf[2000];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->n + 1 >= sizeof(t->buf))
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->n, sizeof(t->buf) - t->n, fmt, ap);
	va_end(ap);
	t->n += (size_t)n < sizeof(t->buf) - t->n ? (size_t)n : sizeof(t->buf) - t->n - 1;
}

/* Long values as length and hash. */
static void
text_add_bytes(struct text *t, const uint8_t *p, uint32_t n)
{
	uint64_t hash = 14695981039346656037u;

	if (n <= 60) {
		for (uint32_t i = 0; i < n; i++)
			text_add(t, isprint(p[i]) ? "%c" : "\\x%02x", p[i]);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 1099511628211u;
	text_add(t, "<%u bytes, hash %016llx>", n, (unsigned long long)hash);
}

static void
add_fields(struct text *t, const uint8_t *p, const uint8_t *end)
{
	int n = packet_read_i16(p);

	for (p += 2; n > 0 && p < end; n--) {
		uint32_t len = packet_read_u32(p);

		p += 4;
		if (len == UINT32_MAX) {
			text_add(t, " null");
			continue;
		}
		text_add(t, " \"");
		text_add_bytes(t, p, len);
		text_add(t, "\"");
		p += len;
	}
}

static void
add_columns(struct text *t, const uint8_t *p, const uint8_t *end)
{
	int n = packet_read_i16(p);

	for (p += 2; n > 0 && p < end; n--) {
		size_t len = strlen((const char *)p);

		text_add(t, " %s:%u:%d", (const char *)p, packet_read_u32(p + len + 7), packet_read_i16(p + len + 17));
		p += len + 1 + 18;
	}
}

/* File, line and routine are the server's; position, detail and all that a user reads stay. */
static void
add_error(struct text *t, const uint8_t *p, const uint8_t *end, bool with_text)
{
	while (p < end && *p != 0) {
		char field = (char)*p++;

		if (strchr("FLRV", field) == NULL && (with_text || strchr("SC", field) != NULL))
			text_add(t, " %c=%s", field, (const char *)p);
		p += strlen((const char *)p) + 1;
	}
}

static const char *
name_of(char type)
{
	static const struct {
		char type;
		const char *name;
	} names[] = {{'R', "Authentication"},
	             {'S', "ParameterStatus"},
	             {'K', "BackendKeyData"},
	             {'Z', "ReadyForQuery"},
	             {'T', "RowDescription"},
	             {'D', "DataRow"},
	             {'C', "CommandComplete"},
	             {'E', "ErrorResponse"},
	             {'N', "NoticeResponse"},
	             {'I', "EmptyQueryResponse"},
	             {'1', "ParseComplete"},
	             {'2', "BindComplete"},
	             {'3', "CloseComplete"},
	             {'t', "ParameterDescription"},
	             {'n', "NoData"},
	             {'s', "PortalSuspended"},
	             {'G', "CopyInResponse"},
	             {'H', "CopyOutResponse"},
	             {'W', "CopyBothResponse"},
	             {'d', "CopyData"},
	             {'c', "CopyDone"},
	             {'V', "FunctionCallResponse"},
	             {'A', "NotificationResponse"},
	             {'v', "NegotiateProtocolVersion"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].type == type)
			return names[i].name;
	return "unknown message";
}

void
transcript_add_message(struct transcript *t, char type, const uint8_t *body, uint32_t n, bool with_error_text)
{
	struct text text = {.n = 0};
	const uint8_t *end = body + n;

	text_add(&text, "%c %s", type, name_of(type));
	switch (type) {
	case 'T':
		add_columns(&text, body, end);
		break;
	case 'D':
		add_fields(&text, body, end);
		break;
	case 'E':
	case 'N':
		add_error(&text, body, end, with_error_text);
		break;
	case 'K': /* the key is the one thing that must differ */
		text_add(&text, " of %u bytes", n);
		break;
	case 'S':
		text_add(&text, " %s = %s", (const char *)body, (const char *)body + strlen((const char *)body) + 1);
		break;
	case 'C':
		text_add(&text, " %s", (const char *)body);
		break;
	case 'Z':
		text_add(&text, " %c", body[0]);
		break;
	default:
		if (n > 0)
			text_add(&text, " ");
		text_add_bytes(&text, body, n);
		break;
	}
	transcript_add(t, "%s", text.buf);
}

static int
compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
transcript_sort_parameters(struct transcript *t)
{
	for (size_t from = 0, n; from < t->n; from += n + 1) {
		n = 0;

		while (from + n < t->n && t->lines[from + n][0] == 'S')
			n++;
		if (n > 1)
			qsort(t->lines + from, n, sizeof(*t->lines), compare_lines);
	}
}

char *
transcript_diff(const struct transcript *want, const struct transcript *got)
{
	size_t at = 0, from;
	char *out = strdup("");

	while (at < want->n && at < got->n && strcmp(want->lines[at], got->lines[at]) == 0)
		at++;
	if (at == want->n && at == got->n)
		return NULL;
	from = at > 4 ? at - 4 : 0;
	for (size_t i = from; i < at; i++)
		out = proc_fmt("%s        %s\n", out, want->lines[i]);
	for (size_t i = at; i < want->n && i < at + 5; i++)
		out = proc_fmt("%s wanted %s\n", out, want->lines[i]);
	if (at == want->n)
		out = proc_fmt("%s wanted nothing more\n", out);
	for (size_t i = at; i < got->n && i < at + 5; i++)
		out = proc_fmt("%s    got %s\n", out, got->lines[i]);
	if (at == got->n)
		out = proc_fmt("%s    got nothing more\n", out);
	return out;
}
