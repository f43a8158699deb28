/* SPDX-License-Identifier: ISC */
/* SHOW PINS, SETTINGS and SESSION_STATE: what sessions keep between their transactions, over all proxies. */
#include "base/clock.h"
#include "core/group.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
no_memory(struct admin_call *call)
{
	reply_error(call->out, "53200", "out of memory");
}

/* ---- pins ---- */

/* "temp,lock" */
static void
reply_reasons(struct reply *r, unsigned pins)
{
	char text[256] = "";
	size_t n = 0;

	for (unsigned i = 0; i < PIN_N; i++)
		if ((pins & (1u << i)) != 0)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n > 0 ? "," : "", pin_text(i));
	reply_text(r, text);
}

/* Bytes of a well-formed UTF-8 sequence at p, 0: it is none. Surrogates and overlong forms are not looked for. */
static size_t
utf8_length(const uint8_t *p, size_t n)
{
	size_t len = *p < 0x80                 ? 1
	             : *p >= 0xc2 && *p < 0xe0 ? 2
	             : *p >= 0xe0 && *p < 0xf0 ? 3
	             : *p >= 0xf0 && *p < 0xf5 ? 4
	                                       : 0;

	if (len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* It is in the client's encoding, and may be cut inside a character: what is no UTF-8 becomes ?. */
static void
reply_statement(struct reply *r, const struct state_text *t)
{
	char text[STATE_TEXT_MAX + 1];
	size_t n = t->n < STATE_TEXT_MAX ? t->n : STATE_TEXT_MAX;

	memcpy(text, t->text, n);
	text[n] = '\0';
	for (size_t i = 0; i < n;) {
		size_t len = utf8_length((const uint8_t *)text + i, n - i);

		if (len == 0)
			text[i] = '?';
		i += len > 0 ? len : 1;
	}
	reply_text(r, text);
}

static void
pin_row(struct reply *r, const struct admin_call *call, const struct snapshot_pin *p)
{
	reply_uint(r, p->id);
	reply_text(r, p->database);
	reply_text(r, p->user);
	reply_text(r, p->state);
	reply_uint(r, p->server_pid);
	reply_reasons(r, p->pins);
	admin_reply_time(r, call->weir, p->since_us);
	reply_uint(r, (clock_now_us() - p->since_us) / 1000000);
	if (p->text.n_texts > 0)
		reply_printf(r, "%016" PRIx64, p->text.fingerprint);
	else
		reply_text(r, NULL);
	if (p->text.n_texts > 0 && call->may_change)
		reply_statement(r, &p->text);
	else
		reply_text(r, NULL);
}

void
admin_show_pins(struct admin_call *call)
{
	static const struct reply_column columns[] = {
		{"id", REPLY_INT8},          {"database", REPLY_TEXT},  {"user", REPLY_TEXT},  {"state", REPLY_TEXT},
		{"server_pid", REPLY_INT4},  {"reason", REPLY_TEXT},    {"since", REPLY_TEXT}, {"age", REPLY_INT8},
		{"fingerprint", REPLY_TEXT}, {"statement", REPLY_TEXT},
	};
	struct reply r;

	REPLY_BEGIN(&r, call->out, columns);
	for (size_t i = 0; i < call->ask->n; i++)
		for (size_t k = 0; k < call->ask->answer[i]->n; k++)
			pin_row(&r, call, &call->ask->answer[i]->pins[k]);
	reply_end(&r);
}

/* ---- settings ---- */

static int
compare_sets(const void *a, const void *b)
{
	const struct settings *x = ((const struct snapshot_settings *)a)->settings;
	const struct settings *y = ((const struct snapshot_settings *)b)->settings;

	return x < y ? -1 : x > y;
}

static int
compare_use(const void *a, const void *b)
{
	const struct snapshot_settings *x = a, *y = b;

	if (x->n_sessions != y->n_sessions)
		return x->n_sessions > y->n_sessions ? -1 : 1;
	return x->n_backends == y->n_backends ? 0 : x->n_backends > y->n_backends ? -1 : 1;
}

/* One row for each set, those that most sessions have first; the references stay the answers'. NULL: no memory. */
static struct snapshot_settings *
merge_sets(const struct ask *a, size_t *n)
{
	struct snapshot_settings *all;
	size_t n_all = 0;

	for (size_t i = 0; i < a->n; i++)
		n_all += a->answer[i]->n;
	all = calloc(n_all + 1, sizeof(*all));
	if (all == NULL)
		return NULL;
	n_all = 0;
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < a->answer[i]->n; k++)
			all[n_all++] = a->answer[i]->settings[k];
	qsort(all, n_all, sizeof(*all), compare_sets);
	*n = 0;
	for (size_t i = 0; i < n_all; i++) {
		if (*n > 0 && all[*n - 1].settings == all[i].settings) {
			all[*n - 1].n_sessions += all[i].n_sessions;
			all[*n - 1].n_backends += all[i].n_backends;
		} else {
			all[(*n)++] = all[i];
		}
	}
	qsort(all, *n, sizeof(*all), compare_use);
	return all;
}

/* As in SET, one behind the other; names only for those who may not see values, which can be secrets. */
static void
describe(struct buf *b, const struct settings *s, bool with_values)
{
	for (size_t i = 0; i < settings_n(s); i++) {
		buf_printf(b, "%s%s", i > 0 ? ", " : "", settings_name(s, i));
		if (!with_values)
			continue;
		buf_append_str(b, "='");
		for (const char *p = settings_value(s, i); *p != '\0'; p++) {
			if (*p == '\'')
				buf_append_u8(b, '\'');
			buf_append_u8(b, (uint8_t)*p);
		}
		buf_append_str(b, "'");
	}
	buf_append_u8(b, 0);
}

static void
settings_row(struct reply *r, const struct admin_call *call, const struct snapshot_settings *row)
{
	struct buf text;

	buf_init(&text);
	describe(&text, row->settings, call->may_change);
	reply_text(r, text.failed ? NULL : (const char *)buf_head(&text));
	buf_fini(&text);
	reply_uint(r, row->n_sessions);
	reply_uint(r, row->n_backends);
}

void
admin_show_settings(struct admin_call *call)
{
	static const struct reply_column columns[] = {{"settings", REPLY_TEXT},
	                                              {"sessions", REPLY_INT8},
	                                              {"servers", REPLY_INT8}};
	struct snapshot_settings *sets;
	struct reply r;
	size_t n = 0;

	sets = merge_sets(call->ask, &n);
	if (sets == NULL) {
		no_memory(call);
		return;
	}
	REPLY_BEGIN(&r, call->out, columns);
	for (size_t i = 0; i < n; i++)
		settings_row(&r, call, &sets[i]);
	reply_end(&r);
	free(sets);
}

/* ---- counters ---- */

static const char *
policy_text(enum session_state_policy policy)
{
	switch (policy) {
	case STATE_PRESERVE:
		return "preserve";
	case STATE_STRICT:
		return "strict";
	case STATE_IGNORE:
		return "ignore";
	}
	return NULL;
}

static void
state_row(struct reply *r, const struct snapshot_pool *p)
{
	int n_pinned = atomic_load_explicit(&p->group->n_pinned, memory_order_relaxed);

	reply_text(r, p->group->database);
	reply_text(r, p->group->user);
	reply_text(r, policy_text(p->group->state_policy));
	reply_int(r, n_pinned);
	reply_uint(r, p->n_probes);
	reply_uint(r, p->n_replays);
	reply_uint(r, p->n_leaks);
	for (unsigned i = 0; i < PIN_N; i++)
		reply_uint(r, p->n_pins[i]);
}

void
admin_show_session_state(struct admin_call *call)
{
	struct reply_column columns[7 + PIN_N] = {
		{"database", REPLY_TEXT},    {"user", REPLY_TEXT},         {"session_state", REPLY_TEXT},
		{"pinned", REPLY_INT8},      {"total_probes", REPLY_INT8}, {"total_replays", REPLY_INT8},
		{"total_leaks", REPLY_INT8},
	};
	char names[PIN_N][32];
	struct snapshot_pool *pools;
	size_t n = 0;
	struct reply r;

	for (unsigned i = 0; i < PIN_N; i++) {
		snprintf(names[i], sizeof(names[i]), "total_pins_%s", pin_text(i));
		columns[7 + i] = (struct reply_column){names[i], REPLY_INT8};
	}
	pools = admin_merge_pools(call->ask, &n);
	if (pools == NULL) {
		no_memory(call);
		return;
	}
	REPLY_BEGIN(&r, call->out, columns);
	for (size_t i = 0; i < n; i++)
		state_row(&r, &pools[i]);
	reply_end(&r);
	free(pools);
}
