/* SPDX-License-Identifier: ISC */
#include "core/old_servers.h"

#include <stdlib.h>
#include <string.h>

struct old_server {
	struct old_server *next;
	struct addr addr;
};

/* Under weir.shared.lock. */
static bool
is_known(const struct weir *w, const struct addr *a)
{
	const struct old_server *o;

	for (o = w->shared.old_servers; o != NULL; o = o->next)
		if (o->addr.len == a->len && memcmp(&o->addr.ss, &a->ss, a->len) == 0)
			return true;
	return false;
}

bool
old_servers_have(struct weir *w, const struct addr *a)
{
	bool known;

	pthread_mutex_lock(&w->shared.lock);
	known = is_known(w, a);
	pthread_mutex_unlock(&w->shared.lock);
	return known;
}

void
old_servers_add(struct weir *w, const struct addr *a)
{
	struct old_server *o;

	pthread_mutex_lock(&w->shared.lock);
	if (!is_known(w, a) && (o = calloc(1, sizeof(*o))) != NULL) {
		o->addr = *a;
		o->next = w->shared.old_servers;
		w->shared.old_servers = o;
	}
	pthread_mutex_unlock(&w->shared.lock);
}

void
old_servers_free(struct weir *w)
{
	struct old_server *o;

	while ((o = w->shared.old_servers) != NULL) {
		w->shared.old_servers = o->next;
		free(o);
	}
}
