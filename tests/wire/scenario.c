/* SPDX-License-Identifier: ISC */
#include "scenario.h"

#include "proc.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 256

/* A line's words; a quoted one may contain any byte, so lengths count. */
struct line {
	struct word {
		char *text;
		size_t n;
		bool quoted;
	} words[MAX_WORDS];
	int n;
};

struct reader {
	struct scenario *s;
	struct line line;
	char *error;
	int line_no;
};

static void __attribute__((format(printf, 2, 3))) fail(struct reader *r, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->error == NULL)
		r->error = proc_fmt("%s:%d: %s", r->s->path, r->line_no, text);
}

/* ---- words ---- */

static int
hex_value(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
	                                    : -1;
}

/* *p is behind the opening quote; returns behind the closing one, or NULL. */
static const char *
read_quoted(const char *p, struct word *w)
{
	struct packet out = {0};

	for (; *p != '"'; p++) {
		if (*p == '\0')
			return NULL;
		if (*p != '\\') {
			packet_i8(&out, *p);
			continue;
		}
		switch (*++p) {
		case 'n':
			packet_i8(&out, '\n');
			break;
		case 't':
			packet_i8(&out, '\t');
			break;
		case 'x':
			if (hex_value(p[1]) < 0 || hex_value(p[2]) < 0)
				return NULL;
			packet_i8(&out, hex_value(p[1]) * 16 + hex_value(p[2]));
			p += 2;
			break;
		case '"':
		case '\\':
			packet_i8(&out, *p);
			break;
		default:
			return NULL;
		}
	}
	w->n = out.n;
	packet_i8(&out, 0);
	w->text = (char *)out.data;
	w->quoted = true;
	return p + 1;
}

/* "text"*1000 repeats the text. */
static const char *
read_factor(const char *p, struct word *w)
{
	char *end;
	size_t times = strtoul(p + 1, &end, 10);
	struct packet out = {0};

	for (size_t i = 0; i < times; i++)
		packet_bytes(&out, w->text, w->n);
	w->n = out.n;
	packet_i8(&out, 0);
	w->text = (char *)out.data;
	return end;
}

/* "text" + "more"*3 + "end" is one word. */
static const char *
read_joined(const char *p, struct word *w)
{
	struct packet out = {0};
	bool more = true;

	while (more) {
		if (*p != '"' || (p = read_quoted(p + 1, w)) == NULL)
			return NULL;
		if (*p == '*')
			p = read_factor(p, w);
		packet_bytes(&out, w->text, w->n);
		more = p[strspn(p, " ")] == '+';
		if (more)
			p += strspn(p, " +");
	}
	w->n = out.n;
	packet_i8(&out, 0);
	w->text = (char *)out.data;
	return p;
}

static void
split(struct reader *r, const char *p)
{
	r->line.n = 0;
	for (;;) {
		struct word *w = &r->line.words[r->line.n];

		p += strspn(p, " \t\r\n");
		if (*p == '\0' || (p[0] == '-' && p[1] == '-'))
			return;
		if (r->line.n == MAX_WORDS - 1) {
			fail(r, "too many words");
			return;
		}
		*w = (struct word){0};
		if (*p == '"') {
			p = read_joined(p, w);
			if (p == NULL) {
				fail(r, "bad quoting");
				return;
			}
		} else {
			w->n = strcspn(p, " \t\r\n");
			w->text = strndup(p, w->n);
			p += w->n;
		}
		r->line.n++;
	}
}

static struct word
word(struct reader *r, int i)
{
	if (i < r->line.n)
		return r->line.words[i];
	fail(r, "%s: word %d is missing", r->line.words[0].text, i);
	return (struct word){.text = strdup("")};
}

static bool
word_is(struct reader *r, int i, const char *text)
{
	return i < r->line.n && !r->line.words[i].quoted && strcmp(r->line.words[i].text, text) == 0;
}

static int
number(struct reader *r, int i, int otherwise)
{
	return i < r->line.n ? (int)strtol(r->line.words[i].text, NULL, 0) : otherwise;
}

static void
put_str(struct packet *p, struct word w)
{
	packet_bytes(p, w.text, w.n);
	packet_i8(p, 0);
}

/* A parameter value: "text", null, or hex:00ff. */
static void
put_value(struct reader *r, struct packet *p, struct word w)
{
	if (!w.quoted && strcmp(w.text, "null") == 0) {
		packet_i32(p, -1);
	} else if (!w.quoted && strncmp(w.text, "hex:", 4) == 0) {
		packet_i32(p, (int)(w.n - 4) / 2);
		for (size_t i = 4; i + 1 < w.n; i += 2)
			packet_i8(p, hex_value(w.text[i]) * 16 + hex_value(w.text[i + 1]));
	} else if (w.quoted) {
		packet_i32(p, (int)w.n);
		packet_bytes(p, w.text, w.n);
	} else {
		fail(r, "%s: a value is \"text\", null or hex:00ff", w.text);
	}
}

/* ---- messages ---- */

static void
build_parse(struct reader *r, struct packet *p)
{
	put_str(p, word(r, 1));
	put_str(p, word(r, 2));
	packet_i16(p, r->line.n - 3);
	for (int i = 3; i < r->line.n; i++)
		packet_i32(p, number(r, i, 0));
}

/* Bind "portal" "statement" [in=FORMAT] [out=FORMAT] values... */
static void
build_bind(struct reader *r, struct packet *p)
{
	int at = 3, in = -1, out = -1;

	put_str(p, word(r, 1));
	put_str(p, word(r, 2));
	for (; at < r->line.n && !r->line.words[at].quoted; at++) {
		if (sscanf(r->line.words[at].text, "in=%d", &in) != 1 &&
		    sscanf(r->line.words[at].text, "out=%d", &out) != 1)
			break;
	}
	packet_i16(p, in >= 0);
	if (in >= 0)
		packet_i16(p, in);
	packet_i16(p, r->line.n - at);
	for (; at < r->line.n; at++)
		put_value(r, p, r->line.words[at]);
	packet_i16(p, out >= 0);
	if (out >= 0)
		packet_i16(p, out);
}

static void
build_target(struct reader *r, struct packet *p)
{
	packet_i8(p, word(r, 1).text[0]);
	put_str(p, word(r, 2));
}

static void
build_execute(struct reader *r, struct packet *p)
{
	put_str(p, word(r, 1));
	packet_i32(p, number(r, 2, 0));
}

static void
build_string(struct reader *r, struct packet *p)
{
	put_str(p, word(r, 1));
}

static void
build_data(struct reader *r, struct packet *p)
{
	struct word w = word(r, 1);

	packet_bytes(p, w.text, w.n);
}

/* FunctionCall OID values... : text in, text out */
static void
build_function_call(struct reader *r, struct packet *p)
{
	packet_i32(p, number(r, 1, 0));
	packet_i16(p, 0);
	packet_i16(p, r->line.n - 2);
	for (int i = 2; i < r->line.n; i++)
		put_value(r, p, r->line.words[i]);
	packet_i16(p, 0);
}

static void
build_empty(struct reader *r, struct packet *p)
{
	(void)r, (void)p;
}

/* Startup MAJOR.MINOR "name" "value" ... */
static void
build_startup(struct reader *r, struct packet *p)
{
	unsigned major = 3, minor = 0;

	if (sscanf(word(r, 1).text, "%u.%u", &major, &minor) != 2)
		fail(r, "Startup 3.0 \"user\" ...");
	packet_i32(p, (int64_t)major << 16 | minor);
	for (int i = 2; i < r->line.n; i++)
		put_str(p, word(r, i));
	packet_i8(p, 0);
}

static void
build_ssl_request(struct reader *r, struct packet *p)
{
	(void)r;
	packet_i32(p, 80877103);
}

static void
build_gssenc_request(struct reader *r, struct packet *p)
{
	(void)r;
	packet_i32(p, 80877104);
}

/* CancelRequest PID KEY */
static void
build_cancel_request(struct reader *r, struct packet *p)
{
	packet_i32(p, 80877102);
	packet_i32(p, number(r, 1, 0));
	packet_i32(p, number(r, 2, 0));
}

static const struct message {
	const char *name;
	char type; /* 0: a startup packet */
	void (*build)(struct reader *r, struct packet *p);
} messages[] = {
	{"Query", 'Q', build_string},
	{"Parse", 'P', build_parse},
	{"Bind", 'B', build_bind},
	{"Describe", 'D', build_target},
	{"Execute", 'E', build_execute},
	{"Close", 'C', build_target},
	{"Sync", 'S', build_empty},
	{"Flush", 'H', build_empty},
	{"CopyData", 'd', build_data},
	{"CopyDone", 'c', build_empty},
	{"CopyFail", 'f', build_string},
	{"FunctionCall", 'F', build_function_call},
	{"Terminate", 'X', build_empty},
	{"Startup", 0, build_startup},
	{"SSLRequest", 0, build_ssl_request},
	{"GSSENCRequest", 0, build_gssenc_request},
	{"CancelRequest", 0, build_cancel_request},
};

/* ---- lines ---- */

static struct step *
add_step(struct reader *r, enum step_kind kind)
{
	struct scenario *s = r->s;
	struct step *step;

	s->steps = realloc(s->steps, (s->n_steps + 1) * sizeof(*s->steps));
	if (s->steps == NULL)
		proc_die("no memory");
	step = &s->steps[s->n_steps++];
	*step = (struct step){.kind = kind, .n = 1};
	return step;
}

/* raw 51 00 "text" */
static void
add_raw(struct reader *r)
{
	struct packet *p = &add_step(r, STEP_SEND)->bytes;

	for (int i = 1; i < r->line.n; i++) {
		struct word w = r->line.words[i];

		if (w.quoted)
			packet_bytes(p, w.text, w.n);
		else if (w.n == 2 && hex_value(w.text[0]) >= 0 && hex_value(w.text[1]) >= 0)
			packet_i8(p, hex_value(w.text[0]) * 16 + hex_value(w.text[1]));
		else
			fail(r, "%s is neither two hex digits nor \"text\"", w.text);
	}
}

static void
add_wait(struct reader *r)
{
	if (word_is(r, 1, "close")) {
		add_step(r, STEP_WAIT_EOF);
	} else if (word_is(r, 1, "byte")) {
		add_step(r, STEP_BYTE);
	} else {
		struct step *step = add_step(r, STEP_WAIT);

		step->type = word(r, 1).text[0];
		step->n = number(r, 2, 1);
	}
}

static bool
add_message(struct reader *r)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		if (word_is(r, 0, messages[i].name)) {
			struct packet *p = &add_step(r, STEP_SEND)->bytes;

			packet_begin(p, messages[i].type);
			messages[i].build(r, p);
			packet_end(p);
			return true;
		}
	return false;
}

static bool
read_directive(struct reader *r)
{
	struct scenario *s = r->s;

	if (word_is(r, 0, "no-login"))
		s->logs_in = s->compares_login = false;
	else if (word_is(r, 0, "unix"))
		s->over_unix = true;
	else if (word_is(r, 0, "setup"))
		s->setup = word(r, 1).text;
	else if (word_is(r, 0, "check"))
		s->check = word(r, 1).text;
	else if (word_is(r, 0, "compare") && word_is(r, 1, "sqlstate"))
		s->compares_error_text = false;
	else if (word_is(r, 0, "ignore"))
		snprintf(s->ignored, sizeof(s->ignored), "%s", word(r, 1).text);
	else if (word_is(r, 0, "login"))
		for (int i = 1; i < r->line.n && i <= SCENARIO_STARTUP_MAX; i++)
			s->startup[i - 1] = word(r, i).text;
	else
		return false;
	return true;
}

static bool
read_action(struct reader *r)
{
	if (word_is(r, 0, "raw"))
		add_raw(r);
	else if (word_is(r, 0, "wait"))
		add_wait(r);
	else if (word_is(r, 0, "until"))
		add_step(r, STEP_UNTIL)->sql = word(r, 1).text;
	else if (word_is(r, 0, "cancel"))
		add_step(r, STEP_CANCEL);
	else if (word_is(r, 0, "half-close"))
		add_step(r, STEP_HALF_CLOSE);
	else if (word_is(r, 0, "close"))
		add_step(r, STEP_CLOSE);
	else
		return false;
	return true;
}

static void
read_line(struct reader *r, const char *text)
{
	int times = 1;

	split(r, text);
	if (r->line.n == 0 || r->error != NULL)
		return;
	if (word_is(r, 0, "repeat")) { /* repeat N message... */
		times = number(r, 1, 1);
		memmove(r->line.words, r->line.words + 2, sizeof(r->line.words) - 2 * sizeof(r->line.words[0]));
		r->line.n -= 2;
	}
	for (int i = 0; i < times && r->error == NULL; i++)
		if (!add_message(r) && !read_action(r) && !read_directive(r))
			fail(r, "what is \"%s\"?", r->line.words[0].text);
}

struct scenario *
scenario_read(const char *path, char **error)
{
	struct scenario *s = calloc(1, sizeof(*s));
	struct reader r = {.s = s};
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;

	if (s == NULL || f == NULL) {
		*error = proc_fmt("%s: cannot be read", path);
		free(s);
		return NULL;
	}
	s->path = strdup(path);
	s->logs_in = s->compares_error_text = s->compares_login = true;
	while (getline(&line, &cap, f) >= 0 && r.error == NULL) {
		r.line_no++;
		if (r.line_no == 1 && strncmp(line, "-- ", 3) == 0)
			s->title = strndup(line + 3, strcspn(line + 3, "\n"));
		read_line(&r, line);
	}
	fclose(f);
	free(line);
	if (s->title == NULL)
		fail(&r, "the first line must be \"-- title\"");
	*error = r.error;
	return r.error == NULL ? s : NULL;
}
