/* SPDX-License-Identifier: ISC */
/*
 * The event loop of one thread: edge-triggered epoll, timers, deferred tasks and a
 * graveyard. Everything here belongs to the thread that runs the loop.
 *
 * A turn: wait; urgent sources (backends); the other sources; timers that are due;
 * deferred tasks; the graveyard. What dies in a turn stays readable memory until
 * its end, so no event of the same turn can meet a freed object.
 *
 * Proxies run on epoll itself, not on libevent: of the five system calls that a
 * transaction costs none may be added, and urgent sources must come first so that
 * a dead idle backend is known before a client of the same turn asks for one. The
 * main thread runs under libevent and drives its loop by loop_fd()/loop_turn().
 */
#ifndef PGWEIR_NET_LOOP_H
#define PGWEIR_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

/* Something with a file descriptor. Embedded; `ready` gets EPOLL* bits. */
struct loop_source {
	void (*ready)(struct loop_source *src, uint32_t events); /* NULL: dead, events of this turn are ignored */
	bool urgent;
};

/*
 * A deadline. Moving it later or clearing it costs two stores: the heap is put right when the old time comes. `fire`
 * runs at most once per loop_timer_set, never early. An armed timer must be removed before its memory goes.
 */
struct loop_timer {
	void (*fire)(struct loop_timer *t);
	uint64_t deadline_us; /* LOOP_NEVER: off */
	uint64_t key_us;      /* where it sits in the heap: <= deadline_us */
	uint32_t slot;        /* index in the heap + 1; 0: not in it */
};
#define LOOP_NEVER UINT64_MAX

/* Work put off to the end of the turn. Scheduling twice runs it once. */
struct loop_task {
	void (*run)(struct loop_task *t);
	struct loop_task *next;
	bool queued;
};

/* An object that is unreachable already and is freed at the end of the turn. */
struct loop_grave {
	void (*bury)(struct loop_grave *g);
	struct loop_grave *next;
};

struct loop *loop_new(void); /* NULL: no memory or descriptors (errno) */
void loop_free(struct loop **l);

void loop_run(struct loop *l);                        /* until loop_stop() */
void loop_stop(struct loop *l);                       /* from the loop's own thread */
void loop_turn(struct loop *l, int max_wait_ms);      /* one turn; -1: wait for ever */
int loop_fd(const struct loop *l);                    /* readable when a turn has something to do */
uint64_t loop_next_deadline_us(const struct loop *l); /* LOOP_NEVER: none; 0: tasks are pending */

bool loop_add(struct loop *l, struct loop_source *src, int fd, uint32_t epoll_events); /* false: errno */
void loop_change(struct loop *l, struct loop_source *src, int fd, uint32_t epoll_events);
/* Before the fd is closed. No event of this turn will look at src: it may go to another thread, which may free it. */
void loop_remove(struct loop *l, struct loop_source *src, int fd);

void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t deadline_us);
void loop_timer_clear(struct loop_timer *t);                  /* off; memory is still the heap's */
void loop_timer_remove(struct loop *l, struct loop_timer *t); /* off, and out of the heap */

void loop_defer(struct loop *l, struct loop_task *t);
void loop_cancel_task(struct loop *l, struct loop_task *t);
void loop_bury(struct loop *l, struct loop_grave *g, void (*bury)(struct loop_grave *g));

/* The thread's receive buffer: LOOP_CARRY bytes kept from before, then LOOP_RECV bytes from one receive. */
#define LOOP_RECV 65536u
#define LOOP_CARRY 131072u
uint8_t *loop_buffer(struct loop *l);

/* Share of the last second or so that the loop was working and not waiting, in 1/1000. Any thread. */
unsigned loop_busy_permille(const struct loop *l);

#endif
