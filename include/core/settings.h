/* SPDX-License-Identifier: ISC */
/*
 * Settings: an interned, immutable set of session GUC values, sorted by name. Every
 * session has one (what it set, as against the login defaults), every backend is
 * labelled with the one it carries. Equal sets are the same object, so "does this
 * backend carry what this session needs?" is one comparison of pointers.
 *
 * The table is shared by all threads under one lock that is taken only when
 * something is set; the objects are ref-counted. NULL from any constructor: no memory.
 */
#ifndef PGWEIR_CORE_SETTINGS_H
#define PGWEIR_CORE_SETTINGS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings;

struct settings *settings_empty(void); /* a reference to the empty set */
struct settings *settings_ref(struct settings *s);
void settings_unref(struct settings **s); /* nulls; NULL is a no-op */

/* A new reference to s plus name = value (names compare without case; the newer spelling stays). */
struct settings *settings_with(struct settings *s, const char *name, const char *value);
struct settings *settings_without(struct settings *s, const char *name);

size_t settings_n(const struct settings *s);
const char *settings_name(const struct settings *s, size_t i);
const char *settings_value(const struct settings *s, size_t i);
const char *settings_get(const struct settings *s, const char *name); /* NULL: not in the set */
/* standard_conforming_strings, which is asked for with each statement. */
enum settings_strings { STRINGS_UNSET, STRINGS_STANDARD, STRINGS_ESCAPED };
enum settings_strings settings_strings(const struct settings *s);
/* Some value has bytes that mean something else, or nothing, in another client_encoding. */
bool settings_have_letters(const struct settings *s);
/* idle_session_timeout: how long such a session may idle; 0: as long as it likes, or the value can't be read. */
uint64_t settings_idle_limit_us(const struct settings *s);

enum settings_apply {
	SETTINGS_TRY,    /* an error leaves things as they were */
	SETTINGS_OR_END, /* an error ends the connection, so that nothing that is sent behind is executed without them */
};

/*
 * Append extended-protocol messages, to which the caller adds a Sync, and answer their number. With SETTINGS_OR_END the
 * first of them is settings_build_or_end(), which is good until the Sync, or RESET ALL.
 */
size_t settings_build_or_end(struct buf *b);
/*
 * To go in front: what can't be forgotten setting by setting. Of `all`, settings_build_forgotten() must follow behind.
 * RESET ALL ends exit_on_error, too: until that is on again, an error leaves a failed transaction, in which the server
 * executes nothing of what was sent behind.
 */
size_t settings_build_forget(struct buf *b, bool sequences, bool all);
size_t settings_build_forgotten(struct buf *b);
/*
 * What makes a backend labelled `from` carry `to`: set_config() for what differs, NULL (the login default) for what is not
 * in `to`. Right under any client_encoding, search_path and standard_conforming_strings; the encoding comes first, a role is
 * given up first and taken last, and so are time limits. 0: nothing differs, nothing is appended (or b->failed).
 */
size_t settings_build_apply(struct buf *b, const struct settings *from, const struct settings *to,
                            enum settings_apply how);

/* With SETTINGS_TRY: the name that the i-th of those set_config() calls sets; NULL: there are fewer. */
const char *settings_applied_name(const struct settings *from, const struct settings *to, size_t i);

#endif
