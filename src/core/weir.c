/* SPDX-License-Identifier: ISC */
#include "core/weir.h"

#include "base/clock.h"
#include "core/config.h"
#include "core/group.h"
#include "core/old_servers.h"

#include <stdlib.h>

struct weir *
weir_new(struct config *config, unsigned n_proxies)
{
	struct weir *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->config = config;
	w->n_proxies = n_proxies;
	w->started_us = clock_now_us();
	w->started_at = time(NULL);
	pthread_mutex_init(&w->shared.lock, NULL);
	return w;
}

void
weir_free(struct weir **w)
{
	if (*w == NULL)
		return;
	group_free_all(*w);
	old_servers_free(*w);
	config_unref(&(*w)->config);
	pthread_mutex_destroy(&(*w)->shared.lock);
	free(*w);
	*w = NULL;
}
