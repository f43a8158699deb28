/* SPDX-License-Identifier: ISC */
#include "nearest.h"
#include "unit.h"

#include <string.h>

static const char *
name_at(size_t i)
{
	static const char *const names[] = {"direct", "pgbouncer", "tpcb", "poolers-2019", "postgres-xc-2013", "all"};

	return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

START_TEST(finds_what_was_meant)
{
	static const char *const cases[][2] = {
		{"pgbuoncer", "pgbouncer"},
		{"pgbouncr", "pgbouncer"},
		{"pgbouncer2", "pgbouncer"},
		{"pgboumcer", "pgbouncer"},
		{"tcpb", "tpcb"},
		{"poolers", "poolers-2019"},
		{"post", "postgres-xc-2013"},
		{"al1", "all"},
		{"direkt", "direct"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *found = nearest_find(cases[i][0], name_at);

		ck_assert_msg(found != NULL && strcmp(found, cases[i][1]) == 0, "%s: %s", cases[i][0],
		              found != NULL ? found : "none");
	}
}
END_TEST

START_TEST(another_word_is_near_to_nothing)
{
	static const char *const cases[] = {
		"",        "p",       "xy",
		"haproxy", "odyssey", "a-name-that-is-much-longer-than-any-of-those-there-are-to-choose"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(nearest_find(cases[i], name_at) == NULL, "%s: %s", cases[i],
		              nearest_find(cases[i], name_at));
}
END_TEST

START_TEST(says_where_all_names_are)
{
	struct why why;

	ck_assert(!nearest_refuse(&why, "suite", "pooler", name_at, "pgweir-bench list"));
	ck_assert_str_eq(why.text, "unknown suite pooler: is poolers-2019 meant? (pgweir-bench list)");
	ck_assert(!nearest_refuse(&why, "suite", "quux", name_at, "pgweir-bench list"));
	ck_assert_str_eq(why.text, "unknown suite quux (pgweir-bench list)");
}
END_TEST

UNIT_MAIN("bench nearest", finds_what_was_meant, another_word_is_near_to_nothing, says_where_all_names_are)
