/* SPDX-License-Identifier: ISC */
/* A backend's login: startup packet, authentication (trust, password, md5, SCRAM), ParameterStatus, key, ready. */
#include "auth/md5.h"
#include "auth/scram.h"
#include "auth/users.h"
#include "base/log.h"
#include "core/backend.h"
#include "core/group_hosts.h"
#include "core/old_servers.h"
#include "core/replication.h"
#include "core/session.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"

#include <stdlib.h>
#include <string.h>

#define LOGIN_MESSAGE_MAX 32768u /* no message of a login is larger */

enum login_step { STEP_STARTUP, STEP_AUTH, STEP_SASL_CONTINUE, STEP_SASL_FINAL, STEP_SASL_DONE, STEP_SETUP };

struct backend_login {
	enum login_step step;
	struct scram_client *scram;
	struct settings *values; /* ParameterStatus so far */
};

void
backend_login_free(struct backend *b)
{
	struct backend_login *l = b->logging_in;

	if (l == NULL)
		return;
	scram_client_free(&l->scram);
	settings_unref(&l->values);
	free(l);
	b->logging_in = NULL;
}

static bool
send_and_wipe(struct backend *b, struct buf *out)
{
	bool ok = !out->failed;

	if (ok)
		(void)stream_send(&b->stream, buf_head(out), out->len);
	buf_wipe(out);
	return ok;
}

static void
add_pair(const char **pairs, size_t *n, const char *name, const char *value)
{
	pairs[(*n)++] = name;
	pairs[(*n)++] = value;
}

/*
 * Who logs in where, with the database entry's settings; for one session, with its own before those. startup: what makes the
 * host like the others, or NULL. NULL: no memory.
 */
static const char **
startup_pairs(const struct backend *b, const struct settings *startup)
{
	const struct group *g = b->pool->group;
	const struct database_conf *db = g->db;
	const struct settings *own = b->is_own ? b->session->settings : NULL;
	size_t n = 0, n_own = own ? settings_n(own) : 0, n_startup = startup ? settings_n(startup) : 0;
	const char *const defaults[][2] = {{"client_encoding", db->client_encoding},
	                                   {"datestyle", db->datestyle},
	                                   {"timezone", db->timezone},
	                                   {"application_name", db->application_name}};
	const size_t n_defaults = sizeof(defaults) / sizeof(defaults[0]);
	const char **pairs = calloc(2 * (n_own + n_startup + n_defaults + 3) + 1, sizeof(*pairs));

	if (pairs == NULL)
		return NULL;
	add_pair(pairs, &n, "user", g->user);
	add_pair(pairs, &n, "database", db->dbname ? db->dbname : g->database);
	if (b->is_own)
		add_pair(pairs, &n, "replication", replication_parameter(b->session->replication));
	for (size_t i = 0; i < n_own; i++)
		add_pair(pairs, &n, settings_name(own, i), settings_value(own, i));
	for (size_t i = 0; i < n_defaults; i++)
		if (defaults[i][1] != NULL && (own == NULL || settings_get(own, defaults[i][0]) == NULL))
			add_pair(pairs, &n, defaults[i][0], defaults[i][1]);
	for (size_t i = 0; i < n_startup; i++)
		if (own == NULL || settings_get(own, settings_name(startup, i)) == NULL)
			add_pair(pairs, &n, settings_name(startup, i), settings_value(startup, i));
	return pairs;
}

bool
backend_login_begin(struct backend *b)
{
	struct settings *startup;
	const char **pairs;
	struct buf out;

	b->logging_in = calloc(1, sizeof(*b->logging_in));
	if (b->logging_in == NULL || (b->logging_in->values = settings_empty()) == NULL)
		return false;
	startup = group_host_startup(b->pool->group, b->host);
	pairs = startup_pairs(b, startup);
	if (pairs == NULL) {
		settings_unref(&startup);
		return false;
	}
	if (old_servers_have(b->pool->group->weir, &b->peer))
		b->minor = 0;
	buf_init(&out);
	build_startup(&out, PROTO_3_0 + b->minor, pairs);
	free(pairs);
	settings_unref(&startup);
	return send_and_wipe(b, &out);
}

/* ---- authentication ---- */

/* The password or stored secret to log in with; NULL: none is known. */
static const char *
known_secret(const struct backend *b)
{
	const struct group *g = b->pool->group;
	const struct auth_user *user;

	if (secret_is_set(&g->db->password))
		return g->db->password.text;
	user = users_find(g->weir->config->auth_users, g->user);
	return user != NULL && user->secret.len > 0 ? user->secret.text : NULL;
}

static bool
is_plain(const char *secret)
{
	return secret != NULL && !md5_is_secret(secret) && !scram_is_secret(secret);
}

/* Ends the login with a reason that the operator and the waiting clients can act on. */
static enum status
refuse(struct backend *b, const char *why)
{
	backend_close(b, CLOSE_LOGIN_FAILED, why);
	return STATUS_REFUSED;
}

static enum status
answer_cleartext(struct backend *b)
{
	const char *secret = known_secret(b);
	struct buf out;

	if (!is_plain(secret))
		return refuse(b, "the server asks for a password and no plain one is known for this user");
	buf_init(&out);
	build_password(&out, secret);
	return send_and_wipe(b, &out) ? STATUS_OK : refuse(b, "out of memory");
}

static enum status
answer_md5(struct backend *b, const struct auth_request *r)
{
	const char *secret = known_secret(b);
	char stored[MD5_SECRET_LEN + 1], response[MD5_SECRET_LEN + 1];
	struct buf out;
	bool ok;

	if (r->data_len != 4)
		return refuse(b, "malformed md5 request");
	if (secret == NULL || scram_is_secret(secret))
		return refuse(b, "the server asks for an md5 password and none is known for this user");
	ok = md5_is_secret(secret) ? (memcpy(stored, secret, sizeof(stored)), true)
	                           : md5_secret(secret, b->pool->group->user, stored);
	if (!ok || !md5_response(stored, r->data, response))
		return refuse(b, "md5 is not available");
	buf_init(&out);
	build_password(&out, response);
	secret_wipe_bytes(stored, sizeof(stored));
	return send_and_wipe(b, &out) ? STATUS_OK : refuse(b, "out of memory");
}

/* The list of mechanisms is a run of terminated strings, ended by an empty one. */
static bool
offers_scram(const struct auth_request *r)
{
	struct reader rd;
	const char *name;

	reader_init(&rd, r->data, r->data_len);
	while ((name = reader_str(&rd)) != NULL && !rd.bad && name[0] != '\0')
		if (strcmp(name, "SCRAM-SHA-256") == 0)
			return true;
	return false;
}

static struct scram_client *
scram_for(struct backend *b)
{
	const char *secret = known_secret(b);
	uint8_t client_key[SCRAM_KEY_LEN], server_key[SCRAM_KEY_LEN];
	struct scram_client *x = NULL;

	if (is_plain(secret))
		return scram_client_new(secret);
	if (group_scram_keys(b->pool->group, client_key, server_key))
		x = scram_client_new_keys(client_key, server_key);
	secret_wipe_bytes(client_key, sizeof(client_key));
	secret_wipe_bytes(server_key, sizeof(server_key));
	return x;
}

static enum status
begin_sasl(struct backend *b, const struct auth_request *r)
{
	struct buf first, out;

	if (!offers_scram(r))
		return refuse(b, "the server offers no SASL mechanism that pgweir knows");
	b->logging_in->scram = scram_for(b);
	if (b->logging_in->scram == NULL)
		return refuse(b, "the server asks for a SCRAM login and no password is known for this user");
	buf_init(&first);
	buf_init(&out);
	if (scram_client_first(b->logging_in->scram, &first) == STATUS_OK && !first.failed)
		build_sasl_initial(&out, "SCRAM-SHA-256", buf_head(&first), first.len);
	else
		out.failed = true;
	buf_wipe(&first);
	b->logging_in->step = STEP_SASL_CONTINUE;
	return send_and_wipe(b, &out) ? STATUS_OK : refuse(b, "out of memory");
}

static enum status
continue_sasl(struct backend *b, const struct auth_request *r)
{
	struct buf final, out;

	buf_init(&final);
	buf_init(&out);
	if (scram_client_final(b->logging_in->scram, r->data, r->data_len, &final) == STATUS_OK && !final.failed)
		build_sasl_response(&out, buf_head(&final), final.len);
	else
		out.failed = true;
	buf_wipe(&final);
	b->logging_in->step = STEP_SASL_FINAL;
	return send_and_wipe(b, &out) ? STATUS_OK : refuse(b, "the server's SCRAM message is malformed");
}

/* It has refused anything newer than 3.0, or is known already. */
static void
took_startup(struct backend *b)
{
	b->logging_in->step = STEP_AUTH;
	if (b->minor == 0)
		old_servers_add(b->pool->group->weir, &b->peer);
}

static enum status
got_auth(struct backend *b, const uint8_t *body, size_t n)
{
	struct auth_request r;
	enum login_step step;

	if (parse_auth(body, n, &r) != STATUS_OK)
		return refuse(b, "malformed authentication request");
	if (b->logging_in->step == STEP_STARTUP)
		took_startup(b);
	step = b->logging_in->step;
	if (r.code == AUTH_OK && (step == STEP_AUTH || step == STEP_SASL_DONE)) {
		b->logging_in->step = STEP_SETUP;
		return STATUS_OK;
	}
	if (r.code == AUTH_CLEARTEXT && step == STEP_AUTH)
		return answer_cleartext(b);
	if (r.code == AUTH_MD5 && step == STEP_AUTH)
		return answer_md5(b, &r);
	if (r.code == AUTH_SASL && step == STEP_AUTH)
		return begin_sasl(b, &r);
	if (r.code == AUTH_SASL_CONT && step == STEP_SASL_CONTINUE)
		return continue_sasl(b, &r);
	if (r.code == AUTH_SASL_FINAL && step == STEP_SASL_FINAL) {
		if (scram_client_verify(b->logging_in->scram, r.data, r.data_len) != STATUS_OK)
			return refuse(b, "the server could not prove that it knows the password");
		b->logging_in->step = STEP_SASL_DONE;
		return STATUS_OK;
	}
	return refuse(b, step == STEP_AUTH ? "the server asks for an authentication method that pgweir does not have"
	                                   : "authentication request out of order");
}

/* ---- the other messages ---- */

static enum status
got_parameter(struct backend *b, const uint8_t *body, size_t n)
{
	struct parameter_status ps;
	struct settings *more;

	if (parse_parameter_status(body, n, &ps) != STATUS_OK)
		return refuse(b, "malformed ParameterStatus");
	more = settings_with(b->logging_in->values, ps.name, ps.value);
	if (more == NULL)
		return refuse(b, "out of memory");
	settings_unref(&b->logging_in->values);
	b->logging_in->values = more;
	return STATUS_OK;
}

static enum status
got_key(struct backend *b, const uint8_t *body, size_t n)
{
	struct key_data k;

	if (parse_key_data(body, n, &k) != STATUS_OK || k.secret_len > sizeof(b->key))
		return refuse(b, "malformed BackendKeyData");
	b->server_pid = k.pid;
	b->key_len = k.secret_len;
	memcpy(b->key, k.secret, k.secret_len);
	return STATUS_OK;
}

/*
 * A server that knows of no newer minor version and can't say so in peace: refused is the startup packet itself, as a feature
 * or as malformed, before it asked who we are.
 */
static bool
is_too_new_for(const struct backend *b)
{
	return b->minor > 0 && b->logging_in->step == STEP_STARTUP && b->said != NULL &&
	       (strcmp(b->said->sqlstate, "0A000") == 0 || strcmp(b->said->sqlstate, "08P01") == 0);
}

static enum status
got_login_error(struct backend *b, const uint8_t *body, size_t n)
{
	backend_keep_error(b, body, n);
	if (is_too_new_for(b)) {
		b->minor = 0;
		backend_reconnect(b);
		return STATUS_REFUSED;
	}
	backend_close(b, CLOSE_LOGIN_FAILED, b->said ? b->said->message : NULL);
	return STATUS_REFUSED;
}

static enum status
got_ready(struct backend *b, const uint8_t *body, size_t n)
{
	char tx;

	if (parse_ready(body, n, &tx) != STATUS_OK || tx != TX_IDLE)
		return refuse(b, "malformed ReadyForQuery");
	if (!b->is_own && group_host_must_align(b->pool->group, b->host, b->logging_in->values)) {
		backend_reconnect(b);
		return STATUS_REFUSED;
	}
	b->login = b->logging_in->values;
	b->logging_in->values = NULL;
	backend_logged_in(b);
	return STATUS_OK;
}

/* STATUS_OK: go on; else the backend is closed. */
static enum status
got_message(struct backend *b, const struct frame *f, const uint8_t *p)
{
	const uint8_t *body = p + MSG_HEADER;
	size_t n = f->len - MSG_HEADER;
	bool is_in = b->logging_in->step == STEP_SETUP;

	switch (f->type) {
	case BE_AUTH:
		return got_auth(b, body, n);
	case BE_ERROR:
		return got_login_error(b, body, n);
	case BE_NOTICE:
		return STATUS_OK;
	case BE_PARAMETER_STATUS:
		return got_parameter(b, body, n);
	case BE_NEGOTIATE: /* it speaks 3.0, which differs in the length of the key only */
		return b->logging_in->step == STEP_STARTUP ? STATUS_OK : refuse(b, "message out of order");
	case BE_KEY_DATA:
		return is_in ? got_key(b, body, n) : refuse(b, "message out of order");
	case BE_READY:
		return is_in ? got_ready(b, body, n) : refuse(b, "message out of order");
	default:
		return refuse(b, "a message that does not belong to a login");
	}
}

size_t
backend_login_bytes(struct backend *b, const uint8_t *p, size_t n)
{
	size_t pos = 0;
	struct frame f;

	while (pos < n && b->state == BACKEND_LOGIN) {
		enum status status = frame_next(p + pos, n - pos, &f);

		if (status == STATUS_MORE)
			break;
		if (status != STATUS_OK || f.len > LOGIN_MESSAGE_MAX) {
			(void)refuse(b, "this is not a PostgreSQL server");
			return n;
		}
		if (f.avail < f.len)
			break;
		if (got_message(b, &f, p + pos) != STATUS_OK)
			return n;
		pos += f.len;
	}
	return pos;
}
