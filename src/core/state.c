/* SPDX-License-Identifier: ISC */
#include "core/state.h"

#include "base/clock.h"
#include "core/backend.h"
#include "core/group_hosts.h"
#include "core/session.h"
#include "core/state_probe.h"
#include "core/state_sample.h"
#include "wire/build.h"
#include "wire/pgmsg.h"
#include "wire/suspect.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What the server can be asked for, and the pin that it is. */
static const struct {
	uint32_t suspect;
	enum pin pin;
} askable[] = {
	{SUSPECT_TEMP, PIN_TEMP},         {SUSPECT_LISTENS, PIN_LISTEN}, {SUSPECT_LOCKS, PIN_LOCK},
	{SUSPECT_PREPARES, PIN_PREPARED}, {SUSPECT_HOLDS, PIN_CURSOR},
};
#define N_ASKABLE (sizeof(askable) / sizeof(askable[0]))

/* What it can't, and what then follows from the text alone. */
static const struct {
	uint32_t suspect;
	enum pin pin;
} unaskable[] = {{SUSPECT_LOADS, PIN_LOADED}, {SUSPECT_SEEDS, PIN_SEED}, {SUSPECT_PRIVATE, PIN_PRIVATE}};
#define N_UNASKABLE (sizeof(unaskable) / sizeof(unaskable[0]))

/* Of a text that says so itself; DO and CALL may do all of it, but seldom do. */
#define MAY_PIN                                                                                                        \
	(SUSPECT_TEMP | SUSPECT_LISTENS | SUSPECT_LOCKS | SUSPECT_PREPARES | SUSPECT_HOLDS | SUSPECT_LOADS |           \
	 SUSPECT_SEEDS | SUSPECT_PRIVATE)
#define EVERYTHING                                                                                                     \
	(SUSPECT_SETTINGS | SUSPECT_ANY_SETTING | SUSPECT_TEMP | SUSPECT_LISTENS | SUSPECT_LOCKS | SUSPECT_PREPARES |  \
	 SUSPECT_HOLDS)
/* What remains until its answer is there. */
#define OPEN                                                                                                           \
	(EVERYTHING | SUSPECT_DROPS | SUSPECT_RESETS | SUSPECT_LOADS | SUSPECT_SEEDS | SUSPECT_PRIVATE |               \
	 SUSPECT_READS_SEQUENCE)

const char *
pin_text(unsigned bit)
{
	static const char *const texts[PIN_N] = {"statement", "temp", "listen",   "lock",    "prepare", "cursor",
	                                         "load",      "seed", "sequence", "private", "unknown"};

	return bit < PIN_N ? texts[bit] : NULL;
}

bool
state_is_kept(const struct session *s)
{
	return s->pool->group->mode != POOL_SESSION && s->pool->group->state_policy != STATE_IGNORE;
}

bool
state_looks_at_texts(const struct session *s)
{
	if (s->pool->group->mode == POOL_SESSION)
		return s->marks.startup != NULL && settings_n(s->marks.startup) > 0;
	return s->pool->group->state_policy != STATE_IGNORE;
}

void
state_free(struct session *s)
{
	free(s->marks.touched);
	s->marks.touched = NULL;
	settings_unref(&s->marks.startup);
	settings_unref(&s->marks.told);
	state_text_forget(s);
}

/* ---- pins ---- */

static void
set_pins(struct session *s, unsigned pins)
{
	bool was = s->pins != 0, is = pins != 0;

	for (unsigned i = 0; i < PIN_N; i++)
		if ((pins & ~(unsigned)s->pins & (1u << i)) != 0)
			counter_add(&s->pool->stats.n_pins[i], 1);
	s->pins = (uint16_t)pins;
	if (was == is)
		return;
	s->marks.pinned_since_us = is ? clock_cached_us() : 0;
	counter_add(&s->proxy->n_pinned, is ? 1 : (uint64_t)-1);
	atomic_fetch_add(&s->pool->group->n_pinned, is ? 1 : -1);
}

void
session_pin(struct session *s, enum pin why)
{
	if ((s->pins & (unsigned)why) == 0)
		set_pins(s, s->pins | (unsigned)why);
}

void
session_unpin(struct session *s)
{
	set_pins(s, 0);
	state_text_forget(s);
}

/* One always may, unless none shall. */
static bool
may_pin_one_more(const struct session *s)
{
	const struct group *g = s->pool->group;
	int64_t share = g->weir->config->max_pinned;
	int64_t most = config_pool_size(g->weir->config, g->db, g->user_conf) * share / 100;

	return atomic_load_explicit(&g->n_pinned, memory_order_relaxed) < (most > 0 || share == 0 ? most : 1);
}

/* ---- suspicion ---- */

static struct state_touched *
touched_of(struct session *s)
{
	if (s->marks.touched == NULL)
		s->marks.touched = calloc(1, sizeof(struct state_touched));
	return s->marks.touched;
}

static void
touch(struct state_touched *t, const char *name, bool resets)
{
	uint32_t i = 0;

	while (i < t->n && strcmp(t->names[i], name) != 0)
		i++;
	if (i == TOUCHED_MAX) {
		t->any = true;
		t->resets_any = t->resets_any || resets;
		return;
	}
	if (i == t->n)
		memcpy(t->names[t->n++], name, SQL_NAME_MAX);
	if (resets)
		t->resets |= 1u << i;
}

/* flags: what the text is suspected of in this session. */
static void
touch_all(struct session *s, const struct suspicion *x, uint32_t flags)
{
	struct state_touched *t = touched_of(s);
	bool resets = (flags & SUSPECT_RESETS) != 0;

	if (t == NULL) {
		s->marks.suspects |= EVERYTHING; /* no memory for the names: all of them, then */
		return;
	}
	t->n_texts++;
	if ((flags & SUSPECT_ANY_SETTING) != 0 || (x->flags & SUSPECT_SETTINGS) == 0)
		t->any = true;
	t->resets_any = t->resets_any || (resets && x->n_names == 0);
	for (uint32_t i = 0; i < x->n_names; i++)
		touch(t, x->names[i], resets);
	t->is_lone = t->n_texts == 1 && (x->flags & SUSPECT_LONE_SET) != 0;
	if (t->is_lone)
		memcpy(t->value, x->value, sizeof(t->value));
}

/* CREATE makes temporary objects where search_path begins with pg_temp. */
static bool
creates_temp(const struct session *s)
{
	const char *path = settings_get(s->settings, "search_path");

	return path != NULL && strcasestr(path, "pg_temp") != NULL;
}

/* What is only suspect in a session that has such a thing, or with these settings. */
static uint32_t
weigh(const struct session *s, uint32_t flags)
{
	if ((flags & SUSPECT_CREATES) != 0 && creates_temp(s))
		flags |= SUSPECT_TEMP;
	if ((flags & SUSPECT_DROPS) != 0 && (s->pins & PIN_TEMP) != 0)
		flags |= SUSPECT_TEMP;
	if ((flags & SUSPECT_EXECUTES) != 0)
		flags |= s->marks.prepared_suspects;
	return s->pool->group->state_policy == STATE_STRICT ? flags | EVERYTHING : flags;
}

static void
note_reads_sequence(struct session *s)
{
	atomic_store_explicit(&s->pool->group->reads_sequences, true, memory_order_relaxed);
	if (s->backend->owed.tx == TX_IDLE)
		s->marks.reads_alone = true;
}

bool
state_may_execute(const struct session *s, const struct suspicion *x)
{
	return (x->flags & SUSPECT_TAKES) == 0 || (x->flags & (SUSPECT_OPAQUE | SUSPECT_UNSEEN)) != 0 ||
	       !state_is_kept(s) || s->pins != 0 || may_pin_one_more(s);
}

void
state_suspect(struct session *s, const struct suspicion *x)
{
	uint32_t flags = x->flags;

	if (flags == 0 && s->pool->group->state_policy != STATE_STRICT)
		return;
	if (s->pool->group->mode == POOL_SESSION)
		flags &= SUSPECT_RESETS | SUSPECT_SETTINGS | SUSPECT_ANY_SETTING;
	else
		flags = weigh(s, flags);
	/* no answer would end it: each large text would pin its session for good */
	if ((x->flags & SUSPECT_UNSEEN) != 0)
		flags &= ~(uint32_t)SUSPECT_UNASKABLE;
	if ((x->flags & SUSPECT_PREPARES) != 0)
		s->marks.prepared_suspects |= flags;
	if ((flags & SUSPECT_READS_SEQUENCE) != 0)
		note_reads_sequence(s);
	s->marks.suspects |= flags;
	if ((flags & SUSPECT_SETTINGS) != 0)
		touch_all(s, x, flags);
}

/* In some encodings half a letter looks like a backslash: then what is a string can't be told. */
static bool
is_readable(const struct session *s, const uint8_t *sql, size_t n)
{
	const char *encoding;
	bool is_ascii = true;

	if (memchr(sql, '\\', n) == NULL)
		return true;
	encoding = settings_get(s->settings, "client_encoding");
	if (encoding == NULL || sql_encoding_is_safe(encoding))
		return true;
	for (size_t i = 0; i < n && is_ascii; i++)
		is_ascii = sql[i] < 0x80;
	return is_ascii;
}

void
state_scan(const struct session *s, const uint8_t *sql, size_t n, bool is_whole, struct suspicion *out)
{
	suspect_scan(sql, n, is_whole && is_readable(s, sql, n), session_standard_strings(s), out);
}

static bool
is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

void
state_touch_mentioned(struct session *s, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n, *at = p, *dot;
	char name[SQL_NAME_MAX];

	if (s->marks.touched == NULL)
		return;
	for (; (dot = memchr(at, '.', (size_t)(end - at))) != NULL; at = dot + 1) {
		const uint8_t *from = dot, *to = dot + 1;
		size_t len;

		while (from > at && is_name_byte(from[-1]))
			from--;
		while (to < end && (is_name_byte(*to) || *to == '.'))
			to++;
		len = (size_t)(to - from);
		if (from == dot || to == dot + 1 || (*from >= '0' && *from <= '9') || len >= sizeof(name) ||
		    (to < end && *to == '('))
			continue;
		for (size_t i = 0; i < len; i++)
			name[i] = (char)(from[i] >= 'A' && from[i] <= 'Z' ? from[i] | 0x20 : from[i]);
		name[len] = '\0';
		touch(s->marks.touched, name, false);
	}
}

void
state_suspect_text(struct session *s, const uint8_t *sql, size_t n, const struct suspicion *x)
{
	state_suspect(s, x);
	if ((x->flags & SUSPECT_ANY_SETTING) != 0)
		state_touch_mentioned(s, sql, n);
	if (state_wants_text(s, x))
		state_text_note(s, sql, n);
}

/* What is sent on it now will be watched. */
static bool
is_watched(const struct backend *b)
{
	return b->watch == WATCH_BEFORE || b->watch == WATCH_NEXT;
}

/* Of a pinned session the texts that did it are known. */
bool
state_wants_text(const struct session *s, const struct suspicion *x)
{
	if ((s->pins & ~(unsigned)PIN_STATEMENT) != 0)
		return false;
	if (s->backend != NULL && is_watched(s->backend))
		return true;
	return (s->marks.suspects & MAY_PIN) != 0 && (x->flags != 0 || s->pool->group->state_policy == STATE_STRICT);
}

void
state_sequences_attached(struct backend *b, const struct session *s)
{
	if (b->sequences_of != s->id)
		b->sequences_of = b->sequences_of == 0 ? s->id : SEQUENCES_OF_MANY;
}

bool
state_must_discard_sequences(const struct backend *b, const struct session *s)
{
	return b->sequences_of != s->id && state_is_kept(s) &&
	       (s->pool->group->state_policy == STATE_STRICT ||
	        atomic_load_explicit(&s->pool->group->reads_sequences, memory_order_relaxed));
}

/* Behind such a name comes a bracket: those are few. */
void
state_glance_at_parse(struct session *s, const uint8_t *p, size_t n)
{
	struct group *g = s->pool->group;
	const uint8_t *at = p, *end = p + n, *name;

	if (atomic_load_explicit(&g->reads_sequences, memory_order_relaxed) || !state_is_kept(s))
		return;
	for (; (at = memchr(at, '(', (size_t)(end - at))) != NULL; at++) {
		for (name = at; name > p && (name[-1] == ' ' || name[-1] == '\n' || name[-1] == '"'); name--)
			;
		if (name - p < 7)
			continue;
		name -= 7;
		if (strncasecmp((const char *)name, "currval", 7) == 0 ||
		    strncasecmp((const char *)name, "lastval", 7) == 0)
			atomic_store_explicit(&g->reads_sequences, true, memory_order_relaxed);
	}
}

bool
state_is_open(const struct session *s)
{
	return (s->marks.suspects & OPEN) != 0 || (s->backend != NULL && s->backend->probe != NULL);
}

/* ---- a unit is over ---- */

/* Of the pins that the server can be asked for, those to ask for now. */
static unsigned
pins_to_ask(const struct session *s)
{
	unsigned pins = (s->pins & PIN_UNKNOWN) != 0 ? ASKABLE_PINS : 0;

	for (size_t i = 0; i < N_ASKABLE; i++)
		if ((s->marks.suspects & askable[i].suspect) != 0)
			pins |= (unsigned)askable[i].pin;
	return pins;
}

/*
 * Who asks for what an earlier transaction's nextval() gave keeps its backend from then on: it comes first in its
 * transaction, or failed for want of a value. Where no more may be pinned it is served as before.
 */
static unsigned
pin_of_sequences(const struct session *s, unsigned other_pins)
{
	uint32_t flags = s->marks.suspects;
	bool is_strict = s->pool->group->state_policy == STATE_STRICT && (flags & SUSPECT_SEQUENCES) != 0;
	bool asks_back = (flags & SUSPECT_READS_SEQUENCE) != 0 && (s->marks.reads_alone || s->marks.failed);

	if (!is_strict && !asks_back)
		return 0;
	return s->pins != 0 || other_pins != 0 || may_pin_one_more(s) ? PIN_SEQUENCE : 0;
}

static unsigned
pins_by_text(const struct session *s)
{
	unsigned pins = 0;

	for (size_t i = 0; i < N_UNASKABLE; i++)
		if ((s->marks.suspects & unaskable[i].suspect) != 0)
			pins |= (unsigned)unaskable[i].pin;
	return pins | pin_of_sequences(s, pins);
}

/* The server reports each change of it by itself. */
static bool
is_reported(const struct backend *b, const char *name)
{
	return settings_get(b->login, name) != NULL && strcasecmp(name, "session_authorization") != 0;
}

/* Settings for which SET name = 'x' and set_config('name', 'x') are not the same, or that are no session's. */
static bool
is_peculiar(const char *name)
{
	static const char *const names[] = {"search_path",
	                                    "temp_tablespaces",
	                                    "local_preload_libraries",
	                                    "session_preload_libraries",
	                                    "transaction_isolation",
	                                    "transaction_read_only",
	                                    "transaction_deferrable",
	                                    "seed",
	                                    "role",
	                                    "session_authorization"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void
take_settings(struct session *s, struct settings *to)
{
	struct backend *b = s->backend;

	if (to == NULL) {
		session_pin(s, PIN_UNKNOWN);
		return;
	}
	settings_unref(&s->settings);
	s->settings = to;
	settings_unref(&b->label);
	b->label = settings_ref(to);
}

/* The same values are other bytes now. */
static bool
may_be_encoded_anew(const struct session *s)
{
	const struct state_touched *t = s->marks.touched;

	for (uint32_t i = 0; t != NULL && i < t->n; i++)
		if (strcmp(t->names[i], "client_encoding") == 0)
			return settings_have_letters(s->settings);
	return false;
}

/* A lone SET that has succeeded outside a transaction: nothing need be asked. */
static bool
adopt_lone_set(struct session *s)
{
	const struct state_touched *t = s->marks.touched;

	if (t == NULL || !t->is_lone || s->marks.n_sets != 1 || s->marks.failed || s->marks.was_in_transaction ||
	    is_peculiar(t->names[0]) || may_be_encoded_anew(s))
		return false;
	if (!is_reported(s->backend, t->names[0])) {
		take_settings(s, settings_with(s->settings, t->names[0], t->value));
		s->marks.has_literals = true;
	}
	return true;
}

/* Of the settings that may have been changed. */
static bool
knows_names(const struct session *s)
{
	const struct state_touched *t = s->marks.touched;

	return t != NULL && !t->any && (s->pins & PIN_UNKNOWN) == 0;
}

/* The names that must be asked for. */
static void
settings_to_ask(const struct session *s, struct state_question *q)
{
	const struct state_touched *t = s->marks.touched;

	if ((s->marks.suspects & SUSPECT_SETTINGS) == 0 && (s->pins & PIN_UNKNOWN) == 0)
		return;
	q->scans = !knows_names(s) || may_be_encoded_anew(s);
	for (uint32_t i = 0; t != NULL && i < t->n; i++) {
		if (is_reported(s->backend, t->names[i]))
			continue;
		/* what it was reset to, or could not be set to, is not the session's: only the list says that */
		if (((s->marks.suspects & SUSPECT_RESETS) != 0 || s->marks.failed) && state_is_listed(t->names[i]))
			q->scans = true;
		else
			q->names[q->n_names++] = t->names[i];
	}
}

static bool
is_reset_by_name(const struct state_touched *t, const char *name)
{
	for (uint32_t i = 0; t != NULL && i < t->n; i++)
		if ((t->resets & 1u << i) != 0 && strcasecmp(t->names[i], name) == 0)
			return true;
	return false;
}

/* RESET ALL leaves the role alone, RESET ROLE, RESET SESSION AUTHORIZATION and DISCARD ALL don't. */
bool
state_may_have_reset(const struct session *s, const char *name)
{
	const struct state_touched *t = s->marks.touched;

	if (t == NULL || (t->resets_any && strcasecmp(name, "role") != 0))
		return true;
	return is_reset_by_name(t, name);
}

/* SET name TO DEFAULT has the tag SET. */
bool
state_was_emptied(const struct session *s, const char *name)
{
	const char *value = settings_get(s->settings, name);

	return value != NULL && value[0] == '\0' && s->marks.n_resets == 0 &&
	       (s->marks.n_sets == 0 || !is_reset_by_name(s->marks.touched, name));
}

bool
state_may_reset_startup(const struct session *s)
{
	if ((s->marks.suspects & SUSPECT_RESETS) == 0 || s->marks.startup == NULL)
		return false;
	for (size_t i = 0; i < settings_n(s->marks.startup); i++)
		if (state_may_have_reset(s, settings_name(s->marks.startup, i)))
			return true;
	return false;
}

bool
state_must_restore(const struct session *s)
{
	return s->backend->owed.tx != TX_FAILED && s->marks.restored_unit != s->backend->n_units_done + 1 &&
	       state_may_reset_startup(s);
}

/* What is reset is put back before anything follows: a later ROLLBACK TO goes back to that, or to before. */
static void
resets_are_over(struct session *s)
{
	s->marks.restored_unit = s->backend->n_units_done + 1;
	if (s->marks.touched == NULL)
		return;
	s->marks.touched->resets_any = false;
	s->marks.touched->resets = 0;
}

static void
forget_suspicion(struct session *s)
{
	free(s->marks.touched);
	s->marks.touched = NULL;
	s->marks.suspects = 0;
	s->marks.n_sets = s->marks.n_resets = 0;
	s->marks.failed = false;
	s->marks.was_in_transaction = false;
	s->marks.reads_alone = false;
	s->marks.restored_unit = 0;
}

/* It could not be asked before: once more for each unit, and at once when a cancel request may have hit the question. */
static bool
asks_again(const struct session *s)
{
	return (s->pins & PIN_UNKNOWN) != 0 &&
	       (s->marks.n_unanswered < 3 || s->marks.asked_unit != s->backend->n_units_done);
}

static enum state_verdict
ask(struct session *s, const struct state_question *q)
{
	if (q->pins == 0 && q->n_names == 0 && !q->scans && !q->restores)
		return STATE_CLEAR;
	counter_add(&s->pool->stats.n_probes, 1);
	s->marks.asked_unit = s->backend->n_units_done;
	return state_probe_send(s->backend, q) ? STATE_ASKING : STATE_FAILED;
}

static enum state_verdict
sample(struct session *s)
{
	const struct state_question everything = {.pins = ASKABLE_PINS, .scans = true};

	if (s->state == SESSION_LEAVING || s->backend->probe != NULL || !state_sample_begin(s))
		return STATE_CLEAR;
	return ask(s, &everything);
}

enum state_verdict
state_unit_over(struct session *s)
{
	struct backend *b = s->backend;
	struct state_question q = {0};
	enum state_verdict verdict;

	if ((s->marks.suspects & OPEN) == 0 && !asks_again(s)) {
		s->marks.n_sets = s->marks.n_resets = 0;
		s->marks.failed = false;
		return state_sample_is_due(s) ? sample(s) : STATE_CLEAR;
	}
	b->watch = WATCH_NONE;
	if (s->state == SESSION_LEAVING || b->probe != NULL)
		return STATE_CLEAR; /* it will be reset when the session is gone */
	q.restores = state_must_restore(s);
	if (b->owed.tx != TX_IDLE) {
		s->marks.was_in_transaction = true;
		verdict = q.restores ? ask(s, &q) : STATE_CLEAR;
		s->marks.n_sets = s->marks.n_resets = 0;
		if (q.restores)
			resets_are_over(s);
		return verdict;
	}
	if (state_is_kept(s)) { /* else session pooling, or nothing is kept */
		q.pins = pins_to_ask(s);
		if (!adopt_lone_set(s))
			settings_to_ask(s, &q);
		if (q.scans && !knows_names(s))
			b->strays_of = s->id;
		set_pins(s, s->pins | pins_by_text(s));
	}
	verdict = ask(s, &q);
	forget_suspicion(s);
	if (verdict == STATE_CLEAR && s->pins == 0)
		state_text_forget(s);
	return verdict;
}

bool
state_is_only_watched(const struct backend *b)
{
	const struct session *s = b->session;

	return s != NULL && b->probe != NULL && (b->watch == WATCH_BEFORE || b->watch == WATCH_AFTER) &&
	       b->n_units_sent == b->n_units_done && replyq_at_boundary(&b->owed) && b->owed.tx == TX_IDLE &&
	       s->pins == 0 && (s->marks.suspects & OPEN) == 0 && !s->parse_is_unbound && s->msg_left == 0;
}

void
state_answered(struct session *s, unsigned asked, unsigned found, struct settings *settings)
{
	s->marks.n_unanswered = 0;
	if (!state_sample_answered(s, found, &settings))
		set_pins(s, (s->pins & ~(asked | PIN_UNKNOWN)) | found);
	if (settings != NULL)
		take_settings(s, settings);
	if ((s->pins & PIN_PREPARED) == 0)
		s->marks.prepared_suspects = 0;
	/* but of what was sent meanwhile */
	if ((s->pins & ~(unsigned)PIN_STATEMENT) == 0 && (s->marks.suspects & MAY_PIN) == 0 && !is_watched(s->backend))
		state_text_forget(s);
}

void
state_unanswered(struct session *s)
{
	s->backend->watch = WATCH_NONE;
	session_pin(s, PIN_UNKNOWN);
	if (s->marks.n_unanswered < UINT8_MAX)
		s->marks.n_unanswered++;
}

void
state_discarded(struct session *s)
{
	/* it can't be part of anything: whatever was suspected before is over, and nothing was sent behind it */
	forget_suspicion(s);
	set_pins(s, s->pins & (PIN_LOADED | PIN_SEED | PIN_PRIVATE));
	if (s->pins == 0)
		state_text_forget(s);
	s->marks.prepared_suspects = 0;
	s->backend->strays_of = 0;
	s->backend->sequences_of = s->id;
	if (s->marks.startup != NULL)
		state_withhold(s);
	take_settings(s, s->marks.startup ? settings_ref(s->marks.startup) : settings_empty());
	s->marks.suspects = SUSPECT_RESETS; /* the startup settings are to be put back */
	s->marks.n_resets = 1;
}

/* What the client was told last of a reported setting, if that is told in `told`; NULL: nothing. */
static const char *
value_in(const struct backend *b, const struct settings *told, const char *name)
{
	const char *value = settings_get(told, name);

	return value ? value : settings_get(b->login, name);
}

void
state_withhold(struct session *s)
{
	if (s->marks.told == NULL)
		s->marks.told = settings_ref(s->settings);
}

bool
state_withholds(struct session *s, const char *name)
{
	if (s->login != NULL || group_is_server_fact(name) || (s->marks.told == NULL && !state_may_reset_startup(s)))
		return false;
	state_withhold(s);
	return true;
}

void
state_tell(struct session *s, struct buf *out)
{
	const struct settings *reported = s->backend->login;

	for (size_t i = 0; s->marks.told != NULL && i < settings_n(reported); i++) {
		const char *name = settings_name(reported, i), *now = value_in(s->backend, s->settings, name);

		if (!group_is_server_fact(name) && strcmp(now, value_in(s->backend, s->marks.told, name)) != 0)
			build_parameter_status(out, name, now);
	}
	settings_unref(&s->marks.told);
}
