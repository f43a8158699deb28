/* SPDX-License-Identifier: ISC */
/* report.html: one file that needs no other, in light and dark, on a wide screen and on a phone. */
#include "report_parts.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "html.h"

static const char style_sheet[] =
	":root{color-scheme:light dark;--ink:#212529;--faint:#5c636a;--page:#fff;--card:#f8f9fa;--line:#dee2e6;"
	"--good:#d7f2dd;--bad:#ffdede;--good-ink:#1b6b2f;--bad-ink:#b02020}\n"
	"@media "
	"(prefers-color-scheme:dark){:root{--ink:#e9ecef;--faint:#a3abb3;--page:#16191c;--card:#1f2327;--line:#3a4047;"
	"--good:#143a20;--bad:#4a1c1c;--good-ink:#7ddc97;--bad-ink:#ff9a9a}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;max-width:84rem;padding:1rem;background:var(--page);color:var(--ink);"
	"font:1rem/1.5 system-ui,sans-serif}\n"
	"h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.3rem;margin:2.5rem 0 .5rem;border-bottom:2px solid "
	"var(--line)}\n"
	"h3{font-size:1.1rem;margin:2rem 0 .5rem}p{max-width:50rem;margin:.5rem 0}\n"
	"nav a{display:inline-block;margin:.15rem .8rem .15rem 0}a{color:inherit}\n"
	".note{color:var(--faint);font-size:.9rem}.warn{border-left:.3rem solid #e8a200;padding:.2rem .8rem;"
	"background:var(--card)}\n"
	".scroll{overflow-x:auto;margin:.75rem 0}\n"
	"table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\n"
	"th,td{padding:.2rem .55rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}\n"
	"th{text-align:right;background:var(--card);font-weight:600;white-space:normal;vertical-align:bottom}\n"
	".cells th:nth-child(2),.cells td:nth-child(2){position:sticky;left:0}\n"
	".cells td:nth-child(2){background:var(--page)}\n"
	"th.l,td.l{text-align:left}td.w{white-space:normal;text-align:left;min-width:12rem}\n"
	"tr.first td{border-top:2px solid var(--line)}\n"
	"td.good{background:var(--good);color:var(--good-ink)}td.good::after{content:\" \\25b2\"}\n"
	"td.bad{background:var(--bad);color:var(--bad-ink)}td.bad::after{content:\" \\25bc\"}\n"
	"td.none{color:var(--bad-ink);font-weight:600}\n"
	"figure{margin:0;padding:.4rem;border:1px solid var(--line);border-radius:.4rem}\n"
	".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,25rem),1fr));gap:.75rem;"
	"align-items:start;margin:.75rem 0}\n"
	"pre{overflow-x:auto;background:var(--card);padding:.6rem;font-size:.8rem;margin:.3rem 0}\n"
	"summary{cursor:pointer}dl{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.15rem 1rem;"
	"font-size:.9rem}\n"
	"dt{color:var(--faint)}dd{margin:0;overflow-wrap:anywhere}\n";

/* --- the head of the page --- */

static void
append_date(struct buf *b, double seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[64];

	if (isnan(seconds) || gmtime_r(&t, &tm) == NULL)
		return;
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
	buf_append_str(b, text);
}

/* "pgweir-bench: overhead, scale" */
static void
append_title(struct buf *b, const struct grid *grid)
{
	buf_append_str(b, "pgweir-bench");
	for (size_t i = 0; i < grid->n_panels; i++) {
		bool named = false;
		for (size_t k = 0; k < i; k++)
			named |= strcmp(grid->panels[k].key->suite, grid->panels[i].key->suite) == 0;
		if (named)
			continue;
		buf_append_str(b, i == 0 ? ": " : ", ");
		html_text(b, grid->panels[i].key->suite);
	}
}

static void
append_summary(struct buf *b, const struct grid *grid)
{
	size_t n_counted = 0, n_discarded = 0, n_bad = 0;
	double first = NAN, last = NAN;

	for (size_t i = 0; i < grid->kept.n; i++) {
		const struct result *r = &grid->kept.rows[i];
		bool bad = strcmp(r->status, "ok") != 0;
		n_bad += bad;
		n_discarded += !bad && r->discarded != 0;
		n_counted += result_counts(r);
		first = isnan(first) || r->started < first ? r->started : first;
		last = isnan(last) || r->started > last ? r->started : last;
	}
	buf_printf(b, "<p>%zu runs count, %zu were discarded as warm-up, %zu have no figures.", n_counted, n_discarded,
	           n_bad);
	if (!isnan(first)) {
		buf_append_str(b, " Measured from ");
		append_date(b, first);
		buf_append_str(b, " to ");
		append_date(b, last);
		buf_append_str(b, " UTC.");
	}
	buf_append_str(b, "</p>\n");
}

static void
append_how_to_read(struct buf *b)
{
	buf_append_str(
		b, "<p class=\"note\">A figure is the median of the runs that count; lines and bars show it with the "
		   "lowest and the highest run.");
	buf_printf(
		b,
		" Colours compare with the system that the column of ratios names, under the same circumstances and "
		"run "
		"by run: green and \342\226\262 is better, red and \342\226\274 is worse; without colour the two are "
		"within %.0f %% of each other (%.0f %% where there is one run only), or the runs disagree.",
		100 * GRID_EVEN, 100 * GRID_EVEN_ALONE);
	buf_append_str(
		b, " CPU, switches and memory without another word are the pooler's, so direct connections have none. "
		   "Everything shares one machine unless the environment below says otherwise.</p>\n");
}

static void
append_contents(struct buf *b, const struct report *report)
{
	buf_append_str(b, "<nav>");
	if (report->duels.n_pairs > 0)
		buf_append_str(b, "<a href=\"#duels\">pgweir against the others</a>");
	for (size_t i = 0; i < report->grid.n_panels; i++) {
		buf_printf(b, "<a href=\"#panel%zu\">", i);
		html_text(b, report->grid.panels[i].title);
		buf_append_str(b, "</a>");
	}
	buf_append_str(b, "<a href=\"#gaps\">Not measured</a><a href=\"#environment\">Environment</a></nav>\n");
}

/* --- wins and losses --- */

static void
append_count(struct buf *b, const char *class, unsigned n)
{
	html_elementf(b, "td", n > 0 ? class : NULL, "%u", n);
}

static void
append_duel_table(struct buf *b, const struct duels *duels)
{
	buf_append_str(b, "<div class=\"scroll\"><table><thead><tr><th class=\"l\" rowspan=\"2\">system</th>"
	                  "<th class=\"l\" rowspan=\"2\">against</th>");
	for (size_t m = 0; m < DUEL_N_METRICS; m++) {
		buf_append_str(b, "<th colspan=\"3\">");
		html_text(b, metric_infos[duel_metrics[m]].title);
		buf_append_str(b, "</th>");
	}
	buf_append_str(b, "</tr><tr>");
	for (size_t m = 0; m < DUEL_N_METRICS; m++)
		buf_append_str(b, "<th>better</th><th>even</th><th>worse</th>");
	buf_append_str(b, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < duels->n_pairs; i++) {
		const struct duel *d = &duels->pairs[i];
		buf_append_str(b, "<tr>");
		html_element(b, "td", "l", d->ours);
		html_element(b, "td", "l", d->theirs);
		for (size_t m = 0; m < DUEL_N_METRICS; m++) {
			append_count(b, "good", d->better[m]);
			append_count(b, NULL, d->even[m]);
			append_count(b, "bad", d->worse[m]);
		}
		buf_append_str(b, "</tr>\n");
	}
	buf_append_str(b, "</tbody></table></div>\n");
}

static void
append_loss(struct buf *b, const struct duel_loss *loss)
{
	char text[METRIC_TEXT], clients[48];

	buf_append_str(b, "<tr>");
	html_element(b, "td", "l", loss->panel->title);
	html_element(b, "td", NULL, report_clients(clients, loss->panel, loss->ours->key));
	html_element(b, "td", "l", metric_infos[loss->metric].heading);
	html_element(b, "td", "l", loss->panel->series[loss->ours->series].label);
	html_element(b, "td", NULL, metric_format(text, grid_median(loss->ours, loss->metric)));
	html_element(b, "td", "l", loss->panel->series[loss->theirs->series].label);
	html_element(b, "td", NULL, metric_format(text, grid_median(loss->theirs, loss->metric)));
	html_elementf(b, "td", "bad", "%.2f", loss->ratio);
	buf_append_str(b, "</tr>\n");
}

static const char losses_head[] =
	"<div class=\"scroll\"><table><thead><tr><th class=\"l\">cell</th><th>clients</th>"
	"<th class=\"l\">figure</th><th class=\"l\">system</th><th></th><th class=\"l\">against"
	"</th><th></th><th>ratio</th></tr></thead><tbody>\n";

/* Whether no loss before it, which are worse, is of the same systems and the same figure. */
static bool
is_worst_of_its_kind(const struct duels *duels, size_t i)
{
	const struct duel_loss *a = &duels->losses[i];

	for (size_t k = 0; k < i; k++) {
		const struct duel_loss *b = &duels->losses[k];
		if (b->metric == a->metric && strcmp(b->ours->key->system, a->ours->key->system) == 0 &&
		    strcmp(b->theirs->key->system, a->theirs->key->system) == 0)
			return false;
	}
	return true;
}

/* The worst of each kind is in sight, and every single one a click away. */
static void
append_losses(struct buf *b, const struct duels *duels)
{
	buf_append_str(b,
	               "<h3>Where pgweir is worse</h3>\n<p class=\"note\">Of each system and figure the cell with the "
	               "largest factor.</p>\n");
	buf_append_str(b, losses_head);
	for (size_t i = 0; i < duels->n_losses; i++) {
		if (is_worst_of_its_kind(duels, i))
			append_loss(b, &duels->losses[i]);
	}
	buf_printf(b, "</tbody></table></div>\n<details><summary>Every cell where pgweir is worse: %zu</summary>\n",
	           duels->n_losses);
	buf_append_str(b, losses_head);
	for (size_t i = 0; i < duels->n_losses; i++)
		append_loss(b, &duels->losses[i]);
	buf_append_str(b, "</tbody></table></div></details>\n");
}

static void
append_duels(struct buf *b, const struct duels *duels)
{
	if (duels->n_pairs == 0)
		return;
	buf_append_str(b, "<h2 id=\"duels\">pgweir against the others</h2>\n<p class=\"note\">In how many cells (a "
	                  "workload with a number of clients) it is better, even or worse.</p>\n");
	append_duel_table(b, duels);
	if (duels->n_losses > 0)
		append_losses(b, duels);
}

/* --- what was not measured, and where everything was --- */

static void
append_gaps(struct buf *b, const struct gaps *gaps)
{
	buf_append_str(b, "<h2 id=\"gaps\">Not measured</h2>\n");
	if (gaps->n == 0) {
		buf_append_str(b, "<p>Every run that was begun has its figures.</p>\n");
		return;
	}
	buf_append_str(b,
	               "<div class=\"scroll\"><table><thead><tr><th class=\"l\">panel</th><th class=\"l\">system</th>"
	               "<th class=\"l\">clients</th><th>runs</th><th class=\"l\">why</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < gaps->n; i++) {
		const struct gap *g = &gaps->items[i];
		buf_append_str(b, "<tr>");
		html_element(b, "td", "l", g->panel->title);
		html_element(b, "td", "l", g->panel->series[g->series].label);
		html_element(b, "td", "w", g->clients == NULL ? "" : g->clients);
		html_elementf(b, "td", NULL, "%zu of %zu", g->n_bad, g->n_bad + g->n_good);
		html_element(b, "td", "w", g->problem);
		buf_append_str(b, "</tr>\n");
	}
	buf_append_str(b, "</tbody></table></div>\n");
}

static void
append_environment(struct buf *b, const struct result_notes *notes)
{
	buf_append_str(b, "<h2 id=\"environment\">Environment</h2>\n");
	if (notes->n == 0)
		buf_append_str(b, "<p class=\"warn\">The folder has no environment.txt: nobody knows where this was "
		                  "measured.</p>\n");
	buf_append_str(b, "<dl>\n");
	for (size_t i = 0; i < notes->n; i++) {
		if (strchr(notes->notes[i].value, '\n') != NULL)
			continue;
		html_element(b, "dt", NULL, notes->notes[i].name);
		html_element(b, "dd", NULL, notes->notes[i].value);
		buf_append_str(b, "\n");
	}
	buf_append_str(b, "</dl>\n");
	for (size_t i = 0; i < notes->n; i++) {
		if (strchr(notes->notes[i].value, '\n') == NULL)
			continue;
		buf_append_str(b, "<details>");
		html_element(b, "summary", NULL, notes->notes[i].name);
		html_element(b, "pre", NULL, notes->notes[i].value);
		buf_append_str(b, "</details>\n");
	}
}

bool
report_html_build(const struct report *report, const char *dir, struct buf *html)
{
	buf_append_str(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
	                     "<title>");
	append_title(html, &report->grid);
	buf_append_str(html, "</title>\n<style>\n");
	buf_append_str(html, style_sheet);
	charts_append_css(html);
	buf_append_str(html, "</style></head><body>\n<h1>");
	append_title(html, &report->grid);
	buf_append_str(html, "</h1>\n");
	append_summary(html, &report->grid);
	append_how_to_read(html);
	if (report->charts.problem != NULL)
		html_element(html, "p", "warn", report->charts.problem);
	append_contents(html, report);
	append_duels(html, &report->duels);
	for (size_t i = 0; i < report->grid.n_panels; i++)
		report_panel_append(report, dir, i, html);
	append_gaps(html, &report->gaps);
	append_environment(html, &report->notes);
	buf_append_str(html, "</body></html>\n");
	return !html->failed;
}
