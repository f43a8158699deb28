/* SPDX-License-Identifier: ISC */
/* Pieces of HTML on a struct buf. Pure. */
#ifndef PGWEIR_BENCH_HTML_H
#define PGWEIR_BENCH_HTML_H

#include "base/buf.h"

void html_text(struct buf *b, const char *text); /* escaped, fit for an attribute in quotes too */
/* <TAG>text</TAG>; `class` may be NULL. */
void html_element(struct buf *b, const char *tag, const char *class, const char *text);
void html_elementf(struct buf *b, const char *tag, const char *class, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
