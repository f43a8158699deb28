/* SPDX-License-Identifier: ISC */
/*
 * A session until its first ReadyForQuery: first packets, authentication, then the
 * welcome: ParameterStatus values of this session, a fresh cancel key. Where the
 * server's values are not known yet, or the client brings startup settings that no
 * server has accepted so far, a backend is asked first.
 */
#include "auth/md5.h"
#include "auth/scram.h"
#include "auth/users.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "core/backend.h"
#include "core/group_hosts.h"
#include "core/replication.h"
#include "core/session.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"
#include "wire/sql.h"
#include "wire/startup.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum auth_step { AUTH_STEP_PASSWORD, AUTH_STEP_MD5, AUTH_STEP_SASL_FIRST, AUTH_STEP_SASL_MORE, AUTH_STEP_SASL_FINAL };

struct login {
	char *database;
	uint32_t minor; /* protocol 3.x that is spoken */
	bool declined_ssl, declined_gss;
	bool is_admin;         /* wants the console */
	bool is_owner;         /* and is the user that runs the daemon */
	bool scram_from_plain; /* the secret is derived from a plain password: its keys mean nothing to a server */
	enum auth_step step;
	uint8_t salt[4];
	struct scram_server *scram;
	struct scram_secret scram_secret;
	struct settings *asked; /* startup settings as the client wrote them */
};

void
login_free(struct login **l)
{
	if (*l == NULL)
		return;
	free((*l)->database);
	scram_server_free(&(*l)->scram);
	secret_wipe_bytes(&(*l)->scram_secret, sizeof((*l)->scram_secret));
	settings_unref(&(*l)->asked);
	free(*l);
	*l = NULL;
}

static bool
send_all(struct session *s, struct buf *out)
{
	bool ok = !out->failed;

	if (ok)
		(void)stream_send(&s->stream, buf_head(out), out->len);
	buf_fini(out);
	return ok;
}

/* ---- the last steps ---- */

static bool
make_cancel_key(struct session *s, uint32_t minor)
{
	struct proxy *p = s->proxy;
	struct session *other;

	do {
		if (RAND_bytes((unsigned char *)&s->cancel_pid, sizeof(s->cancel_pid)) != 1 ||
		    RAND_bytes(s->cancel_secret, sizeof(s->cancel_secret)) != 1)
			return false;
		/* a positive number, as process ids are; its remainder says which proxy knows the session */
		s->cancel_pid &= 0x7fffffffu & ~(WEIR_MAX_PROXIES - 1);
		s->cancel_pid |= p->index;
		HASH_FIND(hh, p->sessions_by_key, &s->cancel_pid, sizeof(s->cancel_pid), other);
	} while (other != NULL || s->cancel_pid < WEIR_MAX_PROXIES);
	s->secret_len = minor >= 2 ? SESSION_SECRET_MAX : 4;
	HASH_ADD(hh, p->sessions_by_key, cancel_pid, sizeof(s->cancel_pid), s);
	if (s->hh.tbl == NULL) {
		s->secret_len = 0;
		return false;
	}
	return true;
}

static void
log_login(const struct session *s)
{
	char msg[256];

	if (!s->proxy->weir->config->log_connections)
		return;
	snprintf(msg, sizeof(msg), "login attempt: db=%s user=%s tls=no", s->pool->group->database, s->user);
	log_event(LOG_INFO_, "login", LOG_U("client", s->id), LOG_U("proxy", s->proxy->index),
	          LOG_S("db", s->pool->group->database), LOG_S("user", s->user), LOG_S("msg", msg));
}

static void
take_settings(struct session *s, struct settings *settings)
{
	settings_unref(&s->settings);
	s->settings = settings;
	settings_unref(&s->marks.startup);
	s->marks.startup = settings_ref(settings);
}

/* The session's values, its key, ready. AuthenticationOk is in front of it already. */
static enum session_state
welcome(struct session *s, struct settings *values)
{
	struct buf out;

	if (!make_cancel_key(s, s->login->minor))
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	buf_init(&out);
	for (size_t i = 0; i < settings_n(values); i++) {
		const char *name = settings_name(values, i), *own = settings_get(s->settings, name);

		build_parameter_status(&out, name, own ? own : settings_value(values, i));
	}
	build_key_data(&out, s->cancel_pid, s->cancel_secret, s->secret_len);
	build_ready(&out, TX_IDLE);
	if (!send_all(s, &out))
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	counter_add(&s->pool->stats.n_client_logins, 1);
	log_login(s);
	login_free(&s->login);
	return s->replication != NULL ? SESSION_TUNNEL : SESSION_IDLE;
}

/* What its own server connection reported at login holds for this session alone. */
enum session_state
login_have_own_backend(struct session *s)
{
	take_settings(s, settings_ref(s->backend->login));
	return welcome(s, s->backend->login);
}

static enum session_state
finish_login(struct session *s)
{
	struct settings *values = group_welcome(s->pool->group);
	enum session_state next;

	invariant(values != NULL); /* a backend has just been logged in */
	next = welcome(s, values);
	settings_unref(&values);
	return next;
}

/* A backend is attached: it has tried the settings, or needs not. */
enum session_state
login_applied(struct session *s)
{
	struct backend *b = s->backend;

	if (b->said != NULL) {
		session_keep_words(s, b->said);
		return session_close(s, CLOSE_SETTINGS_REFUSED, NULL);
	}
	group_know_settings(s->pool->group, s->settings, b->label);
	take_settings(s, settings_ref(b->label));
	backend_release(b);
	return finish_login(s);
}

static bool
add_setting(const char *name, const char *value, void *arg)
{
	struct login *l = arg;
	struct settings *more = settings_with(l->asked, name, value);

	if (more == NULL)
		return false;
	settings_unref(&l->asked);
	l->asked = more;
	return true;
}

/*
 * The server keeps printable ASCII only (pg_clean_ascii), since version 16 with other bytes as \xNN. It does so to what
 * comes at startup whatever the encoding, but would refuse such bytes as a value that is set later.
 */
static bool
clean_application_name(struct login *l, const struct settings *server)
{
	const char *version = settings_get(server, "server_version"),
		   *name = settings_get(l->asked, "application_name");
	bool ok, is_escaped = version != NULL && strtol(version, NULL, 10) >= 16;
	struct buf clean;

	if (name == NULL)
		return true;
	buf_init(&clean);
	for (const char *c = name; *c != '\0'; c++) {
		char text[8] = {*c, '\0'};

		if (*c < 32 || *c > 126)
			snprintf(text, sizeof(text), is_escaped ? "\\x%02x" : "?", (unsigned char)*c);
		buf_append_str(&clean, text);
	}
	buf_append_u8(&clean, 0);
	ok = !clean.failed && add_setting("application_name", (const char *)buf_head(&clean), l);
	buf_fini(&clean);
	return ok;
}

enum session_state
login_have_backend(struct session *s)
{
	struct backend *b = s->backend;

	if (s->settings == s->login->asked) {
		if (!clean_application_name(s->login, b->login))
			return session_close(s, CLOSE_NO_MEMORY, NULL);
		take_settings(s, settings_ref(s->login->asked));
	}
	if (b->label != s->settings && !backend_apply_settings(b, s->settings, CHORE_VALIDATE))
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	if (b->label == s->settings) { /* nothing was to be tried */
		backend_release(b);
		return finish_login(s);
	}
	(void)stream_flush(&b->stream);
	return SESSION_LOGIN_APPLY;
}

/* Any text is a valid application_name, if it is not so long that it is cut: no server need be asked. */
static bool
needs_no_proof(const struct settings *settings)
{
	size_t n = settings_n(settings);

	return n == 0 || (n == 1 && strcasecmp(settings_name(settings, 0), "application_name") == 0 &&
	                  strlen(settings_value(settings, 0)) < SQL_NAME_MAX);
}

static enum session_state
enter_pool(struct session *s)
{
	struct group *g = s->pool->group;
	struct settings *known, *values = group_welcome(g);
	enum session_state next;
	bool is_known;

	if (values != NULL && !clean_application_name(s->login, values)) {
		settings_unref(&values);
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	}
	known = group_known_settings(g, s->login->asked);
	is_known = known != NULL || needs_no_proof(s->login->asked);
	take_settings(s, known ? known : settings_ref(s->login->asked));
	if (is_known && values != NULL) {
		next = welcome(s, values);
	} else {
		(void)stream_flush(&s->stream); /* the client may as well know how far he is */
		next = pool_take(s->pool, s) ? login_have_backend(s) : SESSION_LOGIN_WAIT;
	}
	settings_unref(&values);
	return next;
}

/* ---- after authentication ---- */

static enum session_state
to_console(struct session *s)
{
	struct weir *w = s->proxy->weir;
	const struct config *c = w->config;
	struct mail_admin *m;
	bool may_change = config_list_has(c->admin_users, s->user) || s->login->is_owner;

	if (!may_change && !config_list_has(c->stats_users, s->user))
		return session_close(s, CLOSE_ADMIN_DENIED, NULL);
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	m->mail.type = MAIL_ADMIN;
	m->may_change = may_change;
	m->id = s->id;
	str_copy(m->user, sizeof(m->user), s->user);
	m->fd = dup(s->stream.fd); /* the connection goes on there; this session ends */
	if (m->fd < 0) {
		free(m);
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	}
	atomic_fetch_add(&w->n_clients, 1);
	mailbox_post(w->main_mailbox, &m->mail);
	return session_close(s, CLOSE_TO_CONSOLE, NULL);
}

static enum session_state
authenticated(struct session *s)
{
	struct weir *w = s->proxy->weir;
	const struct database_conf *db;
	const char *server_user;
	struct group *g;
	enum close_reason why;
	static const uint8_t auth_ok[] = {BE_AUTH, 0, 0, 0, 8, 0, 0, 0, AUTH_OK};
	char text[256];

	if (s->login->is_admin)
		return to_console(s);
	/* goes out with whatever comes next: the welcome, or why there is none */
	stream_queue(&s->stream, auth_ok, sizeof(auth_ok));
	db = config_database(w->config, s->login->database);
	if (db == NULL) {
		snprintf(text, sizeof(text), "no such database: %s", s->login->database);
		return session_close(s, CLOSE_NO_DATABASE, text);
	}
	if (w->config->auth_type == AUTH_TYPE_ANY && db->user == NULL)
		return session_close(s, CLOSE_AUTH_TRUST, "bouncer config error");
	server_user = db->user ? db->user : s->user;
	g = group_get(w, s->login->database, db, server_user);
	s->pool = g ? pool_get(s->proxy, g) : NULL;
	if (s->pool == NULL)
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	s->logged_in = group_add_client(g, s->user, &why);
	if (!s->logged_in)
		return session_close(s, why, NULL);
	if (s->login->scram != NULL && strcmp(server_user, s->user) == 0 && !s->login->scram_from_plain)
		group_set_scram_keys(g, scram_server_client_key(s->login->scram), s->login->scram_secret.server_key);
	if (s->replication != NULL) {
		(void)stream_flush(&s->stream);
		take_settings(s, settings_ref(s->login->asked)); /* with which its connection logs in */
		return SESSION_OWN_WAIT;
	}
	return enter_pool(s);
}

/* ---- authentication ---- */

static const struct auth_user *
known_user(const struct session *s)
{
	return users_find(s->proxy->weir->config->auth_users, s->user);
}

static enum session_state
ask_password(struct session *s)
{
	struct buf out;

	buf_init(&out);
	build_auth(&out, AUTH_CLEARTEXT, NULL, 0);
	s->login->step = AUTH_STEP_PASSWORD;
	return send_all(s, &out) ? SESSION_AUTH : session_close(s, CLOSE_NO_MEMORY, NULL);
}

static enum session_state
ask_md5(struct session *s)
{
	struct buf out;

	if (RAND_bytes(s->login->salt, sizeof(s->login->salt)) != 1)
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	buf_init(&out);
	build_auth(&out, AUTH_MD5, s->login->salt, sizeof(s->login->salt));
	s->login->step = AUTH_STEP_MD5;
	return send_all(s, &out) ? SESSION_AUTH : session_close(s, CLOSE_NO_MEMORY, NULL);
}

static enum session_state
ask_scram(struct session *s)
{
	const struct config *c = s->proxy->weir->config;
	const struct auth_user *user = known_user(s);
	static const char *const mechanisms[] = {"SCRAM-SHA-256", NULL};
	struct buf out;
	bool is_mock;

	if (users_scram_secret(c->auth_users, s->user, (uint32_t)c->scram_iterations, &s->login->scram_secret,
	                       &is_mock) != STATUS_OK ||
	    (s->login->scram = scram_server_new(&s->login->scram_secret)) == NULL)
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	s->login->scram_from_plain = user == NULL || !scram_is_secret(user->secret.text);
	buf_init(&out);
	build_auth_sasl(&out, mechanisms);
	s->login->step = AUTH_STEP_SASL_FIRST;
	return send_all(s, &out) ? SESSION_AUTH : session_close(s, CLOSE_NO_MEMORY, NULL);
}

/* The user that runs the daemon may use the console over its own Unix socket without a password. */
static bool
is_owner_of_daemon(const struct session *s)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return s->login->is_admin && (strcmp(s->user, "pgbouncer") == 0 || strcmp(s->user, "pgweir") == 0) &&
	       getsockopt(s->stream.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid != 0 &&
	       peer.uid == geteuid();
}

static enum session_state
authenticate(struct session *s)
{
	const struct config *c = s->proxy->weir->config;
	const struct auth_user *user = known_user(s);

	s->login->is_owner = is_owner_of_daemon(s);
	if (s->login->is_owner)
		return authenticated(s);
	switch (c->auth_type) {
	case AUTH_TYPE_ANY:
		return authenticated(s);
	case AUTH_TYPE_TRUST:
		/* with an auth file only its users are known; without one trust means anybody */
		if (user == NULL && c->auth_file[0] != '\0')
			return session_close(s, CLOSE_AUTH_TRUST, NULL);
		return authenticated(s);
	case AUTH_TYPE_PASSWORD:
		return ask_password(s);
	case AUTH_TYPE_MD5:
		return user != NULL && scram_is_secret(user->secret.text) ? ask_scram(s) : ask_md5(s);
	case AUTH_TYPE_SCRAM:
		return ask_scram(s);
	}
	return session_close(s, CLOSE_AUTH_TRUST, NULL);
}

static enum session_state
got_password(struct session *s, const uint8_t *body, size_t n)
{
	bool ok, is_md5 = s->login->step == AUTH_STEP_MD5;
	const char *text = (const char *)body;

	if (n == 0 || body[n - 1] != '\0' || strlen(text) != n - 1)
		return session_close(s, CLOSE_BAD_PACKET, "invalid password packet size");
	ok = is_md5 ? users_check_md5(known_user(s), s->user, s->login->salt, text)
	            : users_check_password(known_user(s), s->user, text);
	return ok ? authenticated(s) : session_close(s, CLOSE_AUTH_PASSWORD, NULL);
}

static enum session_state
sasl_failed(struct session *s, enum status status)
{
	const struct scram_error *e;
	struct said said;

	if (status != STATUS_BAD)
		return session_close(s, CLOSE_AUTH_SASL, NULL);
	e = scram_server_error(s->login->scram);
	said_set(&said, e->sqlstate, e->message);
	str_copy(said.detail, sizeof(said.detail), e->detail);
	session_keep_words(s, &said);
	return session_close(s, CLOSE_BAD_PACKET, NULL);
}

/* The client's first message; without one (msg NULL) an empty challenge asks for it. */
static enum session_state
answer_sasl_first(struct session *s, const uint8_t *msg, size_t n)
{
	struct buf answer, out;
	enum status status;

	buf_init(&answer);
	buf_init(&out);
	status = scram_server_first(s->login->scram, msg, n, &answer);
	if (status == STATUS_OK || status == STATUS_MORE)
		build_auth(&out, AUTH_SASL_CONT, buf_head(&answer), answer.len);
	buf_fini(&answer);
	s->login->step = status == STATUS_MORE ? AUTH_STEP_SASL_MORE : AUTH_STEP_SASL_FINAL;
	if (!send_all(s, &out))
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	return status == STATUS_OK || status == STATUS_MORE ? SESSION_AUTH : sasl_failed(s, status);
}

static enum session_state
got_sasl_first(struct session *s, const uint8_t *body, size_t n)
{
	struct sasl_initial first;

	if (parse_sasl_initial(body, n, &first) != STATUS_OK)
		return session_close(s, CLOSE_BAD_PACKET, "malformed SCRAM message");
	if (strcmp(first.mechanism, "SCRAM-SHA-256") != 0)
		return session_close(s, CLOSE_BAD_PACKET, "client selected an invalid SASL authentication mechanism");
	return answer_sasl_first(s, first.data, first.data_len);
}

static enum session_state
got_sasl_final(struct session *s, const uint8_t *body, size_t n)
{
	struct buf answer, out;
	enum status status;

	buf_init(&answer);
	buf_init(&out);
	status = scram_server_final(s->login->scram, body, n, &answer);
	if (status == STATUS_OK)
		build_auth(&out, AUTH_SASL_FINAL, buf_head(&answer), answer.len);
	buf_fini(&answer);
	return send_all(s, &out) && status == STATUS_OK ? authenticated(s) : sasl_failed(s, status);
}

enum session_state
login_auth(struct session *s, struct session_input *in)
{
	struct frame f;
	enum status status = frame_next(in->p, in->n, &f);
	const uint8_t *body = in->p + MSG_HEADER;
	bool is_sasl;

	if (status == STATUS_MORE)
		return SESSION_AUTH;
	if (f.type != FE_PASSWORD)
		return session_close(s, CLOSE_BAD_PACKET, "expected password response");
	is_sasl = s->login->step != AUTH_STEP_PASSWORD && s->login->step != AUTH_STEP_MD5;
	if (status != STATUS_OK || f.len - 1 > (is_sasl ? MSG_SASL_MAX : MSG_AUTH_MAX) + 4)
		return session_close(s, CLOSE_BAD_PACKET, "invalid message length");
	if (f.avail < f.len)
		return SESSION_AUTH;
	in->used = f.len;
	switch (s->login->step) {
	case AUTH_STEP_PASSWORD:
	case AUTH_STEP_MD5:
		return got_password(s, body, f.len - MSG_HEADER);
	case AUTH_STEP_SASL_FIRST:
		return got_sasl_first(s, body, f.len - MSG_HEADER);
	case AUTH_STEP_SASL_MORE:
		return answer_sasl_first(s, body, f.len - MSG_HEADER);
	case AUTH_STEP_SASL_FINAL:
		return got_sasl_final(s, body, f.len - MSG_HEADER);
	}
	return session_close(s, CLOSE_BAD_PACKET, NULL);
}

/* ---- the startup packet ---- */

static enum session_state
add_replication(struct session *s, const char *value)
{
	enum replication_kind kind;
	struct said said;
	char text[200];

	if (replication_parse(value, &kind) != STATUS_OK) {
		snprintf(text, sizeof(text), "invalid value for parameter \"replication\": \"%s\"", value);
		said_set(&said, close_row(CLOSE_SETTINGS_REFUSED)->sqlstate, text);
		str_copy(said.hint, sizeof(said.hint), "Valid values are: \"false\", 0, \"true\", 1, \"database\".");
		session_keep_words(s, &said);
		return session_close(s, CLOSE_SETTINGS_REFUSED, NULL);
	}
	free(s->replication);
	s->replication = NULL;
	if (kind == REPLICATION_NONE)
		return SESSION_STARTUP;
	if ((s->replication = calloc(1, sizeof(*s->replication))) == NULL)
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	s->replication->kind = kind;
	return SESSION_STARTUP;
}

static enum session_state
add_options(struct session *s, const char *value)
{
	char why[200];
	struct said said;
	enum status status = startup_split_options(value, add_setting, s->login, why, sizeof(why));

	if (status == STATUS_OK)
		return SESSION_STARTUP;
	if (status != STATUS_BAD)
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	said_set(&said, close_row(CLOSE_BAD_OPTION)->sqlstate, why);
	str_copy(said.hint, sizeof(said.hint), "Try \"postgres --help\" for more information.");
	session_keep_words(s, &said);
	return session_close(s, CLOSE_BAD_OPTION, NULL);
}

/* One name and value of the startup packet; SESSION_STARTUP: fine. */
static enum session_state
add_param(struct session *s, const struct startup_param *param)
{
	struct login *l = s->login;
	const struct config *c = s->proxy->weir->config;
	bool ok = true;

	if (strcmp(param->name, "user") == 0) {
		free(s->user);
		ok = (s->user = str_dup(param->value)) != NULL;
	} else if (strcmp(param->name, "database") == 0) {
		free(l->database);
		ok = (l->database = str_dup(param->value)) != NULL;
	} else if (startup_is_protocol_option(param->name) ||
	           config_list_has(c->ignore_startup_parameters, param->name)) {
		return SESSION_STARTUP;
	} else if (strcmp(param->name, "options") == 0) {
		return SESSION_STARTUP; /* came first */
	} else if (strcmp(param->name, "replication") == 0) {
		return add_replication(s, param->value);
	} else {
		ok = add_setting(param->name, param->value, l);
	}
	return ok ? SESSION_STARTUP : session_close(s, CLOSE_NO_MEMORY, NULL);
}

static bool
send_negotiation(struct session *s, const struct startup_packet *sp)
{
	const char **unknown, *cursor = NULL;
	struct startup_param param;
	struct buf out;
	size_t n_params = 0, n = 0;

	while (startup_next_param(sp, &cursor, &param))
		n_params++;
	unknown = malloc((n_params + 1) * sizeof(*unknown));
	if (unknown == NULL)
		return false;
	cursor = NULL;
	while (startup_next_param(sp, &cursor, &param))
		if (startup_is_protocol_option(param.name))
			unknown[n++] = param.name;
	buf_init(&out);
	build_negotiate(&out, s->login->minor, unknown, n);
	free(unknown);
	return send_all(s, &out);
}

static bool
is_over_client_limit(const struct session *s)
{
	struct weir *w = s->proxy->weir;

	return !s->login->is_admin &&
	       atomic_load_explicit(&w->n_clients, memory_order_relaxed) > w->config->max_client_conn;
}

static enum session_state
got_login_packet(struct session *s, const struct startup_packet *sp)
{
	struct login *l = s->login;
	struct startup_param param;
	const char *cursor = NULL, *options = NULL;
	bool must_negotiate;
	enum session_state next;

	l->minor = startup_negotiate(sp, &must_negotiate);
	/* as the server: settings of their own win over those inside `options`, wherever they stand */
	while (startup_next_param(sp, &cursor, &param))
		if (strcmp(param.name, "options") == 0)
			options = param.value;
	if (options != NULL && (next = add_options(s, options)) != SESSION_STARTUP)
		return next;
	for (cursor = NULL; startup_next_param(sp, &cursor, &param);)
		if ((next = add_param(s, &param)) != SESSION_STARTUP)
			return next;
	if (s->user == NULL || s->user[0] == '\0')
		return session_close(s, CLOSE_NO_USER_NAME, NULL);
	if (l->database == NULL || l->database[0] == '\0') {
		free(l->database);
		if ((l->database = str_dup(s->user)) == NULL)
			return session_close(s, CLOSE_NO_MEMORY, NULL);
	}
	l->is_admin = config_is_admin_name(l->database);
	if (is_over_client_limit(s))
		return session_close(s, CLOSE_MAX_CLIENT_CONN, NULL);
	if (weir_phase(s->proxy->weir) != WEIR_RUNNING && !l->is_admin)
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	if (must_negotiate && !send_negotiation(s, sp))
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	return authenticate(s);
}

/* The owner of the key is the proxy that its remainder names. */
static enum session_state
got_cancel_packet(struct session *s, const struct startup_packet *sp)
{
	struct weir *w = s->proxy->weir;
	unsigned owner = sp->cancel_pid % WEIR_MAX_PROXIES;
	struct mail_cancel *m;

	if (owner >= w->n_proxies)
		return session_close(s, CLOSE_CANCEL_DONE, NULL);
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	m->mail.type = MAIL_CANCEL;
	m->from = s->proxy->index;
	m->requester_id = s->id;
	m->pid = sp->cancel_pid;
	m->secret_len = sp->cancel_secret_len;
	memcpy(m->secret, sp->cancel_secret, sp->cancel_secret_len);
	mailbox_post(w->proxies[owner]->mailbox, &m->mail);
	return SESSION_CANCELLING;
}

/* Nothing may stand behind the request before it is answered, as in PostgreSQL: it could have been put there by others. */
static enum session_state
decline(struct session *s, bool *declined, const struct startup_packet *sp, struct session_input *in)
{
	char text[STARTUP_REFUSAL_MAX];

	if (*declined)
		return session_close(s, CLOSE_BAD_VERSION, (startup_refusal(sp->protocol, text), text));
	*declined = true;
	in->used += sp->len;
	(void)stream_send(&s->stream, "N", 1);
	if (in->used < in->n)
		return session_close(s, CLOSE_BAD_STARTUP,
		                     sp->kind == STARTUP_SSL
		                             ? "received unencrypted data after SSL request"
		                             : "received unencrypted data after GSSAPI encryption request");
	return SESSION_STARTUP;
}

enum session_state
login_startup(struct session *s, struct session_input *in)
{
	struct startup_packet sp;
	const char *why = NULL;
	enum status status;

	if (s->login == NULL &&
	    ((s->login = calloc(1, sizeof(*s->login))) == NULL || (s->login->asked = settings_empty()) == NULL))
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	for (;;) {
		enum session_state next;

		status = startup_parse(in->p + in->used, in->n - in->used, &sp, &why);
		if (status == STATUS_MORE)
			return SESSION_STARTUP;
		if (status == STATUS_REFUSED)
			return session_close(s, CLOSE_BAD_VERSION, why);
		if (status != STATUS_OK)
			return session_close(s, CLOSE_BAD_STARTUP, why);
		switch (sp.kind) {
		case STARTUP_SSL:
			next = decline(s, &s->login->declined_ssl, &sp, in);
			break;
		case STARTUP_GSSENC:
			next = decline(s, &s->login->declined_gss, &sp, in);
			break;
		case STARTUP_TLS_HELLO:
			return session_close(s, CLOSE_NOT_SUPPORTED, "TLS is not supported yet");
		case STARTUP_CANCEL:
			in->used += sp.len;
			return got_cancel_packet(s, &sp);
		case STARTUP_LOGIN:
		default:
			in->used += sp.len;
			return got_login_packet(s, &sp);
		}
		if (next != SESSION_STARTUP)
			return next;
	}
}
