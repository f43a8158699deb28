/* SPDX-License-Identifier: ISC */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report_parts.h"
#include "text.h"

enum metric
report_main_metric(const struct grid_panel *panel)
{
	if (grid_has(panel, METRIC_MB_PER_S))
		return METRIC_MB_PER_S;
	if (grid_has(panel, METRIC_TPS))
		return METRIC_TPS;
	return grid_has(panel, METRIC_POOLER_CALLS) ? METRIC_POOLER_CALLS : METRIC_RSS_PEAK_MIB;
}

bool
report_shows_variants(const struct grid_panel *panel)
{
	return grid_has_variants(panel) && !grid_has_one_system(panel);
}

const char *
report_clients(char text[48], const struct grid_panel *panel, const struct result *r)
{
	if (r->clients == RESULT_UNKNOWN)
		snprintf(text, 48, "-");
	else if (grid_shows_threads(panel))
		snprintf(text, 48, "%lld/%lld", (long long)r->clients, (long long)r->threads);
	else
		snprintf(text, 48, "%lld", (long long)r->clients);
	return text;
}

static void
look_at(struct report *report, const struct result_set *set, const char *baseline)
{
	*report = (struct report){0};
	grid_init(&report->grid, set, baseline);
	gaps_find(&report->grid, &report->gaps);
	duels_find(&report->grid, &report->duels);
}

static void
report_fini(struct report *report)
{
	charts_fini(&report->charts);
	result_notes_fini(&report->notes);
	duels_fini(&report->duels);
	gaps_fini(&report->gaps);
	grid_fini(&report->grid);
}

/* Under another name first: a reader never sees half a page, and a full disk leaves the old one. */
static bool
write_page(const char *path, const struct buf *html, FILE *errors)
{
	char *draft = text_fmt("%s.new", path);
	FILE *file = fopen(draft, "we");
	bool done = false;

	if (file != NULL) {
		done = fwrite(buf_head(html), 1, html->len, file) == html->len;
		done = fclose(file) == 0 && done && rename(draft, path) == 0;
	}
	if (!done) {
		fprintf(errors, "%s: %s\n", path, strerror(errno));
		remove(draft);
	}
	free(draft);
	return done;
}

static bool
write_html(struct report *report, const char *dir, FILE *errors)
{
	char *path = text_fmt("%s/report.html", dir);
	struct buf html;
	bool done = false;

	buf_init(&html);
	if (result_notes_read(dir, &report->notes, errors) &&
	    charts_draw(dir, &report->grid, &report->charts, errors)) {
		done = report_html_build(report, dir, &html);
		if (!done)
			fprintf(errors, "%s: out of memory\n", path);
	}
	done = done && write_page(path, &html, errors);
	buf_fini(&html);
	free(path);
	return done;
}

static bool
knows_system(const struct grid *grid, const char *system)
{
	for (size_t i = 0; i < grid->n_systems; i++) {
		if (strcmp(grid->systems[i], system) == 0)
			return true;
	}
	return false;
}

int
report_run(const char *dir, const char *baseline, FILE *out, FILE *errors)
{
	struct result_set set = {0};
	struct report report;
	bool done = false;

	if (!result_read(dir, &set, errors)) {
		result_set_fini(&set);
		return EXIT_FAILURE;
	}
	look_at(&report, &set, baseline);
	if (set.n == 0)
		fprintf(errors, "%s/results.csv: no runs\n", dir);
	else if (baseline != NULL && !knows_system(&report.grid, baseline))
		fprintf(errors, "%s/results.csv: no system \"%s\" to compare with\n", dir, baseline);
	else
		done = true;
	if (done) {
		report_text_print(&report, out);
		done = write_html(&report, dir, errors);
		if (report.charts.problem != NULL)
			fprintf(errors, "%s\n", report.charts.problem);
		if (done)
			fprintf(out, "\n%s/report.html\n", dir);
	}
	report_fini(&report);
	result_set_fini(&set);
	return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
