/* SPDX-License-Identifier: ISC */
/* The hidden unit that asks a server for session state (core/state.h), and what it says. */
#ifndef PGWEIR_CORE_STATE_PROBE_H
#define PGWEIR_CORE_STATE_PROBE_H

#include "core/settings.h"
#include "core/state.h"
#include "wire/suspect.h"

#define TOUCHED_MAX 16u

/* Of the pins those that the server can be asked for. */
#define ASKABLE_PINS (PIN_TEMP | PIN_LISTEN | PIN_LOCK | PIN_PREPARED | PIN_CURSOR)

/* Settings that the texts of a transaction name. */
struct state_touched {
	uint32_t n, n_texts;
	bool any;     /* or any other */
	bool is_lone; /* one text, and all that it does is to set names[0] to `value` */
	bool resets_any;
	uint32_t resets; /* bit i: names[i], by a text whose startup settings are not put back yet */
	char names[TOUCHED_MAX][SQL_NAME_MAX];
	char value[SUSPECT_VALUE_MAX];
};

struct state_question {
	unsigned pins;                  /* enum pin: which of them there are */
	bool scans;                     /* all settings of the session */
	bool restores;                  /* startup settings that were reset are put back */
	uint32_t n_names;               /* settings by name; */
	const char *names[TOUCHED_MAX]; /* used during the call only */
};

/* Among all settings of the session; others must be asked for by name. */
bool state_is_listed(const char *name);
/* A text of the unit may have reset this startup setting. */
bool state_may_have_reset(const struct session *s, const char *name);
/* ... but the session had emptied it itself, and no RESET is known to have been executed since. */
bool state_was_emptied(const struct session *s, const char *name);
/* False: no memory, nothing was sent. */
bool state_probe_send(struct backend *b, const struct state_question *q);

/* ---- the outcome, for state.c ---- */
/* settings: a reference; NULL: they were not asked for. */
void state_answered(struct session *s, unsigned asked, unsigned found, struct settings *settings);
void state_unanswered(struct session *s);

#endif
