/* SPDX-License-Identifier: ISC */
#include "samples.h"
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double
own_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
burn(double seconds)
{
	double end = own_cpu() + seconds;

	while (own_cpu() < end)
		;
}

START_TEST(counts_the_cpu_of_a_process)
{
	struct samples s;
	struct usage usage;
	size_t first, last;

	samples_init(&s);
	samples_watch(&s, SAMPLE_POOLER, getpid());
	samples_take(&s);
	burn(0.2);
	samples_take(&s);
	ck_assert(samples_window(&s, 0, INFINITY, &first, &last));
	usage = samples_usage(&s, SAMPLE_POOLER, first, last);
	/* Reading /proc is work of ours, too. */
	ck_assert_double_ge(usage.user_s + usage.system_s, 0.199);
	ck_assert_double_le(usage.user_s + usage.system_s, 0.4);
	ck_assert_uint_gt(samples_peak_rss_kb(&s, SAMPLE_POOLER, first, last), 500);
	/* Of a group that nobody watches nothing is known. */
	ck_assert_double_nan(samples_usage(&s, SAMPLE_SERVER, first, last).user_s);
	samples_fini(&s);
}
END_TEST

START_TEST(counts_context_switches)
{
	int fds[2];
	struct samples s;
	size_t first, last;
	pid_t pid;
	char c = 'x';

	ck_assert_int_eq(pipe(fds), 0);
	samples_init(&s);
	samples_watch(&s, SAMPLE_POOLER, getpid());
	samples_take(&s);
	/* We wait for a child fifty times: as many switches at least. */
	for (int i = 0; i < 50; i++) {
		pid = fork();
		if (pid == 0)
			_exit(write(fds[1], &c, 1) == 1 ? 0 : 1);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert_int_eq(read(fds[0], &c, 1), 1);
	}
	samples_take(&s);
	ck_assert(samples_window(&s, 0, INFINITY, &first, &last));
	ck_assert_int_gt(samples_usage(&s, SAMPLE_POOLER, first, last).switches, 10);
	samples_fini(&s);
}
END_TEST

START_TEST(a_servers_children_count_even_when_they_are_gone)
{
	struct samples s;
	struct usage usage;
	size_t first, last;
	pid_t pid;

	samples_init(&s);
	samples_watch(&s, SAMPLE_SERVER, getpid());
	samples_take(&s);
	pid = fork();
	if (pid == 0) {
		burn(0.2);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	samples_take(&s);
	ck_assert(samples_window(&s, 0, INFINITY, &first, &last));
	usage = samples_usage(&s, SAMPLE_SERVER, first, last);
	ck_assert_double_ge(usage.user_s + usage.system_s, 0.18); /* in ticks of 10 ms */
	samples_fini(&s);
}
END_TEST

START_TEST(a_window_lies_inside_of_its_times)
{
	struct samples s;
	size_t first, last;

	samples_init(&s);
	for (int i = 0; i < 10; i++) {
		samples_take(&s);
		s.all[i].at = i;
	}
	ck_assert(samples_window(&s, 2.5, 7.5, &first, &last));
	ck_assert_uint_eq(first, 3);
	ck_assert_uint_eq(last, 7);
	ck_assert(samples_window(&s, 3, 4, &first, &last));
	ck_assert_uint_eq(first, 3);
	ck_assert_uint_eq(last, 4);
	ck_assert(!samples_window(&s, 3.1, 4.5, &first, &last)); /* one is no window */
	ck_assert(!samples_window(&s, 20, 30, &first, &last));
	ck_assert(!samples_window(&s, 7, 3, &first, &last));
	samples_fini(&s);
	ck_assert(!samples_window(&s, 0, 1, &first, &last));
}
END_TEST

START_TEST(a_process_that_is_gone_is_nothing)
{
	pid_t pid = fork();
	struct samples s;

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	samples_init(&s);
	samples_watch(&s, SAMPLE_PGBENCH, pid);
	samples_take(&s);
	ck_assert_int_eq(s.all[0].of[SAMPLE_PGBENCH].n_processes, 0);
	ck_assert_double_nan(samples_usage(&s, SAMPLE_PGBENCH, 0, 0).user_s);
	samples_fini(&s);
}
END_TEST

UNIT_MAIN("bench samples", counts_the_cpu_of_a_process, counts_context_switches,
          a_servers_children_count_even_when_they_are_gone, a_window_lies_inside_of_its_times,
          a_process_that_is_gone_is_nothing)
