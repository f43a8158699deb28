/* SPDX-License-Identifier: ISC */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

enum { LINE_MAX_BYTES = 4096, REPEAT_US = 1000000 };

_Atomic int log_verbosity = LOG_INFO_;

static atomic_bool to_stderr = true;
static atomic_bool to_file;
static atomic_bool to_syslog;

/*
 * The log file's descriptor is opened once and never closed: other files are put on the same number with dup3(), so
 * that a thread in the middle of a line never writes to a number that meanwhile became someone's socket.
 */
static atomic_int file_fd = -1;
static char *file_path;

static const struct {
	const char *word; /* the words that pgbouncer's log readers look for */
	int priority;     /* syslog's */
} levels[LOG_LEVEL_N] = {
	[LOG_FATAL_] = {"FATAL", LOG_CRIT}, [LOG_ERROR_] = {"ERROR", LOG_ERR},   [LOG_WARN_] = {"WARNING", LOG_WARNING},
	[LOG_INFO_] = {"LOG", LOG_INFO},    [LOG_DEBUG_] = {"DEBUG", LOG_DEBUG}, [LOG_TRACE_] = {"NOISE", LOG_DEBUG},
};

/* One line being built. What does not fit is cut off and marked; there is always room for the mark and newline. */
struct line {
	char text[LINE_MAX_BYTES];
	size_t len;
	bool cut;
};

static void
put_bytes(struct line *l, const char *bytes, size_t n)
{
	size_t room = sizeof(l->text) - sizeof("...\n") - l->len;
	if (n > room || l->cut) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->len, bytes, n);
	l->len += n;
}

static void
put_str(struct line *l, const char *s)
{
	put_bytes(l, s, strlen(s));
}

static void
put_time(struct line *l)
{
	struct timeval now;
	struct tm tm;
	char text[64];
	gettimeofday(&now, NULL);
	localtime_r(&now.tv_sec, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	put_bytes(l, text, n);
	snprintf(text, sizeof(text), ".%03d ", (int)(now.tv_usec / 1000));
	put_str(l, text);
	n = strftime(text, sizeof(text), "%Z ", &tm);
	put_bytes(l, text, n);
}

static bool
is_plain(unsigned char c)
{
	return c > ' ' && c != '"' && c != '=' && c != '\\' && c != 0x7f;
}

static void
put_escaped(struct line *l, unsigned char c)
{
	char text[8];
	if (c == '\n')
		put_str(l, "\\n");
	else if (c == '\r')
		put_str(l, "\\r");
	else if (c == '\t')
		put_str(l, "\\t");
	else if (c == '"' || c == '\\') {
		snprintf(text, sizeof(text), "\\%c", c);
		put_str(l, text);
	} else if (c < ' ' || c == 0x7f) {
		snprintf(text, sizeof(text), "\\x%02x", c);
		put_str(l, text);
	} else
		put_bytes(l, (const char *)&c, 1);
}

static void
put_value(struct line *l, const char *value)
{
	const unsigned char *v = (const unsigned char *)value;
	size_t n_plain = 0;
	while (is_plain(v[n_plain]))
		n_plain++;
	if (n_plain > 0 && v[n_plain] == '\0') {
		put_bytes(l, value, n_plain);
		return;
	}
	put_str(l, "\"");
	for (; *v != '\0'; v++)
		put_escaped(l, *v);
	put_str(l, "\"");
}

static void
put_field(struct line *l, const struct log_field *f)
{
	char number[24];
	if (f->str == NULL)
		return;
	put_str(l, " ");
	put_str(l, f->key);
	put_str(l, "=");
	switch (f->kind) {
	case LOG_STR_KIND:
		put_value(l, f->str);
		break;
	case LOG_INT_KIND:
		snprintf(number, sizeof(number), "%lld", (long long)f->num);
		put_str(l, number);
		break;
	case LOG_UINT_KIND:
		snprintf(number, sizeof(number), "%llu", (unsigned long long)f->num);
		put_str(l, number);
		break;
	case LOG_END_KIND:
		break;
	}
}

/* A log that cannot be written must not stop the daemon: what fails is dropped. */
static void
write_line(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, text, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		text += done;
		n -= (size_t)done;
	}
}

void
log_emit(enum log_level level, const char *event, const struct log_field *fields)
{
	struct line l = {.len = 0};
	char head[48];
	int saved_errno = errno;

	put_time(&l);
	snprintf(head, sizeof(head), "[%d] %s ", (int)getpid(), levels[level].word);
	put_str(&l, head);
	size_t event_at = l.len; /* syslog adds time, pid and level itself */
	put_str(&l, event);
	for (; fields->kind != LOG_END_KIND; fields++)
		put_field(&l, fields);
	if (l.cut) {
		memcpy(l.text + l.len, "...", 3);
		l.len += 3;
	}
	l.text[l.len] = '\0';
	if (atomic_load(&to_syslog))
		syslog(levels[level].priority, "%s", l.text + event_at);
	l.text[l.len++] = '\n';
	if (atomic_load(&to_stderr))
		write_line(STDERR_FILENO, l.text, l.len);
	if (atomic_load(&to_file))
		write_line(atomic_load(&file_fd), l.text, l.len);
	errno = saved_errno;
}

static bool
open_path(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
	if (fd < 0)
		return false;
	int current = atomic_load(&file_fd);
	if (current < 0) {
		atomic_store(&file_fd, fd);
		return true;
	}
	bool moved = dup3(fd, current, O_CLOEXEC) >= 0;
	int saved_errno = errno;
	close(fd);
	errno = saved_errno;
	return moved;
}

bool
log_open_file(const char *path)
{
	if (path == NULL) {
		atomic_store(&to_file, false);
		free(file_path);
		file_path = NULL;
		return true;
	}
	char *copy = str_dup(path);
	if (copy == NULL || !open_path(path)) {
		free(copy);
		return false;
	}
	free(file_path);
	file_path = copy;
	atomic_store(&to_file, true);
	return true;
}

void
log_reopen(void)
{
	if (file_path != NULL && !open_path(file_path))
		log_event(LOG_ERROR_, "log_reopen", LOG_S("path", file_path), LOG_S("msg", strerror(errno)));
}

void
log_set_stderr(bool on)
{
	atomic_store(&to_stderr, on);
}

static int
facility_of(const char *name)
{
	static const struct {
		const char *name;
		int code;
	} facilities[] = {
		{"auth", LOG_AUTH},     {"authpriv", LOG_AUTHPRIV}, {"daemon", LOG_DAEMON}, {"user", LOG_USER},
		{"local0", LOG_LOCAL0}, {"local1", LOG_LOCAL1},     {"local2", LOG_LOCAL2}, {"local3", LOG_LOCAL3},
		{"local4", LOG_LOCAL4}, {"local5", LOG_LOCAL5},     {"local6", LOG_LOCAL6}, {"local7", LOG_LOCAL7},
	};
	for (size_t i = 0; i < sizeof(facilities) / sizeof(facilities[0]); i++)
		if (name != NULL && str_equal_nocase(name, facilities[i].name))
			return facilities[i].code;
	return LOG_DAEMON;
}

void
log_open_syslog(const char *ident, const char *facility)
{
	static char kept_ident[64]; /* openlog() keeps the pointer */
	closelog();
	str_copy(kept_ident, sizeof(kept_ident), ident);
	openlog(kept_ident, LOG_PID | LOG_NDELAY, facility_of(facility));
	atomic_store(&to_syslog, true);
}

void
log_set_verbose(int n_v)
{
	int level = n_v <= 0 ? LOG_INFO_ : n_v == 1 ? LOG_DEBUG_ : LOG_TRACE_;
	atomic_store(&log_verbosity, level);
}

bool
log_repeat_pass(struct log_repeat *r, uint32_t *n_held)
{
	uint64_t now = clock_now_us();
	uint64_t last = atomic_load(&r->last_us);
	/* Of several threads that find the second over, the one that moves last_us writes the line. */
	if ((last != 0 && now < last + REPEAT_US) || !atomic_compare_exchange_strong(&r->last_us, &last, now)) {
		atomic_fetch_add(&r->n_held, 1);
		return false;
	}
	*n_held = atomic_exchange(&r->n_held, 0);
	return true;
}
