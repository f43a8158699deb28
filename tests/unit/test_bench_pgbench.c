/* SPDX-License-Identifier: ISC */
#include "pgbench.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static const char stays[] = "pgbench (15.20 (Debian 15.20-0+deb12u1))\n"
			    "transaction type: <builtin: select only>\n"
			    "scaling factor: 10\n"
			    "query mode: simple\n"
			    "number of clients: 16\n"
			    "number of threads: 2\n"
			    "maximum number of tries: 1\n"
			    "duration: 4 s\n"
			    "number of transactions actually processed: 30000\n"
			    "number of failed transactions: 3 (0.010%)\n"
			    "latency average = 1.600 ms\n"
			    "initial connection time = 1000.000 ms\n"
			    "tps = 10000.000000 (without initial connection time)\n";

START_TEST(reads_both_rates)
{
	struct pgbench_report r;

	ck_assert(pgbench_parse(stays, 16, &r));
	ck_assert_int_eq(r.transactions, 30000);
	ck_assert_int_eq(r.failed, 3);
	ck_assert_int_eq(r.skipped, -1);
	ck_assert_double_eq_tol(r.tps, 10000, 1e-6);
	/* three seconds of work after one second of connecting */
	ck_assert_double_eq_tol(r.tps_connecting, 7500, 1e-6);
	ck_assert_double_eq_tol(r.connect_ms, 1000, 1e-9);
	ck_assert_double_eq_tol(r.latency_ms, 1.6, 1e-9);
}
END_TEST

START_TEST(takes_connecting_out_of_each_transaction)
{
	static const char text[] = "number of transactions actually processed: 500\n"
				   "number of failed transactions: 0 (0.000%)\n"
				   "latency average = 20.000 ms\n"
				   "average connection time = 15.000 ms\n"
				   "tps = 100.000000 (including reconnection times)\n";
	struct pgbench_report r;

	/* Two clients at 100 a second: 20 ms each, of which 15 are for connecting. */
	ck_assert(pgbench_parse(text, 2, &r));
	ck_assert_double_eq_tol(r.tps_connecting, 100, 1e-9);
	ck_assert_double_eq_tol(r.tps, 400, 1e-6);
	ck_assert_double_eq_tol(r.connect_ms, 15, 1e-9);
}
END_TEST

START_TEST(reads_what_an_open_loop_skipped)
{
	static const char text[] = "number of transactions actually processed: 90/100\n"
				   "number of transactions skipped: 7 (7.000%)\n"
				   "tps = 9.000000 (without initial connection time)\n";
	struct pgbench_report r;

	ck_assert(pgbench_parse(text, 1, &r));
	ck_assert_int_eq(r.transactions, 90);
	ck_assert_int_eq(r.skipped, 7);
}
END_TEST

START_TEST(refuses_a_run_that_broke_off)
{
	struct pgbench_report r;

	ck_assert(!pgbench_parse("", 1, &r));
	ck_assert(!pgbench_parse("pgbench: error: connection to server failed\n", 1, &r));
	ck_assert(!pgbench_parse("number of transactions actually processed: 90\n", 1, &r));
	ck_assert(!pgbench_parse("tps = 10 (without initial connection time)\n", 1, &r));
}
END_TEST

static struct text_list
arguments(const char *workload, const char *mode, double rate, const char *log)
{
	struct cell cell = {.workload = workload_find(workload), .scale = 2};
	struct pgbench_how how = {.program = "/bin/pgbench",
	                          .workloads = "/w",
	                          .conninfo = "host=x",
	                          .cell = &cell,
	                          .clients = 8,
	                          .threads = 20,
	                          .seconds = 5,
	                          .rate = rate,
	                          .log_prefix = log};
	struct text_list argv = {0};

	ck_assert_ptr_nonnull(cell.workload);
	snprintf(cell.mode, sizeof(cell.mode), "%s", mode);
	pgbench_arguments(&how, &argv);
	return argv;
}

START_TEST(writes_its_command_line)
{
	struct text_list argv = arguments("select-only", "prepared", 0, "/tmp/log");

	ck_assert_str_eq(argv.items[0], "/bin/pgbench");
	ck_assert_str_eq(argv.items[argv.n - 1], "host=x");
	ck_assert_ptr_null(argv.items[argv.n]);
	ck_assert(text_list_has(&argv, "--builtin=select-only"));
	ck_assert(text_list_has(&argv, "--protocol=prepared"));
	ck_assert(text_list_has(&argv, "--client=8"));
	ck_assert(text_list_has(&argv, "--jobs=8")); /* pgbench wants no more threads than clients */
	ck_assert(text_list_has(&argv, "--time=5"));
	ck_assert(text_list_has(&argv, "--define=scale=2"));
	ck_assert(text_list_has(&argv, "--log-prefix=/tmp/log"));
	ck_assert(!text_list_has(&argv, "--connect"));
	text_list_fini(&argv);
}
END_TEST

START_TEST(writes_what_a_workload_is_about)
{
	struct text_list argv = arguments("reconnect", "simple", 0, NULL);

	ck_assert(text_list_has(&argv, "--connect"));
	ck_assert(text_list_has(&argv, "--file=/w/select1.sql"));
	ck_assert(!text_list_has(&argv, "--log"));
	text_list_fini(&argv);
	argv = arguments("open-loop", "simple", 1500, NULL);
	ck_assert(text_list_has(&argv, "--rate=1500.000"));
	text_list_fini(&argv);
	argv = arguments("ycsb-b", "simple", 0, NULL);
	ck_assert(text_list_has(&argv, "--file=/w/ycsb-read.sql@95"));
	ck_assert(text_list_has(&argv, "--file=/w/ycsb-update.sql@5"));
	ck_assert(text_list_has(&argv, "--define=rows=200000"));
	text_list_fini(&argv);
}
END_TEST

/* The scripts draw a rank as this does: what they draw must be Zipf's law. */
static long
draw(const struct zipf *z, long n, double u)
{
	double uz = u * z->zetan;
	long rank;

	if (uz < 1)
		return 1;
	if (uz < z->second)
		return 2;
	rank = 1 + (long)((double)n * pow(z->eta * u - z->eta + 1, z->alpha));
	return rank < n ? rank : n;
}

START_TEST(ranks_follow_zipf)
{
	enum { N = 1000, DRAWS = 100000 };
	struct zipf z = zipf_constants(N, 0.99);
	long below10 = 0, first = 0;
	double sum = 0, sum10 = 0;

	for (long i = 0; i < DRAWS; i++) {
		long rank = draw(&z, N, ((double)i + 0.5) / DRAWS);

		ck_assert_int_ge(rank, 1);
		ck_assert_int_le(rank, N);
		first += rank == 1;
		below10 += rank <= 10;
	}
	for (int i = 1; i <= N; i++) {
		sum += pow(i, -0.99);
		sum10 += i <= 10 ? pow(i, -0.99) : 0;
	}
	ck_assert_double_eq_tol((double)first / DRAWS, 1 / sum, 1e-3);
	/* The method is exact for ranks 1 and 2, and close beyond. */
	ck_assert_double_eq_tol((double)below10 / DRAWS, sum10 / sum, 0.02);
}
END_TEST

UNIT_MAIN("bench pgbench", reads_both_rates, takes_connecting_out_of_each_transaction, reads_what_an_open_loop_skipped,
          refuses_a_run_that_broke_off, writes_its_command_line, writes_what_a_workload_is_about, ranks_follow_zipf)
