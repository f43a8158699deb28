/* SPDX-License-Identifier: ISC */
#include "ops/admin.h"

#include "base/clock.h"
#include "base/obj.h"
#include "core/config.h"
#include "ops/admin_console.h"
#include "ops/admin_show.h"
#include "ops/stats.h"

#include <stdlib.h>

static struct admin *
admin_of(struct loop_timer *t)
{
	return container_of(t, struct admin, period);
}

static void
begin_period(struct admin *a)
{
	loop_timer_set(a->loop, &a->period, clock_now_us() + (uint64_t)a->weir->config->stats_period_us);
}

/* A reading of all pools is there: the period ends with it. */
static void
on_period_rows(struct ask *ask, void *owner)
{
	struct admin *a = owner;

	if (!ask->failed && admin_read_stats(a->stats, ask)) {
		stats_end_period(a->stats, clock_cached_us());
		if (a->weir->config->log_stats)
			admin_log_stats(a->stats);
	}
	ask_free(&a->asks, &a->period_ask);
}

static void
on_period(struct loop_timer *t)
{
	struct admin *a = admin_of(t);

	begin_period(a);
	if (a->period_ask == NULL && weir_phase(a->weir) != WEIR_STOPPING)
		a->period_ask = ask_begin(&a->asks, ASK_POOLS, on_period_rows, a);
}

struct admin *
admin_new(struct weir *w, struct loop *loop, void (*shutdown)(enum weir_phase phase, void *arg), void *arg)
{
	struct admin *a = calloc(1, sizeof(*a));

	if (a == NULL || (a->stats = stats_new(clock_now_us())) == NULL) {
		free(a);
		return NULL;
	}
	a->weir = w;
	a->loop = loop;
	a->shutdown = shutdown;
	a->shutdown_arg = arg;
	a->period.fire = on_period;
	TAILQ_INIT(&a->consoles);
	asks_init(&a->asks, w);
	begin_period(a);
	return a;
}

void
admin_free(struct admin **a)
{
	if (*a == NULL)
		return;
	while (!TAILQ_EMPTY(&(*a)->consoles))
		console_close(TAILQ_FIRST(&(*a)->consoles), "57P01", "pooler is shutting down");
	ask_free(&(*a)->asks, &(*a)->period_ask);
	loop_timer_remove((*a)->loop, &(*a)->period);
	stats_free(&(*a)->stats);
	free(*a);
	*a = NULL;
}

void
admin_adopt(struct admin *a, struct mail_admin *m)
{
	if (!console_new(a, m))
		atomic_fetch_sub(&a->weir->n_clients, 1);
	free(m);
}

void
admin_snapshot(struct admin *a, struct mail_snapshot *m)
{
	asks_deliver(&a->asks, m);
}
