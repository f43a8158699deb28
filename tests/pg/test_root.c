/* SPDX-License-Identifier: ISC */
/* Started as root, the daemon drops to user= or refuses. Run by another user, only the refusal of nonsense is left. */
#include "suite.h"

#include <pwd.h>
#include <sys/stat.h>

static char *ini;

static void
write_ini(const char *more)
{
	ini = proc_fmt("%s/root.ini", proc_tmpdir());
	proc_write_file(ini,
	                proc_fmt("[databases]\n* = host=127.0.0.1 port=1\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
	                         "listen_port = %d\nunix_socket_dir =\nauth_type = any\nadmin_users = postgres\n%s",
	                         proc_free_port(), more));
}

START_TEST(root_without_user_is_refused)
{
	char *out;
	int rc;

	write_ini("");
	if (getuid() != 0)
		return;
	rc = proc_run(&out, "%s -q %s", proc_daemon_path(), ini);
	ck_assert_msg(rc != 0 && rc < 128, "exit code %d: %s", rc, out);
	query_assert_message(out, "root");
}
END_TEST

START_TEST(unknown_user_is_refused)
{
	char *out;
	int rc;

	write_ini("user = no_such_user_here\n");
	if (getuid() != 0)
		return;
	rc = proc_run(&out, "%s -q %s", proc_daemon_path(), ini);
	ck_assert_msg(rc != 0 && rc < 128, "exit code %d: %s", rc, out);
	query_assert_message(out, "no_such_user_here");
}
END_TEST

/* All four ids, and no way back. */
START_TEST(root_becomes_the_user)
{
	struct passwd *nobody = getpwnam("nobody");
	char *log = proc_fmt("%s/root.log", proc_tmpdir()), *wanted;
	pid_t pid;

	write_ini("user = nobody\n");
	if (getuid() != 0)
		return;
	ck_assert_ptr_nonnull(nobody);
	wanted = proc_fmt("Uid:\t%d\t%d\t%d\t%d", nobody->pw_uid, nobody->pw_uid, nobody->pw_uid, nobody->pw_uid);
	pid = proc_spawn(log, SIGKILL, (char *[]){(char *)proc_daemon_path(), ini, NULL});
	ck_assert_msg(wait_until(strstr(proc_read_file(proc_fmt("/proc/%d/status", (int)pid)), wanted) != NULL, 5000),
	              "%s", proc_read_file(log));
	ck_assert_msg(wait_until(strstr(proc_read_file(log), "process up") != NULL, 5000), "%s", proc_read_file(log));
	proc_kill(pid, SIGTERM);
	ck_assert_int_ge(proc_wait(pid, 10000), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("root");
	TCase *tcase = tcase_create("root");
	SRunner *runner;
	int n_failed;

	proc_init_keep_user();
	tcase_add_test(tcase, root_without_user_is_refused);
	tcase_add_test(tcase, unknown_user_is_refused);
	tcase_add_test(tcase, root_becomes_the_user);
	tcase_set_timeout(tcase, 30);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
