/* SPDX-License-Identifier: ISC */
/* Errors that name a statement, in the client's words. */
#include "core/backend.h"
#include "core/prepared_note.h"
#include "core/prepared_set.h"
#include "core/session.h"
#include "wire/build.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"

#include <string.h>

/* The client's name of a statement that the server calls so, be it closed or found missing meanwhile; NULL: none. */
static const char *
client_name_of(const struct backend *b, const char *server_name)
{
	const char *name = names_of(b->session->names, server_name);

	for (uint32_t i = 0; name == NULL && i < b->owed.n; i++) {
		const struct note *x = replyq_what(&b->owed, i);

		if (x != NULL && x->name[0] != '\0' && x->st != NULL &&
		    strcmp(statement_server_name(x->st), server_name) == 0)
			name = x->name;
	}
	return name ? name : names_of(b->session->lost, server_name);
}

/*
 * Where text names a statement as the server knows it: its beginning, its length and how the client calls it. NULL: nowhere.
 * Names that only look like ours have been passed on with a "?" in front (pass_unknown_name).
 */
static const char *
find_server_name(const struct backend *b, const char *duplicate, const char *text, size_t *n, const char **client_name)
{
	char name[32];
	const char *at = strstr(text, STATEMENT_PREFIX);

	if (at == NULL)
		return NULL;
	if (at > text && at[-1] == '?') {
		*n = 1;
		*client_name = "";
		return at - 1;
	}
	*n = strlen(STATEMENT_PREFIX) + strspn(at + strlen(STATEMENT_PREFIX), "0123456789");
	if (*n >= sizeof(name))
		return NULL;
	memcpy(name, at, *n);
	name[*n] = '\0';
	*client_name = duplicate ? duplicate : client_name_of(b, name);
	return *client_name ? at : NULL;
}

/* Missing although we had prepared it: something has deallocated it unseen (a function, or SQL with our name for it). */
static void
note_missing(struct backend *b, const char *client_name)
{
	const struct statement *st = names_find(b->session->names, client_name);

	if (st != NULL && prepared_set_state(b->prepared, st) == PREPARED_READY)
		prepared_set_mark(b->prepared, st, PREPARED_STALE);
}

static void
append_reworded(struct buf *out, struct backend *b, const char *duplicate, const char *text)
{
	const char *client_name;
	size_t n;
	const char *at = find_server_name(b, duplicate, text, &n, &client_name);

	if (at == NULL) {
		msg_str(out, text);
		return;
	}
	if (duplicate == NULL)
		note_missing(b, client_name);
	buf_append(out, text, (size_t)(at - text));
	buf_append_str(out, client_name);
	msg_str(out, at + n);
}

/* Errors that name a statement: missing, in use, bound with the wrong number of parameters. */
static bool
names_a_statement(const struct error_fields *e)
{
	return e->sqlstate != NULL && e->message != NULL &&
	       (strcmp(e->sqlstate, "26000") == 0 || strcmp(e->sqlstate, "42P05") == 0 ||
	        strcmp(e->sqlstate, "08P01") == 0) &&
	       strstr(e->message, STATEMENT_PREFIX) != NULL;
}

/* A Bind or Describe of a statement whose result is no more what the client was told (PREPARED_CHANGED). */
static bool
is_of_changed(const char *message)
{
	size_t n = strlen(NEVER_PREPARED);
	const char *at = strstr(message, NEVER_PREPARED);

	return at != NULL && !(at > message && at[-1] == '?') && strspn(at + n, "0123456789") == 0;
}

/* A text that would have pinned one session too many. */
static bool
is_of_refused(const char *message)
{
	const char *at = strstr(message, STATE_REFUSED_STATEMENT);

	return at != NULL && !(at > message && at[-1] == '?');
}

static void
append_refused(struct buf *out, uint8_t field, const char *text)
{
	if (field == 'C')
		msg_str(out, STATE_REFUSED_SQLSTATE);
	else if (field == 'M')
		buf_append(out, STATE_REFUSED_TEXT "\0H" STATE_REFUSED_HINT,
		           sizeof(STATE_REFUSED_TEXT "\0H" STATE_REFUSED_HINT));
	else
		msg_str(out, text);
}

/* As the server says it, whose words they are: in English, whatever lc_messages is. */
static void
append_changed(struct buf *out, uint8_t field, const char *text)
{
	if (field == 'C')
		msg_str(out, "0A000");
	else if (field == 'M')
		msg_str(out, "cached plan must not change result type");
	else if (field == 'R')
		msg_str(out, "RevalidateCachedQuery");
	else
		msg_str(out, text);
}

static void
append_parameters(struct buf *out, const struct statement *st)
{
	size_t n;
	const uint8_t *types = description_types(statement_described(st), &n);
	uint32_t mark = msg_begin(out, BE_PARAMETER_DESCRIPTION);

	buf_append(out, types, n);
	msg_end(out, mark);
}

void
prepared_reword_error(struct backend *b, const uint8_t *body, size_t n, struct buf *out)
{
	const struct note *x = replyq_current(&b->owed);
	const char *duplicate = x && x->kind == NOTE_DUPLICATE ? x->name : NULL;
	struct error_fields e;
	struct reader r;
	uint32_t mark;
	uint8_t field;
	bool changed, refused;

	if (b->session == NULL || parse_error(body, n, &e) != STATUS_OK || !names_a_statement(&e))
		return;
	refused = is_of_refused(e.message);
	changed = !refused && is_of_changed(e.message);
	if (changed && x != NULL && x->kind == NOTE_DESCRIBED && statement_described(x->st) != NULL)
		append_parameters(out, x->st); /* which the server says before it fails */
	reader_init(&r, body, n);
	mark = msg_begin(out, BE_ERROR);
	while ((field = reader_u8(&r)) != 0 && !r.bad) {
		const char *text = reader_str(&r);

		buf_append_u8(out, field);
		if (refused)
			append_refused(out, field, text);
		else if (changed)
			append_changed(out, field, text);
		else if (field == 'M')
			append_reworded(out, b, duplicate, text);
		else
			msg_str(out, text);
	}
	buf_append_u8(out, 0);
	msg_end(out, mark);
	if (changed)
		prepared_result_changed(b);
	if (r.bad || out->failed)
		buf_fini(out); /* the server's own words, then */
}
