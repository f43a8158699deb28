/* SPDX-License-Identifier: ISC */
#include "net/resolve.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/obj.h"
#include "base/str.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define ADDRS_MAX 16

struct resolve {
	struct mail mail; /* first: the request is its own answer */
	STAILQ_ENTRY(resolve) link;
	struct mailbox *reply_to;
	char *host;
	uint16_t port;
	void (*done)(struct resolve *r); /* NULL: abandoned. Used in the asker's thread only */
	void *owner;
	bool ok;
	struct addr addr;
	char error[128];
};

/* What the thread knows of a name; only the thread touches it. */
struct known_host {
	char *host;
	uint64_t until_us;
	size_t n, next;
	struct addr addrs[ADDRS_MAX];
	UT_hash_handle hh;
};

struct resolver {
	pthread_t thread;
	uint64_t ttl_us;
	int mail_type;
	struct known_host *known;
	struct {
		pthread_mutex_t lock;
		pthread_cond_t wake;
		bool stopping;
		STAILQ_HEAD(, resolve) requests;
	} shared;
};

static void
resolve_free(struct resolve *r)
{
	free(r->host);
	free(r);
}

static struct known_host *
known_host(struct resolver *rs, const char *host)
{
	struct known_host *k;

	HASH_FIND_STR(rs->known, host, k);
	if (k != NULL)
		return k;
	k = calloc(1, sizeof(*k));
	if (k == NULL || (k->host = str_dup(host)) == NULL) {
		free(k);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, rs->known, k->host, strlen(k->host), k);
	if (k->hh.tbl == NULL) {
		free(k->host);
		free(k);
		return NULL;
	}
	return k;
}

/* Asks the system; on failure what was known stays. Answers the error text, or NULL. */
static const char *
look_up(struct resolver *rs, struct known_host *k)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list = NULL;
	int err = getaddrinfo(k->host, NULL, &hints, &list);

	if (err != 0)
		return gai_strerror(err);
	k->n = 0;
	for (struct addrinfo *a = list; a != NULL && k->n < ADDRS_MAX; a = a->ai_next) {
		struct addr *to = &k->addrs[k->n];

		if (a->ai_addrlen > sizeof(to->ss))
			continue;
		memcpy(&to->ss, a->ai_addr, a->ai_addrlen);
		to->len = a->ai_addrlen;
		k->n++;
	}
	freeaddrinfo(list);
	k->until_us = clock_now_us() + rs->ttl_us;
	return NULL;
}

static void
set_port(struct addr *a, uint16_t port)
{
	if (a->sa.sa_family == AF_INET6)
		((struct sockaddr_in6 *)&a->ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&a->ss)->sin_port = htons(port);
}

static void
answer(struct resolver *rs, struct resolve *r)
{
	struct known_host *k = known_host(rs, r->host);
	const char *error = NULL;

	if (k != NULL && clock_now_us() >= k->until_us)
		error = look_up(rs, k);
	r->ok = k != NULL && k->n > 0;
	if (r->ok) {
		r->addr = k->addrs[k->next++ % k->n];
		set_port(&r->addr, r->port);
	} else {
		str_copy(r->error, sizeof(r->error), error ? error : "no address");
	}
	mailbox_post(r->reply_to, &r->mail);
}

static void *
resolver_main(void *arg)
{
	struct resolver *rs = arg;

	for (;;) {
		struct resolve *r;

		pthread_mutex_lock(&rs->shared.lock);
		while (STAILQ_EMPTY(&rs->shared.requests) && !rs->shared.stopping)
			pthread_cond_wait(&rs->shared.wake, &rs->shared.lock);
		r = STAILQ_FIRST(&rs->shared.requests);
		if (r != NULL)
			STAILQ_REMOVE_HEAD(&rs->shared.requests, link);
		pthread_mutex_unlock(&rs->shared.lock);
		if (r == NULL)
			return NULL;
		answer(rs, r);
	}
}

struct resolver *
resolver_new(uint64_t ttl_us, int mail_type)
{
	struct resolver *rs = calloc(1, sizeof(*rs));

	if (rs == NULL)
		return NULL;
	rs->ttl_us = ttl_us;
	rs->mail_type = mail_type;
	pthread_mutex_init(&rs->shared.lock, NULL);
	pthread_cond_init(&rs->shared.wake, NULL);
	STAILQ_INIT(&rs->shared.requests);
	if (pthread_create(&rs->thread, NULL, resolver_main, rs) != 0) {
		free(rs);
		return NULL;
	}
	return rs;
}

void
resolver_free(struct resolver **r)
{
	struct resolver *rs = *r;
	struct known_host *k, *next;

	if (rs == NULL)
		return;
	pthread_mutex_lock(&rs->shared.lock);
	while (!STAILQ_EMPTY(&rs->shared.requests)) {
		struct resolve *q = STAILQ_FIRST(&rs->shared.requests);

		STAILQ_REMOVE_HEAD(&rs->shared.requests, link);
		resolve_free(q);
	}
	rs->shared.stopping = true;
	pthread_cond_signal(&rs->shared.wake);
	pthread_mutex_unlock(&rs->shared.lock);
	pthread_join(rs->thread, NULL);
	HASH_ITER (hh, rs->known, k, next) {
		HASH_DEL(rs->known, k);
		free(k->host);
		free(k);
	}
	pthread_mutex_destroy(&rs->shared.lock);
	pthread_cond_destroy(&rs->shared.wake);
	free(rs);
	*r = NULL;
}

struct resolve *
resolve_begin(struct resolver *rs, struct mailbox *reply_to, const char *host, uint16_t port,
              void (*done)(struct resolve *r), void *owner)
{
	struct resolve *r = calloc(1, sizeof(*r));

	if (r == NULL || (r->host = str_dup(host)) == NULL) {
		free(r);
		return NULL;
	}
	r->mail.type = rs->mail_type;
	r->reply_to = reply_to;
	r->port = port;
	r->done = done;
	r->owner = owner;
	pthread_mutex_lock(&rs->shared.lock);
	STAILQ_INSERT_TAIL(&rs->shared.requests, r, link);
	pthread_cond_signal(&rs->shared.wake);
	pthread_mutex_unlock(&rs->shared.lock);
	return r;
}

void
resolve_abandon(struct resolve **r)
{
	if (*r != NULL)
		(*r)->done = NULL;
	*r = NULL;
}

void
resolve_deliver(struct mail *m)
{
	struct resolve *r = container_of(m, struct resolve, mail);

	if (r->done != NULL)
		r->done(r);
	resolve_free(r);
}

void *
resolve_owner(const struct resolve *r)
{
	return r->owner;
}

const struct addr *
resolve_addr(const struct resolve *r)
{
	return r->ok ? &r->addr : NULL;
}

const char *
resolve_error(const struct resolve *r)
{
	return r->error;
}
