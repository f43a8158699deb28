/* SPDX-License-Identifier: ISC */
#include "fake_client.h"

#include "base/obj.h"
#include "wire/build.h"
#include "wire/pgmsg.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* %s: the tag and a number. Those without it are shared by all clients. */
static const char *const texts[] = {
	"rows 2 %s",
	"rows 2 $1",
	"rows 3 shared $1",
	"rows 0 shared $1 $2",
	"show %s",
	"begin",
	"commit",
	"rollback",
	"fail %s",
	"wrong %s",
	"defer %s",
	"notice %s",
	"copyin %s",
	"copyout 2 %s",
	"set application_name %s",
	"set DateStyle ISO, DMY",
	"set DateStyle ISO, MDY",
	"deallocate all",
	"discard all",
	"",
	"rows 9 $1 more than a few bytes of text so that it does not fit the smallest buffers",
};

/* Only for Query. */
static const char *const long_texts[] = {
	"begin;rows 1 %s;commit",         "rows 1;fail %s;rows 2",
	"set application_name %s;fail",   "copyin %s;copyin %s",
	"begin;set application_name %s",  "rollback;begin;show %s",
	"copyin;rows 1 %s;copyout 1;x",   "begin;copyin %s;commit;show",
	"begin;defer %s;commit;rows 1",   "copyin %s;fail",
	"set DateStyle SQL, DMY;show %s", "commit;discard all;rows 1 %s",
};

static const char *const statement_names[] = {"", "s1", "s2", "s3", "pgweir_1", ""};
static const char *const portal_names[] = {"", "p1", "p2", ""};

#define PICK(list, byte) ((list)[(byte) % (sizeof(list) / sizeof((list)[0]))])

void
fake_trace(const char *who, char tag, const uint8_t *p, size_t n)
{
	static int wanted = -1;

	if (wanted < 0)
		wanted = getenv("FUZZ_TRACE") != NULL;
	if (!wanted)
		return;
	fprintf(stderr, "%s %c: ", who, tag);
	for (size_t i = 0; i < n && i < 120; i++) {
		if (isprint(p[i]))
			fputc(p[i], stderr);
		else if (i == 0 || i > 4)
			fprintf(stderr, "\\%u", p[i]);
	}
	fputc('\n', stderr);
}

/* ---- saying ---- */

static bool
is_for_copy(char type)
{
	return type == FE_COPY_DATA || type == FE_COPY_DONE || type == FE_COPY_FAIL || type == FE_SYNC ||
	       type == FE_FLUSH;
}

static bool
is_in_copy(const struct fake_server *s)
{
	return s->mode == FAKE_COPY_SIMPLE || s->mode == FAKE_COPY_EXTENDED;
}

static bool
may_be_in_copy(const struct fake_client *c)
{
	const struct fake_server *s = &c->private;

	return is_in_copy(s) || (s->copy_failed_at > c->n_seen && s->copy_failed_at != c->copy_ended_at);
}

/*
 * Syncs that were sent into a COPY: if it fails, only the server knows which of them it had read by then. Until all is answered
 * nobody else can tell what is skipped.
 */
static void
note_sync(struct fake_client *c, const struct frame *f, bool was_in_copy, bool was_open)
{
	if (f->type == FE_SYNC && was_in_copy)
		c->sync_in_copy = true;
	else if (f->type == FE_COPY_DONE && was_open)
		c->sync_in_copy = false;
}

/* Gives the whole messages in b to both servers. */
static void
say(struct fake_client *c, struct buf *b)
{
	const uint8_t *p = buf_head(b);
	size_t pos = 0;
	struct frame f;

	invariant(!b->failed);
	while (pos < b->len && frame_next(p + pos, b->len - pos, &f) == STATUS_OK) {
		bool in_copy = may_be_in_copy(c), is_open = is_in_copy(&c->private);

		if (!is_for_copy(f.type) && (in_copy || c->sync_in_copy)) {
			fake_trace("doubt", c->tag, p + pos, f.len);
			c->state = FAKE_DOUBTFUL;
		}
		fake_trace("client", c->tag, p + pos, f.len);
		fake_server_message(&c->private, &f, p + pos);
		note_sync(c, &f, in_copy, is_open);
		if (f.type == FE_COPY_DONE || f.type == FE_COPY_FAIL)
			c->copy_ended_at = c->private.copy_failed_at;
		pos += f.len;
	}
	invariant(pos == b->len);
	buf_append(&c->outgoing, p, b->len);
	buf_fini(b);
}

static void
make_tag(struct fake_client *c, char tag[32])
{
	snprintf(tag, 32, "@%c%u", c->tag, c->n_said++);
}

static void
put_text(struct buf *b, struct fake_client *c, const char *text, const char *name)
{
	const char *at;
	char tag[32];

	make_tag(c, tag);
	for (; (at = strstr(text, "%s")) != NULL; text = at + 2) {
		buf_append(b, text, (size_t)(at - text));
		buf_append_str(b, tag);
	}
	buf_append_str(b, text);
	if (name[0] != '\0')
		buf_append_str(b, " ");
	msg_str(b, name);
}

static void
put_query(struct buf *b, struct fake_client *c, uint8_t how)
{
	const char *text = how & 0x80 ? PICK(long_texts, how) : PICK(texts, how);
	uint32_t mark = msg_begin(b, FE_QUERY);

	put_text(b, c, text, "");
	msg_end(b, mark);
}

static void
put_parse(struct buf *b, struct fake_client *c, const char *name, uint8_t how)
{
	uint32_t mark = msg_begin(b, FE_PARSE);
	const char *text = PICK(texts, how);

	/*
	 * What is sent behind the Bind of a statement that ends all others is taken as if it had been executed (see
	 * prepared_is_discarding), which the client may never do. As a Query it is clear.
	 */
	if (strstr(text, " all") != NULL)
		text = "show";
	msg_str(b, name);
	put_text(b, c, text, name); /* errors call a statement by one of its names, so it has but one */
	buf_append_u16(b, how & 0x80 ? 1 : 0);
	if (how & 0x80)
		buf_append_u32(b, 25);
	msg_end(b, mark);
}

/* As many parameters as the statement has, as far as the client can know. */
static void
put_bind(struct buf *b, struct fake_client *c, const char *portal, const char *name, int n_wrong)
{
	int n = fake_server_n_parameters(&c->private, name);
	uint32_t mark = msg_begin(b, FE_BIND);
	char tag[32];

	n = (n < 0 ? 0 : n) + n_wrong;
	msg_str(b, portal);
	msg_str(b, name);
	buf_append_u16(b, 0);
	buf_append_u16(b, (uint16_t)n);
	while (n-- > 0) {
		make_tag(c, tag);
		buf_append_u32(b, (uint32_t)strlen(tag));
		buf_append_str(b, tag);
	}
	buf_append_u16(b, 0);
	msg_end(b, mark);
}

static void
put_reference(struct buf *b, char type, char kind, const char *name)
{
	uint32_t mark = msg_begin(b, type);

	buf_append_u8(b, (uint8_t)kind);
	msg_str(b, name);
	msg_end(b, mark);
}

static void
put_execute(struct buf *b, const char *portal, uint32_t limit)
{
	uint32_t mark = msg_begin(b, FE_EXECUTE);

	msg_str(b, portal);
	buf_append_u32(b, limit);
	msg_end(b, mark);
}

static void
put_tagged(struct buf *b, struct fake_client *c, char type, const char *text)
{
	uint32_t mark = msg_begin(b, type);
	char tag[32];

	make_tag(c, tag);
	buf_append_str(b, text);
	msg_str(b, tag);
	msg_end(b, mark);
}

static void
put_empty(struct buf *b, char type)
{
	msg_end(b, msg_begin(b, type));
}

/* What a driver does: parse unless it has, bind, describe, execute. */
static void
put_whole_unit(struct buf *b, struct fake_client *c, uint8_t how)
{
	const char *name = PICK(statement_names, how & 7);

	if (how & 8 || fake_server_n_parameters(&c->private, name) < 0) {
		put_parse(b, c, name, how >> 3);
		say(c, b); /* so that it is known how many parameters it has */
	}
	if (how & 16)
		put_reference(b, FE_DESCRIBE, 'S', name);
	put_bind(b, c, "", name, 0);
	if (how & 32)
		put_reference(b, FE_DESCRIBE, 'P', "");
	put_execute(b, "", 0);
	if (how & 64)
		put_empty(b, FE_SYNC);
}

static void
put_something(struct buf *b, struct fake_client *c, struct fake_input *in)
{
	static const char kinds[] = "PPBBDEECSHQQQFdcfUUUUS";
	char kind = kinds[fake_input_byte(in) % (sizeof(kinds) - 1)];
	uint8_t how = fake_input_byte(in);

	switch (kind) {
	case 'P':
		put_parse(b, c, PICK(statement_names, how), fake_input_byte(in));
		break;
	case 'B':
		put_bind(b, c, PICK(portal_names, how >> 4), PICK(statement_names, how & 15), (how & 15) == 15);
		break;
	case 'D':
	case 'C':
		if (how & 0x80)
			put_reference(b, kind, 'P', PICK(portal_names, how & 3));
		else
			put_reference(b, kind, 'S', PICK(statement_names, how & 7));
		break;
	case 'E':
		put_execute(b, PICK(portal_names, how & 3), how >> 6);
		break;
	case 'Q':
		put_query(b, c, how);
		break;
	case 'F':
		put_tagged(b, c, kind, how & 1 ? "!" : "");
		break;
	case 'd':
		put_tagged(b, c, kind, how % 4 == 0 ? "!" : "");
		break;
	case 'f':
		put_tagged(b, c, kind, "");
		break;
	case 'U':
		put_whole_unit(b, c, how);
		break;
	default:
		put_empty(b, kind);
		break;
	}
}

void
fake_client_say(struct fake_client *c, struct fake_input *in)
{
	struct buf b;

	if (c->state != FAKE_TALKING)
		return;
	buf_init(&b);
	/* nearly always it keeps to the protocol */
	if (fake_client_must_wait(c) && (in->p == in->end || *in->p != 0xff)) {
		uint8_t how = fake_input_byte(in);

		if (how % 8 < 4)
			put_tagged(&b, c, FE_COPY_DATA, how % 8 == 0 ? "!" : "");
		else
			put_empty(&b, "ccSH"[how % 4]);
	} else {
		put_something(&b, c, in);
	}
	say(c, &b);
}

void
fake_client_say_end(struct fake_client *c)
{
	struct buf b;

	buf_init(&b);
	put_tagged(&b, c, FE_COPY_FAIL, "");
	put_empty(&b, FE_SYNC);
	say(c, &b);
}

bool
fake_client_must_wait(const struct fake_client *c)
{
	return may_be_in_copy(c) || c->sync_in_copy;
}

void
fake_client_say_rollback(struct fake_client *c)
{
	uint32_t mark;
	struct buf b;

	buf_init(&b);
	mark = msg_begin(&b, FE_QUERY);
	msg_str(&b, "rollback");
	msg_end(&b, mark);
	say(c, &b);
}

void
fake_client_say_goodbye(struct fake_client *c)
{
	struct buf b;

	buf_init(&b);
	if (c->private.in_unit || c->private.mode != FAKE_NORMAL || fake_client_must_wait(c))
		c->state = FAKE_BREAKING;
	else
		c->state = FAKE_LEAVING;
	build_terminate(&b);
	fake_trace("client", c->tag, (const uint8_t *)"X", 1);
	buf_append(&c->outgoing, buf_head(&b), b.len);
	buf_fini(&b);
}

/* ---- hearing ---- */

/* The daemon's own key is in the greeting; all else of it is looked at when the first settings are shown. */
static size_t
hear_greeting(struct fake_client *c, const uint8_t *p, size_t n)
{
	size_t pos = 0, n_before = c->greeting.len;
	struct frame f;

	buf_append(&c->greeting, p, n);
	p = buf_head(&c->greeting);
	while (frame_next(p + pos, c->greeting.len - pos, &f) == STATUS_OK && f.avail == f.len) {
		invariant(strchr("RSKZ", f.type) != NULL);
		pos += f.len;
		if (f.type == BE_READY) {
			c->state = FAKE_TALKING;
			return pos - n_before;
		}
	}
	return n;
}

static void
trace_difference(const struct fake_client *c, const uint8_t *p, size_t n)
{
	const struct buf *out = &c->private.out;
	const uint8_t *expected = buf_head(out);
	size_t n_expected = out->len - c->n_seen, i = 0;

	while (i < n && i < n_expected && expected[c->n_seen + i] == p[i])
		i++;
	i = i > 30 ? i - 30 : 0;
	fake_trace("got", c->tag, p + i, n - i);
	if (i < n_expected)
		fake_trace("expected", c->tag, expected + c->n_seen + i, n_expected - i);
}

void
fake_client_hear(struct fake_client *c, const uint8_t *p, size_t n)
{
	const struct fake_server *s = &c->private;

	if (c->state == FAKE_GREETING) {
		size_t used = hear_greeting(c, p, n);

		p += used;
		n -= used;
	}
	if (c->state == FAKE_DOUBTFUL || n == 0)
		return;
	fake_trace("heard", c->tag, p, n);
	if (n > s->out.len - c->n_seen || memcmp(buf_head(&s->out) + c->n_seen, p, n) != 0) {
		trace_difference(c, p, n);
		invariant(!"the client gets what its own server would have answered");
	}
	c->n_seen += (uint32_t)n;
	if (!may_be_in_copy(c) && c->n_seen == s->out.len && n >= 6 && p[n - 6] == BE_READY)
		c->sync_in_copy = false;
}

/* ---- life ---- */

void
fake_client_init(struct fake_client *c, char tag, int fd)
{
	static const char *const pairs[] = {"user", "u", "database", "d", NULL};

	memset(c, 0, sizeof(*c));
	fake_server_init(&c->private);
	buf_init(&c->outgoing);
	buf_init(&c->greeting);
	c->state = FAKE_GREETING;
	c->tag = tag;
	c->fd = fd;
	build_startup(&c->outgoing, PROTO_3_0, pairs);
}

void
fake_client_fini(struct fake_client *c)
{
	if (c->state == FAKE_ABSENT)
		return;
	if (c->fd >= 0)
		close(c->fd);
	fake_server_fini(&c->private);
	buf_fini(&c->outgoing);
	buf_fini(&c->greeting);
	c->state = FAKE_ABSENT;
}
