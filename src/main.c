/* SPDX-License-Identifier: ISC */
#include "base/log.h"
#include "ops/cmdline.h"
#include "ops/config_file.h"
#include "ops/daemon.h"
#include "ops/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
fail(const char *why)
{
	fprintf(stderr, "pgweir: %s\n", why);
	return 1;
}

static struct config *
load(const char *argument, bool daemon, struct config_messages *m)
{
	struct config *c = NULL;
	enum status status = config_is_conninfo(argument) ? config_conninfo_load(argument, &c, m)
	                                                  : config_file_load(argument, &c, m);

	if (status == STATUS_OK && config_check_start(c, daemon, m))
		return c;
	config_unref(&c);
	return NULL;
}

/* Logs go where the configuration says; until here they went to stderr. */
static bool
open_logs(const struct config *c, const struct cmdline *cl)
{
	log_set_verbose(cl->n_verbose + (int)c->verbose);
	if (c->syslog)
		log_open_syslog(c->syslog_ident, c->syslog_facility);
	if (c->logfile[0] != '\0' && !log_open_file(c->logfile)) {
		fprintf(stderr, "pgweir: cannot open logfile %s: %s\n", c->logfile, strerror(errno));
		return false;
	}
	return true;
}

static void
on_ready(void)
{
	daemon_ready();
}

static int
run(const struct cmdline *cl, struct config *c, const struct config_messages *m)
{
	char why[256] = "", limits_why[256];
	enum status limits;
	int status;

	if (cl->daemon && daemon_fork(why, sizeof(why)) != STATUS_OK)
		return fail(why);
	/* before root is dropped: only root may raise the hard limit */
	limits = daemon_raise_nofile(daemon_need_nofile(c), limits_why, sizeof(limits_why));
	if (daemon_drop_root(cl->user ? cl->user : c->user, why, sizeof(why)) != STATUS_OK)
		return fail(why);
	if (!open_logs(c, cl))
		return 1;
	if (daemon_write_pidfile(c->pidfile, why, sizeof(why)) != STATUS_OK)
		return fail(why);
	config_messages_log(m);
	if (limits != STATUS_OK)
		log_event(LOG_WARN_, "limits", LOG_S("msg", limits_why));
	if (cl->reboot)
		log_event(LOG_WARN_, "reboot",
		          LOG_S("msg", "-R: taking over from a running process is not supported yet"));
	if (cl->quiet)
		log_set_stderr(false);
	status = server_run(&c, on_ready);
	daemon_remove_pidfile();
	return status;
}

int
main(int argc, char **argv)
{
	struct config_messages messages;
	struct cmdline cl;
	struct config *c;
	char why[256];
	int status;

	if (cmdline_parse(argc, argv, &cl, why, sizeof(why)) != STATUS_OK)
		return fail(why);
	if (cl.action == CMDLINE_VERSION) {
		cmdline_print_version(stdout);
		return 0;
	}
	if (cl.action == CMDLINE_HELP) {
		cmdline_print_help(stdout);
		return 0;
	}
	config_messages_init(&messages);
	c = load(cl.config, cl.daemon, &messages);
	if (c == NULL || cl.action == CMDLINE_CHECK)
		config_messages_print(&messages, stderr);
	if (c == NULL)
		status = 1;
	else if (cl.action == CMDLINE_CHECK)
		status = 0;
	else
		status = run(&cl, c, &messages);
	if (cl.action == CMDLINE_CHECK)
		config_unref(&c);
	config_messages_fini(&messages);
	return status;
}
