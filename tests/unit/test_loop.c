/* SPDX-License-Identifier: ISC */
#include "net/loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/obj.h"
#include "unit.h"

struct end {
	struct loop_source src;
	int fds[2];
	int n_events;
	struct end *removes;
};

static struct loop *loop;

static void
on_ready(struct loop_source *src, uint32_t events)
{
	struct end *e = container_of(src, struct end, src);

	ck_assert((events & EPOLLIN) != 0);
	e->n_events++;
	if (e->removes != NULL) {
		loop_remove(loop, &e->removes->src, e->removes->fds[0]);
		/* another thread's now, or memory of something else */
		e->removes->src.urgent = !e->removes->src.urgent;
	}
	e->removes = NULL;
}

/* Readable from the beginning, in the order in which they are made. */
static void
end_init(struct end *e, bool urgent)
{
	*e = (struct end){.src = {.ready = on_ready, .urgent = urgent}};
	ck_assert_int_eq(pipe(e->fds), 0);
	ck_assert(loop_add(loop, &e->src, e->fds[0], EPOLLIN | EPOLLET));
	ck_assert_int_eq(write(e->fds[1], "x", 1), 1);
}

static void
end_fini(struct end *e)
{
	close(e->fds[0]);
	close(e->fds[1]);
}

START_TEST(urgent_sources_come_first)
{
	struct end later, first;

	loop = loop_new();
	end_init(&later, false);
	end_init(&first, true);
	first.removes = &later;
	loop_turn(loop, 0);
	ck_assert_int_eq(first.n_events, 1);
	ck_assert_int_eq(later.n_events, 0);
	end_fini(&later);
	end_fini(&first);
	loop_free(&loop);
}
END_TEST

/* A backend that had an event is handed over by another event of the turn. */
START_TEST(removed_source_is_not_looked_at)
{
	struct end remover, removed;

	loop = loop_new();
	end_init(&remover, false);
	end_init(&removed, true);
	remover.removes = &removed;
	loop_turn(loop, 0);
	ck_assert_int_eq(remover.n_events, 1);
	ck_assert_int_eq(removed.n_events, 1);
	end_fini(&remover);
	end_fini(&removed);
	loop_free(&loop);
}
END_TEST

UNIT_MAIN("loop", urgent_sources_come_first, removed_source_is_not_looked_at)
