/* SPDX-License-Identifier: ISC */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/obj.h"
#include "base/secret.h"

enum { BUF_MIN_CAP = 256, BUF_KEEP_CAP = 4096 };

void
buf_init(struct buf *b)
{
	*b = (struct buf){0};
}

void
buf_fini(struct buf *b)
{
	free(b->data);
	buf_init(b);
}

void
buf_wipe(struct buf *b)
{
	secret_wipe_bytes(b->data, b->cap);
	buf_fini(b);
}

/* Makes room for n more bytes at the end: by moving the contents to the front if that is enough, else by growing. */
static bool
make_room(struct buf *b, size_t n)
{
	if (n > BUF_MAX - b->len)
		return false;
	uint32_t need = b->len + (uint32_t)n;
	if (need <= b->cap - b->off)
		return true;
	/* Moving only when at least half of the buffer is consumed keeps the cost per byte constant. */
	if (need <= b->cap && b->off >= b->cap / 2) {
		memmove(b->data, b->data + b->off, b->len);
		b->off = 0;
		return true;
	}
	uint32_t cap = b->cap < BUF_MIN_CAP ? BUF_MIN_CAP : b->cap;
	while (cap < need)
		cap *= 2; /* BUF_MAX is a power of two, so this cannot overflow */
	uint8_t *data = malloc(cap);
	if (data == NULL)
		return false;
	if (b->len > 0)
		memcpy(data, b->data + b->off, b->len);
	free(b->data);
	b->data = data;
	b->off = 0;
	b->cap = cap;
	return true;
}

uint8_t *
buf_reserve(struct buf *b, size_t n)
{
	if (b->failed)
		return NULL;
	if (!make_room(b, n)) {
		b->failed = true;
		return NULL;
	}
	/* n = 0 on a buffer without memory: any address will do, but NULL means failure. */
	return b->data != NULL ? b->data + b->off + b->len : (uint8_t *)b;
}

void
buf_commit(struct buf *b, size_t n)
{
	invariant(n <= b->cap - b->off - b->len);
	b->len += (uint32_t)n;
}

void
buf_append(struct buf *b, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	uint8_t *end = buf_reserve(b, n);
	if (end == NULL)
		return;
	memcpy(end, bytes, n);
	b->len += (uint32_t)n;
}

void
buf_append_str(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

void
buf_append_u8(struct buf *b, uint8_t v)
{
	buf_append(b, &v, 1);
}

void
buf_append_u16(struct buf *b, uint16_t v)
{
	const uint8_t bytes[] = {(uint8_t)(v >> 8), (uint8_t)v};
	buf_append(b, bytes, sizeof(bytes));
}

void
buf_append_u32(struct buf *b, uint32_t v)
{
	const uint8_t bytes[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
	buf_append(b, bytes, sizeof(bytes));
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	/* vsnprintf writes a terminator, which is not committed. */
	uint8_t *end = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
	if (end != NULL) {
		vsnprintf((char *)end, (size_t)n + 1, fmt, again);
		b->len += (uint32_t)n;
	} else {
		b->failed = true;
	}
	va_end(again);
}

void
buf_consume(struct buf *b, size_t n)
{
	invariant(n <= b->len);
	b->len -= (uint32_t)n;
	b->off = b->len == 0 ? 0 : b->off + (uint32_t)n;
}

void
buf_reset(struct buf *b)
{
	if (b->cap > BUF_KEEP_CAP) {
		buf_fini(b);
		return;
	}
	b->off = 0;
	b->len = 0;
	b->failed = false;
}
