/* SPDX-License-Identifier: ISC */
#include "proxy/dispatch.h"

#include "base/log.h"
#include "base/obj.h"
#include "base/str.h"
#include "core/config.h"
#include "core/proxy.h"
#include "core/socket_options.h"
#include "net/addr.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCEPTS_PER_WAKE 64
#define PAUSE_MS 100 /* without descriptors nothing can be accepted: wait for some to be closed */

struct listener {
	STAILQ_ENTRY(listener) link;
	struct dispatch *dispatch;
	struct addr addr;
	int fd;
	struct event *event;
};

struct dispatch {
	struct weir *weir;
	struct event_base *base;
	STAILQ_HEAD(, listener) listeners;
	struct event *resume; /* after a pause */
	int spare_fd;         /* given up to accept and refuse one client when descriptors run out */
	unsigned next;        /* round robin */
	uint64_t n_dealt[WEIR_MAX_PROXIES];
};

/* ---- dealing ---- */

/* Sessions of a proxy that have been dealt and have not ended. */
static uint64_t
load_of(const struct dispatch *d, unsigned i)
{
	return d->n_dealt[i] - counter_get(&d->weir->proxies[i]->n_sessions_ended);
}

static unsigned
choose_proxy(struct dispatch *d)
{
	unsigned n = d->weir->n_proxies, best = 0;
	uint32_t r;

	switch (d->weir->config->session_schedule) {
	case SCHEDULE_ROUND_ROBIN:
		return d->next++ % n;
	case SCHEDULE_RANDOM:
		return RAND_bytes((unsigned char *)&r, sizeof(r)) == 1 ? r % n : d->next++ % n;
	case SCHEDULE_LEAST_LOADED:
		break;
	}
	for (unsigned i = 1; i < n; i++)
		if (load_of(d, i) < load_of(d, best))
			best = i;
	return best;
}

static void
deal(struct dispatch *d, int fd)
{
	struct mail_client *m = calloc(1, sizeof(*m));
	unsigned i = choose_proxy(d);

	if (m == NULL) {
		close(fd);
		return;
	}
	m->mail.type = MAIL_CLIENT;
	m->fd = fd;
	d->n_dealt[i]++;
	atomic_fetch_add(&d->weir->n_clients, 1);
	mailbox_post(d->weir->proxies[i]->mailbox, &m->mail);
}

/* ---- accepting ---- */

static void
pause_listening(struct dispatch *d)
{
	struct timeval pause = {0, PAUSE_MS * 1000};
	struct listener *l;

	STAILQ_FOREACH (l, &d->listeners, link)
		event_del(l->event);
	event_add(d->resume, &pause);
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct dispatch *d = arg;
	struct listener *l;

	(void)fd;
	(void)what;
	STAILQ_FOREACH (l, &d->listeners, link)
		event_add(l->event, NULL);
}

/* Out of descriptors: one client is accepted with the spare one and turned away, then there is a pause. */
static void
refuse_one(struct dispatch *d, int listen_fd)
{
	static struct log_repeat repeat;
	uint32_t n_held;
	int fd;

	if (log_repeat_pass(&repeat, &n_held))
		log_event(LOG_ERROR_, "accept", LOG_S("reason", strerror(errno)), LOG_U("repeated", n_held),
		          LOG_S("msg", "accept() failed: no descriptors for new clients"));
	close(d->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pause_listening(d);
}

static void
on_accept(evutil_socket_t listen_fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)what;
	for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
		int fd = accept4((int)listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			if (!addr_is_unix(&l->addr))
				socket_tune(l->dispatch->weir->config, fd);
			deal(l->dispatch, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			refuse_one(l->dispatch, (int)listen_fd);
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}

/* ---- opening ---- */

static int
bind_socket(const struct config *c, const struct addr *a)
{
	int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -1;
	socket_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (a->sa.sa_family == AF_INET6)
		socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!addr_is_unix(a) && c->tcp_defer_accept > 0)
		socket_set(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, c->tcp_defer_accept);
	if (bind(fd, &a->sa, a->len) == 0 && listen(fd, (int)c->listen_backlog) == 0)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

static bool
fail(char *why, size_t why_cap, const struct addr *a)
{
	char text[ADDR_TEXT_MAX];

	snprintf(why, why_cap, "cannot listen on %s: %s", addr_text(a, text), strerror(errno));
	return false;
}

static bool
add_listener(struct dispatch *d, const struct addr *a, char *why, size_t why_cap)
{
	struct listener *l = calloc(1, sizeof(*l));
	char text[ADDR_TEXT_MAX];

	if (l == NULL)
		return fail(why, why_cap, a);
	l->dispatch = d;
	l->addr = *a;
	l->fd = bind_socket(d->weir->config, a);
	if (l->fd >= 0)
		l->event = event_new(d->base, l->fd, EV_READ | EV_PERSIST, on_accept, l);
	if (l->event == NULL || event_add(l->event, NULL) != 0) {
		fail(why, why_cap, a);
		if (l->fd >= 0)
			close(l->fd);
		free(l);
		return false;
	}
	STAILQ_INSERT_TAIL(&d->listeners, l, link);
	log_event(LOG_INFO_, "listen", LOG_S("addr", addr_text(a, text)), LOG_S("msg", "listening"));
	return true;
}

/* Someone alive behind the path means that it is in use; else it is what a crash left behind. */
static bool
is_answered(const struct addr *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool answered = fd >= 0 && connect(fd, &a->sa, a->len) == 0;

	if (fd >= 0)
		close(fd);
	return answered;
}

/* By name or by number. */
static bool
change_group(const char *path, const char *group)
{
	struct group *entry = getgrnam(group);
	int64_t gid;

	if (entry != NULL)
		return chown(path, (uid_t)-1, entry->gr_gid) == 0;
	errno = ENOENT;
	return str_parse_int(group, 0, INT32_MAX, &gid) && chown(path, (uid_t)-1, (gid_t)gid) == 0;
}

static bool
set_socket_owner(const struct config *c, const char *path, char *why, size_t why_cap)
{
	if (chmod(path, (mode_t)c->unix_socket_mode) != 0) {
		snprintf(why, why_cap, "unix_socket_mode: %s: %s", path, strerror(errno));
		return false;
	}
	if (c->unix_socket_group[0] != '\0' && !change_group(path, c->unix_socket_group)) {
		snprintf(why, why_cap, "unix_socket_group: %s: %s", c->unix_socket_group, strerror(errno));
		return false;
	}
	return true;
}

static bool
listen_unix(struct dispatch *d, char *why, size_t why_cap)
{
	const struct config *c = d->weir->config;
	struct addr a;

	if (c->unix_socket_dir[0] == '\0')
		return true;
	if (addr_from_unix_dir(&a, c->unix_socket_dir, (unsigned)c->listen_port) != STATUS_OK) {
		snprintf(why, why_cap, "unix_socket_dir: the path is too long");
		return false;
	}
	if (a.un.sun_path[0] == '\0')
		return add_listener(d, &a, why, why_cap);
	if (is_answered(&a)) {
		errno = EADDRINUSE;
		return fail(why, why_cap, &a);
	}
	(void)unlink(a.un.sun_path);
	return add_listener(d, &a, why, why_cap) && set_socket_owner(c, a.un.sun_path, why, why_cap);
}

static bool
listen_tcp(struct dispatch *d, const char *host, char *why, size_t why_cap)
{
	uint16_t port = (uint16_t)d->weir->config->listen_port;
	struct addr a;

	if (strcmp(host, "*") == 0) {
		addr_from_ip(&a, "0.0.0.0", port);
		if (!add_listener(d, &a, why, why_cap))
			return false;
		addr_from_ip(&a, "::", port);
		/* a host without IPv6 has nothing to listen on there */
		return add_listener(d, &a, why, why_cap) || errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL;
	}
	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	if (!addr_from_ip(&a, host, port)) {
		snprintf(why, why_cap, "listen_addr: \"%s\" is not an address", host);
		return false;
	}
	return add_listener(d, &a, why, why_cap);
}

static bool
listen_all(struct dispatch *d, char *why, size_t why_cap)
{
	char *list = str_dup(d->weir->config->listen_addr), *rest = list, *word;
	bool ok = list != NULL;

	while (ok && (word = strsep(&rest, ",")) != NULL) {
		word = str_trim(word);
		ok = word[0] == '\0' || listen_tcp(d, word, why, why_cap);
	}
	free(list);
	return ok && listen_unix(d, why, why_cap);
}

struct dispatch *
dispatch_new(struct weir *w, struct event_base *base, char *why, size_t why_cap)
{
	struct dispatch *d = calloc(1, sizeof(*d));

	snprintf(why, why_cap, "out of memory");
	if (d == NULL)
		return NULL;
	d->weir = w;
	d->base = base;
	STAILQ_INIT(&d->listeners);
	d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	d->resume = evtimer_new(base, on_resume, d);
	if (d->resume == NULL || !listen_all(d, why, why_cap))
		dispatch_free(&d);
	return d;
}

void
dispatch_stop_listening(struct dispatch *d)
{
	event_del(d->resume);
	while (!STAILQ_EMPTY(&d->listeners)) {
		struct listener *l = STAILQ_FIRST(&d->listeners);

		STAILQ_REMOVE_HEAD(&d->listeners, link);
		event_free(l->event);
		if (addr_is_unix(&l->addr) && l->addr.un.sun_path[0] != '\0')
			(void)unlink(l->addr.un.sun_path);
		close(l->fd);
		free(l);
	}
}

void
dispatch_free(struct dispatch **dp)
{
	struct dispatch *d = *dp;

	if (d == NULL)
		return;
	if (d->resume != NULL) {
		dispatch_stop_listening(d);
		event_free(d->resume);
	}
	if (d->spare_fd >= 0)
		close(d->spare_fd);
	free(d);
	*dp = NULL;
}
