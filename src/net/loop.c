/* SPDX-License-Identifier: ISC */
#include "net/loop.h"

#include "base/clock.h"
#include "base/obj.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_PER_TURN 256
#define BUSY_WINDOW_US 1000000u

struct loop {
	int epfd;
	bool stopping;
	struct loop_timer **heap;
	uint32_t n_heap, cap_heap;
	struct loop_task *tasks, **tasks_tail;
	struct loop_grave *graves;
	uint64_t window_start_us, busy_us; /* of the current window */
	_Atomic unsigned busy_permille;
	int n_events; /* of the turn under way; those of removed sources have no source */
	struct epoll_event events[EVENTS_PER_TURN];
	uint8_t buffer[LOOP_CARRY + LOOP_RECV];
};

struct loop *
loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0) {
		free(l);
		return NULL;
	}
	l->tasks_tail = &l->tasks;
	l->window_start_us = clock_update();
	return l;
}

void
loop_free(struct loop **l)
{
	if (*l == NULL)
		return;
	close((*l)->epfd);
	free((*l)->heap);
	free(*l);
	*l = NULL;
}

uint8_t *
loop_buffer(struct loop *l)
{
	return l->buffer;
}

int
loop_fd(const struct loop *l)
{
	return l->epfd;
}

/* ---- descriptors ---- */

bool
loop_add(struct loop *l, struct loop_source *src, int fd, uint32_t epoll_events)
{
	struct epoll_event ev = {.events = epoll_events, .data.ptr = src};

	return epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) == 0;
}

void
loop_change(struct loop *l, struct loop_source *src, int fd, uint32_t epoll_events)
{
	struct epoll_event ev = {.events = epoll_events, .data.ptr = src};

	invariant(epoll_ctl(l->epfd, EPOLL_CTL_MOD, fd, &ev) == 0);
}

void
loop_remove(struct loop *l, struct loop_source *src, int fd)
{
	invariant(epoll_ctl(l->epfd, EPOLL_CTL_DEL, fd, NULL) == 0);
	for (int i = 0; i < l->n_events; i++)
		if (l->events[i].data.ptr == src)
			l->events[i].data.ptr = NULL;
}

/* ---- timers: a binary heap on key_us ---- */

static void
heap_place(struct loop *l, uint32_t i, struct loop_timer *t)
{
	l->heap[i] = t;
	t->slot = i + 1;
}

static void
heap_up(struct loop *l, uint32_t i)
{
	struct loop_timer *t = l->heap[i];

	while (i > 0) {
		uint32_t parent = (i - 1) / 2;

		if (l->heap[parent]->key_us <= t->key_us)
			break;
		heap_place(l, i, l->heap[parent]);
		i = parent;
	}
	heap_place(l, i, t);
}

static void
heap_down(struct loop *l, uint32_t i)
{
	struct loop_timer *t = l->heap[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= l->n_heap)
			break;
		if (child + 1 < l->n_heap && l->heap[child + 1]->key_us < l->heap[child]->key_us)
			child++;
		if (t->key_us <= l->heap[child]->key_us)
			break;
		heap_place(l, i, l->heap[child]);
		i = child;
	}
	heap_place(l, i, t);
}

void
loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t deadline_us)
{
	t->deadline_us = deadline_us;
	if (deadline_us == LOOP_NEVER)
		return;
	if (t->slot == 0) {
		if (l->n_heap == l->cap_heap) {
			uint32_t cap = l->cap_heap ? l->cap_heap * 2 : 64;
			struct loop_timer **heap = realloc(l->heap, cap * sizeof(*heap));

			/* without it nothing could ever time out: as fatal as having no stack */
			invariant(heap != NULL);
			l->heap = heap;
			l->cap_heap = cap;
		}
		t->key_us = deadline_us;
		heap_place(l, l->n_heap++, t);
		heap_up(l, t->slot - 1);
	} else if (deadline_us < t->key_us) {
		t->key_us = deadline_us;
		heap_up(l, t->slot - 1);
	}
}

void
loop_timer_clear(struct loop_timer *t)
{
	t->deadline_us = LOOP_NEVER;
}

void
loop_timer_remove(struct loop *l, struct loop_timer *t)
{
	uint32_t i;

	t->deadline_us = LOOP_NEVER;
	if (t->slot == 0)
		return;
	i = t->slot - 1;
	invariant(i < l->n_heap && l->heap[i] == t);
	t->slot = 0;
	l->n_heap--;
	if (i < l->n_heap) {
		heap_place(l, i, l->heap[l->n_heap]);
		heap_up(l, i);
		heap_down(l, l->heap[i]->slot - 1);
	}
}

static void
run_timers(struct loop *l)
{
	uint64_t now_us = clock_cached_us();

	while (l->n_heap > 0 && l->heap[0]->key_us <= now_us) {
		struct loop_timer *t = l->heap[0];

		if (t->deadline_us > now_us && t->deadline_us != LOOP_NEVER) {
			t->key_us = t->deadline_us;
			heap_down(l, 0);
			continue;
		}
		bool due = t->deadline_us != LOOP_NEVER;
		loop_timer_remove(l, t);
		if (due)
			t->fire(t);
	}
}

uint64_t
loop_next_deadline_us(const struct loop *l)
{
	if (l->tasks != NULL)
		return 0;
	return l->n_heap > 0 ? l->heap[0]->key_us : LOOP_NEVER;
}

/* ---- tasks and graves ---- */

void
loop_defer(struct loop *l, struct loop_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	t->next = NULL;
	*l->tasks_tail = t;
	l->tasks_tail = &t->next;
}

void
loop_cancel_task(struct loop *l, struct loop_task *t)
{
	struct loop_task **at = &l->tasks;

	if (!t->queued)
		return;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (l->tasks_tail == &t->next)
		l->tasks_tail = at;
	t->queued = false;
}

/* Runs as many as were queued when it began; what tasks defer themselves waits for the next turn. */
static void
run_tasks(struct loop *l)
{
	size_t n = 0;

	for (struct loop_task *t = l->tasks; t != NULL; t = t->next)
		n++;
	while (n-- > 0 && l->tasks != NULL) {
		struct loop_task *t = l->tasks;

		loop_cancel_task(l, t);
		t->run(t);
	}
}

void
loop_bury(struct loop *l, struct loop_grave *g, void (*bury)(struct loop_grave *g))
{
	g->bury = bury;
	g->next = l->graves;
	l->graves = g;
}

static void
run_graves(struct loop *l)
{
	while (l->graves != NULL) {
		struct loop_grave *g = l->graves;

		l->graves = g->next;
		g->bury(g);
	}
}

/* ---- turns ---- */

static int
wait_ms(const struct loop *l, int max_wait_ms)
{
	uint64_t next_us = loop_next_deadline_us(l), now_us, ms;

	if (next_us == LOOP_NEVER || max_wait_ms == 0)
		return max_wait_ms;
	now_us = next_us ? clock_now_us() : 0;
	if (next_us <= now_us)
		return 0;
	ms = (next_us - now_us + 999) / 1000; /* rounded up: a timer never fires early */
	if (max_wait_ms >= 0 && ms > (uint64_t)max_wait_ms)
		return max_wait_ms;
	return ms > 3600000 ? 3600000 : (int)ms;
}

static void
note_busy(struct loop *l, uint64_t began_us)
{
	uint64_t now_us = clock_now_us(), window_us = now_us - l->window_start_us;

	l->busy_us += now_us - began_us;
	if (window_us < BUSY_WINDOW_US)
		return;
	atomic_store_explicit(&l->busy_permille, (unsigned)(l->busy_us * 1000 / window_us), memory_order_relaxed);
	l->window_start_us = now_us;
	l->busy_us = 0;
}

unsigned
loop_busy_permille(const struct loop *l)
{
	return atomic_load_explicit(&l->busy_permille, memory_order_relaxed);
}

static void
serve_events(struct loop *l, bool urgent)
{
	for (int i = 0; i < l->n_events; i++) {
		struct loop_source *src = l->events[i].data.ptr;

		if (src != NULL && src->urgent == urgent && src->ready != NULL)
			src->ready(src, l->events[i].events);
	}
}

void
loop_turn(struct loop *l, int max_wait_ms)
{
	int n = epoll_wait(l->epfd, l->events, EVENTS_PER_TURN, wait_ms(l, max_wait_ms));
	uint64_t began_us = clock_update();

	invariant(n >= 0 || errno == EINTR);
	l->n_events = n > 0 ? n : 0;
	serve_events(l, true);
	serve_events(l, false);
	l->n_events = 0;
	run_timers(l);
	run_tasks(l);
	run_graves(l);
	note_busy(l, began_us);
}

void
loop_run(struct loop *l)
{
	while (!l->stopping)
		loop_turn(l, -1);
}

void
loop_stop(struct loop *l)
{
	l->stopping = true;
}
