/* SPDX-License-Identifier: ISC */
#include "trace.h"

#include "child.h"
#include "files.h"
#include "stats.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT_SECONDS 2.0

static uint64_t
wall_clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

void
trace_init(struct trace *t, const char *program, const char *raw, const char *prefix, const pid_t *pids, int n_pids)
{
	*t = (struct trace){.program = program,
	                    .prefix = prefix,
	                    .pids = pids,
	                    .n_pids = n_pids,
	                    .summary = text_fmt("%s.strace", raw),
	                    .errors = text_fmt("%s.strace-errors", raw)};
	unlink(t->summary);
	unlink(t->errors);
}

void
trace_fini(struct trace *t)
{
	child_stop(t->tracer);
	free(t->summary);
	free(t->errors);
	*t = (struct trace){0};
}

/* pgbench writes its logs in blocks: when one is there, transactions have run for a while. */
static bool
load_has_begun(const struct trace *t)
{
	char *pattern = text_fmt("%s.[0-9]*", t->prefix);
	bool begun = false;
	glob_t g;

	if (glob(pattern, 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			begun = begun || files_size(g.gl_pathv[i]) > 0;
		globfree(&g);
	}
	free(pattern);
	return begun;
}

static bool
attach(struct trace *t, struct why *why)
{
	struct text_list argv = {0};

	text_list_add(&argv, t->program);
	text_list_add(&argv, "-f");
	text_list_add(&argv, "-c");
	text_list_add(&argv, "-o");
	text_list_add(&argv, t->summary);
	for (int i = 0; i < t->n_pids; i++) {
		text_list_add(&argv, "-p");
		text_list_addf(&argv, "%d", (int)t->pids[i]);
	}
	t->tracer = child_start(&(struct child_how){.log = t->errors}, argv.items, why);
	text_list_fini(&argv);
	return t->tracer > 0;
}

static bool
is_traced(pid_t pid)
{
	char *path = text_fmt("/proc/%d/status", (int)pid), *text = files_read(path);
	const char *tracer = strstr(text, "\nTracerPid:");
	bool traced = tracer != NULL && strtol(tracer + strlen("\nTracerPid:"), NULL, 10) != 0;

	free(path);
	free(text);
	return traced;
}

static bool
all_are_traced(const struct trace *t)
{
	for (int i = 0; i < t->n_pids; i++)
		if (!is_traced(t->pids[i]))
			return false;
	return true;
}

static bool
tracer_runs(const struct trace *t, struct why *why)
{
	char *said, *line;

	if (child_is_running(t->tracer))
		return true;
	said = files_read(t->errors);
	line = text_error_line(said);
	why_set(why, "%.300s", *line != '\0' ? line : "strace ended without a word");
	free(line);
	free(said);
	return false;
}

bool
trace_tick(struct trace *t, struct why *why)
{
	switch (t->state) {
	case TRACE_WAITS:
		if (load_has_begun(t)) {
			t->state = TRACE_ATTACHES;
			return attach(t, why);
		}
		break;
	case TRACE_ATTACHES:
		if (all_are_traced(t)) {
			t->from_us = wall_clock_us();
			t->until = child_now() + COUNT_SECONDS;
			t->state = TRACE_COUNTS;
		}
		return tracer_runs(t, why);
	case TRACE_COUNTS:
		if (child_now() >= t->until) {
			t->to_us = wall_clock_us();
			child_stop(t->tracer);
			t->tracer = 0;
			t->state = TRACE_DONE;
			break;
		}
		return tracer_runs(t, why);
	case TRACE_DONE:
		break;
	}
	return true;
}

/* ---- what comes of it ---- */

static bool
is_one_of(const char *name, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* % time, seconds, usecs/call, calls, errors (may be blank), name. */
static void
parse_line(const char *line, struct trace_counts *out)
{
	static const char *const sends[] = {"sendto", "sendmsg", "sendmmsg", "write", "writev", NULL};
	static const char *const receives[] = {"recvfrom", "recvmsg", "recvmmsg", "read", "readv", NULL};
	static const char *const waits[] = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "poll",
	                                    "ppoll",      "select",      "pselect6",     NULL};
	unsigned long long calls;
	char last[64], name[64] = "";
	int n = sscanf(line, " %*f %*f %*u %llu %63s %63s", &calls, last, name);

	if (n < 2)
		return;
	if (n == 2)
		memcpy(name, last, sizeof(name));
	if (strcmp(name, "total") == 0)
		return;
	out->all += calls;
	if (is_one_of(name, sends))
		out->sends += calls;
	else if (is_one_of(name, receives))
		out->receives += calls;
	else if (is_one_of(name, waits))
		out->waits += calls;
}

void
trace_parse(const char *summary, struct trace_counts *out)
{
	struct text_list lines = {0};

	*out = (struct trace_counts){0};
	text_list_split(&lines, summary, '\n');
	for (size_t i = 0; i < lines.n; i++)
		parse_line(lines.items[i], out);
	text_list_fini(&lines);
}

bool
trace_store(const struct trace *t, struct result *out, struct why *why)
{
	struct stats_latency log = {0};
	struct trace_counts counts;
	char *summary;

	if (t->state != TRACE_DONE)
		return why_set(why, "the run was over before strace had counted for %.0f s", COUNT_SECONDS);
	if (!stats_read_log(t->prefix, t->from_us, t->to_us, &log, stderr) || log.n == 0)
		return why_set(why, "no transaction ended while strace counted");
	summary = files_read(t->summary);
	trace_parse(summary, &counts);
	free(summary);
	if (counts.all == 0)
		return why_set(why, "strace counted nothing (%s)", t->summary);
	out->pooler_calls = (double)counts.all / (double)log.n;
	out->pooler_sends = (double)counts.sends / (double)log.n;
	out->pooler_receives = (double)counts.receives / (double)log.n;
	out->pooler_waits = (double)counts.waits / (double)log.n;
	return true;
}
