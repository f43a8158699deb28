/* SPDX-License-Identifier: ISC */
/*
 * SQL texts that name prepared statements: DEALLOCATE, EXECUTE and PREPARE share their
 * names with the protocol's (documentation: "PREPARE"). The server knows a session's
 * statements by other names; so what such a text names is "shown": prepared under the
 * client's own name too, in front of the text. The server then answers in its own words,
 * what it deallocates is taken from the session's names, and whatever is still shown
 * when the unit is over is closed again, by a hidden unit.
 *
 * Nothing is sent behind such a unit before it is answered.
 */
#ifndef PGWEIR_CORE_SHOWN_H
#define PGWEIR_CORE_SHOWN_H

#include "core/prepared.h"

struct backend;
struct shown;

/* A Query with this text, at the relay's position. */
enum prepared_verdict shown_query(struct relay *r, const uint8_t *sql, size_t n);
/* A Bind of a statement with this text to that portal. False: no memory, or too much is under way. */
bool shown_bind(struct relay *r, const char *portal, const uint8_t *sql, size_t n);
/* The client's Execute f, which is whole and has been noted. False: the same. */
bool shown_execute(struct relay *r, const struct frame *f);

/* ---- what the server says ---- */
void shown_deallocated(struct backend *b); /* CommandComplete DEALLOCATE */
void shown_closed(struct backend *b,
                  const char *name);     /* a Close with a note of that name: ours behind an Execute, or the client's */
bool shown_unit_over(struct backend *b); /* closes what is left; false: no memory */
/* A statement that was to be shown has failed in front of a Query, which the server now skips: it waits for a Sync. */
bool shown_wants_sync(const struct backend *b);
void shown_free(struct shown **s); /* nulls; NULL is a no-op */

#endif
