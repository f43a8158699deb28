/* SPDX-License-Identifier: ISC */
/*
 * Looking for statements that change session state where their texts don't show it (a function's body does): now and then
 * (session_state_sample) a backend is asked for everything twice, after a transaction and after the next one. So it is
 * known what was there before, and what the texts in between have done. That is logged once for each statement, and
 * becomes the session's as if it had been suspected. For state.c.
 */
#ifndef PGWEIR_CORE_STATE_SAMPLE_H
#define PGWEIR_CORE_STATE_SAMPLE_H

#include "core/settings.h"
#include "core/state.h"

/* Of a backend. */
enum state_watch {
	WATCH_NONE,
	WATCH_BEFORE, /* it is being asked what it carries */
	WATCH_NEXT,   /* that is known: the next transaction's texts are noted */
	WATCH_AFTER,  /* it is being asked what they have left */
};

/* A unit is over, and nothing was suspect. Cheap. */
bool state_sample_is_due(const struct session *s);
bool state_sample_begin(struct session *s); /* then: true, everything is to be asked now */
/* The answer to any question. True: it says nothing of this session, and *found was consumed. */
bool state_sample_answered(struct session *s, unsigned pins, struct settings **found);

#endif
