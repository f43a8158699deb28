/* SPDX-License-Identifier: ISC */
/*
 * uthash as pgweir uses it; include this, not uthash.h, so that every file agrees.
 * Running out of memory while adding is the caller's to handle: after HASH_ADD...
 * the element's hh.tbl is NULL when it was not added. The hash function is one that
 * clang's -Wimplicit-fallthrough accepts (the default is a switch that falls through).
 */
#ifndef PGWEIR_BASE_HASH_H
#define PGWEIR_BASE_HASH_H

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(keyptr, keylen, hashv) HASH_OAT(keyptr, keylen, hashv)
#include <uthash.h>

#endif
