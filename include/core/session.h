/* SPDX-License-Identifier: ISC */
/*
 * A session: one client connection, from accept to close. states.def has its states;
 * session_enter() alone moves it; each state has one handler that is given an event
 * and answers the next state.
 */
#ifndef PGWEIR_CORE_SESSION_H
#define PGWEIR_CORE_SESSION_H

#include "base/hash.h"
#include "base/obj.h"
#include "core/close.h"
#include "core/pool.h"
#include "core/state.h"
#include "net/stream.h"

enum session_state {
#define SESSION_STATE(name, ...) name,
#include "core/states.def"
	SESSION_STATE_N
};

enum session_event {
#define SESSION_EVENT(name) name,
#include "core/events.def"
	SESSION_EVENT_N
};

#define SESSION_MAGIC 0x73657373u
#define SESSION_SECRET_MAX 32

struct login;
struct replication;

struct session {
	uint32_t magic;
	uint8_t state;         /* enum session_state; written by session_enter() only */
	uint8_t close_reason;  /* enum close_reason: why SESSION_CLOSED is entered */
	uint16_t pins;         /* enum pin: why it keeps its backend; see session_pin() */
	bool parse_is_unbound; /* the unnamed statement was parsed and not bound since: it needs this backend */
	bool at_unit_start;    /* SKIPPING: the first message of the unit is still to be seen */
	bool next_is_canceled; /* BRAKED: the unit that waits is to be cancelled as soon as it is sent */
	bool is_queued;        /* in its pool's list of waiters; the pool's field */
	bool logged_in;        /* counts as a client of its group */
	uint8_t secret_len;
	uint8_t n_overtaken; /* while it waits, by others whose settings a free backend had; the pool's field */
	uint32_t msg_left;   /* bytes of a client message under way */
	struct stream stream;
	struct proxy *proxy;
	struct pool *pool;       /* after login */
	struct backend *backend; /* attached */
	struct settings *settings;
	struct settings *meaning,
		*meaning_of; /* settings without application_name, and the settings it was made from */
	struct state_marks marks;
	struct names *names;     /* prepared statements by name; NULL: none */
	struct names *lost;      /* names that were used ahead and turned out not to be there: for error messages */
	uint32_t n_closing;      /* Closes of names that are under way */
	struct unnamed *unnamed; /* the unnamed statement; NULL: none */
	struct login *login;     /* until logged in */
	struct replication *replication; /* NULL: an ordinary session */
	char *user;                      /* as the client names it */
	char *close_detail;              /* more precise than the reason's text; or NULL */
	struct said *close_said;         /* the server's words for the client; or NULL */
	struct loop_timer timer;
	struct loop_grave grave;
	TAILQ_ENTRY(session) link;      /* proxy->sessions */
	TAILQ_ENTRY(session) wait_link; /* pool->waiters */
	UT_hash_handle hh;              /* proxy->sessions_by_key */
	uint64_t id;
	uint64_t connected_us, request_us, wait_since_us, xact_began_us, query_began_us;
	uint32_t cancel_pid;
	uint8_t cancel_secret[SESSION_SECRET_MAX];
};

/* What a handler is told with an event. */
struct session_input {
	const uint8_t *p; /* EV_BYTES */
	size_t n;
	size_t used;
	struct backend *backend;  /* EV_BACKEND */
	const struct said *said;  /* EV_BACKEND_LOST: the server's words, or NULL */
	enum close_reason reason; /* EV_BACKEND_LOST, EV_REFUSED */
	bool both;                /* EV_HANGUP */
};

void session_new(struct proxy *p, int fd); /* takes the socket; on failure it is closed */
void session_step(struct session *s, enum session_event ev, struct session_input *in);
const char *session_state_label(enum session_state state);
bool session_may_move(enum session_state from, enum session_state to);

/* For the pool and backends. */
void session_given(struct session *s, struct backend *b); /* its turn in the queue has come */
void session_refused(struct session *s, enum close_reason reason, const struct said *said);
void session_backend_lost(struct session *s, enum close_reason reason, const struct said *said);
void session_pin(struct session *s, enum pin why); /* what it has on its backend can't be had elsewhere */
void session_unpin(struct session *s);
bool session_standard_strings(const struct session *s);            /* standard_conforming_strings, as far as is known */
bool session_wants_release(const struct session *s);               /* its backend is settled: may others have it? */
bool session_is_in_forbidden_block(const struct session *s);       /* a transaction in statement pooling mode */
void session_reply(struct session *s, const uint8_t *p, size_t n); /* bytes of the server for the client */
void session_unit_done(struct session *s);
void session_progress(struct session *s); /* something was answered, and something is still owed */
void session_flow(struct session *s);     /* lets both directions run or stop, as buffers and state demand */
void session_parameter_changed(struct session *s);
void session_cancels_over(struct session *s);    /* no cancel request for its backend is under way any more */
void session_settings_failed(struct session *s); /* its settings could not be restored: it can't go on */

/* CancelRequest for a key of this proxy. False: nothing to be done (unknown, wrong secret, idle). */
bool session_cancel(struct proxy *p, const struct mail_cancel *m);
struct session *session_find_id(struct proxy *p, uint64_t id);

/* ---- between the files of the session ---- */
enum session_state session_close(struct session *s, enum close_reason reason, const char *detail);
enum session_state session_leave(struct session *s,
                                 enum close_reason reason);          /* LEAVING, or closed when nothing is owed */
void session_keep_words(struct session *s, const struct said *said); /* for the client, when closed */
void session_end(struct session *s);                                 /* on entering SESSION_CLOSED */
enum session_state session_take_backend(struct session *s);          /* ACTIVE or WAITING */
enum session_state login_startup(struct session *s, struct session_input *in);
enum session_state login_auth(struct session *s, struct session_input *in);
enum session_state login_have_backend(struct session *s);
enum session_state login_applied(struct session *s);
enum session_state login_have_own_backend(struct session *s); /* a replication session's */
void login_free(struct login **l);
/* Relays client bytes to the attached backend; ACTIVE, BRAKED, LEAVING, or closed. */
enum session_state relay_client(struct session *s, struct session_input *in);
enum session_state relay_idle(struct session *s, struct session_input *in);
enum session_state relay_skip(struct session *s, struct session_input *in);

#endif
