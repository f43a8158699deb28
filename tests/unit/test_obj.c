/* SPDX-License-Identifier: ISC */
#include "base/obj.h"

#include <signal.h>

#include "base/log.h"
#include "unit.h"

#define THING_MAGIC 0x7419u

struct thing {
	uint32_t magic;
	int value;
	int last;
};

START_TEST(converts_back_what_has_the_magic)
{
	struct thing t = {THING_MAGIC, 7, 8};
	void *arg = &t;
	struct thing *back = obj_from(arg, thing, THING_MAGIC);
	ck_assert_ptr_eq(back, &t);
	int *last = &t.last;
	ck_assert_ptr_eq(container_of(last, struct thing, last), &t);
}
END_TEST

/* These three end by abort(). */
START_TEST(aborts_on_wrong_magic)
{
	log_set_stderr(false);
	struct thing t = {THING_MAGIC + 1, 7, 8};
	void *arg = &t;
	obj_from(arg, thing, THING_MAGIC);
}
END_TEST

START_TEST(aborts_on_null)
{
	log_set_stderr(false);
	void *arg = NULL;
	obj_from(arg, thing, THING_MAGIC);
}
END_TEST

START_TEST(aborts_on_broken_invariant)
{
	log_set_stderr(false);
	invariant(1 + 1 == 2);
	volatile int two = 2;
	invariant(two == 3);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("obj");
	tcase_add_test(tcase, converts_back_what_has_the_magic);
	tcase_add_test_raise_signal(tcase, aborts_on_wrong_magic, SIGABRT);
	tcase_add_test_raise_signal(tcase, aborts_on_null, SIGABRT);
	tcase_add_test_raise_signal(tcase, aborts_on_broken_invariant, SIGABRT);
	return unit_run_tcase("obj", tcase);
}
