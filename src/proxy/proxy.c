/* SPDX-License-Identifier: ISC */
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/obj.h"
#include "core/backend.h"
#include "core/cancel.h"
#include "core/pool.h"
#include "core/session.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "proxy/snapshot.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct proxy_thread {
	struct proxy proxy; /* first */
	pthread_t thread;
	bool is_started;
};

bool
proxy_post_group(struct proxy *to, enum mail_type type, struct group *g, unsigned from)
{
	struct mail_group *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return false;
	m->mail.type = type;
	m->group = g;
	m->from = from;
	mailbox_post(to->mailbox, &m->mail);
	return true;
}

/* ---- mail ---- */

static void
on_group_mail(struct proxy *p, const struct mail_group *m)
{
	struct pool *pool = pool_get(p, m->group);

	if (pool == NULL)
		return;
	if (m->mail.type == MAIL_WANT_IDLE)
		(void)pool_lend(pool, m->from);
	else if (m->mail.type == MAIL_EVICT)
		pool_evict(pool);
	else
		pool_consider(pool);
}

static void
on_backend_mail(struct proxy *p, struct mail_backend *m)
{
	struct pool *pool = pool_get(p, m->group);

	/* the sender's pool is the same group; without memory for ours the backend can only end */
	invariant(pool != NULL);
	backend_adopt(m->backend, pool);
}

static void
on_cancel_mail(struct proxy *p, const struct mail_cancel *m)
{
	if (!session_cancel(p, m))
		cancel_answer(p, m);
}

static void
on_cancel_done_mail(struct proxy *p, const struct mail_cancel *m)
{
	struct session *s = session_find_id(p, m->requester_id);

	if (s != NULL)
		session_step(s, EV_CANCEL_DONE, NULL);
}

/* Idle backends are not needed for transactions that are yet to end. */
static void
close_idle_backends(struct proxy *p)
{
	struct backend *b, *next;

	for (b = TAILQ_FIRST(&p->backends); b != NULL; b = next) {
		next = TAILQ_NEXT(b, link);
		if (b->state == BACKEND_IDLE)
			backend_close(b, CLOSE_SERVER_SHUTDOWN, NULL);
	}
}

static void
close_everything(struct proxy *p)
{
	cancel_free_all(p);
	while (!TAILQ_EMPTY(&p->backends))
		backend_close(TAILQ_FIRST(&p->backends), CLOSE_SERVER_SHUTDOWN, NULL);
	invariant(TAILQ_EMPTY(&p->sessions));
	loop_stop(p->loop);
}

static void
on_phase(struct proxy *p)
{
	struct session *s, *next;

	for (s = TAILQ_FIRST(&p->sessions); s != NULL; s = next) {
		next = TAILQ_NEXT(s, link);
		session_step(s, EV_PHASE, NULL);
	}
	if (weir_phase(p->weir) == WEIR_STOPPING)
		close_everything(p);
	else if (weir_phase(p->weir) == WEIR_WAIT_SERVERS)
		close_idle_backends(p);
}

static void
on_client_mail(struct proxy *p, const struct mail_client *m)
{
	if (weir_phase(p->weir) == WEIR_STOPPING) {
		close(m->fd);
		counter_add(&p->n_sessions_ended, 1);
		atomic_fetch_sub(&p->weir->n_clients, 1);
		return;
	}
	session_new(p, m->fd);
}

static void
on_mail(struct mail *m, void *arg)
{
	struct proxy *p = obj_from(arg, proxy, PROXY_MAGIC);

	switch ((enum mail_type)m->type) {
	case MAIL_CLIENT:
		on_client_mail(p, container_of(m, struct mail_client, mail));
		break;
	case MAIL_BACKEND:
		on_backend_mail(p, container_of(m, struct mail_backend, mail));
		break;
	case MAIL_WANT_IDLE:
	case MAIL_POKE:
	case MAIL_EVICT:
		on_group_mail(p, container_of(m, struct mail_group, mail));
		break;
	case MAIL_CANCEL:
		on_cancel_mail(p, container_of(m, struct mail_cancel, mail));
		break;
	case MAIL_CANCEL_DONE:
		on_cancel_done_mail(p, container_of(m, struct mail_cancel, mail));
		break;
	case MAIL_PHASE:
		on_phase(p);
		break;
	case MAIL_RESOLVED:
		resolve_deliver(m);
		return;
	case MAIL_SNAPSHOT:
		snapshot_take(p, container_of(m, struct mail_snapshot, mail));
		return;
	case MAIL_ADMIN:
		invariant(!"mail for the main thread");
	}
	free(m);
}

/* ---- life ---- */

static void *
proxy_main(void *arg)
{
	struct proxy_thread *t = arg;
	char name[16];

	snprintf(name, sizeof(name), "proxy %u", t->proxy.index);
	(void)pthread_setname_np(pthread_self(), name);
	loop_run(t->proxy.loop);
	return NULL;
}

struct proxy *
proxy_new(struct weir *w, unsigned index)
{
	struct proxy_thread *t = calloc(1, sizeof(*t));
	struct proxy *p = t ? &t->proxy : NULL;

	if (p == NULL)
		return NULL;
	p->magic = PROXY_MAGIC;
	p->index = index;
	p->weir = w;
	TAILQ_INIT(&p->sessions);
	TAILQ_INIT(&p->backends);
	TAILQ_INIT(&p->cancels);
	p->loop = loop_new();
	p->mailbox = mailbox_new(on_mail, p);
	p->session_slab = slab_new(sizeof(struct session), 0);
	if (p->loop == NULL || p->mailbox == NULL || p->session_slab == NULL || !mailbox_attach(p->mailbox, p->loop))
		proxy_free(&p);
	return p;
}

bool
proxy_start(struct proxy *p)
{
	struct proxy_thread *t = container_of(p, struct proxy_thread, proxy);
	sigset_t all, before;

	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	t->is_started = pthread_create(&t->thread, NULL, proxy_main, t) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return t->is_started;
}

void
proxy_tell_phase(struct proxy *p)
{
	struct mail *m = calloc(1, sizeof(*m));

	invariant(m != NULL); /* a daemon that can't be told to stop must not go on */
	m->type = MAIL_PHASE;
	mailbox_post(p->mailbox, m);
}

void
proxy_join(struct proxy *p)
{
	struct proxy_thread *t = container_of(p, struct proxy_thread, proxy);

	if (t->is_started)
		pthread_join(t->thread, NULL);
	t->is_started = false;
}

void
proxy_drain(struct proxy *p)
{
	if (p->mailbox == NULL || p->loop == NULL)
		return;
	loop_turn(p->loop, 0);
	close_everything(p);
	loop_turn(p->loop, 0);
}

void
proxy_free(struct proxy **pp)
{
	struct proxy *p = *pp;

	if (p == NULL)
		return;
	*pp = NULL;
	if (p->mailbox != NULL && p->loop != NULL) {
		proxy_drain(p);
		pool_free_all(p);
		mailbox_detach(p->mailbox);
	}
	mailbox_free(&p->mailbox);
	if (p->session_slab != NULL)
		slab_free_all(&p->session_slab);
	loop_free(&p->loop);
	free(container_of(p, struct proxy_thread, proxy));
}
