/* SPDX-License-Identifier: ISC */
/* A panel of report.html: its charts, its table, and what its source published. */
#include "report_parts.h"

#include <math.h>
#include <string.h>

#include "html.h"
#include "published.h"

static void
append_charts(struct buf *b, const struct report *report, const char *dir, size_t panel)
{
	size_t n = 0;

	for (size_t i = 0; i < report->charts.n; i++) {
		const struct chart *chart = &report->charts.items[i];
		struct buf picture;
		if (chart->panel != panel)
			continue;
		buf_init(&picture);
		if (charts_inline(&picture, dir, &report->charts, i)) {
			buf_append_str(b, n++ == 0 ? "<div class=\"charts\">\n" : "");
			buf_append_str(b, "<figure role=\"img\" aria-label=\"");
			html_text(b, chart->title);
			buf_append_str(b, "\">");
			buf_append(b, buf_head(&picture), picture.len);
			buf_append_str(b, "</figure>\n");
		}
		b->failed |= picture.failed;
		buf_fini(&picture);
	}
	if (n > 0)
		buf_append_str(b, "</div>\n");
}

/* --- the table --- */

static void
append_head(struct buf *b, const struct grid *grid, const struct grid_panel *panel)
{
	const char *base = grid_baseline_name(grid, panel);

	html_element(b, "th", NULL, grid_shows_threads(panel) ? "clients/threads" : "clients");
	buf_append_str(b, "<th class=\"l\">system</th><th>runs</th>");
	for (size_t i = 0; i < METRIC_N; i++) {
		enum metric m = (enum metric)i;
		if (!grid_has(panel, m))
			continue;
		buf_append_str(b, "<th title=\"");
		html_text(b, metric_infos[m].title);
		buf_append_str(b, "\">");
		html_text(b, metric_infos[m].heading);
		buf_append_str(b, "</th>");
		if (m != report_main_metric(panel))
			continue;
		buf_append_str(b, "<th title=\"median of the ratios, run by run\">to ");
		html_text(b, base == NULL ? "-" : base);
		buf_append_str(b, "</th>");
		if (report_shows_variants(panel))
			buf_append_str(b, "<th title=\"ratio to the same system's first line\">to own first</th>");
		if (grid_has_repeats(panel))
			buf_append_str(b, "<th>mean</th><th title=\"standard deviation\">sd</th><th>min</th>"
			                  "<th>max</th>");
	}
}

static const char *
class_of(const struct grid_cell *cell, const struct grid_cell *base, enum metric m)
{
	if (base == NULL || base == cell)
		return NULL;
	switch (grid_judge(cell, base, m)) {
	case VERDICT_BETTER:
		return "good";
	case VERDICT_WORSE:
		return "bad";
	case VERDICT_UNKNOWN:
	case VERDICT_EVEN:
		break;
	}
	return NULL;
}

static void
append_ratio(struct buf *b, const struct grid_cell *cell, const struct grid_cell *base, enum metric m)
{
	double ratio = base == NULL ? NAN : grid_ratio(cell, base, m);

	if (isnan(ratio))
		html_element(b, "td", NULL, "-");
	else
		html_elementf(b, "td", NULL, "%.2f", ratio);
}

/* The figure that the panel is about, in full. */
static void
append_main(struct buf *b, const struct grid_panel *panel, const struct grid_cell *cell, const struct grid_cell *base,
            enum metric m)
{
	struct stats_summary s = grid_summary(cell, m);
	double ratio = base == NULL || base == cell ? NAN : grid_ratio(cell, base, m);
	char text[METRIC_TEXT];

	if (isnan(ratio))
		html_element(b, "td", NULL, base == cell && s.n > 0 ? "=" : "-");
	else
		html_elementf(b, "td", class_of(cell, base, m), "%.2f", ratio);
	if (report_shows_variants(panel))
		append_ratio(b, cell, grid_first_variant(panel, cell), m);
	if (!grid_has_repeats(panel)) /* they would all be the median */
		return;
	html_element(b, "td", NULL, metric_format(text, s.mean));
	html_element(b, "td", NULL, metric_format(text, s.sd));
	html_element(b, "td", NULL, metric_format(text, s.min));
	html_element(b, "td", NULL, metric_format(text, s.max));
}

static void
append_row(struct buf *b, const struct grid *grid, const struct grid_panel *panel, const struct grid_cell *cell)
{
	const struct grid_cell *base = grid_baseline(grid, panel, cell);
	enum metric main_metric = report_main_metric(panel);
	char text[METRIC_TEXT], clients[48];
	bool first = cell == panel->cells || cell[-1].key->clients != cell->key->clients ||
	             cell[-1].key->threads != cell->key->threads;

	buf_append_str(b, first ? "<tr class=\"first\">" : "<tr>");
	html_element(b, "td", NULL, report_clients(clients, panel, cell->key));
	html_element(b, "td", "l", panel->series[cell->series].label);
	if (cell->n_bad > 0)
		html_elementf(b, "td", "none", "%zu of %zu", cell->n_runs, cell->n_runs + cell->n_bad);
	else
		html_elementf(b, "td", NULL, "%zu", cell->n_runs);
	for (size_t i = 0; i < METRIC_N; i++) {
		enum metric m = (enum metric)i;
		if (!grid_has(panel, m))
			continue;
		html_element(b, "td", m == main_metric ? NULL : class_of(cell, base, m),
		             metric_format(text, grid_median(cell, m)));
		if (m == main_metric)
			append_main(b, panel, cell, base, m);
	}
	buf_append_str(b, "</tr>\n");
}

static void
append_table(struct buf *b, const struct grid *grid, const struct grid_panel *panel)
{
	buf_append_str(b, "<div class=\"scroll\"><table class=\"cells\"><thead><tr>");
	append_head(b, grid, panel);
	buf_append_str(b, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < panel->n_cells; i++)
		append_row(b, grid, panel, &panel->cells[i]);
	buf_append_str(b, "</tbody></table></div>\n");
}

/* --- what the source published --- */

static bool
has_published(const struct grid_panel *panel)
{
	for (size_t i = 0; i < n_published_figures; i++) {
		for (size_t k = 0; k < panel->n_cells; k++) {
			if (published_matches(&published_figures[i], panel->cells[k].key))
				return true;
		}
	}
	return false;
}

static void
append_published_row(struct buf *b, const struct published *p, const struct grid_panel *panel,
                     const struct grid_cell *cell)
{
	double here = grid_median(cell, p->metric);
	char text[METRIC_TEXT], clients[48];

	buf_append_str(b, "<tr>");
	html_element(b, "td", NULL, report_clients(clients, panel, cell->key));
	html_element(b, "td", "l", p->subject);
	html_element(b, "td", "l", metric_infos[p->metric].heading);
	if (isnan(p->sd))
		html_element(b, "td", NULL, metric_format(text, p->value));
	else
		html_elementf(b, "td", NULL, "%g \302\261 %g", p->value, p->sd);
	html_element(b, "td", "l", panel->series[cell->series].label);
	html_element(b, "td", NULL, metric_format(text, here));
	if (isnan(here))
		html_element(b, "td", NULL, "-");
	else
		html_elementf(b, "td", NULL, "%.2f", here / p->value);
	buf_append_str(b, "</tr>\n");
}

static void
append_published(struct buf *b, const struct grid_panel *panel)
{
	if (!has_published(panel))
		return;
	buf_append_str(b, "<details open><summary>What the source published, beside what was measured here</summary>\n"
	                  "<p class=\"note\">Other machines of other years: compare the shapes, not the figures.</p>\n"
	                  "<div class=\"scroll\"><table><thead><tr><th>clients</th><th class=\"l\">published for</th>"
	                  "<th class=\"l\">figure</th><th>published</th><th class=\"l\">measured here</th><th></th>"
	                  "<th>here / published</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < n_published_figures; i++) {
		for (size_t k = 0; k < panel->n_cells; k++) {
			if (published_matches(&published_figures[i], panel->cells[k].key))
				append_published_row(b, &published_figures[i], panel, &panel->cells[k]);
		}
	}
	buf_append_str(b, "</tbody></table></div></details>\n");
}

void
report_panel_append(const struct report *report, const char *dir, size_t panel, struct buf *html)
{
	const struct grid_panel *p = &report->grid.panels[panel];

	buf_printf(html, "<h2 id=\"panel%zu\">", panel);
	html_text(html, p->title);
	buf_append_str(html, "</h2>\n");
	append_charts(html, report, dir, panel);
	append_table(html, &report->grid, p);
	append_published(html, p);
}
