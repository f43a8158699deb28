/* SPDX-License-Identifier: ISC */
/*
 * Programmer errors and type checks at void pointers. Any thread.
 *
 * invariant() is always compiled in: it logs the expression with file:line and
 * aborts. What a peer, a file or the environment can cause is never an
 * invariant; it is a status.
 */
#ifndef PGWEIR_BASE_OBJ_H
#define PGWEIR_BASE_OBJ_H

#include <stddef.h>
#include <stdint.h>

#define invariant(expr) ((expr) ? (void)0 : obj_invariant_failed(#expr, __FILE__, __LINE__))

_Noreturn void obj_invariant_failed(const char *expr, const char *file, int line);

/* Every object that crosses a void pointer starts with `uint32_t magic`. */
#define obj_check(p, MAGIC) invariant((p) != NULL && (p)->magic == (MAGIC))

/* Converts a void pointer back, checked: struct session *s = obj_from(arg, session, SESSION_MAGIC); */
#define obj_from(arg, type, MAGIC)                                                                                     \
	({                                                                                                             \
		struct type *obj_p = (arg);                                                                            \
		obj_check(obj_p, MAGIC);                                                                               \
		obj_p;                                                                                                 \
	})

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
