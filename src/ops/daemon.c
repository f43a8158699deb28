/* SPDX-License-Identifier: ISC */
#include "ops/daemon.h"

#include "auth/users.h"
#include "base/str.h"
#include "core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- background --------------------------------------------------------------------------------------------------- */

static int ready_fd = -1; /* where the process that was started waits; -1: none does */

/* In the process that was started: how it went is our exit code. */
_Noreturn static void
wait_until_ready(int fd, pid_t child)
{
	char byte;
	ssize_t n;

	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	/* Buffers and exit handlers belong to the daemon now. */
	_exit(n == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
}

enum status
daemon_fork(char *why, size_t why_cap)
{
	int fds[2];
	pid_t child;

	fflush(NULL);
	if (pipe2(fds, O_CLOEXEC) != 0) {
		snprintf(why, why_cap, "pipe: %s", strerror(errno));
		return STATUS_BAD;
	}
	child = fork();
	if (child < 0) {
		snprintf(why, why_cap, "fork: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return STATUS_BAD;
	}
	if (child > 0) {
		close(fds[1]);
		wait_until_ready(fds[0], child);
	}
	close(fds[0]);
	setsid();
	/* Not the leader of the session, so that no terminal opened later can become the controlling one. */
	child = fork();
	if (child < 0) {
		snprintf(why, why_cap, "fork: %s", strerror(errno));
		close(fds[1]);
		return STATUS_BAD;
	}
	if (child > 0)
		_exit(EXIT_SUCCESS);
	ready_fd = fds[1];
	return STATUS_OK;
}

void
daemon_ready(void)
{
	int null;

	if (ready_fd < 0)
		return;
	fflush(NULL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		for (int fd = 0; fd <= 2; fd++)
			(void)dup2(null, fd);
		if (null > 2)
			close(null);
	}
	/* If nobody waits any more, there is nobody to tell. */
	if (write(ready_fd, "", 1) < 0)
		errno = 0;
	close(ready_fd);
	ready_fd = -1;
}

/* --- root --------------------------------------------------------------------------------------------------------- */

static enum status
become(const struct passwd *pw, char *why, size_t why_cap)
{
	uid_t real, effective, saved;

	if (initgroups(pw->pw_name, pw->pw_gid) != 0 || setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) != 0 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) != 0) {
		snprintf(why, why_cap, "can't become user \"%s\": %s", pw->pw_name, strerror(errno));
		return STATUS_BAD;
	}
	if (getresuid(&real, &effective, &saved) != 0 || real != pw->pw_uid || effective != pw->pw_uid ||
	    saved != pw->pw_uid || setuid(0) == 0) {
		snprintf(why, why_cap, "can't become user \"%s\" for good", pw->pw_name);
		return STATUS_BAD;
	}
	return STATUS_OK;
}

enum status
daemon_drop_root(const char *user, char *why, size_t why_cap)
{
	const struct passwd *pw = user[0] != '\0' ? getpwnam(user) : NULL;

	if (user[0] != '\0' && pw == NULL) {
		snprintf(why, why_cap, "there is no user \"%s\"", user);
		return STATUS_BAD;
	}
	if (geteuid() != 0) {
		if (pw == NULL || pw->pw_uid == geteuid())
			return STATUS_OK;
		snprintf(why, why_cap, "only root can become user \"%s\"", user);
		return STATUS_REFUSED;
	}
	if (pw == NULL || pw->pw_uid == 0) {
		snprintf(why, why_cap, "pgweir does not run as root; name another user with -u or the setting user");
		return STATUS_REFUSED;
	}
	return become(pw, why, why_cap);
}

/* --- pid file ----------------------------------------------------------------------------------------------------- */

static struct {
	char *path; /* NULL: none was written */
	int fd;     /* holds the lock */
	pid_t pid;  /* who wrote it: a forked child has the rest of this as well */
} pidfile;

/*
 * Opens and locks the file. A process that ends removes its file, perhaps between our open and our lock; then what we
 * hold is a file without a name, and we try again. -1: errno, EWOULDBLOCK when it is locked.
 */
static int
open_locked(const char *path)
{
	for (;;) {
		struct stat ours, named;
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
		int why;
		if (fd < 0)
			return -1;
		if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
			why = errno;
			close(fd);
			errno = why;
			return -1;
		}
		if (fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev &&
		    ours.st_ino == named.st_ino)
			return fd;
		close(fd);
	}
}

static pid_t
read_pid(int fd)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	int64_t pid;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return str_parse_int(str_trim(text), 1, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

/*
 * pgbouncer doesn't lock its file. One it left behind may hold a number that by now is somebody else's, so being
 * alive isn't enough: it must be a pooler.
 */
static bool
is_live_pooler(pid_t pid)
{
	char path[64], name[32] = "";
	FILE *f;

	if (pid <= 0 || pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH))
		return false;
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return true; /* no /proc: assume the worst */
	if (fgets(name, sizeof name, f) == NULL)
		name[0] = '\0';
	fclose(f);
	return strncmp(name, "pgbouncer", 9) == 0 || strncmp(name, "pgweir", 6) == 0;
}

static bool
write_pid(int fd)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%d\n", (int)getpid());

	return ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n;
}

enum status
daemon_write_pidfile(const char *path, char *why, size_t why_cap)
{
	int fd;
	pid_t pid;

	if (path[0] == '\0')
		return STATUS_OK;
	fd = open_locked(path);
	if (fd < 0 && errno == EWOULDBLOCK) {
		snprintf(why, why_cap, "pidfile \"%s\": another pgweir has it", path);
		return STATUS_REFUSED;
	}
	if (fd < 0) {
		snprintf(why, why_cap, "pidfile \"%s\": %s", path, strerror(errno));
		return STATUS_BAD;
	}
	pid = read_pid(fd);
	if (is_live_pooler(pid)) {
		snprintf(why, why_cap, "pidfile \"%s\": process %d has it", path, (int)pid);
		close(fd);
		return STATUS_REFUSED;
	}
	pidfile.path = str_dup(path);
	if (pidfile.path == NULL || !write_pid(fd)) {
		snprintf(why, why_cap, "pidfile \"%s\": %s", path, strerror(errno));
		unlink(path);
		close(fd);
		free(pidfile.path);
		pidfile.path = NULL;
		return STATUS_BAD;
	}
	pidfile.fd = fd;
	pidfile.pid = getpid();
	return STATUS_OK;
}

void
daemon_remove_pidfile(void)
{
	if (pidfile.path == NULL || pidfile.pid != getpid())
		return;
	unlink(pidfile.path); /* still locked, so it is ours */
	close(pidfile.fd);
	free(pidfile.path);
	pidfile.path = NULL;
}

/* --- file descriptors --------------------------------------------------------------------------------------------- */

#define NOFILE_RESERVE 64 /* log, listeners, event loops, mailboxes, console, files read by a reload */

/* Server connections one entry may have. A pool without a limit has one connection for each client at most. */
static uint64_t
need_of_database(const struct config *c, const struct database_conf *d)
{
	int64_t pool_size = config_pool_size(c, d, NULL), limit = config_max_db_connections(c, d);
	uint64_t n_users = d->user != NULL ? 1 : users_n(c->auth_users);
	uint64_t need = (uint64_t)c->max_client_conn;

	if (n_users == 0)
		n_users = 1;
	if (pool_size > 0 && n_users * (uint64_t)pool_size < need)
		need = n_users * (uint64_t)pool_size;
	if (limit > 0 && (uint64_t)limit < need)
		need = (uint64_t)limit;
	return need;
}

uint64_t
daemon_need_nofile(const struct config *c)
{
	uint64_t need = NOFILE_RESERVE + (uint64_t)c->max_client_conn;

	for (const struct database_conf *d = c->databases; d != NULL; d = d->hh.next)
		need += need_of_database(c, d);
	if (c->fallback != NULL)
		need += need_of_database(c, c->fallback);
	return need;
}

enum status
daemon_raise_nofile(uint64_t need, char *why, size_t why_cap)
{
	struct rlimit limit, more;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
		snprintf(why, why_cap, "can't find out the limit of open files: %s", strerror(errno));
		return STATUS_BAD;
	}
	/* Only the privileged may go beyond the hard limit; it costs nothing to ask. */
	more = (struct rlimit){.rlim_cur = need, .rlim_max = need};
	if (limit.rlim_max < need && setrlimit(RLIMIT_NOFILE, &more) == 0)
		return STATUS_OK;
	if (limit.rlim_cur < limit.rlim_max) {
		more = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			limit = more;
	}
	if (limit.rlim_cur >= need)
		return STATUS_OK;
	snprintf(why, why_cap,
	         "max_client_conn and the pools may need %" PRIu64 " open files, but only %" PRIu64
	         " are allowed; raise the limit (ulimit -n, LimitNOFILE=) or lower max_client_conn",
	         need, (uint64_t)limit.rlim_cur);
	return STATUS_REFUSED;
}
