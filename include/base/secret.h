/* SPDX-License-Identifier: ISC */
/*
 * Passwords and keys. The only type that holds them for longer than a call; wiped
 * on free, never given to the log. Owned by whoever holds the struct.
 */
#ifndef PGWEIR_BASE_SECRET_H
#define PGWEIR_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct secret {
	char *text; /* NUL-terminated, NULL when unset */
	size_t len; /* bytes without the NUL */
};

bool secret_set(struct secret *s, const char *text, size_t len); /* copies; false: no memory, s unchanged */
void secret_fini(struct secret *s);
static inline bool
secret_is_set(const struct secret *s)
{
	return s->text != NULL;
}

void secret_wipe_bytes(void *p, size_t n);                             /* not optimised away */
bool secret_equal(const void *a, size_t na, const void *b, size_t nb); /* time depends on nb only */

#endif
