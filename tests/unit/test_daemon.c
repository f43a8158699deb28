/* SPDX-License-Identifier: ISC */
#include "ops/daemon.h"

#include "auth/users.h"
#include "core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static char folder[64], path[80], why[512];

static void
make_folder(void)
{
	snprintf(folder, sizeof folder, "/tmp/pgweir-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/p.pid", folder);
}

static void
remove_folder(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static long
pid_in_file(void)
{
	FILE *f = fopen(path, "r");
	long pid = -1;

	if (f == NULL)
		return -1;
	if (fscanf(f, "%ld", &pid) != 1)
		pid = -2;
	fclose(f);
	return pid;
}

static void
write_text(const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

/* Runs fn in a child and answers its exit code. */
static int
in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(fn());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A live process called `name`, which ends when the descriptor that is answered closes. */
static int
start_namesake(const char *name, pid_t *pid)
{
	int fds[2], said[2];
	char byte;

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(pipe(said), 0);
	*pid = fork();
	ck_assert_int_ge(*pid, 0);
	if (*pid == 0) {
		close(fds[1]);
		prctl(PR_SET_NAME, name);
		if (write(said[1], "", 1) != 1)
			_exit(1);
		_exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(fds[0]);
	ck_assert_int_eq(read(said[0], &byte, 1), 1);
	close(said[0]);
	close(said[1]);
	return fds[1];
}

START_TEST(no_pidfile_is_wanted)
{
	ck_assert_int_eq(daemon_write_pidfile("", why, sizeof why), STATUS_OK);
	daemon_remove_pidfile();
}
END_TEST

START_TEST(pidfile_comes_and_goes)
{
	ck_assert_int_eq(daemon_write_pidfile(path, why, sizeof why), STATUS_OK);
	ck_assert_int_eq(pid_in_file(), getpid());
	daemon_remove_pidfile();
	ck_assert_int_eq(access(path, F_OK), -1);
	daemon_remove_pidfile();
}
END_TEST

static int
write_and_tell(void)
{
	return (int)daemon_write_pidfile(path, why, sizeof why);
}

static int
remove_in_child(void)
{
	daemon_remove_pidfile();
	return 0;
}

START_TEST(pidfile_belongs_to_one)
{
	ck_assert_int_eq(daemon_write_pidfile(path, why, sizeof why), STATUS_OK);
	ck_assert_int_eq(in_child(write_and_tell), STATUS_REFUSED);
	ck_assert_int_eq(in_child(remove_in_child), 0);
	ck_assert_int_eq(pid_in_file(), getpid());
	daemon_remove_pidfile();
}
END_TEST

START_TEST(stale_pidfiles_are_overwritten)
{
	static const char *const texts[] = {"", "junk\n", "999999999999\n", "-1\n", "4194400\n", "0\n"};
	char own[32];

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		write_text(texts[i]);
		ck_assert_int_eq(daemon_write_pidfile(path, why, sizeof why), STATUS_OK);
		ck_assert_int_eq(pid_in_file(), getpid());
		daemon_remove_pidfile();
	}
	/* In a container a restarted daemon often has the number it had before. */
	snprintf(own, sizeof own, "%d\n", (int)getpid());
	write_text(own);
	ck_assert_int_eq(daemon_write_pidfile(path, why, sizeof why), STATUS_OK);
	daemon_remove_pidfile();
}
END_TEST

START_TEST(a_live_pooler_is_respected_and_others_are_not)
{
	char text[32];
	pid_t pid;
	int fd = start_namesake("pgbouncer", &pid);

	snprintf(text, sizeof text, "%d\n", (int)pid);
	write_text(text);
	ck_assert_int_eq(daemon_write_pidfile(path, why, sizeof why), STATUS_REFUSED);
	ck_assert_ptr_nonnull(strstr(why, "process "));
	ck_assert_int_eq(pid_in_file(), pid);
	close(fd);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(daemon_write_pidfile(path, why, sizeof why), STATUS_OK);
	daemon_remove_pidfile();

	fd = start_namesake("cron", &pid);
	snprintf(text, sizeof text, "%d\n", (int)pid);
	write_text(text);
	ck_assert_int_eq(daemon_write_pidfile(path, why, sizeof why), STATUS_OK);
	daemon_remove_pidfile();
	close(fd);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(pidfile_in_a_folder_that_is_not_there)
{
	ck_assert_int_eq(daemon_write_pidfile("/nowhere/p.pid", why, sizeof why), STATUS_BAD);
	ck_assert_str_eq(why, "pidfile \"/nowhere/p.pid\": No such file or directory");
}
END_TEST

/* The background process writes its process id to the file, then says it is ready or ends. */
static int
fork_and_be_ready(void)
{
	if (daemon_fork(why, sizeof why) != STATUS_OK || getsid(0) == getpid())
		return 3;
	FILE *f = fopen(path, "w");
	if (f == NULL)
		return 4;
	fprintf(f, "%d\n", (int)getpid());
	fclose(f);
	daemon_ready();
	struct stat fd, null;
	_exit(fstat(2, &fd) == 0 && stat("/dev/null", &null) == 0 && fd.st_rdev == null.st_rdev ? 0 : 5);
}

static int
fork_and_fail(void)
{
	if (daemon_fork(why, sizeof why) != STATUS_OK)
		return 3;
	_exit(0);
}

START_TEST(the_starter_exits_when_the_daemon_is_ready)
{
	int status;
	long pid;

	/* Adopted, so that the daemon's exit code can be looked at. */
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	ck_assert_int_eq(in_child(fork_and_be_ready), 0);
	pid = pid_in_file();
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid((pid_t)pid, &status, 0), (pid_t)pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(the_starter_fails_when_the_daemon_ends_early)
{
	ck_assert_int_eq(in_child(fork_and_fail), EXIT_FAILURE);
}
END_TEST

START_TEST(ready_without_fork_is_nothing)
{
	struct stat before, after;

	ck_assert_int_eq(fstat(2, &before), 0);
	daemon_ready();
	ck_assert_int_eq(fstat(2, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

static int
drop_to_nobody(void)
{
	const struct passwd *pw = getpwnam("nobody");

	if (pw == NULL || daemon_drop_root("nobody", why, sizeof why) != STATUS_OK)
		return 1;
	if (getuid() != pw->pw_uid || geteuid() != pw->pw_uid || getgid() != pw->pw_gid || setuid(0) == 0)
		return 2;
	/* From here on as in any unprivileged process. */
	if (daemon_drop_root("", why, sizeof why) != STATUS_OK)
		return 3;
	if (daemon_drop_root("nobody", why, sizeof why) != STATUS_OK)
		return 4;
	if (daemon_drop_root("root", why, sizeof why) != STATUS_REFUSED)
		return 5;
	return 0;
}

START_TEST(root_is_dropped_for_good)
{
	if (geteuid() == 0) {
		ck_assert_int_eq(daemon_drop_root("", why, sizeof why), STATUS_REFUSED);
		ck_assert_int_eq(daemon_drop_root("root", why, sizeof why), STATUS_REFUSED);
		ck_assert_int_eq(in_child(drop_to_nobody), 0);
	} else {
		ck_assert_int_eq(daemon_drop_root("", why, sizeof why), STATUS_OK);
		ck_assert_int_eq(daemon_drop_root("root", why, sizeof why), STATUS_REFUSED);
	}
	ck_assert_int_eq(daemon_drop_root("no such user", why, sizeof why), STATUS_BAD);
}
END_TEST

static void
set_nofile(rlim_t soft, rlim_t hard)
{
	struct rlimit limit = {soft, hard};

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int
raise_unprivileged(void)
{
	struct rlimit limit;

	set_nofile(100, 200);
	if (geteuid() == 0 && daemon_drop_root("nobody", why, sizeof why) != STATUS_OK)
		return 1;
	if (daemon_raise_nofile(150, why, sizeof why) != STATUS_OK)
		return 2;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur != 200)
		return 3;
	if (daemon_raise_nofile(201, why, sizeof why) != STATUS_REFUSED)
		return 4;
	return strstr(why, "may need 201 open files, but only 200 are allowed") != NULL ? 0 : 5;
}

START_TEST(limits_rise_as_far_as_they_may)
{
	ck_assert_int_eq(in_child(raise_unprivileged), 0);
}
END_TEST

static void
set(struct config *c, const char *name, const char *value)
{
	ck_assert_int_eq(config_set(c, name, value, why, sizeof why), STATUS_OK);
}

START_TEST(need_counts_clients_and_pools)
{
	struct config *c = config_new();
	struct database_conf *d = database_conf_new("app"), *app = d;
	uint64_t base;

	set(c, "max_client_conn", "1000");
	base = daemon_need_nofile(c);
	ck_assert_uint_ge(base, 1000);
	ck_assert_int_eq(config_add_database(c, &d), STATUS_OK);
	ck_assert_uint_eq(daemon_need_nofile(c), base + 20);
	ck_assert_int_eq(users_add(c->auth_users, "ada", ""), STATUS_OK);
	ck_assert_int_eq(users_add(c->auth_users, "bob", ""), STATUS_OK);
	ck_assert_uint_eq(daemon_need_nofile(c), base + 40);
	app->max_db_connections = 30;
	ck_assert_uint_eq(daemon_need_nofile(c), base + 30);
	app->max_db_connections = CONFIG_UNSET;
	app->user = strdup("ada");
	ck_assert_uint_eq(daemon_need_nofile(c), base + 20);
	app->pool_size = 0;
	ck_assert_uint_eq(daemon_need_nofile(c), base + 1000);
	d = database_conf_new("*");
	ck_assert_int_eq(config_add_database(c, &d), STATUS_OK);
	ck_assert_uint_eq(daemon_need_nofile(c), base + 1040);
	config_unref(&c);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		no_pidfile_is_wanted,
		pidfile_comes_and_goes,
		pidfile_belongs_to_one,
		stale_pidfiles_are_overwritten,
		a_live_pooler_is_respected_and_others_are_not,
		pidfile_in_a_folder_that_is_not_there,
		the_starter_exits_when_the_daemon_is_ready,
		the_starter_fails_when_the_daemon_ends_early,
		ready_without_fork_is_nothing,
		root_is_dropped_for_good,
		limits_rise_as_far_as_they_may,
		need_counts_clients_and_pools,
	};
	TCase *tcase = tcase_create("daemon");

	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_run_tcase("daemon", tcase);
}
