/* SPDX-License-Identifier: ISC */
#include "wire/startup.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#include "unit.h"

#define ARGUMENT "invalid command-line argument for server process: "

/* Collects "name=value;" for each setting, so that a case is one string. */
static bool
collect(const char *name, const char *value, void *arg)
{
	buf_printf(arg, "%s=%s;", name, value);
	return true;
}

struct options_case {
	const char *options;
	const char *want; /* the settings, or the message */
};

static void
check_cases(const struct options_case *cases, size_t n, enum status status)
{
	for (size_t i = 0; i < n; i++) {
		char why[256] = "";
		struct buf got;
		buf_init(&got);
		buf_printf(&got, "%s", "");
		enum status s = startup_split_options(cases[i].options, collect, &got, why, sizeof(why));
		ck_assert_msg(s == status, "options '%s': status %d, %s", cases[i].options, s, why);
		buf_append_u8(&got, 0);
		ck_assert_str_eq(status == STATUS_OK ? (const char *)buf_head(&got) : why, cases[i].want);
		buf_fini(&got);
	}
}

/* Every expectation below is what PostgreSQL 15 did with the same text. */
START_TEST(splits_words_and_escapes)
{
	static const struct options_case cases[] = {
		{"", ""},
		{" \t\n\v\f\r ", ""},
		{"-c a=b", "a=b;"},
		{"-ca=b", "a=b;"},
		{"--a=b", "a=b;"},
		{"  -c  a=b\t--c=d\n", "a=b;c=d;"},
		{"-c a=x\\ y", "a=x y;"},
		{"-c a=x\\\\y", "a=x\\y;"},
		{"-c a=x\\\\ --b=c", "a=x\\;b=c;"},
		{"-c a=\\x\\-", "a=x-;"},
		{"-c a=x\\", "a=x;"},
		{"-c a=", "a=;"},
		{"-c a==b=c", "a==b=c;"},
		{"-c =x", "=x;"},
		{"-c a=\"b", "a=\"b;"}, /* quotes mean nothing */
		{"-c\\ a=b", " a=b;"},
		{"-c a-b.c-d=e-f", "a_b.c_d=e-f;"},
		{"--work-mem=4MB", "work_mem=4MB;"},
		{"-c --a=b", "__a=b;"},
		{"-c search_path=\xc3\xa9,b", "search_path=\xc3\xa9,b;"},
		{"-c a=1 -c a=2", "a=1;a=2;"},
		{"-c a=b --", "a=b;"},
		{"--", ""},
	};
	check_cases(cases, sizeof(cases) / sizeof(cases[0]), STATUS_OK);
}
END_TEST

START_TEST(maps_short_switches)
{
	static const struct options_case cases[] = {
		{"-B 10", "shared_buffers=10;"},
		{"-e", "datestyle=euro;"},
		{"-F", "fsync=false;"},
		{"-h x -i -k y -l -p 1",
	         "listen_addresses=x;listen_addresses=*;unix_socket_directories=y;ssl=true;port=1;"},
		{"-N 3 -O -P", "max_connections=3;allow_system_table_mods=true;ignore_system_indexes=true;"},
		{"-S 64 -W0 -s", "work_mem=64;post_auth_delay=0;log_statement_stats=true;"},
		{"-tpa -tplx -te -t parser",
	         "log_parser_stats=true;log_planner_stats=true;log_executor_stats=true;log_parser_stats=true;"},
		{"-fs -fi -fo -fb -ft -fn -fm -f hx",
	         "enable_seqscan=false;enable_indexscan=false;enable_indexonlyscan=false;enable_bitmapscan=false;"
	         "enable_tidscan=false;enable_nestloop=false;enable_mergejoin=false;enable_hashjoin=false;"},
		{"-d 0", "log_min_messages=notice;"},
		{"-d x", "log_min_messages=notice;"},
		{"-d1", "log_min_messages=debug1;"},
		{"-d 2", "log_min_messages=debug2;log_statement=all;"},
		{"-d 5", "log_min_messages=debug5;log_statement=all;debug_print_parse=true;debug_print_plan=true;debug_"
	                 "print_rewritten=true;"},
		{"-b -n -j -T -E -C x -D y -r z -v 3", ""}, /* allowed, without effect */
		{"-eFsc a=b", "datestyle=euro;fsync=false;log_statement_stats=true;a=b;"},
		{"-e-a=b", "datestyle=euro;a=b;"},
	};
	check_cases(cases, sizeof(cases) / sizeof(cases[0]), STATUS_OK);
}
END_TEST

START_TEST(complains_as_the_server)
{
	static const struct options_case cases[] = {
		{"-c a", "-c a requires a value"},
		{"--a-b", "--a-b requires a value"},
		{"-c", ARGUMENT "-c"},
		{"-e -S", ARGUMENT "-S"},
		{"-x", ARGUMENT "-x"},
		{"-?", ARGUMENT "-?"},
		{"-:", ARGUMENT "-:"},
		{"foo", ARGUMENT "foo"},
		{"-", ARGUMENT "-"},
		{"-c a=b foo -c d=e bar", ARGUMENT "foo"},
		{"-- foo", ARGUMENT "foo"},
		{"bar -- foo", ARGUMENT "bar"},
		{"foo -x", ARGUMENT "-x"},
		{"-f x", ARGUMENT "x"},
		{"-fx", ARGUMENT "-fx"},
		{"-t x", ARGUMENT "x"},
		{"-t p", ARGUMENT "p"},
		{"-work_mem=1", ARGUMENT "postgres"}, /* getopt has not moved on yet */
		{"-e -work_mem=1", ARGUMENT "-e"},
		{"-c a=b -ox", ARGUMENT "a=b"},
		{"x- -\\\\-dW0", ARGUMENT "x-"},
		{"-c a=b\\ c d", ARGUMENT "d"},
		{"\\", ARGUMENT ""},
	};
	check_cases(cases, sizeof(cases) / sizeof(cases[0]), STATUS_BAD);
}
END_TEST

START_TEST(keeps_the_message_in_its_room)
{
	char why[16];
	struct buf got;
	buf_init(&got);
	ck_assert_int_eq(startup_split_options("-x", collect, &got, why, sizeof(why)), STATUS_BAD);
	ck_assert_str_eq(why, "invalid command");
	buf_fini(&got);
}
END_TEST

static bool
take_two(const char *name, const char *value, void *arg)
{
	(void)name;
	(void)value;
	return ++*(int *)arg < 2;
}

START_TEST(stops_when_told)
{
	char why[64];
	int n = 0;
	ck_assert_int_eq(startup_split_options("-c a=1 -c b=2 -c c=3", take_two, &n, why, sizeof(why)), STATUS_NO_MEM);
	ck_assert_int_eq(n, 2);
	n = 0;
	ck_assert_int_eq(startup_split_options("-d 5", take_two, &n, why, sizeof(why)), STATUS_NO_MEM);
	ck_assert_int_eq(n, 2);
}
END_TEST

UNIT_MAIN("startup_options", splits_words_and_escapes, maps_short_switches, complains_as_the_server,
          keeps_the_message_in_its_room, stops_when_told)
