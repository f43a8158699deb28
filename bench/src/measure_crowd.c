/* SPDX-License-Identifier: ISC */
#include "measure_parts.h"

#include "child.h"
#include "files.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_COPIERS 64
#define SETTLE_SECONDS 3.0 /* memory may be given back a little after the last client has left */

struct crowd {
	char *log, *errors;
	pid_t pid;
};

static bool
crowd_start(struct crowd *c, const struct measure_how *how, const char *kind, const char *conninfo, long n, int number,
            struct why *why)
{
	char *count = text_fmt("%ld", n);
	char *argv[] = {(char *)how->self, "--crowd", (char *)kind, (char *)conninfo, count, NULL};

	c->log = text_fmt("%s.crowd%d.out", how->raw, number);
	c->errors = text_fmt("%s.crowd%d.errors", how->raw, number);
	unlink(c->log);
	unlink(c->errors);
	c->pid = child_start(&(struct child_how){.log = c->log, .errors = c->errors}, argv, why);
	free(count);
	return c->pid > 0;
}

static void
crowd_fini(struct crowd *c)
{
	child_stop(c->pid);
	free(c->log);
	free(c->errors);
	*c = (struct crowd){0};
}

/* What follows the word in its output; false: it has not said it (yet). */
static bool
crowd_said(const struct crowd *c, const char *word, double *a, double *b)
{
	char *text = files_read(c->log), *found = strstr(text, word), *end;
	bool ok = found != NULL && strchr(found, '\n') != NULL;

	if (ok) {
		*a = strtod(found + strlen(word), &end);
		if (b != NULL)
			*b = strtod(end, NULL);
	}
	free(text);
	return ok;
}

static bool
crowd_complains(const struct crowd *c, const char *what, struct why *why)
{
	char *text = files_read(c->errors), *line = text_error_line(text);

	why_set(why, "%s: %.300s", what, line[0] != '\0' ? line : "ended without a word");
	free(line);
	free(text);
	return false;
}

static bool
stopped(const struct watch *w, struct why *why)
{
	return why_set(why, "%s", child_stop_asked() != 0 ? "interrupted" : w->why.text);
}

/* ---- idle ---- */

static bool
wait_ready(struct crowd *c, struct watch *w, double *seconds, struct why *why)
{
	for (int round = 0; !crowd_said(c, "ready ", seconds, NULL); round++) {
		if (!child_is_running(c->pid))
			return crowd_complains(c, "idle clients", why);
		if (!watch_tick(w) || !child_nap(round))
			return stopped(w, why);
	}
	return true;
}

/* Watches for so long, and goes on watching. */
static bool
watch_for(struct watch *w, double seconds, struct why *why)
{
	double end = child_now() + seconds;

	for (int round = 20; child_now() < end; round++)
		if (!watch_tick(w) || !child_nap(round))
			return stopped(w, why);
	return true;
}

static bool
leave(struct crowd *c, struct watch *w, struct why *why)
{
	double lost = 0;
	int rc;

	child_signal(c->pid, SIGTERM);
	rc = child_wait(c->pid, watch_tick, w);
	c->pid = 0;
	if (rc == -1)
		return stopped(w, why);
	if (rc != 0 && crowd_said(c, "lost ", &lost, NULL) && lost > 0)
		return why_set(why, "%.0f idle clients were closed by the other side", lost);
	return rc == 0 ? watch_for(w, SETTLE_SECONDS, why) : crowd_complains(c, "idle clients", why);
}

bool
measure_idle(const struct measure_how *how, const char *conninfo, struct result *out, struct why *why)
{
	const struct system *sys = how->system;
	struct crowd crowd = {0};
	struct watch watch;
	double connecting = 0, from = 0, to = 0;
	bool ok;

	watch_begin(&watch, how, 300 + how->cell->clients * 0.05);
	out->pooler_rss_before_kb = sys->n_pids > 0 ? (int64_t)samples_rss_kb(sys->pids, sys->n_pids) : RESULT_UNKNOWN;
	ok = crowd_start(&crowd, how, "idle", conninfo, how->cell->clients, 0, why) &&
	     wait_ready(&crowd, &watch, &connecting, why);
	from = child_now();
	ok = ok && watch_for(&watch, 1, why);
	to = child_now();
	ok = ok && leave(&crowd, &watch, why);
	if (ok && sys->n_pids > 0)
		out->pooler_rss_after_kb = (int64_t)samples_rss_kb(sys->pids, sys->n_pids);
	out->connect_ms = ok ? connecting * 1000 : NAN;
	out->duration_s = child_now() - watch.begin;
	watch_end(&watch, from, to, out);
	crowd_fini(&crowd);
	return ok;
}

bool
beside_start(struct beside *b, const struct measure_how *how, const char *conninfo, int n, struct why *why)
{
	struct watch watch;
	double connecting = 0;
	bool ok;

	*b = (struct beside){.crowd = text_alloc(sizeof(*b->crowd))};
	watch_begin(&watch, how, 300 + n * 0.05);
	ok = crowd_start(b->crowd, how, "idle", conninfo, n, 0, why) && wait_ready(b->crowd, &watch, &connecting, why);
	samples_fini(&watch.samples);
	return ok;
}

bool
beside_stop(struct beside *b, struct why *why)
{
	struct crowd *crowd = b->crowd;
	double lost = 0;
	bool ok = true;
	int rc = 0;

	if (crowd == NULL)
		return true;
	if (crowd->pid > 0) {
		child_signal(crowd->pid, SIGTERM);
		rc = child_wait(crowd->pid, NULL, NULL);
		crowd->pid = 0;
	}
	if (rc > 0)
		ok = crowd_said(crowd, "lost ", &lost, NULL) && lost > 0
		             ? why_set(why, "%.0f of the idle clients were closed by the other side", lost)
		             : crowd_complains(crowd, "idle clients", why);
	crowd_fini(crowd);
	free(crowd);
	b->crowd = NULL;
	return ok;
}

/* ---- storm ---- */

bool
measure_storm(const struct measure_how *how, const char *conninfo, struct result *out, struct why *why)
{
	struct crowd crowd = {0};
	struct watch watch;
	double seconds = 0, failed = 0;
	bool ok;
	int rc;

	watch_begin(&watch, how, 200);
	ok = crowd_start(&crowd, how, "storm", conninfo, how->cell->clients, 0, why);
	if (ok) {
		samples_watch(&watch.samples, SAMPLE_PGBENCH, crowd.pid);
		rc = child_wait(crowd.pid, watch_tick, &watch);
		crowd.pid = 0;
		ok = rc == -1 ? stopped(&watch, why)
		     : rc == 0 && crowd_said(&crowd, "done ", &seconds, &failed)
		             ? true
		             : crowd_complains(&crowd, "logins", why);
	}
	if (ok) {
		out->duration_s = seconds;
		out->connect_ms = seconds * 1000;
		out->transactions = (int64_t)(how->cell->clients - failed);
		out->failures = (int64_t)failed;
		out->tps_connecting = (double)out->transactions / seconds;
		if (failed > 0)
			ok = crowd_complains(&crowd, "logins", why);
	}
	/* Logins are the matter here: the whole run counts. */
	watch_end(&watch, INFINITY, 0, out);
	crowd_fini(&crowd);
	return ok;
}

/* ---- copy ---- */

static bool
wait_copiers(struct crowd *crowds, int n, struct watch *w, double *seconds, double *bytes, struct why *why)
{
	bool ok = true;

	for (int i = 0; ok && i < n; i++) {
		double took = 0, copied = 0;
		int rc = child_wait(crowds[i].pid, watch_tick, w);

		crowds[i].pid = 0;
		if (rc == -1)
			ok = stopped(w, why);
		else if (rc != 0 || !crowd_said(&crowds[i], "done ", &took, &copied))
			ok = crowd_complains(&crowds[i], "copy", why);
		*seconds = fmax(*seconds, took);
		*bytes += copied;
	}
	return ok;
}

bool
measure_copy(const struct measure_how *how, const char *conninfo, struct result *out, struct why *why)
{
	const char *kind = how->cell->workload->kind == WORKLOAD_COPY_IN ? "copy-in" : "copy-out";
	int n = how->cell->clients < MAX_COPIERS ? how->cell->clients : MAX_COPIERS;
	struct crowd crowds[MAX_COPIERS] = {0};
	struct watch watch;
	double seconds = 0, bytes = 0;
	bool ok = true;

	if (how->cell->clients > MAX_COPIERS)
		return why_set(why, "at most %d clients copy at the same time", MAX_COPIERS);
	watch_begin(&watch, how, 1800);
	for (int i = 0; ok && i < n; i++) {
		ok = crowd_start(&crowds[i], how, kind, conninfo, how->cell->copy_mb, i, why);
		if (ok)
			samples_watch(&watch.samples, SAMPLE_PGBENCH, crowds[i].pid);
	}
	ok = ok && wait_copiers(crowds, n, &watch, &seconds, &bytes, why);
	if (ok && seconds > 0) {
		out->duration_s = seconds;
		out->transactions = n;
		out->mb_per_s = bytes / 1e6 / seconds;
	}
	watch_end(&watch, INFINITY, 0, out);
	for (int i = 0; i < n; i++)
		crowd_fini(&crowds[i]);
	return ok;
}
