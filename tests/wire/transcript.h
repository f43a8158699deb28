/* SPDX-License-Identifier: ISC */
/* What the peer said, one readable line a message, without what may differ between two honest servers. */
#ifndef PGWEIR_TEST_TRANSCRIPT_H
#define PGWEIR_TEST_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transcript {
	char **lines;
	size_t n;
};

void transcript_add(struct transcript *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void transcript_add_message(struct transcript *t, char type, const uint8_t *body, uint32_t n, bool with_error_text);
/* Sorts each run of ParameterStatus lines: their order is nobody's business. */
void transcript_sort_parameters(struct transcript *t);
void transcript_free(struct transcript *t);
/* NULL when equal, else a readable side-by-side of where they part. */
char *transcript_diff(const struct transcript *want, const struct transcript *got);

#endif
