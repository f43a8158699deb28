/* SPDX-License-Identifier: ISC */
#include "core/state_sample.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/backend.h"
#include "core/session.h"
#include "core/state_probe.h"
#include "wire/sql_fingerprint.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SEEN_MAX 256u /* statements that are logged, in all */
#define ADVICE "; set session_state = strict for this user, or let the text show it"

/* Statements that were logged; of all proxies. */
static struct {
	pthread_mutex_t lock;
	uint64_t prints[SEEN_MAX];
	unsigned n;
} seen = {PTHREAD_MUTEX_INITIALIZER, {0}, 0};

/* ---- when ---- */

/* As far as is asked for on average: of what comes in a fixed order some would else never be watched. */
static uint64_t
next_after(uint64_t now, uint64_t every)
{
	uint64_t chance = clock_now_us() * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return now + 1 + chance % (2 * every + 1);
}

bool
state_sample_is_due(const struct session *s)
{
	struct proxy *p = s->proxy;
	uint64_t now = counter_get(&p->n_transactions), every = (uint64_t)p->weir->config->session_state_sample;

	if (s->backend->watch != WATCH_NONE)
		return true;
	if (every == 0)
		return false;
	if (p->sample_at == 0 || p->sample_at > now + 2 * every + 1)
		p->sample_at = next_after(now, every);
	return now >= p->sample_at;
}

bool
state_sample_begin(struct session *s)
{
	struct backend *b = s->backend;
	struct proxy *p = s->proxy;

	if (b->owed.tx != TX_IDLE)
		return false; /* when it is over */
	if (s->pool->group->state_policy != STATE_PRESERVE || !state_is_kept(s) || s->pins != 0) {
		b->watch = WATCH_NONE;
		return false;
	}
	if (b->watch == WATCH_NEXT) {
		if (b->n_units_sent == b->watched_unit)
			return false; /* it is yet to come */
		b->watch = WATCH_AFTER;
		return true;
	}
	b->watch = WATCH_NONE; /* else of a question whose session has left */
	if (counter_get(&p->n_transactions) < p->sample_at)
		return false;
	p->sample_at = next_after(counter_get(&p->n_transactions), (uint64_t)p->weir->config->session_state_sample);
	b->watch = WATCH_BEFORE;
	b->watched_unit = b->n_units_sent;
	return true;
}

/* ---- what differs ---- */

/* NULL: what every session has. */
static const char *
own_value(const struct backend *b, const struct settings *of, const char *name)
{
	const char *value = settings_get(of, name), *at_login = settings_get(b->login, name);

	return value != NULL && at_login != NULL && strcmp(value, at_login) == 0 ? NULL : value;
}

/* Names and pins, as far as there is room. */
struct difference {
	unsigned n;
	char text[160];
};

static void
add(struct difference *d, const char *kind, const char *name)
{
	size_t n = strlen(d->text);

	snprintf(d->text + n, sizeof(d->text) - n, "%s%s%s", d->n > 0 ? ", " : "", kind, name);
	d->n++;
}

/*
 * What is known and not found is no difference: it was asked for by its name, which does not tell that it has its default.
 * Where a lone SET was believed its value may be spelled otherwise than the server does: then values don't count.
 */
static void
compare_settings(const struct session *s, const struct settings *found, struct difference *d)
{
	for (size_t i = 0; i < settings_n(found); i++) {
		const char *name = settings_name(found, i);
		const char *is = own_value(s->backend, found, name),
			   *was = own_value(s->backend, s->backend->label, name);

		if ((is == NULL) != (was == NULL) || (is != NULL && !s->marks.has_literals && strcmp(is, was) != 0))
			add(d, "", name);
	}
}

static void
compare_pins(unsigned more, struct difference *d)
{
	for (unsigned i = 0; i < PIN_N; i++)
		if ((more & (1u << i)) != 0)
			add(d, "a ", pin_text(i));
}

/* ---- telling ---- */

/* FNV-1a */
static uint64_t
hash_text(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (*text != '\0')
		hash = (hash ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
	return hash;
}

enum sight { SIGHT_NEW, SIGHT_KNOWN, SIGHT_LAST };

static enum sight
look(uint64_t print)
{
	enum sight sight = SIGHT_KNOWN;
	unsigned i = 0;

	pthread_mutex_lock(&seen.lock);
	while (i < seen.n && seen.prints[i] != print)
		i++;
	if (i == seen.n && seen.n < SEEN_MAX) {
		seen.prints[seen.n++] = print;
		sight = seen.n == SEEN_MAX ? SIGHT_LAST : SIGHT_NEW;
	}
	pthread_mutex_unlock(&seen.lock);
	return sight;
}

/* shape: of the statement that did it; NULL: that is not known. */
static void
tell(const struct session *s, uint64_t print, const char *shape, const struct difference *d)
{
	enum sight sight = look(print);
	char number[20];

	if (sight == SIGHT_KNOWN)
		return;
	snprintf(number, sizeof(number), "%016" PRIx64, print);
	log_event(LOG_WARN_, "state_leak", LOG_U("client", shape != NULL ? s->id : 0), LOG_U("server", s->backend->id),
	          LOG_S("db", s->pool->group->database), LOG_S("user", s->pool->group->user), LOG_S("changed", d->text),
	          LOG_S("fingerprint", shape != NULL ? number : NULL), LOG_S("statement", shape),
	          LOG_S("msg",
	                shape != NULL ? "a statement changes session state unseen" ADVICE
	                              : "session state is left behind unseen, by which statement is not known" ADVICE));
	if (sight == SIGHT_LAST)
		log_event(LOG_WARN_, "state_leak", LOG_S("msg", "no more such statements are logged"));
}

/* By the statements that were watched. */
static void
tell_leak(struct session *s, const struct difference *d)
{
	const struct state_text *t = s->marks.text;
	char shape[STATE_TEXT_MAX + 1];

	counter_add(&s->pool->stats.n_leaks, 1);
	if (t == NULL) {
		tell(s, hash_text(d->text), NULL, d);
		return;
	}
	(void)sql_fingerprint((const uint8_t *)t->text, t->n, session_standard_strings(s), shape, sizeof(shape));
	tell(s, t->fingerprint, shape, d);
}

/* ---- the answer ---- */

/*
 * What was there before the watched transaction is nobody's that we know. Settings go as any others that the next session
 * does not have; of the rest only the end of the connection is sure.
 */
static void
found_strays(struct session *s, unsigned more, struct settings **found, const struct difference *d)
{
	struct backend *b = s->backend;

	counter_add(&s->pool->stats.n_leaks, 1);
	tell(s, hash_text(d->text), NULL, d);
	b->retire = b->retire || more != 0;
	settings_unref(&b->label);
	b->label = *found;
	*found = NULL;
}

/*
 * Compared with the label: the client does not wait for an answer, so the watched transaction may have been under way
 * already, with what turned out to be there.
 */
bool
state_sample_answered(struct session *s, unsigned pins, struct settings **found)
{
	struct backend *b = s->backend;
	unsigned more = pins & ~(unsigned)s->pins & ASKABLE_PINS;
	enum state_watch asked = (enum state_watch)b->watch;
	bool is_own = b->label == s->settings;
	struct difference d = {0};

	b->watch = WATCH_NONE;
	if ((asked != WATCH_BEFORE && asked != WATCH_AFTER) || *found == NULL)
		return false;
	compare_settings(s, *found, &d);
	compare_pins(more, &d);
	if (asked == WATCH_BEFORE)
		b->watch = WATCH_NEXT;
	if (d.n > 0 && asked == WATCH_AFTER && is_own) {
		tell_leak(s, &d);
		s->marks.has_literals = false;
		return false;
	}
	if (d.n > 0)
		found_strays(s, more, found, &d);
	settings_unref(found);
	return true;
}
