/* SPDX-License-Identifier: ISC */
/* What src/wire/suspect.c and src/wire/suspect_set.c share; for nobody else. */
#ifndef PGWEIR_WIRE_SUSPECT_PARTS_H
#define PGWEIR_WIRE_SUSPECT_PARTS_H

#include "wire/suspect.h"

struct suspect_state {
	struct sql_lexer lexer;    /* behind the token */
	struct sql_token token;    /* the one looked at */
	struct sql_token previous; /* the one before it in the same statement, else SQL_END */
	bool is_do;                /* in a DO: its strings are looked through */
	bool is_first;             /* in the first statement, nothing in front of it */
	struct suspicion *out;
};

/*
 * Tokens looked at ahead of the scan, at most; what takes more is suspected of the worst. So a text of n bytes costs
 * O(n), whatever it is.
 */
#define SUSPECT_AHEAD_MAX 24

/* What comes next, up to the end of the statement or SUSPECT_AHEAD_MAX tokens; SQL_END from there on. */
struct suspect_ahead {
	struct sql_token t[SUSPECT_AHEAD_MAX];
	size_t n;
	bool is_last; /* no more than this statement follows, and all of it is here */
};
void suspect_look_ahead(const struct suspect_state *s, struct suspect_ahead *out);
const struct sql_token *suspect_ahead_at(const struct suspect_ahead *a, size_t i);
bool suspect_ahead_is(const struct suspect_ahead *a, size_t i, const char *lower_word);
bool suspect_ahead_is_punct(const struct suspect_ahead *a, size_t i, char c);

/* The statement or call behind the word that has just been read. */
void suspect_read_set(struct suspect_state *s);
void suspect_read_reset(struct suspect_state *s);
void suspect_read_set_config(struct suspect_state *s);
/* A setting by its own name, in lower case; flags: SUSPECT_RESETS or 0. */
void suspect_read_setting(struct suspect_state *s, const char *name, uint32_t flags);

#endif
