/* SPDX-License-Identifier: ISC */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"

static char folder[64];
static char path[128];

static void
set_up(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(folder, sizeof(folder), "%.32s/pgweir-log-XXXXXX", tmp != NULL && *tmp != '\0' ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log", folder);
	log_set_stderr(false);
	ck_assert(log_open_file(path));
}

static void
tear_down(void)
{
	log_open_file(NULL);
	unlink(path);
	rmdir(folder);
}

static char *
read_file(const char *name)
{
	static char text[65536];
	FILE *f = fopen(name, "r");
	ck_assert_ptr_nonnull(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return text;
}

/* What follows the time, pid and level of the only line. */
static const char *
only_event(void)
{
	char *text = read_file(path);
	char *newline = strchr(text, '\n');
	ck_assert_ptr_nonnull(newline);
	ck_assert_str_eq(newline, "\n");
	*newline = '\0';
	const char *at = strchr(text, ']');
	ck_assert_ptr_nonnull(at);
	return at + 2;
}

static void
assert_matches(const char *text, const char *pattern)
{
	regex_t re;
	ck_assert_int_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	ck_assert_msg(regexec(&re, text, 0, NULL, 0) == 0, "'%s' does not match '%s'", text, pattern);
	regfree(&re);
}

START_TEST(line_has_time_pid_level_event_and_fields)
{
	char pattern[256];
	setenv("TZ", "UTC", 1);
	log_event(LOG_INFO_, "login", LOG_S("db", "app"), LOG_I("ms", -12), LOG_U("n", UINT64_MAX),
	          LOG_S("left_out", NULL), LOG_S("msg", "login attempt"));
	snprintf(pattern, sizeof(pattern),
	         "^[0-9]{4}-[01][0-9]-[0-3][0-9] [012][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3} UTC \\[%d\\] "
	         "LOG login db=app ms=-12 n=18446744073709551615 msg=\"login attempt\"\n$",
	         (int)getpid());
	assert_matches(read_file(path), pattern);
}
END_TEST

START_TEST(level_words)
{
	log_set_verbose(2);
	for (int level = 0; level < LOG_LEVEL_N; level++)
		log_event((enum log_level)level, "event", LOG_I("level", level));
	const char *text = read_file(path);
	assert_matches(text, "FATAL event level=0\n.* ERROR event level=1\n.* WARNING event level=2\n"
	                     ".* LOG event level=3\n.* DEBUG event level=4\n.* NOISE event level=5\n$");
}
END_TEST

START_TEST(verbosity_filters)
{
	log_event(LOG_DEBUG_, "hidden", LOG_I("n", 1));
	log_set_verbose(1);
	log_event(LOG_TRACE_, "hidden", LOG_I("n", 2));
	log_event(LOG_DEBUG_, "shown", LOG_I("n", 3));
	log_set_verbose(0);
	log_event(LOG_DEBUG_, "hidden", LOG_I("n", 4));
	ck_assert_str_eq(only_event(), "DEBUG shown n=3");
}
END_TEST

/* One line stays one line, and a value cannot pass for another key. */
START_TEST(values_are_quoted_and_escaped)
{
	log_event(LOG_INFO_, "e", LOG_S("a", ""), LOG_S("b", "x y"), LOG_S("c", "k=v"), LOG_S("d", "say \"hi\" \\"),
	          LOG_S("e", "1\n2\r3\t4\x01\x7f"), LOG_S("f", "gr\xc3\xbc\xc3\x9f"), LOG_S("g", "/tmp/.s.PGSQL:1"));
	ck_assert_str_eq(only_event(), "LOG e a=\"\" b=\"x y\" c=\"k=v\" d=\"say \\\"hi\\\" \\\\\" "
	                               "e=\"1\\n2\\r3\\t4\\x01\\x7f\" f=gr\xc3\xbc\xc3\x9f g=/tmp/.s.PGSQL:1");
}
END_TEST

START_TEST(long_line_is_cut_and_marked)
{
	static char value[10000];
	memset(value, 'x', sizeof(value) - 1);
	log_event(LOG_INFO_, "long", LOG_S("first", "kept"), LOG_S("huge", value), LOG_S("after", "gone"));
	const char *text = only_event();
	ck_assert_uint_lt(strlen(text), 4096);
	assert_matches(text, "^LOG long first=kept huge=.*\\.\\.\\.$");
	ck_assert_ptr_null(strstr(text, "gone"));
}
END_TEST

START_TEST(reopen_follows_rotation)
{
	char old[160];
	snprintf(old, sizeof(old), "%s.1", path);
	log_event(LOG_INFO_, "before", LOG_I("n", 1));
	ck_assert_int_eq(rename(path, old), 0);
	log_event(LOG_INFO_, "still_old", LOG_I("n", 2));
	log_reopen();
	log_event(LOG_INFO_, "after", LOG_I("n", 3));
	ck_assert_str_eq(only_event(), "LOG after n=3");
	assert_matches(read_file(old), "before n=1\n.*still_old n=2\n$");
	unlink(old);
}
END_TEST

START_TEST(open_failure_keeps_the_old_file)
{
	errno = 0;
	ck_assert(!log_open_file("/nonexistent/folder/log"));
	ck_assert_int_eq(errno, ENOENT);
	log_event(LOG_INFO_, "kept", LOG_I("n", 1));
	ck_assert_str_eq(only_event(), "LOG kept n=1");
}
END_TEST

START_TEST(errno_survives)
{
	errno = EXDEV;
	log_event(LOG_INFO_, "e", LOG_I("n", 1));
	ck_assert_int_eq(errno, EXDEV);
}
END_TEST

static void *
write_many(void *arg)
{
	for (int i = 0; i < 200; i++)
		log_event(LOG_INFO_, "line", LOG_S("thread", arg), LOG_S("end", "here"));
	return NULL;
}

START_TEST(threads_do_not_mix_lines)
{
	pthread_t threads[4];
	static char names[4][2] = {"a", "b", "c", "d"};
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, names[i]), 0);
	log_reopen();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	FILE *f = fopen(path, "r");
	char line[256];
	int n_whole = 0, n = 0;
	for (; fgets(line, sizeof(line), f) != NULL; n++) {
		const char *event = strchr(line, ']');
		static const char want[] = "] LOG line thread=? end=here\n";
		if (event != NULL && strlen(event) == strlen(want) && strncmp(event, want, 18) == 0 &&
		    strcmp(event + 19, want + 19) == 0)
			n_whole++;
	}
	fclose(f);
	ck_assert_int_eq(n, 800);
	ck_assert_int_eq(n_whole, 800);
}
END_TEST

START_TEST(repeats_are_held_for_a_second)
{
	struct log_repeat r = {0};
	uint32_t n_held = 99;
	clock_set_fake(5000000);
	ck_assert(log_repeat_pass(&r, &n_held));
	ck_assert_uint_eq(n_held, 0);
	for (int i = 0; i < 7; i++)
		ck_assert(!log_repeat_pass(&r, &n_held));
	clock_set_fake(5999999);
	ck_assert(!log_repeat_pass(&r, &n_held));
	clock_set_fake(6000000);
	ck_assert(log_repeat_pass(&r, &n_held));
	ck_assert_uint_eq(n_held, 8);
	ck_assert(!log_repeat_pass(&r, &n_held));
	clock_set_fake(7000000);
	ck_assert(log_repeat_pass(&r, &n_held));
	ck_assert_uint_eq(n_held, 1);
	clock_set_fake(0);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("log");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, line_has_time_pid_level_event_and_fields);
	tcase_add_test(tcase, level_words);
	tcase_add_test(tcase, verbosity_filters);
	tcase_add_test(tcase, values_are_quoted_and_escaped);
	tcase_add_test(tcase, long_line_is_cut_and_marked);
	tcase_add_test(tcase, reopen_follows_rotation);
	tcase_add_test(tcase, open_failure_keeps_the_old_file);
	tcase_add_test(tcase, errno_survives);
	tcase_add_test(tcase, threads_do_not_mix_lines);
	tcase_add_test(tcase, repeats_are_held_for_a_second);
	return unit_run_tcase("log", tcase);
}
