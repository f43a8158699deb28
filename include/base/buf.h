/* SPDX-License-Identifier: ISC */
/*
 * A growable byte buffer, filled at the end and consumed at the front. Owned by
 * one thread. Errors are sticky: when memory or the size cap is exceeded,
 * `failed` is set, later appends do nothing, and the owner checks once at the
 * end. A buffer owns no memory before the first append and after buf_fini().
 */
#ifndef PGWEIR_BASE_BUF_H
#define PGWEIR_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_MAX (0x40000000u) /* bytes; more is refused */

struct buf {
	uint8_t *data;
	uint32_t off; /* consumed bytes at the front */
	uint32_t len; /* unconsumed bytes, starting at data + off */
	uint32_t cap;
	bool failed;
};

void buf_init(struct buf *b);
void buf_fini(struct buf *b); /* frees; b is reusable as after buf_init */
void buf_wipe(struct buf *b); /* as buf_fini, contents overwritten first: for secrets */
void buf_append(struct buf *b, const void *bytes, size_t n);
void buf_append_str(struct buf *b, const char *s); /* without the terminator */
void buf_append_u8(struct buf *b, uint8_t v);
void buf_append_u16(struct buf *b, uint16_t v); /* network order */
void buf_append_u32(struct buf *b, uint32_t v); /* network order */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint8_t *buf_reserve(struct buf *b, size_t n); /* n writable bytes at the end, NULL on failure; then buf_commit */
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* n <= len */
void buf_reset(struct buf *b);             /* empties, clears failed; frees when cap is large (over 4 KiB) */

/* The first unconsumed byte; NULL when the buffer owns no memory. Valid until the next append. */
static inline const uint8_t *
buf_head(const struct buf *b)
{
	return b->data == NULL ? NULL : b->data + b->off;
}

#endif
