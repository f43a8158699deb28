/* SPDX-License-Identifier: ISC */
#include "samples.h"

#include "child.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL 0.1 /* seconds between samples */
#define INTERVAL_MAX 1.0
#define COST_FACTOR 30 /* a sample that takes t seconds is followed by none for 30 t */

/* ---- reading ---- */

/* A file of /proc, which is read in one piece. Its length; 0: the process is gone. */
static size_t
read_proc(pid_t pid, const char *name, char *text, size_t cap)
{
	char path[128];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, cap - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

struct process_look {
	uint64_t cpu_ns, user_ticks, system_ticks;
	uint64_t dead_user_ticks, dead_system_ticks; /* of its children that have ended */
	uint64_t switches, resident_kb, shared_kb;
};

static uint64_t
cpu_clock_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t
number_after(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	return found != NULL ? strtoull(found + strlen(key), NULL, 10) : 0;
}

/* Of one thread. The file counts the switches of that thread alone. */
static uint64_t
thread_switches(pid_t pid, const char *task)
{
	char text[4096], name[64];

	snprintf(name, sizeof(name), "%s/status", task);
	read_proc(pid, name, text, sizeof(text));
	return number_after(text, "\nvoluntary_ctxt_switches:") + number_after(text, "\nnonvoluntary_ctxt_switches:");
}

static bool
look_at(pid_t pid, struct process_look *out)
{
	static long page_kb;
	unsigned long long user, system, dead_user, dead_system, size, resident, shared;
	char text[1024], *fields;

	if (page_kb == 0)
		page_kb = sysconf(_SC_PAGESIZE) / 1024;
	if (read_proc(pid, "stat", text, sizeof(text)) == 0 || (fields = strrchr(text, ')')) == NULL ||
	    sscanf(fields + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &user, &system,
	           &dead_user, &dead_system) != 4)
		return false;
	out->cpu_ns = cpu_clock_ns(pid);
	out->user_ticks = user;
	out->system_ticks = system;
	out->dead_user_ticks = dead_user;
	out->dead_system_ticks = dead_system;
	if (read_proc(pid, "statm", text, sizeof(text)) > 0 &&
	    sscanf(text, "%llu %llu %llu", &size, &resident, &shared) == 3) {
		out->resident_kb = resident * (unsigned long)page_kb;
		out->shared_kb = shared * (unsigned long)page_kb;
	}
	return true;
}

/* The ids in a list of /proc with blanks; the number of them. */
static size_t
read_ids(pid_t pid, const char *name, pid_t *out, size_t cap)
{
	char path[128], line[16];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	while (f != NULL && n < cap && fscanf(f, "%15s", line) == 1)
		out[n++] = (pid_t)strtol(line, NULL, 10);
	if (f != NULL)
		fclose(f);
	return n;
}

static bool
has_list(pid_t pid, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return access(path, R_OK) == 0;
}

/* ---- sampling ---- */

static void
add_process(struct sample *sample, enum sample_group group, pid_t pid, uint64_t *max_shared_kb)
{
	struct process_look look = {0};

	if (!look_at(pid, &look))
		return;
	sample->of[group].cpu_ns += look.cpu_ns;
	sample->of[group].user_ticks += look.user_ticks;
	sample->of[group].system_ticks += look.system_ticks;
	sample->of[group].n_processes++;
	if (group != SAMPLE_SERVER) {
		sample->of[group].rss_kb += look.resident_kb;
		return;
	}
	/* Children that have ended are in their parent's account, in ticks of 10 ms. */
	sample->of[group].cpu_ns +=
		(look.dead_user_ticks + look.dead_system_ticks) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	sample->of[group].user_ticks += look.dead_user_ticks;
	sample->of[group].system_ticks += look.dead_system_ticks;
	sample->of[group].rss_kb += look.resident_kb - look.shared_kb;
	if (look.shared_kb > *max_shared_kb)
		*max_shared_kb = look.shared_kb;
}

/* Of all threads. */
static void
add_switches(struct sample *sample, enum sample_group group, pid_t pid)
{
	char path[64], task[64];
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d != NULL && (entry = readdir(d)) != NULL)
		if (entry->d_name[0] != '.') {
			snprintf(task, sizeof(task), "task/%.20s", entry->d_name);
			sample->of[group].switches += thread_switches(pid, task);
		}
	if (d != NULL)
		closedir(d);
}

static void
add_server(struct sample *sample, pid_t postmaster, uint64_t *max_shared_kb)
{
	static pid_t children[16384];
	char name[64];
	size_t n;

	snprintf(name, sizeof(name), "task/%d/children", (int)postmaster);
	/* Not all kernels tell of children (CONFIG_PROC_CHILDREN): then nothing is known of the server. */
	if (!has_list(postmaster, name))
		return;
	n = read_ids(postmaster, name, children, sizeof(children) / sizeof(children[0]));
	add_process(sample, SAMPLE_SERVER, postmaster, max_shared_kb);
	for (size_t i = 0; i < n; i++) {
		add_process(sample, SAMPLE_SERVER, children[i], max_shared_kb);
		sample->of[SAMPLE_SERVER].switches += thread_switches(children[i], ".");
	}
}

static struct sample *
new_sample(struct samples *s)
{
	if (s->n == s->cap) {
		size_t cap = s->cap == 0 ? 256 : s->cap * 2;
		struct sample *grown = realloc(s->all, cap * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		s->all = grown;
		s->cap = cap;
	}
	memset(&s->all[s->n], 0, sizeof(s->all[0]));
	return &s->all[s->n++];
}

void
samples_take(struct samples *s)
{
	struct sample *sample = new_sample(s);
	uint64_t shared = 0;
	double begin = child_now(), pause;

	if (sample == NULL)
		return;
	sample->at = begin;
	for (int group = 0; group < SAMPLE_N_GROUPS; group++)
		for (int i = 0; i < s->groups[group].n; i++) {
			pid_t pid = s->groups[group].pids[i];

			if (group == SAMPLE_SERVER) {
				add_server(sample, pid, &shared);
			} else {
				add_process(sample, (enum sample_group)group, pid, &shared);
				add_switches(sample, (enum sample_group)group, pid);
			}
		}
	sample->of[SAMPLE_SERVER].rss_kb += shared;
	pause = (child_now() - begin) * COST_FACTOR;
	s->next = begin + (pause < INTERVAL ? INTERVAL : pause > INTERVAL_MAX ? INTERVAL_MAX : pause);
}

void
samples_tick(struct samples *s)
{
	if (child_now() >= s->next)
		samples_take(s);
}

void
samples_init(struct samples *s)
{
	memset(s, 0, sizeof(*s));
}

void
samples_fini(struct samples *s)
{
	free(s->all);
	samples_init(s);
}

void
samples_watch(struct samples *s, enum sample_group group, pid_t pid)
{
	if (pid > 0 && s->groups[group].n < (int)(sizeof(s->groups[group].pids) / sizeof(pid_t)))
		s->groups[group].pids[s->groups[group].n++] = pid;
}

/* ---- what comes of it ---- */

bool
samples_window(const struct samples *s, double from, double to, size_t *first, size_t *last)
{
	size_t i = 0, j = s->n;

	while (i < s->n && s->all[i].at < from)
		i++;
	while (j > 0 && s->all[j - 1].at > to)
		j--;
	*first = i;
	*last = j > 0 ? j - 1 : 0;
	return i < s->n && j > 0 && i < j - 1;
}

static uint64_t
grown_by(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

struct usage
samples_usage(const struct samples *s, enum sample_group group, size_t first, size_t last)
{
	const struct sample *a = &s->all[first], *b = &s->all[last];
	struct usage usage = {NAN, NAN, -1};
	double cpu, user, system;

	if (s->all[first].of[group].n_processes == 0)
		return usage;
	cpu = (double)grown_by(a->of[group].cpu_ns, b->of[group].cpu_ns) / 1e9;
	user = (double)grown_by(a->of[group].user_ticks, b->of[group].user_ticks);
	system = (double)grown_by(a->of[group].system_ticks, b->of[group].system_ticks);
	usage.user_s = user + system > 0 ? cpu * user / (user + system) : cpu;
	usage.system_s = cpu - usage.user_s;
	/* Those of processes that have ended are lost: better none than too few. */
	if (b->of[group].switches >= a->of[group].switches && b->of[group].n_processes >= a->of[group].n_processes)
		usage.switches = (int64_t)(b->of[group].switches - a->of[group].switches);
	return usage;
}

uint64_t
samples_peak_rss_kb(const struct samples *s, enum sample_group group, size_t first, size_t last)
{
	uint64_t peak = 0;

	for (size_t i = first; i <= last && i < s->n; i++)
		if (s->all[i].of[group].rss_kb > peak)
			peak = s->all[i].of[group].rss_kb;
	return peak;
}

uint64_t
samples_mean_rss_kb(const struct samples *s, enum sample_group group, size_t first, size_t last)
{
	uint64_t sum = 0;

	for (size_t i = first; i <= last && i < s->n; i++)
		sum += s->all[i].of[group].rss_kb;
	return last >= first ? sum / (last - first + 1) : 0;
}

uint64_t
samples_rss_kb(const pid_t *pids, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		struct process_look look = {0};

		if (look_at(pids[i], &look))
			sum += look.resident_kb;
	}
	return sum;
}

bool
samples_write(const struct samples *s, const char *path, struct why *why)
{
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return why_set(why, "cannot write %s", path);
	fputs("seconds,pooler_cpu_s,pooler_rss_kb,server_cpu_s,server_rss_kb,server_processes,pgbench_cpu_s,pgbench_"
	      "rss_kb\n",
	      f);
	for (size_t i = 0; i < s->n; i++) {
		const struct sample *x = &s->all[i];

		fprintf(f, "%.3f,%.6f,%llu,%.6f,%llu,%d,%.6f,%llu\n", x->at - s->all[0].at,
		        (double)x->of[SAMPLE_POOLER].cpu_ns / 1e9, (unsigned long long)x->of[SAMPLE_POOLER].rss_kb,
		        (double)x->of[SAMPLE_SERVER].cpu_ns / 1e9, (unsigned long long)x->of[SAMPLE_SERVER].rss_kb,
		        x->of[SAMPLE_SERVER].n_processes, (double)x->of[SAMPLE_PGBENCH].cpu_ns / 1e9,
		        (unsigned long long)x->of[SAMPLE_PGBENCH].rss_kb);
	}
	return fclose(f) == 0 ? true : why_set(why, "cannot write %s", path);
}
