/* SPDX-License-Identifier: ISC */
/*
 * A backend: one server connection, from the token it was opened with to its close.
 * Belongs to one proxy at a time; changes hands only when it owes nothing
 * (replyq_is_settled) and no cancel request for it is under way.
 */
#ifndef PGWEIR_CORE_BACKEND_H
#define PGWEIR_CORE_BACKEND_H

#include "base/obj.h"
#include "core/close.h"
#include "core/pool.h"
#include "net/stream.h"
#include "wire/replyq.h"

enum backend_state {
#define BACKEND_STATE(name, ...) name,
#include "core/states.def"
	BACKEND_STATE_N
};

#define BACKEND_MAGIC 0x6261636bu
#define BACKEND_SECRET_MAX 256

/* What the hidden unit under way is for. */
enum backend_chore {
	CHORE_NONE,
	CHORE_APPLY,
	CHORE_VALIDATE,
	CHORE_ROLLBACK,
	CHORE_RESET,
	CHORE_CHECK,
	CHORE_UNLIMIT, /* idle_session_timeout of the session that had it is undone */
	CHORE_CONNECT_QUERY
};

struct backend_login;
struct prepared_set;
struct resolve;
struct shown;

struct backend {
	uint32_t magic;
	uint8_t state;       /* enum backend_state; written by backend_enter() only */
	uint8_t chore;       /* enum backend_chore */
	bool needs_reset;    /* it may carry what settings don't show: reset before anyone else */
	bool cancel_sent;    /* of the abandoned unit */
	bool said_fatal;     /* the last error had severity FATAL or PANIC */
	bool changed_schema; /* in the transaction under way */
	bool retire;         /* close instead of idling */
	uint8_t minor;       /* protocol 3.x that its login asks for */
	bool is_own;         /* opened for one session (replication): never pooled */
	bool is_trial;       /* opened to see whether its host works again: no waiter counts on it */
	uint8_t host;        /* of group.hosts */
	uint8_t watch;       /* enum state_watch */
	bool has_served;     /* a session has had it: server_lifetime = 0 means once */
	uint32_t msg_left;   /* bytes of a message under way from the server */
	bool msg_hidden;     /* and whose it is */
	bool ready_is_held;  /* the client's unit is answered but for its end, which waits for the question under way */
	uint32_t n_cancels;  /* cancel requests sent and not finished */
	struct stream stream;
	struct replyq owed;
	struct prepared_set *prepared; /* statements that are prepared on it */
	struct state_probe *probe;     /* what is being asked of its session's state; NULL: nothing */
	struct shown *shown;           /* what the text under way names of them; NULL: nothing */
	struct session *unnamed_of; /* whose its unnamed statement is; compared only, and only with its own session */
	uint64_t strays_of;         /* the session that may have set dotted names on it that nobody can list; 0: none */
	/* whose all the values are that currval() and lastval() know there: a session, nobody, or not one's alone */
	uint64_t sequences_of;
#define SEQUENCES_OF_MANY UINT64_MAX
	uint64_t n_units_sent, n_units_done; /* of clients */
	uint64_t watched_unit;               /* the last one sent before it was asked (watch) */
	uint64_t hidden_ended_us;            /* when it answered the last hidden unit */
	uint64_t discarding_unit;            /* the last unit that may end all statements, + 1 */
	struct pool *pool;
	struct session *session;   /* BACKEND_ACTIVE; its own one from the beginning */
	struct settings *label;    /* what it carries beyond its login values */
	struct settings *login;    /* ParameterStatus values as of login */
	struct settings *applying; /* CHORE_APPLY, CHORE_VALIDATE: the label to be */
	uint32_t n_applied;        /* CHORE_VALIDATE: values answered so far */
	struct backend_login *logging_in;
	struct said *said; /* the error of the last failed hidden unit, or the last FATAL; NULL: none */
	struct loop_timer timer;
	struct loop_task open_task;
	struct resolve *resolve; /* the look-up of its host under way */
	struct loop_grave grave;
	TAILQ_ENTRY(backend) link;      /* proxy->backends */
	TAILQ_ENTRY(backend) idle_link; /* pool->idle */
	uint64_t id;
	uint64_t connected_us, request_us, idle_since_us, retire_at_us;
	struct addr peer;
	uint32_t server_pid;
	uint32_t key_len;
	uint8_t key[BACKEND_SECRET_MAX];
};

/* Takes no token: the caller did. Consumes it: a failure to open is told to the pool from the loop. */
void backend_open(struct pool *pool, struct group_slot slot);
/* The same for a session's own; a failure to open is told to the session, from the loop. */
void backend_open_own(struct pool *pool, struct session *s, struct group_slot slot);
void backend_close(struct backend *b, enum close_reason reason, const char *detail /* may be NULL */);
const char *backend_state_label(enum backend_state state);

/* ---- attached to a session ---- */
/* Whether settings must be applied before the session's next unit. */
bool backend_differs(const struct backend *b, const struct session *s);
/* Queues what makes b carry the session's settings; false: no memory (close both). */
bool backend_apply_settings(struct backend *b, struct settings *to, enum backend_chore chore);
/* The session is done with it; b is settled and outside a transaction. */
void backend_release(struct backend *b);
/* The session goes away; b may owe replies or be in a transaction. */
void backend_abandon(struct backend *b);

/* ---- owners ---- */
void backend_attach_session(struct backend *b, struct session *s); /* idle -> active */
void backend_park(struct backend *b);                              /* -> idle: in the pool's list or between proxies */
void backend_adopt(struct backend *b, struct pool *pool);          /* arrived from another proxy: attach to this loop */
void backend_check(struct backend *b);                             /* runs the check query; then pool_give */
void backend_cancel_finished(struct backend *b);                   /* one cancel request less */

/* ---- between the files of the backend ---- */
void backend_enter(struct backend *b, enum backend_state next);
bool backend_start_chore(struct backend *b, enum backend_chore chore, const char *sql); /* CLEANING; false: closed */
void backend_logged_in(struct backend *b);
size_t backend_login_bytes(struct backend *b, const uint8_t *p, size_t n);
bool backend_login_begin(struct backend *b);
void backend_login_free(struct backend *b);
void backend_reconnect(struct backend *b); /* closes its connection and opens another one, from the loop */
size_t backend_relay_bytes(struct backend *b, const uint8_t *p, size_t n);
void backend_forget_error(struct backend *b);
void backend_keep_error(struct backend *b, const uint8_t *body, size_t n);
void backend_note_parameter(struct backend *b, const char *name, const char *value);
void backend_note_login_parameter(struct backend *b, const char *name, const char *value);
/* Reported while settings are applied that do not have it: true if that shows that the server's default has changed. */
bool backend_login_parameter_changed(struct backend *b, const char *name, const char *value);
void backend_settled(struct backend *b);   /* no session, and all is answered: what comes next */
void backend_fail_copy(struct backend *b); /* ends a COPY FROM STDIN whose client has gone */

#endif
