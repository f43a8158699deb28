/* SPDX-License-Identifier: ISC */
/*
 * Every event in every state, compared with session_matrix.txt. The handlers of session.c are compiled in here with
 * fakes for what they call, so a cell says what the state machine itself decides; a change of a cell must be meant.
 * After such a change: PGWEIR_MATRIX_WRITE=1 writes the file anew, and the diff is what is to be reviewed.
 */
#include "../../src/core/session.c"

#include <stdio.h>

#include "unit.h"

#define MATRIX "tests/unit/session_matrix.txt"

/* ---- fakes: the next state is the most ordinary one ---- */

enum session_state
login_startup(struct session *s, struct session_input *in)
{
	(void)s;
	(void)in;
	return SESSION_AUTH;
}

enum session_state
login_auth(struct session *s, struct session_input *in)
{
	(void)s;
	(void)in;
	return SESSION_IDLE;
}

enum session_state
login_have_backend(struct session *s)
{
	(void)s;
	return SESSION_LOGIN_APPLY;
}

enum session_state
login_have_own_backend(struct session *s)
{
	(void)s;
	return SESSION_TUNNEL;
}

enum session_state
login_applied(struct session *s)
{
	(void)s;
	return SESSION_IDLE;
}

enum session_state
relay_client(struct session *s, struct session_input *in)
{
	(void)s;
	(void)in;
	return SESSION_ACTIVE;
}

enum session_state
relay_idle(struct session *s, struct session_input *in)
{
	(void)s;
	(void)in;
	return SESSION_WAITING;
}

enum session_state
relay_skip(struct session *s, struct session_input *in)
{
	(void)s;
	(void)in;
	return SESSION_IDLE;
}

enum session_state
session_close(struct session *s, enum close_reason reason, const char *detail)
{
	(void)detail;
	s->close_reason = (uint8_t)reason;
	return SESSION_CLOSED;
}

void
session_keep_words(struct session *s, const struct said *said)
{
	(void)s;
	(void)said;
}

void
session_end(struct session *s)
{
	(void)s;
}

void
session_reply(struct session *s, const uint8_t *p, size_t n)
{
	(void)s;
	(void)p;
	(void)n;
}

/* ---- one cell ---- */

static const char *const state_names[SESSION_STATE_N] = {
#define SESSION_STATE(name, ...) [name] = #name,
#include "core/states.def"
};

static const char *const event_names[SESSION_EVENT_N] = {
#define SESSION_EVENT(name) [name] = #name,
#include "core/events.def"
};

struct world {
	struct config *config;
	struct weir *weir;
	struct proxy proxy;
	struct group group;
	struct group_host group_host;
	struct pool pool;
	struct pool_host pool_host;
	struct backend backend;
	struct session session;
	struct replication replication;
};

static bool
is_replication(enum session_state state)
{
	return state == SESSION_TUNNEL || state == SESSION_TUNNEL_END;
}

static bool
has_transaction(enum session_state state)
{
	return state == SESSION_ACTIVE || state == SESSION_BRAKED || state == SESSION_HELD ||
	       state == SESSION_LEAVING || state == SESSION_LOGIN_APPLY;
}

static bool
is_attached(enum session_state state)
{
	return has_transaction(state) || is_replication(state);
}

static void
world_init(struct world *w, enum session_state state, enum session_event ev, char tx_status)
{
	struct session *s = &w->session;

	memset(w, 0, sizeof(*w));
	w->config = config_new();
	w->weir = weir_new(w->config, 1);
	ck_assert_ptr_nonnull(w->weir);
	w->group.weir = w->weir;
	w->group.mode = POOL_TRANSACTION;
	pthread_mutex_init(&w->group.shared.lock, NULL);
	w->group.n_hosts = 1;
	w->group.hosts = &w->group_host;
	w->pool.group = &w->group;
	w->pool.hosts = &w->pool_host;
	w->proxy.weir = w->weir;
	w->pool.proxy = &w->proxy;
	s->magic = SESSION_MAGIC;
	s->proxy = &w->proxy;
	s->pool = &w->pool;
	s->state = (uint8_t)state;
	s->settings = settings_empty();
	stream_init(&s->stream, NULL, NULL, false);
	replyq_init(&w->backend.owed, tx_status);
	w->backend.pool = &w->pool;
	stream_init(&w->backend.stream, NULL, NULL, false);
	if (is_replication(state) || state == SESSION_OWN_WAIT)
		s->replication = &w->replication;
	if (is_attached(state) || ev == EV_BACKEND)
		s->backend = &w->backend;
	if (ev == EV_PHASE)
		atomic_store(&w->weir->phase, WEIR_WAIT_SERVERS);
}

static void
world_fini(struct world *w)
{
	replyq_fini(&w->backend.owed);
	settings_unref(&w->session.settings);
	weir_free(&w->weir);
}

/* "STATE" or "STATE (reason)" */
static void
print_cell(FILE *f, enum session_state state, enum session_event ev, char tx_status)
{
	struct session_input in = {.p = (const uint8_t *)"", .n = 0, .reason = CLOSE_SERVER_LOGIN};
	struct world w;
	enum session_state next;

	world_init(&w, state, ev, tx_status);
	/* as the relay does: a settled backend has been released before its session hears of it */
	if (ev == EV_UNIT_DONE && state != SESSION_LOGIN_APPLY && tx_status == TX_IDLE)
		w.session.backend = NULL;
	next = handlers[state](&w.session, ev, &in);
	if (next != state)
		ck_assert_msg(session_may_move(state, next), "%s -> %s is not in states.def", state_names[state],
		              state_names[next]);
	fprintf(f, "  %-18s %s", event_names[ev], next == state ? "-" : state_names[next]);
	if (next == SESSION_CLOSED && state != SESSION_CLOSED)
		fprintf(f, " (%s)", close_row(w.session.close_reason)->name);
	fputc('\n', f);
	world_fini(&w);
}

static void
print_matrix(FILE *f)
{
	fprintf(f, "# state machine of a session: what each event does in each state; \"-\": it stays. Checked by\n"
	           "# test_session_matrix.c. States with a backend are shown outside a transaction (I) and inside one "
	           "(T).\n"
	           "# EV_PHASE: the daemon waits for transactions to end.\n");
	for (int state = 0; state < SESSION_STATE_N; state++) {
		for (const char *tx = has_transaction((enum session_state)state) ? "IT" : "I"; *tx != '\0'; tx++) {
			fprintf(f, "\n%s %c\n", state_names[state], *tx);
			for (int ev = 0; ev < SESSION_EVENT_N; ev++)
				print_cell(f, (enum session_state)state, (enum session_event)ev, *tx);
		}
	}
}

START_TEST(matrix_is_as_checked_in)
{
	char *got = NULL, *want;
	size_t n_got = 0, n_want;
	FILE *f = open_memstream(&got, &n_got);

	print_matrix(f);
	fclose(f);
	if (getenv("PGWEIR_MATRIX_WRITE") != NULL) {
		f = fopen(MATRIX, "w");
		fwrite(got, 1, n_got, f);
		fclose(f);
	}
	f = fopen(MATRIX, "r");
	ck_assert_msg(f != NULL, "run from the top folder: no " MATRIX);
	want = calloc(1, 65536);
	n_want = fread(want, 1, 65535, f);
	fclose(f);
	ck_assert_uint_eq(n_got, n_want);
	ck_assert_str_eq(got, want);
	free(got);
	free(want);
}
END_TEST

/* Every state but the last can be left, and every one can be reached. */
START_TEST(no_state_is_an_island)
{
	for (int to = 1; to < SESSION_STATE_N; to++) {
		bool reached = false;

		for (int from = 0; from < SESSION_STATE_N; from++)
			reached = reached ||
			          (from != to && session_may_move((enum session_state)from, (enum session_state)to));
		ck_assert_msg(reached, "%s can't be reached", state_names[to]);
	}
	for (int from = 0; from < SESSION_CLOSED; from++)
		ck_assert(session_may_move((enum session_state)from, SESSION_CLOSED));
	ck_assert(!session_may_move(SESSION_CLOSED, SESSION_IDLE));
}
END_TEST

UNIT_MAIN("session_matrix", matrix_is_as_checked_in, no_state_is_an_island)
