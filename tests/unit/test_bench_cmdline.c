/* SPDX-License-Identifier: ISC */
#include "cmdline.h"
#include "unit.h"

#include <string.h>

#define MAX_WORDS 40

/* The words of a line; a quoted blank is written as ~. */
static bool
parse(const char *line, struct options *out, struct why *why)
{
	static char text[512];
	char *argv[MAX_WORDS + 1] = {"pgweir-bench"}, *save = NULL;
	int argc = 1;

	ck_assert_uint_lt(strlen(line), sizeof(text));
	memcpy(text, line, strlen(line) + 1);
	for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
		for (char *p = word; *p != '\0'; p++)
			if (*p == '~')
				*p = ' ';
		ck_assert_int_lt(argc, MAX_WORDS);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	return cmdline_parse(argc, argv, out, why);
}

static void
takes(const char *line, struct options *out)
{
	struct why why = {""};

	ck_assert_msg(parse(line, out, &why), "%s: %s", line, why.text);
}

START_TEST(reads_the_options_of_run)
{
	struct options o;

	takes("run overhead --systems direct,pgweir:16/2 --clients 1,16/2 --duration 5 --runs 4 --discard 1 --quick "
	      "--out d "
	      "--pgbouncer ./b --datadir /x --datadir /y --set fsync=off --rate 250.5 --logs drop --max-direct 64 "
	      "--spread --unix --strace --idle 0,100",
	      &o);
	ck_assert_int_eq(o.command, COMMAND_RUN);
	ck_assert_str_eq(o.suite, "overhead");
	ck_assert_str_eq(o.systems, "direct,pgweir:16/2");
	ck_assert_str_eq(o.changes.clients, "1,16/2");
	ck_assert_int_eq(o.changes.seconds, 5);
	ck_assert_int_eq(o.changes.runs, 4);
	ck_assert_int_eq(o.changes.discard, 1);
	ck_assert(o.quick);
	ck_assert_str_eq(o.out, "d");
	ck_assert_str_eq(o.pgbouncer, "./b");
	ck_assert_uint_eq(o.datadirs.n, 2);
	ck_assert_str_eq(o.datadirs.items[1], "/y");
	ck_assert_str_eq(o.settings.items[0], "fsync = 'off'");
	ck_assert_double_eq(o.changes.rate, 250.5);
	ck_assert_int_eq(o.logs, LOGS_DROPPED);
	ck_assert_int_eq(o.max_direct, 64);
	ck_assert_int_eq(o.changes.hosts, HOSTS_ALL);
	ck_assert_int_eq(o.changes.sockets, SOCKETS_UNIX);
	ck_assert_int_eq(o.changes.trace, TRACE_SYSCALLS);
	ck_assert_str_eq(o.changes.idle, "0,100");
	cmdline_fini(&o);
}
END_TEST

START_TEST(options_may_go_before_the_suite)
{
	struct options o;

	takes("--quick run --runs 2 scale", &o);
	ck_assert_str_eq(o.suite, "scale");
	ck_assert_int_eq(o.changes.runs, 2);
	ck_assert_int_eq(o.changes.discard, -1);
	ck_assert(o.quick);
	cmdline_fini(&o);
}
END_TEST

START_TEST(reads_the_other_commands)
{
	struct options o;

	takes("list", &o);
	ck_assert_int_eq(o.command, COMMAND_LIST);
	takes("doctor --odyssey /o", &o);
	ck_assert_int_eq(o.command, COMMAND_DOCTOR);
	takes("report d", &o);
	ck_assert_int_eq(o.command, COMMAND_REPORT);
	ck_assert_str_eq(o.args[0], "d");
	takes("compare a b", &o);
	ck_assert_int_eq(o.command, COMMAND_COMPARE);
	ck_assert_str_eq(o.args[1], "b");
	takes("run --resume d", &o);
	ck_assert_str_eq(o.resume, "d");
	ck_assert_ptr_null(o.suite);
	takes("--help", &o);
	ck_assert_int_eq(o.command, COMMAND_HELP);
	takes("-V", &o);
	ck_assert_int_eq(o.command, COMMAND_VERSION);
}
END_TEST

START_TEST(refuses_what_makes_no_sense)
{
	static const char *const bad[] = {
		"",
		"measure",
		"run",
		"run a b",
		"run a --resume d",
		"report",
		"compare a",
		"run a --duration",
		"run a --duration x",
		"run a --duration 0",
		"run a --runs -1",
		"run a --clients=",
		"run a --unknown",
		"run a --rate fast",
		"run a --rate 0",
		"run a --logs some",
		"run a --set fsync",
		"run a --duration 5 --transactions 5",
		"run a --server host=x --datadir /x",
		"run a --max-direct 1e3",
		"run a --datadir data",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct options o;
		struct why why = {""};

		ck_assert_msg(!parse(bad[i], &o, &why), "%s was taken", bad[i]);
		ck_assert_str_ne(why.text, "");
		cmdline_fini(&o);
	}
}
END_TEST

START_TEST(names_the_option_that_was_meant)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"run a --cleints 4", "unknown option --cleints: is --clients meant? (--help)"},
		{"run a --colour", "unknown option --colour (--help)"},
		/* what pgweir-bench calls itself with is for nobody else */
		{"run a --crwod", "unknown option --crwod (--help)"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options o;
		struct why why = {""};

		ck_assert(!parse(cases[i].line, &o, &why));
		ck_assert_str_eq(why.text, cases[i].says);
		cmdline_fini(&o);
	}
}
END_TEST

UNIT_MAIN("bench cmdline", reads_the_options_of_run, options_may_go_before_the_suite, reads_the_other_commands,
          refuses_what_makes_no_sense, names_the_option_that_was_meant)
