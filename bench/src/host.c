/* SPDX-License-Identifier: ISC */
#include "host.h"

#include "files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int
host_n_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (int)n : 1;
}

long
host_raise_file_limit(long wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1024;
	if (limit.rlim_max != RLIM_INFINITY && (rlim_t)wanted > limit.rlim_max) {
		struct rlimit more = {(rlim_t)wanted, (rlim_t)wanted};

		/* Only root may. */
		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			return wanted;
	}
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur == RLIM_INFINITY ? 1l << 30 : (long)limit.rlim_cur;
}

/* What follows `key` up to the end of its line, blanks and quotes around it left out; "unknown" without it. */
static char *
value_of(const char *path, const char *key)
{
	char *text = files_read(path), *found = strstr(text, key), *value;

	if (found == NULL) {
		free(text);
		return text_dup("unknown");
	}
	found += strlen(key);
	found += strspn(found, " \t:=\"");
	value = text_fmt("%.*s", (int)strcspn(found, "\"\n"), found);
	free(text);
	return value;
}

char *
host_cpu(void)
{
	char *model = value_of("/proc/cpuinfo", "model name"), *text = text_fmt("%d x %s", host_n_cpus(), model);

	free(model);
	return text;
}

char *
host_memory(void)
{
	double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

	return text_fmt("%.1f GiB", bytes / (1024.0 * 1024 * 1024));
}

char *
host_system(void)
{
	char *name = value_of("/etc/os-release", "PRETTY_NAME="), *text;
	struct utsname u;

	text = uname(&u) == 0 ? text_fmt("%s, %s %s %s", name, u.sysname, u.release, u.machine) : text_dup(name);
	free(name);
	return text;
}

static char *
first_line(const char *path)
{
	char *text = files_read(path);

	text[strcspn(text, "\n")] = '\0';
	if (*text != '\0')
		return text;
	free(text);
	return text_dup("unknown");
}

char *
host_governor(void)
{
	return first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
}

char *
host_load(void)
{
	return first_line("/proc/loadavg");
}

char *
host_now(void)
{
	char text[64];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	return text_dup(text);
}
