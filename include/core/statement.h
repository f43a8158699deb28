/* SPDX-License-Identifier: ISC */
/*
 * Prepared statements, interned: one object for all sessions and backends whose
 * Parse had the same text, the same parameter types, the same settings (they decide
 * what names and literals in the text mean; application_name does not count) and
 * fell in the same generation of the database's schema. Compared in full, a hash is
 * never enough. One table with one lock for all threads, taken when something is
 * parsed or forgotten, not when it is executed.
 */
#ifndef PGWEIR_CORE_STATEMENT_H
#define PGWEIR_CORE_STATEMENT_H

#include "core/description.h"
#include "core/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct suspicion;

struct statement;

/*
 * A schema's generation: a number that no other schema ever has. It changes when the schema does, so that what is parsed
 * afterwards is planned afresh and is not mapped to a plan of before.
 */
uint64_t statement_new_generation(void);

/* body: of a Parse message behind the statement's name: text, number of types, types. NULL: no memory. */
struct statement *statement_get(struct settings *settings, uint64_t generation, const uint8_t *body, size_t n);
/* One of its own, whose text is not kept: it can be prepared but once. */
struct statement *statement_new_large(void);
bool statement_is_large(const struct statement *st);
struct statement *statement_ref(struct statement *st);
void statement_unref(struct statement **st); /* nulls; NULL is a no-op */

const char *statement_server_name(
	const struct statement *st); /* its name on every backend: STATEMENT_PREFIX + number */
const uint8_t *statement_body(const struct statement *st, size_t *n);

/* The same text and context as of another generation: a new reference. NULL: no memory. */
struct statement *statement_renewed(struct statement *st, uint64_t generation);

/* What a Describe answered first; NULL: nothing yet. It stays as long as the statement. */
const struct description *statement_described(const struct statement *st);
void statement_set_described(struct statement *st, struct description *d); /* takes it; the first stays */
/* What its text is suspected of; NULL: nothing, or it was not set yet (is_set). The first stays. */
const struct suspicion *statement_suspicion(const struct statement *st, bool *is_set);
bool statement_set_suspicion(struct statement *st, const struct suspicion *x); /* copies; false: no memory */
/* A client has asked for the description, and may go by it for as long as it has the statement. */
void statement_set_told(struct statement *st);
bool statement_is_told(const struct statement *st);

#define STATEMENT_PREFIX "pgweir_"

struct statement_totals {
	uint64_t n_statements, n_bytes;
};
struct statement_totals statement_totals(void);

/*
 * ---- a session's names for them; owned by the session, one thread ----
 * As in the server, names that are equal in their first 63 bytes are the same.
 */
struct names;

void names_free(struct names **n);
bool names_are_same(const char *a, const char *b);
/* NULL: not in use. */
struct statement *names_find(const struct names *n, const char *name);
/* Takes over the reference. False: no memory (the reference is still the caller's). The name must not be in use. */
bool names_add(struct names **n, const char *name, struct statement *st);
struct statement *names_take(struct names *n, const char *name); /* removes; the caller has the reference, or NULL */
const char *names_of(const struct names *n, const char *server_name); /* a name of that statement; NULL: none */
size_t names_n(const struct names *n);
/* Calls fn for each statement; what it leaves in *st is the name's from then on. */
void names_each(struct names *n, void (*fn)(struct statement **st, void *arg), void *arg);

#endif
