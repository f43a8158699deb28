/* SPDX-License-Identifier: ISC */
#include "result.h"

#include <math.h>
#include <string.h>

#include "bench_folder.h"
#include "result_fields.h"

static char said[2048]; /* what the last call wrote to `errors` */

static struct result
sample(const char *system, int64_t run)
{
	struct result r;

	result_init(&r);
	snprintf(r.suite, sizeof(r.suite), "overhead");
	snprintf(r.workload, sizeof(r.workload), "select1");
	snprintf(r.system, sizeof(r.system), "%s", system);
	r.clients = 16;
	r.threads = 2;
	r.run = run;
	r.tps = 1234.5;
	return r;
}

static bool
append(const struct result *r)
{
	FILE *errors = fmemopen(said, sizeof(said), "w");
	bool done = result_append(folder, r, errors);

	fclose(errors);
	return done;
}

static bool
load(struct result_set *set)
{
	FILE *errors = fmemopen(said, sizeof(said), "w");

	*set = (struct result_set){0};
	bool done = result_read(folder, set, errors);
	fclose(errors);
	return done;
}

/* A value of its own for every field, and texts that need quotes. */
static struct result
full(void)
{
	struct result r;

	result_init(&r);
	for (size_t i = 0; i < RESULT_N_FIELDS; i++) {
		const struct result_field *f = &result_fields[i];
		void *to = (char *)&r + f->offset;
		if (f->kind == RESULT_TEXT)
			snprintf(to, f->size, "a \"%zu\", b,%c", i, (int)('a' + i));
		else if (f->kind == RESULT_COUNT)
			*(int64_t *)to = INT64_C(1000000000000) + (int64_t)i;
		else
			*(double *)to = 0.1 + 1e9 * (double)i;
	}
	return r;
}

static void
assert_same(const struct result *a, const struct result *b)
{
	for (size_t i = 0; i < RESULT_N_FIELDS; i++) {
		const struct result_field *f = &result_fields[i];
		if (f->kind == RESULT_TEXT)
			ck_assert_str_eq(result_text(a, f), result_text(b, f));
		else if (f->kind == RESULT_COUNT)
			ck_assert_msg(result_count(a, f) == result_count(b, f), "%s", f->name);
		else
			ck_assert_msg(result_real(a, f) == result_real(b, f) ||
			                      (isnan(result_real(a, f)) && isnan(result_real(b, f))),
			              "%s", f->name);
	}
}

/* --- the record --- */

START_TEST(nothing_is_known_at_first)
{
	struct result r;

	result_init(&r);
	ck_assert_str_eq(r.status, "ok");
	ck_assert_int_eq(r.discarded, 0);
	ck_assert_int_eq(r.transactions, RESULT_UNKNOWN);
	ck_assert(isnan(r.tps) && isnan(r.rate));
	ck_assert(result_counts(&r));
	ck_assert(isnan(result_pooler_us(&r)));
}
END_TEST

START_TEST(a_status_has_one_line)
{
	struct result r;

	result_init(&r);
	result_set_status(&r, "failed", "pgbench: %s\n%s", "client 3 aborted", "x");
	ck_assert_str_eq(r.status, "failed: pgbench: client 3 aborted x");
	ck_assert(!result_counts(&r));
	result_set_status(&r, "failed", "%0500d", 7);
	ck_assert_uint_eq(strlen(r.status), sizeof(r.status) - 1);
}
END_TEST

START_TEST(discarded_runs_do_not_count)
{
	struct result r = sample("direct", 1);

	r.discarded = 1;
	ck_assert(!result_counts(&r));
}
END_TEST

START_TEST(cells_differ_in_every_circumstance)
{
	struct result a = sample("direct", 1), b = sample("direct", 2);

	ck_assert(result_same_cell(&a, &b));
	snprintf(b.system, sizeof(b.system), "pgweir:16/1");
	ck_assert(!result_same_cell(&a, &b));
	ck_assert(result_same_setup(&a, &b));
	b.threads++;
	ck_assert(!result_same_setup(&a, &b));
	b = a;
	snprintf(b.variant, sizeof(b.variant), "/mnt/xfs");
	ck_assert(!result_same_setup(&a, &b));
	b = a;
	snprintf(b.topology, sizeof(b.topology), "sync");
	ck_assert(!result_same_setup(&a, &b));
	b = a;
	b.scale = 100;
	ck_assert(!result_same_setup(&a, &b));
}
END_TEST

START_TEST(cpu_is_divided_by_the_transactions_of_its_time)
{
	struct result r = sample("direct", 1);

	r.pooler_user_s = 0.5;
	r.pooler_system_s = 1.5;
	r.transactions = 1000;
	ck_assert_double_eq_tol(result_pooler_us(&r), 2000, 1e-9);
	r.cpu_transactions = 800;
	ck_assert_double_eq_tol(result_pooler_us(&r), 2500, 1e-9);
	r.cpu_transactions = 0;
	ck_assert(isnan(result_pooler_us(&r)));
}
END_TEST

/* --- results.csv --- */

START_TEST(every_field_comes_back)
{
	struct result written = full(), unknown = sample("direct", 1);
	struct result_set set;

	ck_assert(append(&written) && append(&unknown));
	ck_assert(load(&set));
	ck_assert_str_eq(said, "");
	ck_assert_uint_eq(set.n, 2);
	assert_same(&set.rows[0], &written);
	assert_same(&set.rows[1], &unknown);
	result_set_fini(&set);
}
END_TEST

START_TEST(a_line_break_in_a_text_stays_in_its_line)
{
	struct result r = sample("a\nb\r\tc", 1);
	struct result_set set;

	ck_assert(append(&r) && load(&set));
	ck_assert_str_eq(set.rows[0].system, "a b  c");
	result_set_fini(&set);
}
END_TEST

START_TEST(an_incomplete_last_line_is_skipped_and_named)
{
	struct result r = sample("direct", 1);
	struct result_set set;
	char *text;

	ck_assert(append(&r) && append(&r));
	text = bench_folder_read("results.csv");
	text[strlen(text) - 1] = '\0'; /* even if nothing but its end is missing: 12 may have been 123 */
	bench_folder_write("results.csv", text);
	free(text);
	ck_assert(load(&set));
	ck_assert_uint_eq(set.n, 1);
	ck_assert_ptr_nonnull(strstr(said, "/results.csv:3: incomplete"));
	result_set_fini(&set);
}
END_TEST

START_TEST(an_incomplete_last_line_is_cut_off_before_the_next)
{
	struct result r = sample("direct", 1), next = sample("direct", 2);
	struct result_set set;
	char *text;

	ck_assert(append(&r) && append(&r));
	text = bench_folder_read("results.csv");
	text[strlen(text) - 20] = '\0';
	bench_folder_write("results.csv", text);
	free(text);
	ck_assert(append(&next) && load(&set));
	ck_assert_str_eq(said, "");
	ck_assert_uint_eq(set.n, 2);
	ck_assert_int_eq(set.rows[1].run, 2);
	result_set_fini(&set);
}
END_TEST

START_TEST(half_a_header_is_written_anew)
{
	struct result r = sample("direct", 1);
	struct result_set set;

	bench_folder_write("results.csv", "suite,workl");
	ck_assert(append(&r) && load(&set));
	ck_assert_uint_eq(set.n, 1);
	result_set_fini(&set);
}
END_TEST

START_TEST(columns_are_found_by_name)
{
	struct result_set set;

	bench_folder_write("results.csv", "tps,system,clients\r\n12.5,direct,8\r\n,\"pgweir:16/1\",\n");
	ck_assert(load(&set));
	ck_assert_uint_eq(set.n, 2);
	ck_assert_double_eq(set.rows[0].tps, 12.5);
	ck_assert_int_eq(set.rows[0].clients, 8);
	ck_assert_int_eq(set.rows[0].threads, RESULT_UNKNOWN);
	ck_assert_str_eq(set.rows[0].status, "ok");
	ck_assert_str_eq(set.rows[1].system, "pgweir:16/1");
	ck_assert(isnan(set.rows[1].tps));
	result_set_fini(&set);
}
END_TEST

START_TEST(an_unknown_column_is_an_error_that_names_it)
{
	struct result_set set;

	bench_folder_write("results.csv", "system,tsp\ndirect,1\n");
	ck_assert(!load(&set));
	ck_assert_ptr_nonnull(strstr(said, "/results.csv:1: unknown column \"tsp\""));
	result_set_fini(&set);
}
END_TEST

START_TEST(a_column_twice_is_an_error)
{
	struct result_set set;

	bench_folder_write("results.csv", "system,tps,system\ndirect,1,direct\n");
	ck_assert(!load(&set));
	ck_assert_ptr_nonnull(strstr(said, "\"system\" comes twice"));
	result_set_fini(&set);
}
END_TEST

START_TEST(malformed_lines_are_skipped_and_named)
{
	struct result_set set;

	bench_folder_write("results.csv", "system,tps,clients\n"
	                                  "direct,1\n"       /* 2: a field is missing */
	                                  "direct,1,2,3\n"   /* 3: one too many */
	                                  "direct,fast,2\n"  /* 4 */
	                                  "direct,nan,2\n"   /* 5 */
	                                  "direct,1,2.5\n"   /* 6 */
	                                  "direct,1,-2\n"    /* 7 */
	                                  "direct,1e3,2\n"); /* 8: the only one that is right */
	ck_assert(load(&set));
	ck_assert_uint_eq(set.n, 1);
	ck_assert_double_eq(set.rows[0].tps, 1000);
	for (int line = 2; line <= 7; line++) {
		char where[64];
		snprintf(where, sizeof(where), "/results.csv:%d: skipped", line);
		ck_assert_msg(strstr(said, where) != NULL, "%s in %s", where, said);
	}
	ck_assert_ptr_nonnull(strstr(said, "tps \"fast\""));
	result_set_fini(&set);
}
END_TEST

START_TEST(a_text_that_does_not_fit_is_not_cut)
{
	struct result_set set;

	bench_folder_write("results.csv", "mode,tps\nan-uncommonly-long-mode,1\nsimple,1\n");
	ck_assert(load(&set));
	ck_assert_uint_eq(set.n, 1);
	ck_assert_str_eq(set.rows[0].mode, "simple");
	result_set_fini(&set);
}
END_TEST

START_TEST(nothing_is_appended_to_columns_of_another_version)
{
	struct result r = sample("direct", 1);
	char *text;

	bench_folder_write("results.csv", "suite,workload\nold,old\n");
	ck_assert(!append(&r));
	ck_assert_ptr_nonnull(strstr(said, "columns"));
	text = bench_folder_read("results.csv");
	ck_assert_str_eq(text, "suite,workload\nold,old\n");
	free(text);
}
END_TEST

START_TEST(no_file_is_an_error)
{
	struct result_set set;

	ck_assert(!load(&set));
	ck_assert_ptr_nonnull(strstr(said, "/results.csv: No such file"));
}
END_TEST

START_TEST(what_is_no_file_is_an_error)
{
	struct result_set set;

	ck_assert_int_eq(mkdir(bench_folder_path("results.csv"), 0700), 0);
	ck_assert(!load(&set));
	ck_assert_ptr_nonnull(strstr(said, "/results.csv: cannot be read: Is a directory"));
}
END_TEST

/* The terminal shows the message, and does not do what the bytes say. */
START_TEST(garbage_is_named_without_its_control_characters)
{
	struct result_set set;

	bench_folder_write("results.csv", "sy\033[2Jstem,tps\n1,2\n");
	ck_assert(!load(&set));
	ck_assert_ptr_nonnull(strstr(said, "unknown column \"sy [2Jstem\""));
}
END_TEST

START_TEST(an_empty_file_has_no_runs)
{
	struct result_set set;

	bench_folder_write("results.csv", "");
	ck_assert(load(&set));
	ck_assert_uint_eq(set.n, 0);
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
	struct result r = sample("direct", 1);

	ck_assert_int_eq(symlink("/dev/full", bench_folder_path("results.csv")), 0);
	ck_assert(!append(&r));
	ck_assert_ptr_nonnull(strstr(said, "No space left"));
}
END_TEST

/* --- the man page --- */

#define MAN_PAGE "man/pgweir-bench.1"

static const char *const columns[][2] = {
#define TEXT(name, size, meaning) {#name, meaning},
#define COUNT(name, meaning) {#name, meaning},
#define REAL(name, meaning) {#name, meaning},
#include "result.def"
#undef TEXT
#undef COUNT
#undef REAL
};

START_TEST(the_man_page_explains_every_column)
{
	FILE *f = fopen(MAN_PAGE, "r");
	char *page = NULL, entry[256];
	size_t cap = 0;

	ck_assert_msg(f != NULL, "no " MAN_PAGE ": tests run from the top of the tree");
	ck_assert_int_gt(getdelim(&page, &cap, '\0', f), 0);
	fclose(f);
	for (size_t i = 0; i < RESULT_N_FIELDS; i++) {
		snprintf(entry, sizeof(entry), ".B %s\n%s\n", columns[i][0], columns[i][1]);
		ck_assert_msg(strstr(page, entry) != NULL, "not in " MAN_PAGE ":\n%s", entry);
	}
	free(page);
}
END_TEST

/* --- results.json --- */

/* A strict reader of the little JSON that is written: an array of flat objects. NULL: malformed; else what follows. */
static const char *
skip_json_value(const char *p)
{
	if (*p == '"') {
		for (p++; *p != '"'; p++) {
			if (*p == '\0' || (unsigned char)*p < ' ')
				return NULL;
			if (*p == '\\' && *++p != '"' && *p != '\\' && *p != 'u')
				return NULL;
		}
		return p + 1;
	}
	if (strncmp(p, "null", 4) == 0)
		return p + 4;
	size_t n = strspn(p, "-+.0123456789e");
	return n == 0 ? NULL : p + n;
}

static const char *
skip_json_object(const char *p, size_t *n_members)
{
	*n_members = 0;
	if (*p++ != '{')
		return NULL;
	for (;;) {
		p = *p == '"' ? skip_json_value(p) : NULL;
		if (p == NULL || strncmp(p, ": ", 2) != 0)
			return NULL;
		p = skip_json_value(p + 2);
		if (p == NULL)
			return NULL;
		(*n_members)++;
		if (*p == '}')
			return p + 1;
		if (strncmp(p, ", ", 2) != 0)
			return NULL;
		p += 2;
	}
}

/* The number of objects. */
static size_t
check_json(void)
{
	char *text = bench_folder_read("results.json");
	const char *p = text;
	size_t n = 0, n_members;

	ck_assert(strncmp(p, "[\n", 2) == 0);
	p += 2;
	for (;;) {
		p = skip_json_object(p, &n_members);
		ck_assert_msg(p != NULL, "malformed: %s", text);
		ck_assert_uint_eq(n_members, RESULT_N_FIELDS);
		n++;
		if (strncmp(p, ",\n", 2) != 0)
			break;
		p += 2;
	}
	ck_assert_str_eq(p, "\n]\n");
	free(text);
	return n;
}

START_TEST(json_is_whole_after_each_run)
{
	struct result r = full(), other = sample("C:\\x\"\x01", 2);

	for (size_t n = 1; n <= 4; n++) {
		ck_assert(append(n % 2 == 1 ? &r : &other));
		ck_assert_uint_eq(check_json(), n);
	}
}
END_TEST

START_TEST(json_says_what_csv_says)
{
	struct result r = sample("pgweir:16/1", 3);
	char *text;

	ck_assert(append(&r));
	text = bench_folder_read("results.json");
	ck_assert_ptr_nonnull(strstr(text, "\"system\": \"pgweir:16/1\""));
	ck_assert_ptr_nonnull(strstr(text, "\"run\": 3"));
	ck_assert_ptr_nonnull(strstr(text, "\"tps\": 1234.5"));
	ck_assert_ptr_nonnull(strstr(text, "\"transactions\": null"));
	ck_assert_ptr_nonnull(strstr(text, "\"latency_p99_ms\": null"));
	free(text);
}
END_TEST

START_TEST(torn_json_is_written_anew)
{
	struct result r = sample("direct", 1);
	char *text;

	ck_assert(append(&r) && append(&r));
	text = bench_folder_read("results.json");
	text[strlen(text) - 30] = '\0';
	bench_folder_write("results.json", text);
	free(text);
	ck_assert(append(&r));
	ck_assert_uint_eq(check_json(), 3);
}
END_TEST

/* --- environment.txt --- */

static bool
note(const char *name, const char *value)
{
	FILE *errors = fmemopen(said, sizeof(said), "w");
	bool done = result_note_append(folder, name, value, errors);

	fclose(errors);
	return done;
}

static struct result_notes
load_notes(void)
{
	struct result_notes notes;

	ck_assert(result_notes_read(folder, &notes, stderr));
	return notes;
}

START_TEST(notes_come_back)
{
	ck_assert(note("CPU", "2 x of a kind"));
	ck_assert(note("configuration of pgweir:16/1", "[pgweir]\nlisten_port = 1\n\n\tindented: yes\n"));
	ck_assert(note("empty", ""));
	ck_assert(note("leading", "\nline"));
	struct result_notes notes = load_notes();
	ck_assert_uint_eq(notes.n, 4);
	ck_assert_str_eq(notes.notes[0].name, "CPU");
	ck_assert_str_eq(notes.notes[0].value, "2 x of a kind");
	ck_assert_str_eq(notes.notes[1].name, "configuration of pgweir:16/1");
	ck_assert_str_eq(notes.notes[1].value, "[pgweir]\nlisten_port = 1\n\n\tindented: yes");
	ck_assert_str_eq(notes.notes[2].value, "");
	ck_assert_str_eq(notes.notes[3].value, "\nline");
	result_notes_fini(&notes);
}
END_TEST

START_TEST(a_torn_note_does_not_swallow_the_next)
{
	bench_folder_write("environment.txt", "CPU: on");
	ck_assert(note("kernel", "6"));
	struct result_notes notes = load_notes();
	ck_assert_uint_eq(notes.n, 2);
	ck_assert_str_eq(notes.notes[1].name, "kernel");
	result_notes_fini(&notes);
}
END_TEST

START_TEST(no_notes_are_no_error)
{
	struct result_notes notes = load_notes();

	ck_assert_uint_eq(notes.n, 0);
	result_notes_fini(&notes);
}
END_TEST

BENCH_FOLDER_MAIN("bench_result", nothing_is_known_at_first, a_status_has_one_line, discarded_runs_do_not_count,
                  cells_differ_in_every_circumstance, cpu_is_divided_by_the_transactions_of_its_time,
                  every_field_comes_back, a_line_break_in_a_text_stays_in_its_line,
                  an_incomplete_last_line_is_skipped_and_named, an_incomplete_last_line_is_cut_off_before_the_next,
                  half_a_header_is_written_anew, columns_are_found_by_name, an_unknown_column_is_an_error_that_names_it,
                  a_column_twice_is_an_error, malformed_lines_are_skipped_and_named,
                  a_text_that_does_not_fit_is_not_cut, nothing_is_appended_to_columns_of_another_version,
                  no_file_is_an_error, what_is_no_file_is_an_error, garbage_is_named_without_its_control_characters,
                  an_empty_file_has_no_runs, a_full_disk_is_an_error, the_man_page_explains_every_column,
                  json_is_whole_after_each_run, json_says_what_csv_says, torn_json_is_written_anew, notes_come_back,
                  a_torn_note_does_not_swallow_the_next, no_notes_are_no_error)
