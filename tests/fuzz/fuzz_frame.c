/* SPDX-License-Identifier: ISC */
/* Walks the input as the relay does, in two halves cut at a place the input chooses: same messages, no overrun. */
#include "wire/frame.h"

#include "base/obj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads one message at p; answers its length as far as it is there, 0 at the end or at nonsense. */
static size_t
step(const uint8_t *p, size_t n, struct frame *f)
{
	if (frame_next(p, n, f) != STATUS_OK)
		return 0;
	invariant(f->avail >= 5 && f->avail <= n && f->avail <= f->len && f->len <= MSG_LEN_MAX + 1);
	invariant(f->type == (char)p[0]);
	invariant(frame_client_limit(f->type) <= MSG_CLIENT_LARGE_MAX);
	return f->avail;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame whole, part;
	for (size_t at = 0, n; (n = step(data + at, size - at, &whole)) != 0; at += n) {
		size_t cut = 5 + data[at] % (size - at - 4); /* any shorter run that still has the header */
		invariant(step(data + at, cut, &part) != 0);
		invariant(part.type == whole.type && part.len == whole.len && part.avail <= whole.avail);
		invariant(frame_next(data + at, 4, &part) == STATUS_MORE);
	}
	return 0;
}
