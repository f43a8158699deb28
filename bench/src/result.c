/* SPDX-License-Identifier: ISC */
#include "result.h"

#include "result_fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

const struct result_field result_fields[RESULT_N_FIELDS] = {
#define TEXT(name, size, meaning) {#name, RESULT_TEXT, offsetof(struct result, name), size},
#define COUNT(name, meaning) {#name, RESULT_COUNT, offsetof(struct result, name), 0},
#define REAL(name, meaning) {#name, RESULT_REAL, offsetof(struct result, name), 0},
#include "result.def"
#undef TEXT
#undef COUNT
#undef REAL
};

const struct result_field *
result_field_find(const char *name)
{
	for (size_t i = 0; i < RESULT_N_FIELDS; i++) {
		if (strcmp(result_fields[i].name, name) == 0)
			return &result_fields[i];
	}
	return NULL;
}

void
result_init(struct result *r)
{
	*r = (struct result){0};
	for (size_t i = 0; i < RESULT_N_FIELDS; i++) {
		const struct result_field *f = &result_fields[i];
		if (f->kind == RESULT_COUNT)
			*(int64_t *)((char *)r + f->offset) = RESULT_UNKNOWN;
		else if (f->kind == RESULT_REAL)
			*(double *)((char *)r + f->offset) = NAN;
	}
	r->discarded = 0;
	str_copy(r->status, sizeof(r->status), "ok");
}

void
result_set_status(struct result *r, const char *status, const char *reason, ...)
{
	int n = snprintf(r->status, sizeof(r->status), "%s: ", status);
	va_list args;

	if (n < 0 || (size_t)n >= sizeof(r->status))
		return;
	va_start(args, reason);
	vsnprintf(r->status + n, sizeof(r->status) - (size_t)n, reason, args);
	va_end(args);
	for (char *p = r->status; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ')
			*p = ' ';
	}
}

bool
result_counts(const struct result *r)
{
	return r->discarded == 0 && strcmp(r->status, "ok") == 0;
}

bool
result_same_setup(const struct result *a, const struct result *b)
{
	return strcmp(a->suite, b->suite) == 0 && strcmp(a->workload, b->workload) == 0 &&
	       strcmp(a->mode, b->mode) == 0 && strcmp(a->topology, b->topology) == 0 &&
	       strcmp(a->variant, b->variant) == 0 && a->scale == b->scale && a->clients == b->clients &&
	       a->threads == b->threads;
}

bool
result_same_cell(const struct result *a, const struct result *b)
{
	return strcmp(a->system, b->system) == 0 && result_same_setup(a, b);
}

static double
us_per_transaction(const struct result *r, double user_s, double system_s)
{
	int64_t n = r->cpu_transactions != RESULT_UNKNOWN ? r->cpu_transactions : r->transactions;

	return n > 0 ? (user_s + system_s) * 1e6 / (double)n : NAN;
}

double
result_pooler_us(const struct result *r)
{
	return us_per_transaction(r, r->pooler_user_s, r->pooler_system_s);
}

double
result_server_us(const struct result *r)
{
	return us_per_transaction(r, r->server_user_s, r->server_system_s);
}

double
result_pgbench_us(const struct result *r)
{
	return us_per_transaction(r, r->pgbench_user_s, r->pgbench_system_s);
}

bool
result_set_add(struct result_set *set, const struct result *r)
{
	if (set->n == set->cap) {
		size_t cap = set->cap == 0 ? 64 : 2 * set->cap;
		struct result *rows = realloc(set->rows, cap * sizeof(*rows));
		if (rows == NULL)
			return false;
		set->rows = rows;
		set->cap = cap;
	}
	set->rows[set->n++] = *r;
	return true;
}

void
result_set_fini(struct result_set *set)
{
	free(set->rows);
	*set = (struct result_set){0};
}
