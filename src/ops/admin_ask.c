/* SPDX-License-Identifier: ISC */
#include "ops/admin_ask.h"

#include "base/obj.h"

#include <stdlib.h>

void
asks_init(struct asks *as, struct weir *w)
{
	as->weir = w;
	as->last_number = 0;
	TAILQ_INIT(&as->open);
}

static struct mail_snapshot *
new_request(uint64_t number, enum snapshot_kind kind)
{
	struct mail_snapshot *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->mail.type = MAIL_SNAPSHOT;
	m->kind = kind;
	m->request = number;
	return m;
}

/* One request for each proxy and kind, all or none. */
static bool
make_requests(struct ask *a, unsigned n_proxies, unsigned kinds)
{
	for (unsigned kind = 0; kind < SNAPSHOT_KIND_N; kind++) {
		if ((kinds & (1u << kind)) == 0)
			continue;
		for (unsigned i = 0; i < n_proxies; i++) {
			struct mail_snapshot *m = new_request(a->number, (enum snapshot_kind)kind);

			if (m == NULL)
				return false;
			m->proxy = i;
			a->answer[a->n++] = m;
		}
	}
	return true;
}

struct ask *
ask_begin(struct asks *as, unsigned kinds, void (*done)(struct ask *a, void *owner), void *owner)
{
	struct ask *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->number = ++as->last_number;
	a->done = done;
	a->owner = owner;
	TAILQ_INSERT_TAIL(&as->open, a, link);
	if (!make_requests(a, as->weir->n_proxies, kinds)) {
		ask_free(as, &a);
		return NULL;
	}
	a->n_missing = (unsigned)a->n;
	a->n = 0;
	for (unsigned i = 0; i < a->n_missing; i++) {
		struct mail_snapshot *m = a->answer[i];

		a->answer[i] = NULL;
		mailbox_post(as->weir->proxies[m->proxy]->mailbox, &m->mail);
	}
	return a;
}

void
ask_free(struct asks *as, struct ask **a)
{
	if (*a == NULL)
		return;
	TAILQ_REMOVE(&as->open, *a, link);
	for (size_t i = 0; i < (*a)->n; i++)
		snapshot_free((*a)->answer[i]);
	free(*a);
	*a = NULL;
}

void
asks_deliver(struct asks *as, struct mail_snapshot *m)
{
	struct ask *a;

	TAILQ_FOREACH (a, &as->open, link)
		if (a->number == m->request)
			break;
	if (a == NULL) { /* who asked has gone */
		snapshot_free(m);
		return;
	}
	invariant(a->n_missing > 0 && a->n < ASK_ANSWERS_MAX);
	a->answer[a->n++] = m;
	a->failed = a->failed || m->failed;
	if (--a->n_missing == 0)
		a->done(a, a->owner);
}

struct mail_snapshot *
ask_add(struct ask *a, enum snapshot_kind kind, size_t n)
{
	struct mail_snapshot *m = new_request(a->number, kind);

	invariant(a->n < ASK_ANSWERS_MAX);
	if (m == NULL || (m->rows = calloc(n > 0 ? n : 1, snapshot_row_size(kind))) == NULL) {
		snapshot_free(m);
		return NULL;
	}
	m->n = n;
	a->answer[a->n++] = m;
	return m;
}
