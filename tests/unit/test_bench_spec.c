/* SPDX-License-Identifier: ISC */
#include "spec.h"
#include "unit.h"

#include <string.h>

static struct system_spec
parsed(const char *text)
{
	struct system_spec spec;
	struct why why = {""};

	ck_assert_msg(system_spec_parse(text, &spec, &why), "%s: %s", text, why.text);
	return spec;
}

START_TEST(sizes_have_defaults)
{
	struct system_spec spec = parsed("pgweir");

	ck_assert_int_eq(spec.kind, SYSTEM_PGWEIR);
	ck_assert_int_eq(spec.pool, 16);
	ck_assert_int_eq(spec.threads, 1);
	ck_assert_int_eq(spec.n_processes, 1);
	spec = parsed("direct");
	ck_assert_int_eq(spec.pool, 0);
	ck_assert_int_eq(spec.n_processes, 0);
}
END_TEST

START_TEST(sizes_are_read)
{
	struct system_spec spec = parsed("pgweir:20/4");

	ck_assert_int_eq(spec.pool, 20);
	ck_assert_int_eq(spec.threads, 4);
	spec = parsed("odyssey:64/4");
	ck_assert_int_eq(spec.kind, SYSTEM_ODYSSEY);
	ck_assert_int_eq(spec.pool, 64);
	ck_assert_int_eq(spec.threads, 4);
	spec = parsed("pgbouncer:17x2");
	ck_assert_int_eq(spec.pool, 17);
	ck_assert_int_eq(spec.n_processes, 2);
	ck_assert_int_eq(spec.threads, 1);
	spec = parsed("pgbouncer:32");
	ck_assert_int_eq(spec.pool, 32);
	ck_assert_int_eq(spec.n_processes, 1);
	spec = parsed("haproxy:2");
	ck_assert_int_eq(spec.threads, 2);
	ck_assert_int_eq(spec.pool, 0);
	ck_assert_str_eq(spec.name, "haproxy:2");
}
END_TEST

START_TEST(any_other_system_is_a_conninfo)
{
	struct system_spec spec = parsed("pro-15.2=host=db port=5433 dbname=x");

	ck_assert_int_eq(spec.kind, SYSTEM_OTHER);
	ck_assert_str_eq(spec.name, "pro-15.2");
	ck_assert_str_eq(spec.conninfo, "host=db port=5433 dbname=x");
}
END_TEST

START_TEST(refuses_what_is_no_system)
{
	static const char *const bad[] = {
		"",
		"pgbuoncer",
		"pgweir:",
		"pgweir:0",
		"pgweir:16/",
		"pgweir:16x2",
		"pgweir:16/0",
		"direct:4",
		"pgbouncer:1x2",
		"odyssey:a/b",
		"haproxy:16/2",
		"pgweir:-1",
		"=host=x",
		"name=",
		"na me=host=x",
		"pgbouncer:99x17",
		"pgweir:16/2/3",
		"pgweir:99999999999",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct system_spec spec;
		struct why why = {""};

		ck_assert_msg(!system_spec_parse(bad[i], &spec, &why), "%s was taken", bad[i]);
		ck_assert_str_ne(why.text, "");
	}
}
END_TEST

START_TEST(a_list_keeps_commas_of_a_conninfo)
{
	struct system_spec *specs;
	struct why why = {""};
	size_t n;

	ck_assert(system_spec_parse_list("direct,x=host=a,b port=5432,5433,pgweir:8/2,y=host=c", &specs, &n, &why));
	ck_assert_uint_eq(n, 4);
	ck_assert_str_eq(specs[1].conninfo, "host=a,b port=5432,5433");
	ck_assert_str_eq(specs[2].name, "pgweir:8/2");
	ck_assert_str_eq(specs[3].conninfo, "host=c");
	free(specs);
}
END_TEST

START_TEST(a_list_names_nothing_twice)
{
	struct system_spec *specs;
	struct why why = {""};
	size_t n;

	ck_assert(!system_spec_parse_list("pgweir,direct,pgweir", &specs, &n, &why));
	ck_assert_ptr_nonnull(strstr(why.text, "twice"));
	free(specs);
	ck_assert(!system_spec_parse_list("pgweir,,direct", &specs, &n, &why));
	free(specs);
}
END_TEST

UNIT_MAIN("bench spec", sizes_have_defaults, sizes_are_read, any_other_system_is_a_conninfo, refuses_what_is_no_system,
          a_list_keeps_commas_of_a_conninfo, a_list_names_nothing_twice)
