/* SPDX-License-Identifier: ISC */
#include "ops/cmdline.h"

#include "config.h"

#include <event2/event.h>
#include <getopt.h>
#include <libpq-fe.h>
#include <openssl/crypto.h>
#include <string.h>

#define OPTION_CHECK 256 /* has no letter */

static const char letters[] = ":dhqRu:vV"; /* the first colon: tell a missing value from an unknown option */

static const struct option options[] = {
	{"check", no_argument, NULL, OPTION_CHECK},
	{"daemon", no_argument, NULL, 'd'},
	{"help", no_argument, NULL, 'h'},
	{"quiet", no_argument, NULL, 'q'},
	{"reboot", no_argument, NULL, 'R'},
	{"user", required_argument, NULL, 'u'},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static bool
set_option(struct cmdline *c, int option)
{
	switch (option) {
	case 'd':
		c->daemon = true;
		return true;
	case 'q':
		c->quiet = true;
		return true;
	case 'R':
		c->reboot = true;
		return true;
	case 'u':
		c->user = optarg;
		return true;
	case 'v':
		c->n_verbose++;
		return true;
	case 'h':
		c->action = CMDLINE_HELP;
		return true;
	case 'V':
		c->action = CMDLINE_VERSION;
		return true;
	case OPTION_CHECK:
		c->action = CMDLINE_CHECK;
		return true;
	default:
		return false;
	}
}

/* getopt tells the letter it doesn't know. About long options it tells less, but has moved on behind the word. */
static void
say_wrong_option(char **argv, int option, char *why, size_t why_cap)
{
	const char *word = argv[optind - 1];
	bool is_letter = optopt != 0 && optopt != OPTION_CHECK && strchr(letters, optopt) == NULL;

	if (option == ':')
		snprintf(why, why_cap, "the option %s needs a value", word);
	else if (is_letter)
		snprintf(why, why_cap, "unknown option -%c", optopt);
	else
		snprintf(why, why_cap, "unknown option, or not as it is used: %s", word);
}

enum status
cmdline_parse(int argc, char **argv, struct cmdline *out, char *why, size_t why_cap)
{
	int option;

	memset(out, 0, sizeof *out);
	opterr = 0;
	optind = 0; /* starts afresh, should this be called again */
	while ((option = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (!set_option(out, option)) {
			say_wrong_option(argv, option, why, why_cap);
			return STATUS_BAD;
		}
		if (out->action == CMDLINE_HELP || out->action == CMDLINE_VERSION)
			return STATUS_OK;
	}
	if (argc - optind != 1) {
		snprintf(why, why_cap, "%s",
		         argc - optind < 1 ? "the configuration file is missing"
		                           : "there is more than one configuration file");
		return STATUS_BAD;
	}
	out->config = argv[optind];
	return STATUS_OK;
}

const char *
cmdline_version(void)
{
	return "pgweir " PACKAGE_VERSION;
}

void
cmdline_print_version(FILE *to)
{
	int pq = PQlibVersion();

	fprintf(to, "%s\nlibevent %s, %s, libpq %d.%d\n", cmdline_version(), event_get_version(),
	        OpenSSL_version(OPENSSL_VERSION), pq / 10000, pq % 10000);
}

void
cmdline_print_help(FILE *to)
{
	fputs("Usage: pgweir [options] FILE\n"
	      "       pgweir [options] 'host=/run/postgresql dbname=app'\n"
	      "\n"
	      "Pools connections to PostgreSQL as FILE says, or with defaults to the server of a\n"
	      "connection string, for this user only, at port 6432 in /tmp.\n"
	      "\n"
	      "  -d, --daemon      run in the background (needs the setting pidfile)\n"
	      "  -q, --quiet       log nothing to stderr\n"
	      "  -v, --verbose     log more; twice: still more\n"
	      "  -u, --user=NAME   become this user when started as root\n"
	      "  -R, --reboot      take over from a running process (not supported yet)\n"
	      "      --check       only say what is wrong with the configuration\n"
	      "  -V, --version     print the version\n"
	      "  -h, --help        print this\n",
	      to);
}
