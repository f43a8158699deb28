/* SPDX-License-Identifier: ISC */
/*
 * Reports on records made up here. PGWEIR_BENCH_SAMPLE=DIR, an existing folder, keeps the page of plausible_page() there
 * for looking at it.
 */
#include "report.h"

#include <math.h>
#include <string.h>

#include "bench_folder.h"
#include "bench_results.h"
#include "html.h"
#include "metric.h"
#include "textgrid.h"

/* --- text --- */

START_TEST(figures_have_three_digits)
{
	char text[METRIC_TEXT];

	ck_assert_str_eq(metric_format(text, NAN), "-");
	ck_assert_str_eq(metric_format(text, 0), "0");
	ck_assert_str_eq(metric_format(text, 0.1234), "0.123");
	ck_assert_str_eq(metric_format(text, 1.2345), "1.23");
	ck_assert_str_eq(metric_format(text, 12.345), "12.3");
	ck_assert_str_eq(metric_format(text, 9.9999), "10.0");
	ck_assert_str_eq(metric_format(text, 12345.6), "12346");
	ck_assert_str_eq(metric_format(text, 42), "42");
}
END_TEST

START_TEST(text_tables_are_aligned)
{
	struct textgrid t;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	textgrid_init(&t, 1);
	textgrid_add(&t, "system");
	textgrid_add(&t, "tps");
	textgrid_end_headings(&t);
	textgrid_add(&t, "caf\303\251");
	textgrid_addf(&t, "%d", 12345);
	textgrid_print(&t, out);
	fclose(out);
	ck_assert_str_eq(text, "  system    tps\n  caf\303\251    12345\n");
	free(text);
	textgrid_fini(&t);
}
END_TEST

START_TEST(html_is_escaped)
{
	struct buf b;

	buf_init(&b);
	html_element(&b, "td", NULL, "<script>'&\"");
	buf_append_u8(&b, '\0');
	ck_assert_str_eq((const char *)buf_head(&b), "<td>&lt;script&gt;&#39;&amp;&quot;</td>");
	buf_fini(&b);
}
END_TEST

/* --- whole reports --- */

struct outcome {
	int code;
	char *out;
	char *errors;
};

static struct outcome
report(const char *dir, const char *baseline)
{
	struct outcome o = {0};
	size_t n, m;
	FILE *out = open_memstream(&o.out, &n), *errors = open_memstream(&o.errors, &m);

	o.code = report_run(dir, baseline, out, errors);
	fclose(out);
	fclose(errors);
	return o;
}

static void
outcome_fini(struct outcome *o)
{
	free(o->out);
	free(o->errors);
}

static void
save(const char *dir)
{
	for (size_t i = 0; i < set.n; i++)
		ck_assert(result_append(dir, &set.rows[i], stderr));
	result_set_fini(&set);
}

/* Numbers that repeat: noise of a few per cent. */
static double
noise(void)
{
	static uint32_t state = 2463534242u;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return 0.96 + 0.08 * (double)(state % 1000) / 1000;
}

struct model {
	const char *system;
	double peak;    /* tps */
	double knee;    /* clients at which it bends */
	double decline; /* per tenfold clients behind it */
	double cpu_us;
	double kib; /* per client */
};

static const struct model models[] = {
	{"direct", 12000, 16, 0.55, NAN, NAN},     {"pgweir:16/1", 8600, 16, 0.02, 27, 2.6},
	{"pgweir:16/2", 9100, 16, 0.03, 33, 2.9},  {"pgbouncer:16", 8200, 16, 0.12, 31, 4.1},
	{"pgbouncer:32", 8300, 32, 0.13, 32, 4.1}, {"pgbouncer:16x2", 8800, 16, 0.1, 38, 4.6},
	{"odyssey:32/2", 7600, 32, 0.08, 48, 21},  {"odyssey:64/4", 7000, 64, 0.1, 55, 22},
	{"haproxy", 9000, 16, 0.5, 19, 34},
};

static void
add_plausible(const struct model *m, const char *suite, const char *workload, const char *mode, double cost,
              int64_t clients, int64_t number)
{
	struct result r = run_of(m->system, clients, number, 0);
	double over = clients > m->knee ? log10((double)clients / m->knee) : 0;

	snprintf(r.suite, sizeof(r.suite), "%s", suite);
	snprintf(r.workload, sizeof(r.workload), "%s", workload);
	snprintf(r.mode, sizeof(r.mode), "%s", mode);
	r.discarded = number == 1;
	r.started = 1.8e9 + (double)(set.n * 11);
	r.duration_s = 10;
	r.tps = m->peak / cost * fmin(1, (double)clients / m->knee) * exp(-m->decline * over * 2.3) * noise();
	r.tps_connecting = r.tps * 0.98;
	r.transactions = (int64_t)(r.tps * 10);
	r.failures = 0;
	r.latency_avg_ms = (double)clients / r.tps * 1e3;
	r.latency_sd_ms = r.latency_avg_ms / 3;
	r.latency_p50_ms = r.latency_avg_ms * 0.9;
	r.latency_p90_ms = r.latency_avg_ms * 1.5;
	r.latency_p99_ms = r.latency_avg_ms * (2 + 4 * noise());
	r.latency_p999_ms = r.latency_p99_ms * 2;
	r.latency_max_ms = r.latency_p99_ms * 5;
	r.pooler_user_s = m->cpu_us * r.tps * 10 / 1e6 * 0.3 * noise();
	r.pooler_system_s = m->cpu_us * r.tps * 10 / 1e6 * 0.7 * noise();
	r.server_user_s = 6;
	r.server_system_s = 4;
	r.pgbench_user_s = 2;
	r.pgbench_system_s = 3;
	r.server_connections = m->cpu_us > 0 ? (int64_t)m->knee : clients;
	if (!isnan(m->kib)) {
		r.pooler_rss_before_kb = 9000;
		r.pooler_rss_avg_kb = r.pooler_rss_peak_kb = 9000 + (int64_t)(m->kib * (double)clients);
		r.pooler_rss_after_kb = 9100;
	}
	if (strcmp(m->system, "odyssey:64/4") == 0 && clients == 1000)
		result_set_status(&r, "failed", "%s", "pgbench: connection to server at \"127.0.0.1\" failed <&>");
	keep(&r);
}

static void
add_plausible_suite(const char *suite, const char *workload, const char *mode, double cost, const int64_t *clients,
                    size_t n_clients)
{
	for (size_t c = 0; c < n_clients; c++) {
		for (int64_t number = 1; number <= 4; number++) {
			for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
				add_plausible(&models[i], suite, workload, mode, cost, clients[c], number);
		}
	}
}

/* Clients and threads that vary both. */
static void
add_plausible_threads(void)
{
	static const int64_t pairs[][2] = {{16, 8}, {16, 16}, {96, 8}, {64, 32}, {64, 64}, {104, 8}, {300, 8}};

	for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
		for (int64_t number = 1; number <= 2; number++) {
			struct result r = run_of("direct", pairs[k][0], number, 500 * noise());
			snprintf(r.suite, sizeof(r.suite), "postgres-xc-2013");
			snprintf(r.workload, sizeof(r.workload), "tpcb");
			r.threads = pairs[k][1];
			r.latency_p50_ms = 1e3 * (double)r.clients / r.tps;
			r.latency_p99_ms = 3 * r.latency_p50_ms;
			keep(&r);
			snprintf(r.system, sizeof(r.system), "pgweir:16/2");
			r.tps *= 1.1;
			r.latency_p50_ms /= 1.3;
			keep(&r);
		}
	}
}

/* One number of clients, three kinds of storage. */
static void
add_plausible_storage(void)
{
	static const char *const kinds[][2] = {{"single", ""}, {"sync", ""}, {"single", "synchronous_commit=off"}};
	static const char *const systems[] = {"direct", "pgweir:16/2"};

	for (int64_t number = 1; number <= 10; number++) {
		for (size_t k = 0; k < 3; k++) {
			for (size_t s = 0; s < 2; s++) {
				struct result r =
					run_of(systems[s], 100, number, 1000.0 / (double)(1 + k % 2) * noise());
				snprintf(r.suite, sizeof(r.suite), "replicated-storage-2007");
				snprintf(r.workload, sizeof(r.workload), "tpcb");
				snprintf(r.topology, sizeof(r.topology), "%s", kinds[k][0]);
				snprintf(r.variant, sizeof(r.variant), "%s", kinds[k][1]);
				r.latency_p50_ms = 100 * noise();
				r.latency_p99_ms = 300 * noise();
				keep(&r);
			}
		}
	}
}

static void
add_plausible_idle(void)
{
	static const int64_t clients[] = {1000, 4000, 10000};

	for (size_t c = 0; c < 3; c++) {
		for (size_t i = 1; i < 7; i++) {
			struct result r = run_of(models[i].system, clients[c], 1, NAN);
			snprintf(r.suite, sizeof(r.suite), "scale");
			snprintf(r.workload, sizeof(r.workload), "idle");
			r.mode[0] = '\0';
			r.pooler_rss_before_kb = 9000;
			r.pooler_rss_peak_kb = 9000 + (int64_t)(models[i].kib * (double)clients[c]);
			r.pooler_rss_after_kb = 9000 + r.pooler_rss_peak_kb / 5;
			keep(&r);
		}
	}
}

static void
add_plausible_everything(void)
{
	static const int64_t few[] = {1, 4, 16, 64, 250, 1000}, many[] = {10, 25, 50, 100, 250, 500, 1000};

	begin();
	add_plausible_suite("poolers-2019", "tpcb", "simple", 6, many, 7);
	add_plausible_suite("overhead", "select1", "simple", 1, few, 6);
	add_plausible_suite("overhead", "select1", "extended", 1.2, few + 2, 1);
	add_plausible_threads();
	add_plausible_storage();
	add_plausible_idle();
}

static void
assert_has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no \"%s\"", part);
}

static void
assert_has_not(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) == NULL, "\"%s\"", part);
}

/* No scripts, no addresses, no id twice. */
static void
assert_self_contained(const char *html)
{
	static const char *const links[] = {"<script", "<link",    "<img", "<iframe",
	                                    "@import", "url(http", "src=", "javascript:"};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		assert_has_not(html, links[i]);
	for (const char *p = html; (p = strstr(p, "href=")) != NULL; p++) /* our own anchors and symbols alone */
		ck_assert_msg(p[6] == '#', "%.60s", p);
}

static bool
has_gnuplot(void)
{
	const char *path = getenv("PATH");
	char file[512];

	while (path != NULL) {
		int n = (int)strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/gnuplot", n, path);
		if (access(file, X_OK) == 0)
			return true;
		path = path[n] == ':' ? path + n + 1 : NULL;
	}
	return false;
}

START_TEST(plausible_page)
{
	const char *sample = getenv("PGWEIR_BENCH_SAMPLE");
	const char *dir = sample == NULL ? folder : sample;
	char path[512], *html = NULL;
	size_t cap = 0;

	add_plausible_everything();
	save(dir);
	ck_assert(result_note_append(dir, "CPU", "2 x of a <kind>", stderr));
	ck_assert(result_note_append(dir, "configuration of pgweir:16/1", "[pgweir]\npool_size = 16", stderr));
	struct outcome o = report(dir, NULL);
	ck_assert_int_eq(o.code, 0);
	snprintf(path, sizeof(path), "%s/report.html", dir);
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_gt(getdelim(&html, &cap, '\0', f), 0);
	fclose(f);
	assert_self_contained(html);
	assert_has(html, "overhead: select1, simple, scale 10");
	assert_has(html, "<dd>2 x of a &lt;kind&gt;</dd>");
	assert_has(html, "[pgweir]\npool_size = 16</pre>");
	assert_has(html, "failed &lt;&amp;&gt;");
	assert_has(html, "Every cell where pgweir is worse: ");
	assert_has(html, "542"); /* published */
	if (has_gnuplot()) {
		ck_assert_str_eq(o.errors, "");
		assert_has(html, "<figure role=\"img\" aria-label=\"transactions per second\"><svg");
		assert_has(html, "99th percentile of latency, ms");
		assert_has(html, "</html>");
	} else {
		assert_has(o.errors, "gnuplot");
	}
	assert_has(o.out, "pgweir against the others");
	assert_has(o.out, "Not measured:");
	free(html);
	outcome_fini(&o);
}
END_TEST

START_TEST(without_gnuplot_the_page_says_so)
{
	char *html;

	begin();
	add("direct", 16, 1, 100);
	add("direct", 64, 1, 100);
	save(folder);
	ck_assert_int_eq(setenv("PATH", folder, 1), 0); /* this process is the test's own */
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	assert_has(o.errors, "gnuplot is not installed");
	html = bench_folder_read("report.html");
	assert_has(html, "gnuplot is not installed");
	assert_has(html, "<td class=\"l\">direct</td>");
	assert_has_not(html, "<svg");
	free(html);
	outcome_fini(&o);
}
END_TEST

/* gnuplot gives up at the first figure that an axis cannot hold: then all further charts would be missing. */
START_TEST(odd_figures_do_not_stop_the_charts)
{
	struct result missing = run_of("odyssey:16/1", RESULT_UNKNOWN, 1, NAN), r;
	char *html;

	begin();
	result_set_status(&missing, "not installed", "%s", "in no package");
	keep(&missing);
	for (int64_t clients = 1; clients <= 100; clients *= 10) {
		r = run_of("direct", clients, 1, 0);
		r.latency_p50_ms = 1e-9;
		r.latency_p99_ms = clients == 1 ? NAN : 1e-9;
		r.pooler_rss_peak_kb = 0;
		keep(&r);
	}
	snprintf(r.workload, sizeof(r.workload), "last");
	r.clients = 5;
	r.tps = 5;
	keep(&r);
	save(folder);
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	html = bench_folder_read("report.html");
	if (has_gnuplot()) {
		ck_assert_str_eq(o.errors, "");
		assert_has(html, "aria-label=\"median latency, ms\"");
		assert_has(html, "aria-label=\"transactions per second, 5 clients\"");
	}
	free(html);
	outcome_fini(&o);
}
END_TEST

START_TEST(short_axes_of_time_have_ticks_between_powers_of_ten)
{
	struct result r = run_of("direct", 16, 1, 100);
	char *script;

	begin();
	r.latency_p50_ms = 0.5;
	r.latency_p99_ms = 120;
	keep(&r);
	r.clients = 64;
	r.latency_p50_ms = 70; /* two decades and more: powers of ten are enough */
	r.latency_p99_ms = 400;
	keep(&r);
	save(folder);
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	script = bench_folder_read("charts/charts.gnuplot");
	assert_has(script, "set ytics (100, 200, 500)\n");
	assert_has_not(script, "set ytics (0.5");
	free(script);
	outcome_fini(&o);
}
END_TEST

START_TEST(names_cannot_break_out_of_the_page)
{
	char *html;

	begin();
	add("x'<img src=x onerror=alert(1)>\"\\", 16, 1, 100);
	add("x'<img src=x onerror=alert(1)>\"\\", 64, 1, 100);
	add("y`$(touch oops)'; system \"touch oops\" #", 16, 1, 100);
	add("y`$(touch oops)'; system \"touch oops\" #", 64, 1, 100);
	save(folder);
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	html = bench_folder_read("report.html");
	assert_has_not(html, "<img");
	ck_assert_int_ne(access(bench_folder_path("oops"), F_OK), 0);
	ck_assert_int_ne(access(bench_folder_path("charts/oops"), F_OK), 0);
	if (has_gnuplot()) {
		ck_assert_str_eq(o.errors, "");
		assert_has(html, "<svg");
	}
	free(html);
	outcome_fini(&o);
}
END_TEST

START_TEST(an_unknown_baseline_is_an_error)
{
	begin();
	add("direct", 16, 1, 100);
	save(folder);
	struct outcome o = report(folder, "pgbuoncer");
	ck_assert_int_eq(o.code, 1);
	assert_has(o.errors, "no system \"pgbuoncer\"");
	outcome_fini(&o);
}
END_TEST

START_TEST(a_folder_without_results_is_an_error)
{
	struct outcome o = report(folder, NULL);

	ck_assert_int_eq(o.code, 1);
	assert_has(o.errors, "results.csv: No such file");
	outcome_fini(&o);
}
END_TEST

START_TEST(results_without_runs_are_an_error)
{
	bench_folder_write("results.csv", "system,tps\n");
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 1);
	assert_has(o.errors, "no runs");
	outcome_fini(&o);
}
END_TEST

START_TEST(nothing_measured_is_still_a_report)
{
	struct result r = run_of("odyssey:32/2", 16, 1, NAN);
	char *html;

	begin();
	result_set_status(&r, "not installed", "%s", "in no package");
	keep(&r);
	save(folder);
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	assert_has(o.out, "not installed: in no package");
	html = bench_folder_read("report.html");
	assert_has(html, "not installed: in no package");
	free(html);
	outcome_fini(&o);
}
END_TEST

/* A figure that pgbench's clock did not see is none, and of one run there is no spread to show. */
START_TEST(leaves_out_what_says_nothing)
{
	struct result r = run_of("direct", 16, 1, 100);
	char *html;

	begin();
	r.latency_p50_ms = 0;
	r.latency_p99_ms = 2.5;
	r.failures = 0;
	keep(&r);
	save(folder);
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	assert_has(o.out, "  clients  system  runs  tps  ratio  p99 ms\n");
	html = bench_folder_read("report.html");
	assert_has_not(html, "<th>mean</th>");
	assert_has_not(html, "p50 ms");
	free(html);
	outcome_fini(&o);
}
END_TEST

START_TEST(shows_spread_and_failures_where_there_are_any)
{
	struct result r = run_of("direct", 16, 2, 104);
	char *html;

	begin();
	add("direct", 16, 1, 100);
	r.failures = 3;
	keep(&r);
	save(folder);
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	assert_has(o.out, "  clients  system  runs  tps    +-  ratio  failures\n"
	                  "  16       direct     2  102  2.83      -         3\n");
	html = bench_folder_read("report.html");
	assert_has(html, "<th>mean</th>");
	free(html);
	outcome_fini(&o);
}
END_TEST

/* Suite replicated-storage-2007: what replication costs each system. */
START_TEST(compares_each_system_with_its_own_first_line)
{
	static const char *const topologies[] = {"single", "sync"};

	begin();
	for (int k = 0; k < 2; k++) {
		struct result r = run_of("direct", 100, 1, k == 0 ? 122 : 61);
		snprintf(r.topology, sizeof(r.topology), "%s", topologies[k]);
		keep(&r);
		snprintf(r.system, sizeof(r.system), "pgweir:16/1");
		r.tps *= 2;
		keep(&r);
	}
	save(folder);
	struct outcome o = report(folder, NULL);
	ck_assert_int_eq(o.code, 0);
	assert_has(o.out, "(ratio to direct)\n");
	assert_has(o.out, "  100      pgweir:16/1, sync       1  122   2.00  0.50\n");
	assert_has(o.out, "own: the ratio to the same system in its first line.\n");
	outcome_fini(&o);
}
END_TEST

/* --- compare --- */

static struct outcome
compare(const char *dir1, const char *dir2)
{
	struct outcome o = {0};
	size_t n, m;
	FILE *out = open_memstream(&o.out, &n), *errors = open_memstream(&o.errors, &m);

	o.code = compare_run(dir1, dir2, out, errors);
	fclose(out);
	fclose(errors);
	return o;
}

/* Two folders inside ours. */
static void
make_sides(char first[128], char second[128])
{
	snprintf(first, 128, "%s/1", folder);
	snprintf(second, 128, "%s/2", folder);
	ck_assert_int_eq(mkdir(first, 0700), 0);
	ck_assert_int_eq(mkdir(second, 0700), 0);
}

START_TEST(compares_cells_of_two_folders)
{
	char first[128], second[128];

	make_sides(first, second);
	begin();
	add("direct", 16, 1, 100);
	add("direct", 16, 2, 104);
	add("direct", 64, 1, 100);
	save(first);
	begin();
	add("direct", 16, 1, 150);
	add("direct", 16, 2, 156);
	add("haproxy", 16, 1, 5);
	save(second);
	struct outcome o = compare(first, second);
	ck_assert_int_eq(o.code, 0);
	assert_has(o.out, "102     153");
	assert_has(o.out, "1.50  better");
	assert_has(o.out,
	           "1, without counterpart in the other:\n  overhead: select1, simple, scale 10, 64 clients, direct");
	assert_has(o.out,
	           "2, without counterpart in the other:\n  overhead: select1, simple, scale 10, 16 clients, haproxy");
	outcome_fini(&o);
}
END_TEST

START_TEST(runs_that_overlap_are_neither_better_nor_worse)
{
	char first[128], second[128];

	make_sides(first, second);
	begin();
	add("direct", 16, 1, 100);
	add("direct", 16, 2, 160);
	save(first);
	begin();
	add("direct", 16, 1, 150);
	add("direct", 16, 2, 190);
	save(second);
	struct outcome o = compare(first, second);
	ck_assert_int_eq(o.code, 0);
	assert_has(o.out, "1.31");
	assert_has_not(o.out, "1.31  better");
	outcome_fini(&o);
}
END_TEST

START_TEST(nothing_in_common_is_an_error)
{
	char first[128], second[128];

	make_sides(first, second);
	begin();
	add("direct", 16, 1, 100);
	save(first);
	begin();
	add("haproxy", 16, 1, 100);
	save(second);
	struct outcome o = compare(first, second);
	ck_assert_int_eq(o.code, 1);
	assert_has(o.errors, "no cell in common");
	outcome_fini(&o);
}
END_TEST

BENCH_FOLDER_MAIN("bench_report", figures_have_three_digits, text_tables_are_aligned, html_is_escaped, plausible_page,
                  without_gnuplot_the_page_says_so, short_axes_of_time_have_ticks_between_powers_of_ten,
                  names_cannot_break_out_of_the_page, odd_figures_do_not_stop_the_charts,
                  an_unknown_baseline_is_an_error, a_folder_without_results_is_an_error,
                  results_without_runs_are_an_error, nothing_measured_is_still_a_report, leaves_out_what_says_nothing,
                  shows_spread_and_failures_where_there_are_any, compares_each_system_with_its_own_first_line,
                  compares_cells_of_two_folders, runs_that_overlap_are_neither_better_nor_worse,
                  nothing_in_common_is_an_error)
