/* SPDX-License-Identifier: ISC */
/* What the two forms of the report share. */
#ifndef PGWEIR_BENCH_REPORT_PARTS_H
#define PGWEIR_BENCH_REPORT_PARTS_H

#include "charts.h"
#include "duels.h"
#include "gaps.h"
#include "grid.h"
#include "report.h"

struct report {
	struct grid grid;
	struct gaps gaps;
	struct duels duels;
	struct result_notes notes;
	struct charts charts;
};

/* Of the figure that the panel is about: tps, MB/s, or memory. */
enum metric report_main_metric(const struct grid_panel *panel);
/* Whether to say how a system's topologies or variants compare; with one system alone, the ratios say it already. */
bool report_shows_variants(const struct grid_panel *panel);
/* "16" or, if the threads vary, "16/8". */
const char *report_clients(char text[48], const struct grid_panel *panel, const struct result *r);

void report_text_print(const struct report *report, FILE *out);
/* False: out of memory. */
bool report_html_build(const struct report *report, const char *dir, struct buf *html)
	__attribute__((warn_unused_result));

/* The part of the page about one panel. */
void report_panel_append(const struct report *report, const char *dir, size_t panel, struct buf *html);

#endif
