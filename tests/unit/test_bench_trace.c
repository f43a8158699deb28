/* SPDX-License-Identifier: ISC */
#include "trace.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char summary[] = "% time     seconds  usecs/call     calls    errors syscall\n"
			      "------ ----------- ----------- --------- --------- ----------------\n"
			      " 53.64    0.137638        1742        80           epoll_wait\n"
			      " 24.82    0.063689         119       400           sendto\n"
			      " 21.54    0.055280         103       500       100 recvfrom\n"
			      "  0.00    0.000000           0        20           epoll_ctl\n"
			      "------ ----------- ----------- --------- ----------------\n"
			      "100.00    0.256607         224      1000       100 total\n";

START_TEST(reads_what_strace_counted)
{
	struct trace_counts counts;

	trace_parse(summary, &counts);
	ck_assert_uint_eq(counts.all, 1000);
	ck_assert_uint_eq(counts.sends, 400);
	ck_assert_uint_eq(counts.receives, 500);
	ck_assert_uint_eq(counts.waits, 80);
	trace_parse("strace: attach: Operation not permitted\n", &counts);
	ck_assert_uint_eq(counts.all, 0);
	trace_parse("", &counts);
	ck_assert_uint_eq(counts.all, 0);
}
END_TEST

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* Of four transactions two ended while strace counted. */
START_TEST(divides_by_the_transactions_of_that_time)
{
	char folder[] = "/tmp/bench-trace.XXXXXX", *raw, *prefix, *log;
	struct result result;
	struct trace trace;
	struct why why = {""};
	pid_t pid = 1;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	raw = text_fmt("%s/run", folder);
	prefix = text_fmt("%s/run.log", folder);
	log = text_fmt("%s.123", prefix);
	trace_init(&trace, "strace", raw, prefix, &pid, 1);
	result_init(&result);
	ck_assert(!trace_store(&trace, &result, &why));
	ck_assert_msg(strstr(why.text, "over before") != NULL, "%s", why.text);
	write_file(log, "0 1 900 0 100 0\n0 2 900 0 200 0\n1 1 900 0 200 500000\n0 3 900 0 300 0\n");
	write_file(trace.summary, summary);
	trace.state = TRACE_DONE;
	trace.from_us = 150000000;
	trace.to_us = 250000000;
	ck_assert_msg(trace_store(&trace, &result, &why), "%s", why.text);
	ck_assert_double_eq(result.pooler_calls, 500);
	ck_assert_double_eq(result.pooler_sends, 200);
	ck_assert_double_eq(result.pooler_receives, 250);
	ck_assert_double_eq(result.pooler_waits, 40);
	unlink(trace.summary);
	unlink(log);
	trace_fini(&trace);
	ck_assert_int_eq(rmdir(folder), 0);
	free(raw);
	free(prefix);
	free(log);
}
END_TEST

UNIT_MAIN("bench trace", reads_what_strace_counted, divides_by_the_transactions_of_that_time)
