/* SPDX-License-Identifier: ISC */
#include "ops/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/obj.h"
#include "core/group.h"
#include "core/proxy.h"
#include "core/weir.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "ops/admin.h"
#include "ops/cmdline.h"
#include "proxy/dispatch.h"
#include "proxy/proxy.h"
#include "proxy/snapshot.h"

#include <event2/event.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TRIM_LEAST 256u     /* sessions that make giving back worth while */
#define DRAIN_POLL_US 20000 /* how often it is looked whether everybody has left */

struct server {
	struct weir *weir;
	struct event_base *base;
	struct loop *loop; /* streams of the console; driven by base */
	struct event *loop_event, *loop_timer, *drain_timer, *trim_timer;
	uint64_t n_sessions_peak; /* since memory was last given back to the system */
	struct event *signals[4];
	struct dispatch *dispatch;
	struct admin *admin;
	uint64_t drain_until_us;
};

/* ---- the loop of the main thread, driven by libevent ---- */

static void
arm_loop_timer(struct server *sv)
{
	uint64_t next_us = loop_next_deadline_us(sv->loop), now_us = clock_now_us(), left_us;
	struct timeval tv;

	if (next_us == LOOP_NEVER) {
		event_del(sv->loop_timer);
		return;
	}
	left_us = next_us > now_us ? next_us - now_us : 0;
	tv.tv_sec = (time_t)(left_us / 1000000);
	tv.tv_usec = (suseconds_t)(left_us % 1000000);
	event_add(sv->loop_timer, &tv);
}

static void
on_loop(evutil_socket_t fd, short what, void *arg)
{
	struct server *sv = arg;

	(void)fd;
	(void)what;
	loop_turn(sv->loop, 0);
	arm_loop_timer(sv);
}

static void
on_mail(struct mail *m, void *arg)
{
	struct server *sv = arg;

	switch ((enum mail_type)m->type) {
	case MAIL_ADMIN:
		admin_adopt(sv->admin, container_of(m, struct mail_admin, mail));
		return;
	case MAIL_SNAPSHOT:
		admin_snapshot(sv->admin, container_of(m, struct mail_snapshot, mail));
		return;
	case MAIL_CLIENT:
	case MAIL_BACKEND:
	case MAIL_WANT_IDLE:
	case MAIL_POKE:
	case MAIL_EVICT:
	case MAIL_CANCEL:
	case MAIL_CANCEL_DONE:
	case MAIL_PHASE:
	case MAIL_RESOLVED:
		break;
	}
	invariant(!"mail for a proxy");
}

/* ---- memory follows the number of clients down ---- */

static uint64_t
count_sessions(const struct weir *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < w->n_proxies; i++)
		n += counter_get(&w->proxies[i]->n_sessions);
	return n;
}

/*
 * Sessions live in slabs that return their pages; their names, settings and hash tables are malloc's, which keeps what is
 * freed. When most have left it is told to let go. Not for a few that come and go: it locks malloc for a moment.
 */
static void
on_trim_timer(evutil_socket_t fd, short what, void *arg)
{
	struct server *sv = arg;
	uint64_t n = count_sessions(sv->weir);

	(void)fd;
	(void)what;
	if (n > sv->n_sessions_peak)
		sv->n_sessions_peak = n;
	if (sv->n_sessions_peak < TRIM_LEAST || n > sv->n_sessions_peak / 2)
		return;
	malloc_trim(0);
	sv->n_sessions_peak = n;
}

/* ---- the end ---- */

static void
enter_phase(struct server *sv, enum weir_phase phase, const char *msg)
{
	if (phase <= weir_phase(sv->weir))
		return;
	log_event(LOG_INFO_, "shutdown", LOG_I("phase", phase), LOG_S("msg", msg));
	atomic_store(&sv->weir->phase, (int)phase);
	for (unsigned i = 0; i < sv->weir->n_proxies; i++)
		proxy_tell_phase(sv->weir->proxies[i]);
	if (phase == WEIR_STOPPING)
		event_base_loopbreak(sv->base);
}

static bool
has_drained(const struct server *sv)
{
	const struct weir *w = sv->weir;
	uint64_t n_backends = 0;

	for (unsigned i = 0; i < w->n_proxies; i++)
		n_backends += counter_get(&w->proxies[i]->n_backends);
	return count_sessions(w) == 0 && (weir_phase(w) == WEIR_WAIT_CLIENTS || n_backends == 0);
}

static void
on_drain_timer(evutil_socket_t fd, short what, void *arg)
{
	struct server *sv = arg;

	(void)fd;
	(void)what;
	if (has_drained(sv))
		enter_phase(sv, WEIR_STOPPING, "everybody has left, exiting");
	else if (clock_now_us() >= sv->drain_until_us)
		enter_phase(sv, WEIR_STOPPING, "shutdown_timeout is over, closing what is left");
}

static void
begin_drain(struct server *sv, enum weir_phase phase, uint64_t limit_us, const char *msg)
{
	struct timeval poll = {0, DRAIN_POLL_US};

	if (weir_phase(sv->weir) != WEIR_RUNNING) {
		enter_phase(sv, WEIR_STOPPING, "asked again, exiting at once");
		return;
	}
	sv->drain_until_us = limit_us > 0 ? clock_now_us() + limit_us : LOOP_NEVER;
	dispatch_stop_listening(sv->dispatch);
	enter_phase(sv, phase, msg);
	event_add(sv->drain_timer, &poll);
}

static void
on_signal(evutil_socket_t number, short what, void *arg)
{
	struct server *sv = arg;

	(void)what;
	switch ((int)number) {
	case SIGTERM:
		begin_drain(sv, WEIR_WAIT_CLIENTS, (uint64_t)sv->weir->config->shutdown_timeout_us,
		            "got SIGTERM, shutting down, waiting for all clients disconnect");
		break;
	case SIGINT:
		begin_drain(sv, WEIR_WAIT_SERVERS, 0,
		            "got SIGINT, shutting down, waiting for all servers connections to be released");
		break;
	case SIGQUIT:
		enter_phase(sv, WEIR_STOPPING, "got SIGQUIT, fast exit");
		break;
	case SIGHUP:
		log_reopen();
		log_event(LOG_INFO_, "reload",
		          LOG_S("msg",
		                "got SIGHUP: log file reopened; re-reading the configuration is not supported yet"));
		break;
	default:
		break;
	}
}

/* SHUTDOWN on the console. */
static void
on_shutdown_command(enum weir_phase phase, void *arg)
{
	struct server *sv = arg;

	if (phase == WEIR_WAIT_CLIENTS)
		begin_drain(sv, phase, (uint64_t)sv->weir->config->shutdown_timeout_us,
		            "SHUTDOWN WAIT_FOR_CLIENTS command issued");
	else if (phase == WEIR_WAIT_SERVERS)
		begin_drain(sv, phase, 0, "SHUTDOWN WAIT_FOR_SERVERS command issued");
	else
		enter_phase(sv, WEIR_STOPPING, "SHUTDOWN command issued");
}

/* ---- the beginning ---- */

static bool
add_signal(struct server *sv, size_t i, int number)
{
	/* what libevent puts back at the end: a second SIGTERM must not kill us while we clean up */
	if (signal(number, SIG_IGN) == SIG_ERR)
		return false;
	sv->signals[i] = evsignal_new(sv->base, number, on_signal, sv);
	return sv->signals[i] != NULL && event_add(sv->signals[i], NULL) == 0;
}

static bool
add_signals(struct server *sv)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
	sigset_t all, before;
	bool ok = signal(SIGPIPE, SIG_IGN) != SIG_ERR;

	sigfillset(&all); /* one that comes just now is not lost */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (size_t i = 0; ok && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		ok = add_signal(sv, i, numbers[i]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static bool
start_proxies(struct weir *w)
{
	/*
	 * malloc_trim() cuts off the free end of the first arena only. Other arenas would save the proxies a lock that they
	 * do not meet: what a transaction allocates comes from each thread's cache.
	 */
	mallopt(M_ARENA_MAX, 1);
	for (unsigned i = 0; i < w->n_proxies; i++)
		if ((w->proxies[i] = proxy_new(w, i)) == NULL)
			return false;
	for (unsigned i = 0; i < w->n_proxies; i++)
		if (!proxy_start(w->proxies[i]))
			return false;
	return true;
}

static bool
make_main_loop(struct server *sv)
{
	static const struct timeval trim_period = {1, 0};
	struct event_config *ec = event_config_new();

	if (ec == NULL)
		return false;
	event_config_set_flag(ec, EVENT_BASE_FLAG_NOLOCK);
	sv->base = event_base_new_with_config(ec);
	event_config_free(ec);
	sv->loop = loop_new();
	if (sv->base == NULL || sv->loop == NULL)
		return false;
	sv->loop_event = event_new(sv->base, loop_fd(sv->loop), EV_READ | EV_PERSIST, on_loop, sv);
	sv->loop_timer = evtimer_new(sv->base, on_loop, sv);
	sv->drain_timer = event_new(sv->base, -1, EV_PERSIST, on_drain_timer, sv);
	sv->trim_timer = event_new(sv->base, -1, EV_PERSIST, on_trim_timer, sv);
	sv->weir->main_mailbox = mailbox_new(on_mail, sv);
	return sv->trim_timer != NULL && event_add(sv->trim_timer, &trim_period) == 0 && sv->loop_event != NULL &&
	       sv->loop_timer != NULL && sv->drain_timer != NULL && sv->weir->main_mailbox != NULL &&
	       mailbox_attach(sv->weir->main_mailbox, sv->loop) && event_add(sv->loop_event, NULL) == 0;
}

static unsigned
number_of_proxies(const struct config *c)
{
	long n = c->proxies > 0 ? (long)c->proxies : sysconf(_SC_NPROCESSORS_ONLN);

	if (n < 1)
		return 1;
	return n > (long)WEIR_MAX_PROXIES ? WEIR_MAX_PROXIES : (unsigned)n;
}

/* Opens the pools that shall exist without clients: min_pool_size of entries with a forced user. */
static void
warm_up(struct weir *w)
{
	const struct database_conf *db;
	unsigned next = 0;

	for (db = w->config->databases; db != NULL; db = db->hh.next) {
		struct group *g;

		if (db->user == NULL || config_min_pool_size(w->config, db) <= 0)
			continue;
		g = group_get(w, db->name, db, db->user);
		if (g != NULL)
			(void)proxy_post_group(w->proxies[next++ % w->n_proxies], MAIL_POKE, g, 0);
	}
}

static bool
start(struct server *sv, char *why, size_t why_cap)
{
	snprintf(why, why_cap, "not enough memory, descriptors or threads");
	sv->weir->resolver = resolver_new((uint64_t)sv->weir->config->dns_max_ttl_us, MAIL_RESOLVED);
	if (sv->weir->resolver == NULL || !make_main_loop(sv) || !add_signals(sv))
		return false;
	sv->admin = admin_new(sv->weir, sv->loop, on_shutdown_command, sv);
	if (sv->admin == NULL || !start_proxies(sv->weir))
		return false;
	arm_loop_timer(sv); /* the console has set its first timer */
	sv->dispatch = dispatch_new(sv->weir, sv->base, why, why_cap);
	return sv->dispatch != NULL;
}

static void
stop(struct server *sv)
{
	struct weir *w = sv->weir;

	atomic_store(&w->phase, WEIR_STOPPING);
	if (sv->dispatch != NULL)
		dispatch_free(&sv->dispatch);
	for (unsigned i = 0; i < w->n_proxies; i++)
		if (w->proxies[i] != NULL)
			proxy_tell_phase(w->proxies[i]);
	for (unsigned i = 0; i < w->n_proxies; i++)
		if (w->proxies[i] != NULL)
			proxy_join(w->proxies[i]);
	resolver_free(&w->resolver);
	/* backends may still be under way between two mailboxes: empty all before any is freed */
	for (unsigned i = 0; i < w->n_proxies; i++)
		if (w->proxies[i] != NULL)
			proxy_drain(w->proxies[i]);
	for (unsigned i = 0; i < w->n_proxies; i++)
		proxy_free(&w->proxies[i]);
	if (sv->loop != NULL && w->main_mailbox != NULL) {
		loop_turn(sv->loop, 0);
		admin_free(&sv->admin);
		loop_turn(sv->loop, 0);
		mailbox_detach(w->main_mailbox);
	}
	mailbox_free(&w->main_mailbox);
	for (size_t i = 0; i < sizeof(sv->signals) / sizeof(sv->signals[0]); i++)
		if (sv->signals[i] != NULL)
			event_free(sv->signals[i]);
	if (sv->loop_event != NULL)
		event_free(sv->loop_event);
	if (sv->loop_timer != NULL)
		event_free(sv->loop_timer);
	if (sv->drain_timer != NULL)
		event_free(sv->drain_timer);
	if (sv->trim_timer != NULL)
		event_free(sv->trim_timer);
	if (sv->base != NULL)
		event_base_free(sv->base);
	loop_free(&sv->loop);
	weir_free(&sv->weir);
}

int
server_run(struct config **c, void (*ready)(void))
{
	struct server sv = {.drain_until_us = LOOP_NEVER};
	char why[256];
	bool ok;

	sv.weir = weir_new(*c, number_of_proxies(*c));
	if (sv.weir == NULL)
		return 1;
	*c = NULL;
	ok = start(&sv, why, sizeof(why));
	if (ok) {
		warm_up(sv.weir);
		ready();
		log_event(LOG_INFO_, "start", LOG_U("proxies", sv.weir->n_proxies), LOG_S("version", cmdline_version()),
		          LOG_S("msg", "process up"));
		event_base_dispatch(sv.base);
	} else {
		log_event(LOG_FATAL_, "start", LOG_S("msg", why));
	}
	stop(&sv);
	return ok ? 0 : 1;
}
