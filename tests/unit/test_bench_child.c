/* SPDX-License-Identifier: ISC */
#include "child.h"
#include "files.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void
make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/pgweir-bench-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
remove_folder(void)
{
	files_remove_tree(folder);
}

static char *
in_folder(const char *name)
{
	return text_fmt("%s/%s", folder, name);
}

static pid_t
shell(const char *script, int stop_signal)
{
	char *log = in_folder("log"), *argv[] = {"/bin/sh", "-c", (char *)script, NULL};
	struct child_how how = {.log = log, .stop_signal = stop_signal};
	struct why why = {""};
	pid_t pid = child_start(&how, argv, &why);

	ck_assert_msg(pid > 0, "%s", why.text);
	free(log);
	return pid;
}

START_TEST(tells_how_it_ended)
{
	ck_assert_int_eq(child_wait(shell("exit 3", 0), NULL, NULL), 3);
	ck_assert_int_eq(child_wait(shell("kill -9 $$", 0), NULL, NULL), 128 + SIGKILL);
}
END_TEST

START_TEST(keeps_what_it_says)
{
	char *log = in_folder("log"), *text;

	ck_assert_int_eq(child_wait(shell("echo out; echo err >&2", 0), NULL, NULL), 0);
	text = files_read(log);
	ck_assert_str_eq(text, "out\nerr\n");
	free(text);
	free(log);
}
END_TEST

START_TEST(what_was_written_before_is_left_out)
{
	char *path = in_folder("file"), *text;
	struct why why;

	ck_assert(files_write(path, "old\n", &why));
	ck_assert_int_eq(files_size(path), 4);
	text = files_read_from(path, 4);
	ck_assert_str_eq(text, "");
	free(text);
	ck_assert(files_append(path, "new\n", &why));
	text = files_read_from(path, 4);
	ck_assert_str_eq(text, "new\n");
	free(text);
	text = files_read_from(path, 0);
	ck_assert_str_eq(text, "old\nnew\n");
	free(text);
	/* one that was cut short since */
	text = files_read_from(path, 100);
	ck_assert_str_eq(text, "");
	free(text);
	free(path);
}
END_TEST

START_TEST(tells_of_one_that_ended_unasked)
{
	pid_t pid = shell("kill -SEGV $$", 0);
	char *how;

	for (int i = 0; child_is_running(pid); i++)
		ck_assert(child_nap(i));
	how = child_how_it_ended(pid);
	ck_assert_str_eq(how, "signal 11");
	free(how);
	child_stop(pid);
	how = child_how_it_ended(pid);
	ck_assert_str_eq(how, "");
	free(how);
}
END_TEST

START_TEST(a_failure_has_its_error_line)
{
	char *log = in_folder("log"),
	     *argv[] = {"/bin/sh", "-c", "echo hello; echo 'ERROR: no luck'; echo bye; exit 4", NULL};
	char *missing[] = {"/nonexistent/program", NULL};
	struct child_how how = {.log = log};
	struct why why = {""};

	ck_assert(!child_run(&how, argv, &why));
	ck_assert_str_eq(why.text, "sh: ERROR: no luck (exit code 4)");
	ck_assert(!child_run(&how, missing, &why));
	free(log);
}
END_TEST

START_TEST(stops_with_the_signal_that_was_named)
{
	char *ready = in_folder("ready"), *log = in_folder("log"), *text;
	char *script = text_fmt("trap 'echo told; exit 0' QUIT; : > %s; while :; do sleep 0.05; done", ready);
	pid_t pid = shell(script, SIGQUIT);

	for (int i = 0; !files_exist(ready); i++)
		ck_assert(child_nap(i));
	ck_assert(child_is_running(pid));
	child_stop(pid);
	ck_assert(!child_is_running(pid));
	text = files_read(log);
	ck_assert_str_eq(text, "told\n");
	free(text);
	free(script);
	free(ready);
	free(log);
}
END_TEST

static bool
say_no(void *arg)
{
	*(int *)arg += 1;
	return false;
}

START_TEST(a_tick_can_end_the_wait)
{
	pid_t pid = shell("exec sleep 100", 0);
	int n_ticks = 0;

	ck_assert_int_eq(child_wait(pid, say_no, &n_ticks), -1);
	ck_assert_int_eq(n_ticks, 1);
	ck_assert_int_lt(kill(pid, 0), 0);
}
END_TEST

START_TEST(being_asked_to_end_ends_waits)
{
	pid_t pid = shell("exec sleep 100", 0);

	child_begin();
	raise(SIGINT);
	ck_assert_int_eq(child_stop_asked(), SIGINT);
	ck_assert(!child_nap(0));
	ck_assert_int_eq(child_wait(pid, NULL, NULL), -1);
	ck_assert_int_lt(kill(pid, 0), 0);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("child");

	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_add_test(tcase, tells_how_it_ended);
	tcase_add_test(tcase, keeps_what_it_says);
	tcase_add_test(tcase, what_was_written_before_is_left_out);
	tcase_add_test(tcase, tells_of_one_that_ended_unasked);
	tcase_add_test(tcase, a_failure_has_its_error_line);
	tcase_add_test(tcase, stops_with_the_signal_that_was_named);
	tcase_add_test(tcase, a_tick_can_end_the_wait);
	tcase_add_test(tcase, being_asked_to_end_ends_waits);
	return unit_run_tcase("bench child", tcase);
}
