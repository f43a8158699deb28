/* SPDX-License-Identifier: ISC */
#include "proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHILDREN 64

static struct {
	pid_t owner;     /* the process that called proc_init() */
	char tmpdir[64]; /* short: Unix socket paths end at 107 bytes */
	char daemon_path[PATH_MAX];
	char pg_bindir[PATH_MAX];
	int janitor_fd;
	pid_t janitor;
	struct {
		pid_t pid;
		int death_signal;
	} children[MAX_CHILDREN];
} world = {.janitor_fd = -1};

_Noreturn void
proc_die(const char *fmt, ...)
{
	va_list ap;

	fputs("test harness: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

int64_t
proc_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void
proc_nap(int round)
{
	long ms = round < 10 ? 1 : round < 40 ? 5 : 20;

	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

char *
proc_fmt(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		proc_die("no memory");
	va_end(ap);
	return s;
}

char *
proc_read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n = 0, cap = 65536;
	char *s = malloc(cap);

	if (s == NULL)
		proc_die("no memory");
	while (f != NULL) {
		size_t got = fread(s + n, 1, cap - n - 1, f);

		n += got;
		if (got == 0)
			break;
		if (cap - n < 2 && (s = realloc(s, cap *= 2)) == NULL)
			proc_die("no memory");
	}
	if (f != NULL)
		fclose(f);
	s[n] = '\0';
	return s;
}

void
proc_write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (f == NULL || fputs(text, f) == EOF || fclose(f) != 0)
		proc_die("cannot write %s: %s", path, strerror(errno));
}

/* ---- the temporary folder and its janitor ---- */

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path) != 0 && errno != ENOENT;
}

static bool
remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return access(path, F_OK) != 0;
}

/*
 * Waits for the end of file that comes when every process of the test program
 * is gone, then removes the folder. Retries: a killed server takes a moment to
 * stop writing.
 */
static _Noreturn void
janitor_main(int fd)
{
	int devnull = open("/dev/null", O_RDWR);
	char c;

	setsid();
	prctl(PR_SET_PDEATHSIG, 0);
	prctl(PR_SET_NAME, "test-janitor");
	for (int i = 0; i <= 2; i++)
		dup2(devnull, i);
	while (read(fd, &c, 1) > 0 || errno == EINTR)
		errno = 0;
	if (getenv("PGWEIR_TEST_KEEP") == NULL)
		for (int i = 0; i < 500 && !remove_tree(world.tmpdir); i++)
			nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	_exit(0);
}

static void
janitor_start(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		proc_die("pipe: %s", strerror(errno));
	world.janitor = fork();
	if (world.janitor == 0) {
		close(fds[1]);
		janitor_main(fds[0]);
	}
	if (world.janitor < 0)
		proc_die("fork: %s", strerror(errno));
	close(fds[0]);
	world.janitor_fd = fds[1];
}

static void
at_exit(void)
{
	if (getpid() != world.owner) /* a test forked by Check: its children die by their death signal */
		return;
	for (int i = 0; i < MAX_CHILDREN; i++)
		if (world.children[i].pid > 0)
			kill(world.children[i].pid, world.children[i].death_signal);
	for (int i = 0; i < MAX_CHILDREN; i++)
		if (world.children[i].pid > 0 && proc_wait(world.children[i].pid, 5000) < 0)
			kill(world.children[i].pid, SIGKILL);
	if (getenv("PGWEIR_TEST_KEEP") != NULL)
		fprintf(stderr, "kept: %s\n", world.tmpdir);
	if (world.janitor_fd >= 0) {
		close(world.janitor_fd);
		waitpid(world.janitor, NULL, 0);
	}
}

/* A test that Check forks neither owns our children nor outlives us. */
static void
after_fork_in_child(void)
{
	memset(world.children, 0, sizeof(world.children));
	if (world.janitor_fd >= 0)
		close(world.janitor_fd);
	world.janitor_fd = -1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- becoming unprivileged ---- */

static void
find_pg_bindir(void)
{
	const char *given = getenv("PG_BINDIR");
	FILE *p;
	glob_t g;

	if (given != NULL) {
		snprintf(world.pg_bindir, sizeof(world.pg_bindir), "%s", given);
		return;
	}
	p = popen("pg_config --bindir 2>/dev/null", "r");
	if (p != NULL) {
		if (fgets(world.pg_bindir, sizeof(world.pg_bindir), p) != NULL)
			world.pg_bindir[strcspn(world.pg_bindir, "\n")] = '\0';
		pclose(p);
	}
	if (world.pg_bindir[0] != '\0' && access(proc_fmt("%s/initdb", world.pg_bindir), X_OK) == 0)
		return;
	if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &g) != 0 &&
	    glob("/usr/pgsql-*/bin/initdb", 0, NULL, &g) != 0)
		proc_die("no PostgreSQL server programs found: set PG_BINDIR");
	snprintf(world.pg_bindir, sizeof(world.pg_bindir), "%s", g.gl_pathv[g.gl_pathc - 1]);
	*strrchr(world.pg_bindir, '/') = '\0';
	globfree(&g);
}

static void
copy_file(const char *from, const char *to, mode_t mode)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	char buf[65536];
	ssize_t n;

	if (in < 0 || out < 0)
		proc_die("cannot copy %s: %s", from, strerror(errno));
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			proc_die("cannot write %s: %s", to, strerror(errno));
	close(in);
	close(out);
}

static void
become_unprivileged(void)
{
	struct passwd *pw = getpwnam("postgres");
	const char *template = getenv("PGWEIR_TEST_TEMPLATE");

	if (pw == NULL)
		pw = getpwnam("nobody");
	if (pw == NULL)
		proc_die("started as root, and there is neither a user postgres nor nobody to run the servers as");
	if (template != NULL && chown(template, pw->pw_uid, pw->pw_gid) != 0)
		proc_die("PGWEIR_TEST_TEMPLATE=%s: %s", template, strerror(errno));
	if (chown(world.tmpdir, pw->pw_uid, pw->pw_gid) != 0 || initgroups(pw->pw_name, pw->pw_gid) != 0 ||
	    setgid(pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0)
		proc_die("cannot become user %s: %s", pw->pw_name, strerror(errno));
}

/* The environment of the caller must not decide what the tests see. */
static void
clean_environment(void)
{
	static const char *const names[] = {"PGHOST",    "PGPORT",      "PGUSER",     "PGDATABASE",      "PGPASSWORD",
	                                    "PGOPTIONS", "PGSSLMODE",   "PGSERVICE",  "PGPASSFILE",      "PGAPPNAME",
	                                    "PGTZ",      "PGDATESTYLE", "PGHOSTADDR", "PGCLIENTENCODING"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("HOME", world.tmpdir, 1);
	setenv("PGCONNECT_TIMEOUT", "30", 1);
	setenv("PGGSSENCMODE", "disable", 1);
	setenv("LC_ALL", "C", 1);
	/* A sanitizer's report must fail the test that caused it. */
	setenv("ASAN_OPTIONS", "halt_on_error=1:abort_on_error=0:exitcode=99", 0);
	setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1:exitcode=99", 0);
	setenv("TSAN_OPTIONS", "halt_on_error=1:exitcode=99:second_deadlock_stack=1", 0);
}

void
proc_init_keep_user(void)
{
	struct rlimit nofile;
	struct stat st;
	const char *given = getenv("PGWEIR"), *tmp = getenv("TMPDIR");

	if (world.owner != 0)
		proc_die("proc_init called twice");
	world.owner = getpid();
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	if (realpath(given != NULL && *given != '\0' ? given : "./pgweir", world.daemon_path) == NULL)
		proc_die("no daemon to test (%s): build it or set PGWEIR", given != NULL ? given : "./pgweir");
	if (stat(world.daemon_path, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
		proc_die("%s is not a program", world.daemon_path);
	find_pg_bindir();
	if (tmp == NULL || strlen(tmp) > 30)
		tmp = "/tmp";
	snprintf(world.tmpdir, sizeof(world.tmpdir), "%s/weir-XXXXXX", tmp);
	if (mkdtemp(world.tmpdir) == NULL || chmod(world.tmpdir, 0755) != 0)
		proc_die("cannot make a folder in %s: %s", tmp, strerror(errno));
	getrlimit(RLIMIT_NOFILE, &nofile);
	nofile.rlim_cur = nofile.rlim_max;
	setrlimit(RLIMIT_NOFILE, &nofile);
	clean_environment();
	pthread_atfork(NULL, NULL, after_fork_in_child);
	janitor_start();
	atexit(at_exit);
	if (getuid() == 0) {
		/* The checkout may be out of an unprivileged user's reach. */
		char *copy = proc_fmt("%s/pgweir", world.tmpdir);

		copy_file(world.daemon_path, copy, 0755);
		snprintf(world.daemon_path, sizeof(world.daemon_path), "%s", copy);
	}
	if (chdir(world.tmpdir) != 0)
		proc_die("chdir: %s", strerror(errno));
}

void
proc_init(void)
{
	proc_init_keep_user();
	if (getuid() == 0)
		become_unprivileged();
}

const char *
proc_tmpdir(void)
{
	return world.tmpdir;
}

const char *
proc_daemon_path(void)
{
	return world.daemon_path;
}

const char *
proc_pg_bindir(void)
{
	return world.pg_bindir;
}

const char *
proc_pg_program(const char *name)
{
	char *path = proc_fmt("%s/%s", world.pg_bindir, name);

	return access(path, X_OK) == 0 ? path : name;
}

/* ---- child processes ---- */

pid_t
proc_spawn(const char *log, int death_signal, char *const argv[])
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		proc_die("fork: %s", strerror(errno));
	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDONLY), log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, death_signal);
		if (getppid() != parent || null_fd < 0 || log_fd < 0)
			_exit(127);
		dup2(null_fd, 0);
		dup2(log_fd, 1);
		dup2(log_fd, 2);
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		execv(argv[0], argv);
		dprintf(2, "exec %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	for (int i = 0; i < MAX_CHILDREN; i++)
		if (world.children[i].pid == 0) {
			world.children[i].pid = pid;
			world.children[i].death_signal = death_signal;
			return pid;
		}
	proc_die("too many child processes");
}

static void
forget_child(pid_t pid)
{
	for (int i = 0; i < MAX_CHILDREN; i++)
		if (world.children[i].pid == pid)
			world.children[i].pid = 0;
}

int
proc_wait(pid_t pid, int timeout_ms)
{
	int status = 0;
	pid_t got = 0;

	if (!wait_until((got = waitpid(pid, &status, WNOHANG)) != 0, timeout_ms))
		return -1;
	if (got < 0)
		proc_die("waitpid %d: %s", (int)pid, strerror(errno));
	forget_child(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void
proc_kill(pid_t pid, int sig)
{
	if (pid > 1)
		kill(pid, sig);
}

int
proc_run(char **output, const char *fmt, ...)
{
	static int n_runs;
	char *command, *log = proc_fmt("%s/run-%d-%d", world.tmpdir, (int)getpid(), n_runs++);
	va_list ap;
	int rc;

	va_start(ap, fmt);
	if (vasprintf(&command, fmt, ap) < 0)
		proc_die("no memory");
	va_end(ap);
	rc = proc_wait(proc_spawn(log, SIGKILL, (char *[]){"/bin/sh", "-c", command, NULL}), INT_MAX);
	if (output != NULL)
		*output = proc_read_file(log);
	unlink(log);
	free(log);
	free(command);
	return rc;
}

/* ---- ports ---- */

/*
 * A port is ours while we hold an abstract Unix socket named after it: other
 * test programs that run at the same time look there, and it goes with us.
 */
static bool
reserve_port(uint16_t port)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET,
	                         .sin_port = htons(port),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int lock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), probe = -1, one = 1;
	int len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "weir-test-port-%d", port);
	bool ok = bind(lock, (struct sockaddr *)&un,
	               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0;

	if (ok) {
		probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		ok = bind(probe, (struct sockaddr *)&in, sizeof(in)) == 0;
		close(probe);
	}
	if (!ok)
		close(lock);
	return ok;
}

uint16_t
proc_free_port(void)
{
	static unsigned seed;

	if (seed == 0)
		seed = (unsigned)getpid() ^ (unsigned)proc_now_ms();
	for (int i = 0; i < 10000; i++) {
		uint16_t port = (uint16_t)(12000 + rand_r(&seed) % 20000);

		if (reserve_port(port))
			return port;
	}
	proc_die("no free port");
}

/* ---- what /proc tells ---- */

int
proc_n_fds(pid_t pid)
{
	char path[64];
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (d == NULL)
		return -1;
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

long
proc_rss_kib(pid_t pid)
{
	char *status = proc_read_file(proc_fmt("/proc/%d/status", (int)pid)), *line = strstr(status, "VmRSS:");
	long kib = line != NULL ? strtol(line + 6, NULL, 10) : -1;

	free(status);
	return kib;
}

/* Fields of /proc/PID/stat after the command name, which may contain anything. */
static char *
stat_fields(pid_t pid)
{
	char *stat = proc_read_file(proc_fmt("/proc/%d/stat", (int)pid)), *close_paren = strrchr(stat, ')');

	return close_paren != NULL ? close_paren + 2 : NULL;
}

double
proc_cpu_seconds(pid_t pid)
{
	char *fields = stat_fields(pid);
	unsigned long user_ticks = 0, system_ticks = 0;

	if (fields == NULL ||
	    sscanf(fields, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user_ticks, &system_ticks) != 2)
		return -1;
	return (double)(user_ticks + system_ticks) / (double)sysconf(_SC_CLK_TCK);
}

int
proc_children(pid_t pid, pid_t *out, int cap)
{
	DIR *d = opendir("/proc");
	int n = 0;

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char *fields;
		int ppid;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		fields = stat_fields((pid_t)atoi(e->d_name));
		if (fields != NULL && sscanf(fields, "%*c %d", &ppid) == 1 && ppid == pid && n < cap)
			out[n++] = (pid_t)atoi(e->d_name);
	}
	if (d != NULL)
		closedir(d);
	return n;
}

/* The tests leak on purpose (they are short); under AddressSanitizer only the daemon's leaks count. */
int __lsan_is_turned_off(void);

int
__lsan_is_turned_off(void)
{
	return 1;
}
