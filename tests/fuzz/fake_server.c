/* SPDX-License-Identifier: ISC */
#include "fake_server.h"

#include "base/obj.h"
#include "base/str.h"
#include "wire/build.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_statement {
	struct fake_statement *next;
	char *name, *text;
};

struct fake_portal {
	struct fake_portal *next;
	char *name, *text;
	char *values; /* of the parameters, each behind a blank */
	int n_left;   /* rows; -1: not begun */
	bool is_done; /* ran to its end */
};

enum outcome {
	RAN,
	FAILED,    /* the error was sent */
	COPY_OPEN, /* waits for copy data */
};

static const char *const setting_names[FAKE_N_SETTINGS] = {"application_name", "DateStyle"};
static const char *const setting_defaults[FAKE_N_SETTINGS] = {"", "ISO, MDY"};

/* ---- what is said ---- */

static enum outcome
fail(struct fake_server *s, const char *sqlstate, const char *message)
{
	build_error(&s->out, "ERROR", sqlstate, message, NULL, NULL);
	s->n_flushed = s->out.len;
	if (s->tx == TX_OPEN) {
		s->tx = TX_FAILED;
		s->is_deferred = false;
		memcpy(s->values, s->committed, sizeof(s->values));
	}
	return FAILED;
}

static void
complete(struct fake_server *s, const char *tag)
{
	build_command_complete(&s->out, tag);
}

static void
say_empty(struct fake_server *s, char type)
{
	msg_end(&s->out, msg_begin(&s->out, type));
}

static void
say_ready(struct fake_server *s)
{
	for (int i = 0; i < FAKE_N_SETTINGS; i++) {
		if (strcmp(s->reported[i], s->values[i]) == 0)
			continue;
		memcpy(s->reported[i], s->values[i], FAKE_VALUE_MAX);
		build_parameter_status(&s->out, setting_names[i], s->values[i]);
	}
	build_ready(&s->out, s->tx);
	s->n_flushed = s->out.len;
}

static void
say_row(struct fake_server *s, const char *text, const char *values)
{
	char row[4096];
	const char *column = row;

	snprintf(row, sizeof(row), "%.1900s%.1900s", text, values);
	build_data_row(&s->out, &column, 1);
}

static void
say_columns(struct fake_server *s)
{
	static const char *const name = "t";
	static const uint32_t oid = 25;

	build_row_description(&s->out, &name, &oid, 1);
}

static void
say_copy_begin(struct fake_server *s, char type)
{
	uint32_t mark = msg_begin(&s->out, type);

	buf_append_u8(&s->out, 0);
	buf_append_u16(&s->out, 0);
	msg_end(&s->out, mark);
}

/* ---- statements and portals ---- */

static struct fake_statement *
find_statement(const struct fake_server *s, const char *name)
{
	struct fake_statement *st = s->statements;

	while (st != NULL && strcmp(st->name, name) != 0)
		st = st->next;
	return st;
}

static void
drop_statement(struct fake_server *s, const char *name)
{
	struct fake_statement **at = &s->statements, *st;

	while ((st = *at) != NULL && strcmp(st->name, name) != 0)
		at = &st->next;
	if (st == NULL)
		return;
	*at = st->next;
	free(st->name);
	free(st->text);
	free(st);
}

/* DEALLOCATE ALL: the unnamed one stays. */
static void
drop_named_statements(struct fake_server *s)
{
	struct fake_statement *st = s->statements, *next;

	for (; st != NULL; st = next) {
		next = st->next;
		if (st->name[0] != '\0')
			drop_statement(s, st->name);
	}
}

static struct fake_portal *
find_portal(const struct fake_server *s, const char *name)
{
	struct fake_portal *portal = s->portals;

	while (portal != NULL && strcmp(portal->name, name) != 0)
		portal = portal->next;
	return portal;
}

static void
drop_portal(struct fake_server *s, const char *name)
{
	struct fake_portal **at = &s->portals, *portal;

	while ((portal = *at) != NULL && strcmp(portal->name, name) != 0)
		at = &portal->next;
	if (portal == NULL)
		return;
	*at = portal->next;
	free(portal->name);
	free(portal->text);
	free(portal->values);
	free(portal);
}

static void
drop_portals(struct fake_server *s)
{
	while (s->portals != NULL)
		drop_portal(s, s->portals->name);
}

/* ---- texts ---- */

static bool
begins(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

/* pgweir's own way to set what a session had set. */
static bool
is_set_config(const char *text)
{
	return begins(text, "SELECT pg_catalog.set_config($1, $2, $3)");
}

static bool
has_rows(const char *text)
{
	return begins(text, "rows ") || begins(text, "show") || is_set_config(text);
}

/* May run in a transaction that has failed. */
static bool
is_exit(const char *text)
{
	return begins(text, "commit") || begins(text, "rollback") || begins(text, "ROLLBACK");
}

static int
n_parameters(const char *text)
{
	int n = 0;

	for (const char *at = text; (at = strchr(at, '$')) != NULL; at++)
		if (at[1] >= '1' && at[1] <= '9' && at[1] - '0' > n)
			n = at[1] - '0';
	return n;
}

static int
number_in(const char *text)
{
	const char *at = strchr(text, ' ');

	return at != NULL && at[1] >= '0' && at[1] <= '9' ? at[1] - '0' : 0;
}

/* ---- transactions ---- */

static enum outcome
end_transaction(struct fake_server *s, bool commit)
{
	enum outcome outcome = RAN;

	if (commit && s->is_deferred) {
		s->tx = TX_IDLE;
		outcome = fail(s, "23503", "deferred");
		commit = false;
	}
	if (commit)
		memcpy(s->committed, s->values, sizeof(s->values));
	else
		memcpy(s->values, s->committed, sizeof(s->values));
	s->is_deferred = false;
	s->tx = TX_IDLE;
	drop_portals(s);
	return outcome;
}

/* At the end of what was an implicit transaction, if it was one. False: it failed, which has been said. */
static bool
end_implicit(struct fake_server *s)
{
	s->in_unit = false;
	return s->tx != TX_IDLE || end_transaction(s, true) == RAN;
}

static void
fail_implicit(struct fake_server *s)
{
	if (s->tx == TX_IDLE)
		(void)end_transaction(s, false);
}

static enum outcome
run_transaction_statement(struct fake_server *s, const char *text)
{
	bool is_commit = begins(text, "commit");

	if (begins(text, "begin")) {
		if (s->tx == TX_OPEN)
			build_notice(&s->out, "WARNING", "25001", "there is already a transaction in progress");
		s->tx = TX_OPEN;
		complete(s, "BEGIN");
		return RAN;
	}
	if (s->tx == TX_IDLE)
		build_notice(&s->out, "WARNING", "25P01", "there is no transaction in progress");
	if (s->tx == TX_FAILED)
		is_commit = false;
	if (s->tx != TX_IDLE && end_transaction(s, is_commit) == FAILED)
		return FAILED;
	complete(s, is_commit ? "COMMIT" : "ROLLBACK");
	return RAN;
}

/* ---- settings ---- */

static void
set_value(struct fake_server *s, const char *name, const char *value)
{
	for (int i = 0; i < FAKE_N_SETTINGS; i++)
		if (str_equal_nocase(name, setting_names[i]))
			str_copy(s->values[i], FAKE_VALUE_MAX, value ? value : setting_defaults[i]);
}

static enum outcome
run_set(struct fake_server *s, const char *text)
{
	char name[64], value[64];

	if (sscanf(text, "set %63s %63[^;]", name, value) != 2)
		return fail(s, "42601", "syntax error");
	set_value(s, name, value);
	complete(s, "SET");
	return RAN;
}

static enum outcome
run_discard(struct fake_server *s, bool everything)
{
	if (everything && s->tx != TX_IDLE)
		return fail(s, "25001", "DISCARD ALL cannot run inside a transaction block");
	drop_named_statements(s);
	for (int i = 0; everything && i < FAKE_N_SETTINGS; i++)
		set_value(s, setting_names[i], NULL);
	complete(s, everything ? "DISCARD ALL" : "DEALLOCATE ALL");
	return RAN;
}

/* ---- statements run ---- */

static void
run_copy_out(struct fake_server *s, const char *text)
{
	char tag[32];
	int n = number_in(text);

	say_copy_begin(s, BE_COPY_OUT);
	for (int i = 0; i < n; i++) {
		uint32_t mark = msg_begin(&s->out, BE_COPY_DATA);

		buf_append_str(&s->out, text);
		msg_end(&s->out, mark);
	}
	say_empty(s, BE_COPY_DONE);
	snprintf(tag, sizeof(tag), "COPY %d", n);
	complete(s, tag);
}

static void
open_copy(struct fake_server *s, const char *text)
{
	say_copy_begin(s, BE_COPY_IN);
	s->n_flushed = s->out.len;
	s->n_copied = 0;
	free(s->copying);
	s->copying = str_dup(text);
}

static void
say_settings(struct fake_server *s, const char *text)
{
	char row[256];

	snprintf(row, sizeof(row), "%.100s %s %s", text, s->values[0], s->values[1]);
	say_row(s, row, "");
	complete(s, "SHOW");
}

/* All but rows. */
static enum outcome
run_statement(struct fake_server *s, const char *text)
{
	if (s->tx == TX_FAILED && !is_exit(text))
		return fail(s, "25P02",
		            "current transaction is aborted, commands ignored until end of transaction block");
	if (begins(text, "begin") || is_exit(text))
		return run_transaction_statement(s, text);
	if (begins(text, "fail"))
		return fail(s, "22012", text);
	if (begins(text, "set "))
		return run_set(s, text);
	if (begins(text, "deallocate all") || begins(text, "discard all") || strcmp(text, "DISCARD ALL") == 0)
		return run_discard(s, text[1] != 'e');
	if (begins(text, "copyin")) {
		open_copy(s, text);
		return COPY_OPEN;
	}
	if (begins(text, "copyout")) {
		run_copy_out(s, text);
		return RAN;
	}
	if (begins(text, "notice"))
		build_notice(&s->out, "NOTICE", "00000", text);
	if (begins(text, "defer"))
		s->is_deferred = true;
	complete(s, "DO");
	return RAN;
}

/* ---- Query ---- */

static void
end_query(struct fake_server *s, enum outcome outcome)
{
	if (outcome == FAILED)
		fail_implicit(s);
	s->mode = FAKE_NORMAL;
	(void)end_implicit(s);
	free(s->rest);
	s->rest = NULL;
	say_ready(s);
}

static enum outcome
run_in_query(struct fake_server *s, const char *text)
{
	char tag[32];
	int n = number_in(text);

	if (!has_rows(text) || s->tx == TX_FAILED)
		return run_statement(s, text);
	say_columns(s);
	if (begins(text, "show")) {
		say_settings(s, text);
		return RAN;
	}
	for (int i = 0; i < n; i++)
		say_row(s, text, "");
	snprintf(tag, sizeof(tag), "SELECT %d", n);
	complete(s, tag);
	return RAN;
}

/* What is left of a Query, from `s->rest` on. */
static void
run_rest(struct fake_server *s)
{
	enum outcome outcome = RAN;

	while (s->rest != NULL && outcome == RAN) {
		char *text = s->rest, *end = strchr(text, ';');

		s->rest = end != NULL ? str_dup(end + 1) : NULL;
		if (end != NULL)
			*end = '\0';
		outcome = run_in_query(s, text);
		free(text);
	}
	if (outcome == COPY_OPEN)
		s->mode = FAKE_COPY_SIMPLE;
	else
		end_query(s, outcome);
}

static void
on_query(struct fake_server *s, const char *text)
{
	drop_statement(s, "");
	drop_portal(s, "");
	if (strstr(text, "wrong") != NULL) {
		end_query(s, fail(s, "42601", text));
		return;
	}
	if (text[0] == '\0') {
		say_empty(s, BE_EMPTY_QUERY);
		end_query(s, RAN);
		return;
	}
	s->rest = str_dup(text);
	run_rest(s);
}

/* ---- the extended protocol ---- */

static enum outcome
on_parse(struct fake_server *s, struct reader *r)
{
	const char *name = reader_str(r), *text = reader_str(r);
	struct fake_statement *st;

	if (r->bad)
		return fail(s, "08P01", "invalid message format");
	if (name[0] == '\0')
		drop_statement(s, "");
	if (s->tx == TX_FAILED && find_statement(s, name) != NULL) /* see on_bind() */
		return fail(s, "25P02",
		            "current transaction is aborted, commands ignored until end of transaction block");
	if (begins(text, "wrong"))
		return fail(s, "42601", text);
	if (s->tx == TX_FAILED && !is_exit(text))
		return fail(s, "25P02",
		            "current transaction is aborted, commands ignored until end of transaction block");
	if (find_statement(s, name) != NULL) {
		char message[160];

		snprintf(message, sizeof(message), "prepared statement \"%.100s\" already exists", name);
		return fail(s, "42P05", message);
	}
	st = calloc(1, sizeof(*st));
	invariant(st != NULL);
	st->name = str_dup(name);
	st->text = str_dup(text);
	st->next = s->statements;
	s->statements = st;
	say_empty(s, BE_PARSE_COMPLETE);
	return RAN;
}

static enum outcome
no_statement(struct fake_server *s, const char *name)
{
	char message[160];

	if (name[0] == '\0')
		return fail(s, "26000", "unnamed prepared statement does not exist");
	snprintf(message, sizeof(message), "prepared statement \"%.100s\" does not exist", name);
	return fail(s, "26000", message);
}

static enum outcome
no_portal(struct fake_server *s, const char *name)
{
	char message[160];

	snprintf(message, sizeof(message), "portal \"%.100s\" does not exist", name);
	return fail(s, "34000", message);
}

/* The values behind the formats, each behind a blank; NULL: malformed. */
static char *
read_values(struct reader *r, int n)
{
	struct buf values;
	char *text;

	buf_init(&values);
	for (int i = 0; i < n && !r->bad; i++) {
		uint32_t len = reader_u32(r);

		buf_append_str(&values, len == UINT32_MAX ? " NULL" : " ");
		if (len != UINT32_MAX && len > 0) {
			const uint8_t *bytes = reader_bytes(r, len);

			if (!r->bad)
				buf_append(&values, bytes, len);
		}
	}
	buf_append_u8(&values, 0);
	text = r->bad || values.failed ? NULL : str_dup((const char *)buf_head(&values));
	buf_fini(&values);
	return text;
}

static enum outcome
add_portal(struct fake_server *s, const char *name, const struct fake_statement *st, struct reader *r)
{
	struct fake_portal *portal = calloc(1, sizeof(*portal));

	invariant(portal != NULL);
	portal->values = read_values(r, n_parameters(st->text));
	if (portal->values == NULL) {
		free(portal);
		return fail(s, "08P01", "invalid message format");
	}
	portal->name = str_dup(name);
	portal->text = str_dup(st->text);
	portal->n_left = -1;
	portal->next = s->portals;
	s->portals = portal;
	say_empty(s, BE_BIND_COMPLETE);
	return RAN;
}

static enum outcome
on_bind(struct fake_server *s, struct reader *r)
{
	const char *portal = reader_str(r), *name = reader_str(r);
	const struct fake_statement *st = find_statement(s, name);
	unsigned n_formats = reader_u16(r), n;

	for (unsigned i = 0; i < n_formats && !r->bad; i++)
		(void)reader_u16(r);
	n = reader_u16(r);
	if (st == NULL)
		return no_statement(s, name);
	/*
	 * A real one would look at the number of parameters first, describes a statement without rows in a failed transaction, too,
	 * and finds a name in use or a syntax error before it says that the transaction has failed. None of this can be told when
	 * the statement must be parsed again, which then is refused.
	 */
	if (s->tx == TX_FAILED && !is_exit(st->text))
		return fail(s, "25P02",
		            "current transaction is aborted, commands ignored until end of transaction block");
	if ((int)n != n_parameters(st->text)) {
		char message[200];

		snprintf(message, sizeof(message),
		         "bind message supplies %u parameters, but prepared statement \"%.100s\" requires %d", n, name,
		         n_parameters(st->text));
		return fail(s, "08P01", message);
	}
	if (portal[0] == '\0')
		drop_portal(s, "");
	else if (find_portal(s, portal) != NULL)
		return fail(s, "42P03", "cursor already exists");
	return add_portal(s, portal, st, r);
}

static void
describe_result(struct fake_server *s, const char *text)
{
	if (has_rows(text))
		say_columns(s);
	else
		say_empty(s, BE_NO_DATA);
}

static enum outcome
describe_statement(struct fake_server *s, const char *name)
{
	const struct fake_statement *st = find_statement(s, name);
	uint32_t mark;
	int n;

	if (st == NULL)
		return no_statement(s, name);
	if (s->tx == TX_FAILED && !is_exit(st->text)) /* see on_bind() */
		return fail(s, "25P02",
		            "current transaction is aborted, commands ignored until end of transaction block");
	n = n_parameters(st->text);
	mark = msg_begin(&s->out, BE_PARAMETER_DESCRIPTION);
	buf_append_u16(&s->out, (uint16_t)n);
	while (n-- > 0)
		buf_append_u32(&s->out, 25);
	msg_end(&s->out, mark);
	describe_result(s, st->text);
	return RAN;
}

static enum outcome
on_describe(struct fake_server *s, struct reader *r)
{
	uint8_t kind = reader_u8(r);
	const char *name = reader_str(r);
	const struct fake_portal *portal;

	if (kind == 'S')
		return describe_statement(s, name);
	if (kind != 'P')
		return fail(s, "08P01", "invalid DESCRIBE message subtype");
	portal = find_portal(s, name);
	if (portal == NULL)
		return no_portal(s, name);
	if (s->tx == TX_FAILED && has_rows(portal->text))
		return fail(s, "25P02",
		            "current transaction is aborted, commands ignored until end of transaction block");
	describe_result(s, portal->text);
	return RAN;
}

static enum outcome
on_close(struct fake_server *s, struct reader *r)
{
	uint8_t kind = reader_u8(r);
	const char *name = reader_str(r);

	if (kind == 'S')
		drop_statement(s, name);
	else if (kind == 'P')
		drop_portal(s, name);
	else
		return fail(s, "08P01", "invalid CLOSE message subtype");
	say_empty(s, BE_CLOSE_COMPLETE);
	return RAN;
}

static void
run_set_config(struct fake_server *s, const struct fake_portal *portal)
{
	char *values = str_dup(portal->values + 1), *value = strchr(values, ' '), *is_local = strrchr(values, ' ');

	invariant(value != NULL && value < is_local);
	*value++ = '\0';
	*is_local++ = '\0';
	if (strcmp(is_local, "f") == 0)
		set_value(s, values, strcmp(value, "NULL") == 0 ? NULL : value);
	say_row(s, value, "");
	complete(s, "SELECT 1");
	free(values);
}

static enum outcome
run_rows(struct fake_server *s, struct fake_portal *portal, uint32_t limit)
{
	char tag[32];
	int n;

	if (portal->n_left < 0)
		portal->n_left = number_in(portal->text);
	n = limit > 0 && (int)limit <= portal->n_left ? (int)limit : portal->n_left;
	for (int i = 0; i < n; i++)
		say_row(s, portal->text, portal->values);
	portal->n_left -= n;
	if (limit > 0 && n == (int)limit) {
		say_empty(s, BE_PORTAL_SUSPENDED);
		return RAN;
	}
	snprintf(tag, sizeof(tag), "SELECT %d", n);
	complete(s, tag);
	return RAN;
}

static enum outcome
on_execute(struct fake_server *s, struct reader *r)
{
	const char *name = reader_str(r);
	uint32_t limit = reader_u32(r);
	struct fake_portal *portal = find_portal(s, name);
	enum outcome outcome;
	char *text;

	if (portal == NULL)
		return no_portal(s, name);
	if (portal->text[0] == '\0') {
		say_empty(s, BE_EMPTY_QUERY);
		return RAN;
	}
	if (has_rows(portal->text) && s->tx != TX_FAILED) {
		if (is_set_config(portal->text))
			run_set_config(s, portal);
		else if (begins(portal->text, "show"))
			say_settings(s, portal->text);
		else
			(void)run_rows(s, portal, limit);
		return RAN;
	}
	if (portal->is_done)
		return fail(s, "55000", "portal cannot be run");
	portal->is_done = true;
	text = str_dup(portal->text); /* which may end with the transaction */
	outcome = run_statement(s, text);
	free(text);
	if (outcome == COPY_OPEN)
		s->mode = FAKE_COPY_EXTENDED;
	return outcome;
}

static void
on_extended(struct fake_server *s, char type, struct reader *r)
{
	enum outcome outcome = RAN;

	s->in_unit = true;
	switch (type) {
	case FE_PARSE:
		outcome = on_parse(s, r);
		break;
	case FE_BIND:
		outcome = on_bind(s, r);
		break;
	case FE_DESCRIBE:
		outcome = on_describe(s, r);
		break;
	case FE_CLOSE:
		outcome = on_close(s, r);
		break;
	default:
		outcome = on_execute(s, r);
		break;
	}
	if (outcome == FAILED) {
		fail_implicit(s);
		s->mode = FAKE_SKIPPING;
	}
}

/* ---- the rest of the protocol ---- */

static void
on_sync(struct fake_server *s)
{
	s->mode = FAKE_NORMAL;
	(void)end_implicit(s);
	say_ready(s);
}

static void
on_function_call(struct fake_server *s, const uint8_t *body, size_t n)
{
	uint32_t mark;

	if (s->tx == TX_FAILED || memchr(body, '!', n) != NULL) {
		(void)fail(s, "42883", "no such function");
		fail_implicit(s);
	} else {
		mark = msg_begin(&s->out, BE_FUNCTION_RESULT);
		buf_append_u32(&s->out, (uint32_t)n);
		buf_append(&s->out, body, n);
		msg_end(&s->out, mark);
	}
	(void)end_implicit(s);
	say_ready(s);
}

static void
copy_failed(struct fake_server *s, const char *sqlstate, const char *message)
{
	bool is_simple = s->mode == FAKE_COPY_SIMPLE;

	(void)fail(s, sqlstate, message);
	s->copy_failed_at = s->out.len;
	if (is_simple) {
		end_query(s, FAILED);
		return;
	}
	fail_implicit(s);
	s->mode = FAKE_SKIPPING;
}

static void
copy_done(struct fake_server *s)
{
	char tag[32];

	snprintf(tag, sizeof(tag), "COPY %u", s->n_copied);
	complete(s, tag);
	if (s->mode == FAKE_COPY_SIMPLE)
		run_rest(s);
	else
		s->mode = FAKE_NORMAL;
}

static void
in_copy(struct fake_server *s, char type, const uint8_t *body, size_t n)
{
	switch (type) {
	case FE_COPY_DATA:
		s->n_copied++;
		if (n > 0 && body[0] == '!')
			copy_failed(s, "22P04", s->copying);
		return;
	case FE_COPY_DONE:
		copy_done(s);
		return;
	case FE_COPY_FAIL:
		copy_failed(s, "57014", "COPY from stdin failed");
		return;
	case FE_SYNC:
	case FE_FLUSH:
		return;
	default:
		copy_failed(s, "08P01", "unexpected message type during COPY from stdin");
		return;
	}
}

void
fake_server_message(struct fake_server *s, const struct frame *f, const uint8_t *p)
{
	const uint8_t *body = p + MSG_HEADER;
	size_t n = f->len - MSG_HEADER;
	struct reader r;

	reader_init(&r, body, n);
	if (s->mode == FAKE_COPY_SIMPLE || s->mode == FAKE_COPY_EXTENDED) {
		in_copy(s, f->type, body, n);
		return;
	}
	if (f->type == FE_SYNC) {
		on_sync(s);
		return;
	}
	if (s->mode == FAKE_SKIPPING)
		return;
	switch (f->type) {
	case FE_QUERY:
		on_query(s, reader_str(&r));
		break;
	case FE_FUNCTION_CALL:
		on_function_call(s, body, n);
		break;
	case FE_FLUSH:
		s->n_flushed = s->out.len;
		break;
	case FE_COPY_DATA:
	case FE_COPY_DONE:
	case FE_COPY_FAIL:
		break;
	default:
		on_extended(s, f->type, &r);
		break;
	}
}

/* ---- life ---- */

void
fake_server_init(struct fake_server *s)
{
	memset(s, 0, sizeof(*s));
	buf_init(&s->out);
	s->tx = TX_IDLE;
	for (int i = 0; i < FAKE_N_SETTINGS; i++)
		set_value(s, setting_names[i], NULL);
	memcpy(s->committed, s->values, sizeof(s->values));
	memcpy(s->reported, s->values, sizeof(s->values));
}

void
fake_server_fini(struct fake_server *s)
{
	drop_named_statements(s);
	drop_statement(s, "");
	drop_portals(s);
	free(s->rest);
	free(s->copying);
	buf_fini(&s->out);
}

void
fake_server_greet(struct fake_server *s, uint32_t pid)
{
	static const uint8_t secret[4] = {1, 2, 3, 4};

	build_auth(&s->out, AUTH_OK, NULL, 0);
	build_parameter_status(&s->out, "server_version", "17.0");
	for (int i = 0; i < FAKE_N_SETTINGS; i++)
		build_parameter_status(&s->out, setting_names[i], s->values[i]);
	build_key_data(&s->out, pid, secret, sizeof(secret));
	say_ready(s);
}

bool
fake_server_is_settled(const struct fake_server *s)
{
	return s->mode == FAKE_NORMAL && s->tx == TX_IDLE && !s->in_unit;
}

int
fake_server_n_parameters(const struct fake_server *s, const char *statement)
{
	const struct fake_statement *st = find_statement(s, statement);

	return st != NULL ? n_parameters(st->text) : -1;
}
