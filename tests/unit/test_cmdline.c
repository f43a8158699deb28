/* SPDX-License-Identifier: ISC */
#include "ops/cmdline.h"

#include <string.h>

#include "unit.h"

static char why[256];

/* Splits at blanks; the words live until the next call. */
static enum status
parse(const char *line, struct cmdline *out)
{
	static char text[256];
	static char *argv[16];
	int argc = 0;

	snprintf(text, sizeof text, "%s", line);
	for (char *rest = text; rest != NULL;)
		argv[argc++] = strsep(&rest, " ");
	argv[argc] = NULL;
	why[0] = '\0';
	return cmdline_parse(argc, argv, out, why, sizeof why);
}

START_TEST(a_file_alone)
{
	struct cmdline c;

	ck_assert_int_eq(parse("pgweir p.ini", &c), STATUS_OK);
	ck_assert_int_eq(c.action, CMDLINE_RUN);
	ck_assert_str_eq(c.config, "p.ini");
	ck_assert(!c.daemon && !c.quiet && !c.reboot);
	ck_assert_int_eq(c.n_verbose, 0);
	ck_assert_ptr_null(c.user);
}
END_TEST

START_TEST(short_options)
{
	struct cmdline c;

	ck_assert_int_eq(parse("pgweir -d -q -R -vv -v -u postgres p.ini", &c), STATUS_OK);
	ck_assert(c.daemon && c.quiet && c.reboot);
	ck_assert_int_eq(c.n_verbose, 3);
	ck_assert_str_eq(c.user, "postgres");
	ck_assert_str_eq(c.config, "p.ini");
	ck_assert_int_eq(parse("pgweir p.ini -dupostgres", &c), STATUS_OK);
	ck_assert(c.daemon && !c.quiet);
	ck_assert_str_eq(c.user, "postgres");
}
END_TEST

START_TEST(long_options)
{
	struct cmdline c;

	ck_assert_int_eq(parse("pgweir --daemon --quiet --reboot --verbose --user=postgres p.ini", &c), STATUS_OK);
	ck_assert(c.daemon && c.quiet && c.reboot);
	ck_assert_int_eq(c.n_verbose, 1);
	ck_assert_str_eq(c.user, "postgres");
	ck_assert_int_eq(parse("pgweir --check p.ini", &c), STATUS_OK);
	ck_assert_int_eq(c.action, CMDLINE_CHECK);
	ck_assert_str_eq(c.config, "p.ini");
	ck_assert_int_eq(parse("pgweir -- -odd.ini", &c), STATUS_OK);
	ck_assert_str_eq(c.config, "-odd.ini");
}
END_TEST

START_TEST(version_and_help_need_no_file)
{
	struct cmdline c;

	ck_assert_int_eq(parse("pgweir -V", &c), STATUS_OK);
	ck_assert_int_eq(c.action, CMDLINE_VERSION);
	ck_assert_int_eq(parse("pgweir --version", &c), STATUS_OK);
	ck_assert_int_eq(c.action, CMDLINE_VERSION);
	ck_assert_int_eq(parse("pgweir -h", &c), STATUS_OK);
	ck_assert_int_eq(c.action, CMDLINE_HELP);
	ck_assert_int_eq(parse("pgweir --help a b c", &c), STATUS_OK);
	ck_assert_int_eq(c.action, CMDLINE_HELP);
}
END_TEST

START_TEST(mistakes_are_named)
{
	static const struct {
		const char *line, *why;
	} cases[] = {
		{"pgweir", "the configuration file is missing"},
		{"pgweir -d", "the configuration file is missing"},
		{"pgweir a b", "there is more than one configuration file"},
		{"pgweir -x p.ini", "unknown option -x"},
		{"pgweir --daemon -xd p.ini", "unknown option -x"},
		{"pgweir --colour p.ini", "unknown option, or not as it is used: --colour"},
		{"pgweir --daemon=1 p.ini", "unknown option, or not as it is used: --daemon=1"},
		{"pgweir --check=1 p.ini", "unknown option, or not as it is used: --check=1"},
		{"pgweir --ver p.ini", "unknown option, or not as it is used: --ver"},
		{"pgweir p.ini -u", "the option -u needs a value"},
		{"pgweir p.ini --user", "the option --user needs a value"},
	};
	struct cmdline c;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ck_assert_int_eq(parse(cases[i].line, &c), STATUS_BAD);
		ck_assert_str_eq(why, cases[i].why);
	}
}
END_TEST

static char *
printed(void (*print)(FILE *))
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	print(f);
	fclose(f);
	return text;
}

START_TEST(first_line_is_the_version)
{
	char *text = printed(cmdline_print_version);
	size_t n = strlen(cmdline_version());

	ck_assert_int_eq(strncmp(cmdline_version(), "pgweir ", 7), 0);
	ck_assert_int_eq(strncmp(text, cmdline_version(), n), 0);
	ck_assert_int_eq(text[n], '\n');
	free(text);
}
END_TEST

START_TEST(help_has_every_option)
{
	static const char *const words[] = {"-d, --daemon", "-q, --quiet", "-v, --verbose", "-u, --user=",
	                                    "-R, --reboot", "--check",     "-V, --version", "-h, --help"};
	char *text = printed(cmdline_print_help);

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		ck_assert_ptr_nonnull(strstr(text, words[i]));
	free(text);
}
END_TEST

UNIT_MAIN("cmdline", a_file_alone, short_options, long_options, version_and_help_need_no_file, mistakes_are_named,
          first_line_is_the_version, help_has_every_option)
