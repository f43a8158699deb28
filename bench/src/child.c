/* SPDX-License-Identifier: ISC */
#include "child.h"

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHILDREN 256
#define STOP_SECONDS 10

static struct {
	struct {
		pid_t pid; /* 0: free */
		int stop_signal;
		int status; /* from waitpid(), once reaped */
		bool reaped;
	} children[MAX_CHILDREN];
	struct passwd *user; /* NULL: ourselves */
	volatile sig_atomic_t asked;
} world;

/* ---- signals ---- */

static void
on_signal(int sig)
{
	if (world.asked != 0) /* asked twice: at once. Only what is safe in a handler. */
		for (int i = 0; i < MAX_CHILDREN; i++)
			if (world.children[i].pid > 0 && !world.children[i].reaped)
				kill(world.children[i].pid, SIGKILL);
	world.asked = sig;
}

static void
stop_all(void)
{
	for (int i = MAX_CHILDREN - 1; i >= 0; i--)
		if (world.children[i].pid > 0)
			child_stop(world.children[i].pid);
}

void
child_begin(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
	atexit(stop_all);
}

int
child_stop_asked(void)
{
	return world.asked;
}

/* ---- the user ---- */

bool
child_choose_user(struct why *why)
{
	static const char *const names[] = {"postgres", "nobody"};

	if (getuid() != 0)
		return true;
	for (size_t i = 0; i < 2; i++) {
		world.user = getpwnam(names[i]);
		if (world.user != NULL)
			return true;
	}
	return why_set(why, "PostgreSQL does not run as root, and there is neither a user postgres nor nobody");
}

const char *
child_user_name(void)
{
	return world.user != NULL ? world.user->pw_name : NULL;
}

bool
child_give_folder(const char *path)
{
	return world.user == NULL || chown(path, world.user->pw_uid, world.user->pw_gid) == 0;
}

static bool
become_user(void)
{
	return world.user == NULL || (initgroups(world.user->pw_name, world.user->pw_gid) == 0 &&
	                              setgid(world.user->pw_gid) == 0 && setuid(world.user->pw_uid) == 0);
}

static bool
user_may(const char *path, int how)
{
	int status = 1;
	pid_t pid;

	if (world.user == NULL)
		return access(path, how) == 0;
	pid = fork();
	if (pid == 0)
		_exit(become_user() && access(path, how) == 0 ? 0 : 1);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && status == 0;
}

bool
child_user_can_run(const char *path)
{
	return user_may(path, X_OK);
}

bool
child_user_can_enter(const char *path)
{
	return user_may(path, R_OK | X_OK);
}

/* ---- start ---- */

static _Noreturn void
exec_child(const struct child_how *how, char *const argv[], pid_t parent, const sigset_t *mask)
{
	static const int reset[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out = open(how->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	int err = how->errors == NULL ? out : open(how->errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	struct sigaction action = {.sa_handler = SIG_DFL};

	if (in < 0 || out < 0 || err < 0)
		_exit(126);
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	setsid();
	/* A signal may be meant for it already: none goes to the handlers that it has from us. */
	for (size_t i = 0; i < sizeof(reset) / sizeof(reset[0]); i++)
		sigaction(reset[i], &action, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (chdir(how->folder != NULL ? how->folder : "/") != 0 || (how->unprivileged && !become_user())) {
		dprintf(2, "cannot start %s: %s\n", argv[0], strerror(errno));
		_exit(126);
	}
	if (how->setting != NULL)
		(void)putenv(text_dup(how->setting));
	/* After the change of user, which would clear it. PostgreSQL is told to end at once, others are killed. */
	prctl(PR_SET_PDEATHSIG, how->stop_signal == SIGINT ? SIGQUIT : SIGKILL);
	if (getppid() != parent)
		_exit(126);
	execv(argv[0], argv);
	dprintf(2, "cannot execute %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int
find_child(pid_t pid)
{
	for (int i = 0; i < MAX_CHILDREN; i++)
		if (world.children[i].pid == pid)
			return i;
	return -1;
}

pid_t
child_start(const struct child_how *how, char *const argv[], struct why *why)
{
	int slot = find_child(0);
	pid_t parent = getpid(), pid;
	sigset_t all, mask;

	if (slot < 0) {
		why_set(why, "too many programs at once");
		return -1;
	}
	fflush(NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	pid = fork();
	if (pid == 0)
		exec_child(how, argv, parent, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (pid < 0) {
		why_set(why, "cannot start %s: %s", argv[0], strerror(errno));
		return -1;
	}
	world.children[slot].stop_signal = how->stop_signal != 0 ? how->stop_signal : SIGTERM;
	world.children[slot].reaped = false;
	world.children[slot].pid = pid;
	return pid;
}

/* ---- wait and stop ---- */

static bool
reap(int slot)
{
	if (!world.children[slot].reaped) {
		pid_t got = waitpid(world.children[slot].pid, &world.children[slot].status, WNOHANG);

		world.children[slot].reaped = got != 0 && !(got < 0 && errno == EINTR);
	}
	return world.children[slot].reaped;
}

bool
child_is_running(pid_t pid)
{
	int slot = pid > 0 ? find_child(pid) : -1;

	return slot >= 0 && !reap(slot);
}

char *
child_how_it_ended(pid_t pid)
{
	int slot = pid > 0 ? find_child(pid) : -1, status;

	if (slot < 0 || !reap(slot))
		return text_dup("");
	status = world.children[slot].status;
	return WIFSIGNALED(status) ? text_fmt("signal %d", WTERMSIG(status))
	                           : text_fmt("exit code %d", WEXITSTATUS(status));
}

void
child_signal(pid_t pid, int sig)
{
	if (child_is_running(pid))
		kill(pid, sig);
}

static void
pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static bool
ended_within(int slot, int seconds)
{
	double end = child_now() + seconds;

	while (!reap(slot)) {
		if (child_now() > end)
			return false;
		pause_ms(10);
	}
	return true;
}

void
child_stop(pid_t pid)
{
	int slot = pid > 0 ? find_child(pid) : -1;

	if (slot < 0)
		return;
	if (!reap(slot)) {
		kill(pid, world.children[slot].stop_signal);
		if (!ended_within(slot, STOP_SECONDS)) {
			/* A postmaster that is killed leaves its children: SIGQUIT first, which takes them along. */
			kill(pid, SIGQUIT);
			if (!ended_within(slot, 2)) {
				kill(pid, SIGKILL);
				ended_within(slot, STOP_SECONDS);
			}
		}
	}
	world.children[slot].pid = 0;
}

int
child_wait(pid_t pid, bool (*tick)(void *), void *arg)
{
	int slot = find_child(pid), status;

	if (slot < 0)
		return -1;
	while (!reap(slot)) {
		if (world.asked != 0 || (tick != NULL && !tick(arg))) {
			child_stop(pid);
			return -1;
		}
		pause_ms(tick != NULL ? 20 : 5);
	}
	status = world.children[slot].status;
	world.children[slot].pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool
child_run(const struct child_how *how, char *const argv[], struct why *why)
{
	pid_t pid = child_start(how, argv, why);
	const char *name = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
	char *said, *line;
	int rc;

	if (pid < 0)
		return false;
	rc = child_wait(pid, NULL, NULL);
	if (rc == 0)
		return true;
	if (rc < 0)
		return why_set(why, "%s was stopped", name);
	said = files_read(how->errors != NULL ? how->errors : how->log);
	line = text_error_line(said);
	why_set(why, "%s: %s (exit code %d)", name, line, rc);
	free(line);
	free(said);
	return false;
}

bool
child_nap(int round)
{
	if (world.asked != 0)
		return false;
	pause_ms(round < 20 ? 5 : round < 50 ? 20 : 50);
	return world.asked == 0;
}

double
child_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}
