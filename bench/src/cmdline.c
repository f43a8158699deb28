/* SPDX-License-Identifier: ISC */
#include "cmdline.h"

#include "base/str.h"
#include "nearest.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIRECT 1000

enum {
	OPT_SYSTEMS = 256,
	OPT_WORKLOADS,
	OPT_MODES,
	OPT_SETUPS,
	OPT_SPREAD,
	OPT_CLIENTS,
	OPT_IDLE,
	OPT_THREADS,
	OPT_SCALE,
	OPT_DURATION,
	OPT_TRANSACTIONS,
	OPT_RATE,
	OPT_COPY_MB,
	OPT_RUNS,
	OPT_DISCARD,
	OPT_QUICK,
	OPT_OUT,
	OPT_RESUME,
	OPT_BASELINE,
	OPT_SERVER,
	OPT_SET,
	OPT_DATADIR,
	OPT_PGWEIR,
	OPT_PGBOUNCER,
	OPT_ODYSSEY,
	OPT_HAPROXY,
	OPT_PGBENCH,
	OPT_MAX_DIRECT,
	OPT_LOGS,
	OPT_UNIX,
	OPT_STRACE,
	OPT_CROWD,
};

static const struct option long_options[] = {
	{"systems", required_argument, NULL, OPT_SYSTEMS},
	{"workloads", required_argument, NULL, OPT_WORKLOADS},
	{"modes", required_argument, NULL, OPT_MODES},
	{"topologies", required_argument, NULL, OPT_SETUPS},
	{"spread", no_argument, NULL, OPT_SPREAD},
	{"clients", required_argument, NULL, OPT_CLIENTS},
	{"idle", required_argument, NULL, OPT_IDLE},
	{"threads", required_argument, NULL, OPT_THREADS},
	{"scale", required_argument, NULL, OPT_SCALE},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"transactions", required_argument, NULL, OPT_TRANSACTIONS},
	{"rate", required_argument, NULL, OPT_RATE},
	{"copy-mb", required_argument, NULL, OPT_COPY_MB},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"discard", required_argument, NULL, OPT_DISCARD},
	{"quick", no_argument, NULL, OPT_QUICK},
	{"out", required_argument, NULL, OPT_OUT},
	{"resume", required_argument, NULL, OPT_RESUME},
	{"baseline", required_argument, NULL, OPT_BASELINE},
	{"server", required_argument, NULL, OPT_SERVER},
	{"set", required_argument, NULL, OPT_SET},
	{"datadir", required_argument, NULL, OPT_DATADIR},
	{"pgweir", required_argument, NULL, OPT_PGWEIR},
	{"pgbouncer", required_argument, NULL, OPT_PGBOUNCER},
	{"odyssey", required_argument, NULL, OPT_ODYSSEY},
	{"haproxy", required_argument, NULL, OPT_HAPROXY},
	{"pgbench", required_argument, NULL, OPT_PGBENCH},
	{"max-direct", required_argument, NULL, OPT_MAX_DIRECT},
	{"logs", required_argument, NULL, OPT_LOGS},
	{"unix", no_argument, NULL, OPT_UNIX},
	{"strace", no_argument, NULL, OPT_STRACE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	/* Of pgweir-bench itself, for nobody to type: the last, where option_at() ends. */
	{"crowd", no_argument, NULL, OPT_CROWD},
	{NULL, 0, NULL, 0},
};

void
cmdline_usage(FILE *out)
{
	fputs("usage: pgweir-bench run SUITE [OPTION...]      measure; results go into a folder of their own\n"
	      "       pgweir-bench run --resume DIR           go on with a run that was interrupted\n"
	      "       pgweir-bench list                       suites and workloads\n"
	      "       pgweir-bench doctor [OPTION...]         what is installed, limits, what would be left out\n"
	      "       pgweir-bench report DIR                 table and report.html of a folder of results\n"
	      "       pgweir-bench compare DIR1 DIR2          two folders side by side\n"
	      "\n"
	      "Options of run, each instead of what the suite says:\n"
	      "  --systems LIST       direct, pgweir[:BACKENDS[/PROXIES]], pgbouncer[:POOL[xPROCESSES]],\n"
	      "                       odyssey[:BACKENDS[/THREADS]], haproxy[:THREADS], NAME=CONNINFO\n"
	      "  --workloads LIST     see pgweir-bench list\n"
	      "  --modes LIST         simple, extended, prepared\n"
	      "  --topologies LIST    single, replicas:N, sync; with a setting: 'single synchronous_commit=off'\n"
	      "  --spread             poolers send workloads that only read to the standbys, too\n"
	      "  --clients LIST       CLIENTS or CLIENTS/THREADS\n"
	      "  --idle LIST          so many more clients that do nothing beside those\n"
	      "  --threads N          of pgbench; default: as many as CPUs\n"
	      "  --scale N            of pgbench's tables\n"
	      "  --duration SECONDS   of each run, or\n"
	      "  --transactions N     of each client\n"
	      "  --rate TPS           open loop: start transactions at this rate\n"
	      "  --copy-mb N          MiB that a client copies\n"
	      "  --runs N             of each cell; of these\n"
	      "  --discard K          the first K do not count\n"
	      "  --unix               Unix sockets instead of TCP over loopback\n"
	      "  --strace             the poolers' system calls per transaction, and nothing else\n"
	      "  --quick              the suite's short form, under three minutes\n"
	      "The rest:\n"
	      "  --out DIR            for the results; default: a new folder under the temporary one\n"
	      "  --baseline SYSTEM    that ratios in the table are to\n"
	      "  --datadir PATH       where the server's data go; several times: each is measured\n"
	      "  --set NAME=VALUE     setting of the scratch server; several times\n"
	      "  --server CONNINFO    use this server; tables pgbench_*, ycsb and copied in its database are replaced\n"
	      "  --pgweir, --pgbouncer, --odyssey, --haproxy, --pgbench PATH\n"
	      "  --max-direct N       clients above which systems that do not pool are left out [1000]\n"
	      "  --logs keep|drop|none  pgbench's log of each transaction: percentiles come from it [keep]\n",
	      out);
}

static bool
set_number(const char *name, const char *text, int min, int max, int *out, struct why *why)
{
	int64_t value;

	if (!str_parse_int(text, min, max, &value))
		return why_set(why, "--%s wants a number from %d to %d, not %s", name, min, max, text);
	*out = (int)value;
	return true;
}

static bool
set_logs(const char *text, enum measure_logs *out, struct why *why)
{
	static const char *const names[] = {"keep", "drop", "none"};

	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (enum measure_logs)i;
			return true;
		}
	return why_set(why, "--logs wants keep, drop or none, not %s", text);
}

static bool
set_rate(const char *text, double *out, struct why *why)
{
	char *end;

	*out = strtod(text, &end);
	return *text != '\0' && *end == '\0' && *out > 0 && *out < 1e7
	               ? true
	               : why_set(why, "--rate wants transactions per second, not %s", text);
}

static bool
set_setting(const char *text, struct options *o, struct why *why)
{
	const char *equals = strchr(text, '=');

	if (equals == NULL || equals == text || strpbrk(text, "\r\n") != NULL)
		return why_set(why, "--set wants NAME=VALUE, not %s", text);
	text_list_addf(&o->settings, "%.*s = '%s'", (int)(equals - text), text, equals + 1);
	return true;
}

static bool
take_number(int option, const char *name, const char *value, struct options *o, struct why *why)
{
	switch (option) {
	case OPT_THREADS:
		return set_number(name, value, 1, 1000, &o->changes.threads, why);
	case OPT_SCALE:
		return set_number(name, value, 1, 20000, &o->changes.scale, why);
	case OPT_DURATION:
		return set_number(name, value, 1, 86400, &o->changes.seconds, why);
	case OPT_TRANSACTIONS:
		return set_number(name, value, 1, 100000000, &o->changes.transactions, why);
	case OPT_COPY_MB:
		return set_number(name, value, 1, 1 << 20, &o->changes.copy_mb, why);
	case OPT_RUNS:
		return set_number(name, value, 1, 1000, &o->changes.runs, why);
	case OPT_DISCARD:
		return set_number(name, value, 0, 999, &o->changes.discard, why);
	default:
		return set_number(name, value, 1, 100000, &o->max_direct, why);
	}
}

/* Where the text of an option goes that is kept as it is; NULL: it is another kind. */
static const char **
text_option(int option, struct options *o)
{
	switch (option) {
	case OPT_SYSTEMS:
		return &o->systems;
	case OPT_WORKLOADS:
		return &o->changes.workloads;
	case OPT_MODES:
		return &o->changes.modes;
	case OPT_SETUPS:
		return &o->changes.setups;
	case OPT_CLIENTS:
		return &o->changes.clients;
	case OPT_IDLE:
		return &o->changes.idle;
	case OPT_OUT:
		return &o->out;
	case OPT_RESUME:
		return &o->resume;
	case OPT_BASELINE:
		return &o->baseline;
	case OPT_SERVER:
		return &o->changes.server;
	case OPT_PGWEIR:
		return &o->pgweir;
	case OPT_PGBOUNCER:
		return &o->pgbouncer;
	case OPT_ODYSSEY:
		return &o->odyssey;
	case OPT_HAPROXY:
		return &o->haproxy;
	case OPT_PGBENCH:
		return &o->pgbench;
	default:
		return NULL;
	}
}

static bool
take_option(int option, const char *name, const char *value, struct options *o, struct why *why)
{
	const char **text = text_option(option, o);

	if (text != NULL) {
		*text = value;
		return *value != '\0' ? true : why_set(why, "--%s is empty", name);
	}
	switch (option) {
	case OPT_QUICK:
		o->quick = true;
		return true;
	case OPT_SPREAD:
		o->changes.hosts = HOSTS_ALL;
		return true;
	case OPT_UNIX:
		o->changes.sockets = SOCKETS_UNIX;
		return true;
	case OPT_STRACE:
		o->changes.trace = TRACE_SYSCALLS;
		return true;
	case OPT_RATE:
		return set_rate(value, &o->changes.rate, why);
	case OPT_LOGS:
		return set_logs(value, &o->logs, why);
	case OPT_SET:
		return set_setting(value, o, why);
	case OPT_DATADIR:
		text_list_add(&o->datadirs, value);
		return *value == '/' ? true : why_set(why, "--datadir wants a path that begins with /, not %s", value);
	case OPT_CROWD:
		o->command = COMMAND_CROWD;
		return true;
	case 'h':
		o->command = COMMAND_HELP;
		return true;
	case 'V':
		o->command = COMMAND_VERSION;
		return true;
	default:
		return take_number(option, name, value, o, why);
	}
}

static const struct {
	const char *name;
	enum command command;
	int n_args;
} commands[] = {
	{"run", COMMAND_RUN, 1},       {"list", COMMAND_LIST, 0},       {"doctor", COMMAND_DOCTOR, 0},
	{"report", COMMAND_REPORT, 1}, {"compare", COMMAND_COMPARE, 2}, {"help", COMMAND_HELP, 0},
};

static bool
take_command(int n, char **words, struct options *o, struct why *why)
{
	if (n == 0)
		return why_set(why, "a command is missing: run, list, doctor, report, compare (--help)");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		bool resumed = commands[i].command == COMMAND_RUN && o->resume != NULL;

		if (strcmp(words[0], commands[i].name) != 0)
			continue;
		o->command = commands[i].command;
		if (resumed && n > 1)
			return why_set(why, "--resume takes the suite and the options from the folder");
		if (!resumed && n - 1 != commands[i].n_args)
			return why_set(why, "%s wants %d argument%s, not %d (--help)", words[0], commands[i].n_args,
			               commands[i].n_args == 1 ? "" : "s", n - 1);
		for (int j = 0; j < n - 1; j++)
			o->args[j] = words[j + 1];
		o->suite = o->command == COMMAND_RUN ? o->args[0] : NULL;
		return true;
	}
	return why_set(why, "unknown command %s: run, list, doctor, report, compare (--help)", words[0]);
}

static bool
check_together(const struct options *o, struct why *why)
{
	if (o->changes.seconds > 0 && o->changes.transactions > 0)
		return why_set(why, "--duration or --transactions, not both");
	if (o->changes.server != NULL &&
	    (o->datadirs.n > 0 || o->settings.n > 0 || o->changes.setups != NULL || o->changes.sockets != SOCKETS_TCP))
		return why_set(why, "--server is of a server that runs: no --datadir, --set, --topologies or --unix "
		                    "with it");
	return true;
}

static const char *
option_at(size_t i)
{
	return long_options[i].val != OPT_CROWD ? long_options[i].name : NULL;
}

static bool
unknown_option(const char *word, struct why *why)
{
	char *name = text_fmt("%.*s", (int)strcspn(word, "="), word);
	const char *near = strncmp(name, "--", 2) == 0 ? nearest_find(name + 2, option_at) : NULL;

	if (near != NULL)
		why_set(why, "unknown option %s: is --%s meant? (--help)", name, near);
	else
		why_set(why, "unknown option %s (--help)", name);
	free(name);
	return false;
}

/* getopt_long() may change the order of the words, which are its own here. */
static bool
parse_words(int argc, char **words, struct options *out, struct why *why)
{
	int option, index = 0;

	optind = 0; /* start over: this may be the second time */
	opterr = 0;
	while ((option = getopt_long(argc, words, ":hV", long_options, &index)) != -1) {
		if (option == '?')
			return unknown_option(words[optind - 1], why);
		if (option == ':')
			return why_set(why, "%s wants a value (--help)", words[optind - 1]);
		if (!take_option(option, long_options[index].name, optarg, out, why))
			return false;
		if (out->command == COMMAND_HELP || out->command == COMMAND_VERSION)
			return true;
	}
	if (out->command == COMMAND_CROWD) {
		if (argc - optind != 3)
			return why_set(why, "--crowd KIND CONNINFO N is for pgweir-bench itself");
		for (int i = 0; i < 3; i++)
			out->args[i] = words[optind + i];
		return true;
	}
	return take_command(argc - optind, words + optind, out, why) && check_together(out, why);
}

bool
cmdline_parse(int argc, char **argv, struct options *out, struct why *why)
{
	char **words = text_alloc(((size_t)argc + 1) * sizeof(*words));
	bool ok;

	memset(out, 0, sizeof(*out));
	out->command = COMMAND_LIST; /* until the words are looked at */
	out->max_direct = MAX_DIRECT;
	out->changes.discard = -1;
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	ok = parse_words(argc, words, out, why);
	free(words);
	return ok;
}

void
cmdline_fini(struct options *options)
{
	text_list_fini(&options->datadirs);
	text_list_fini(&options->settings);
}
