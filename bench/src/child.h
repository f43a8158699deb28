/* SPDX-License-Identifier: ISC */
/*
 * The programs that the benchmark starts. Whatever is started is remembered here by its process id, and only those are
 * ever signalled. Each has a session of its own, so that Ctrl-C reaches the benchmark alone, which then stops things in
 * order; should the benchmark be killed, the kernel ends them. One thread.
 */
#ifndef PGWEIR_BENCH_CHILD_H
#define PGWEIR_BENCH_CHILD_H

#include "text.h"

#include <stdbool.h>
#include <sys/types.h>

struct child_how {
	const char *log;     /* standard output and errors are appended to it */
	const char *errors;  /* instead, for errors alone; NULL: log */
	const char *folder;  /* to start in; NULL: / */
	bool unprivileged;   /* as the user of child_choose_user() */
	int stop_signal;     /* what asks it to end; 0: SIGTERM */
	const char *setting; /* NAME=value for its environment; NULL: none */
};

/* Handlers for SIGINT, SIGTERM, SIGHUP and an atexit() that stops everything. Once, first. */
void child_begin(void);
/* The signal that asked us to end; 0: none. Everything that waits gives up then. */
int child_stop_asked(void);

/*
 * Whom servers run as: us or, if we are root, the user postgres, else nobody. False: root and neither of the two.
 */
bool child_choose_user(struct why *why);
const char *child_user_name(void);         /* NULL: ourselves */
bool child_give_folder(const char *path);  /* makes that user its owner */
bool child_user_can_run(const char *path); /* whether that user may execute the program */
bool child_user_can_enter(const char *path);

/* -1: why is told. Ends with exit code 127 if the program cannot be executed; then the log says why. */
pid_t child_start(const struct child_how *how, char *const argv[], struct why *why);
bool child_is_running(pid_t pid);
/* Asks, waits, and kills after ten seconds. Forgets it. A process that is not ours or has ended is fine. */
void child_stop(pid_t pid);
void child_signal(pid_t pid, int sig);
/* Of one that has ended: "exit code 1", "signal 11"; of any other "". Allocated. */
char *child_how_it_ended(pid_t pid);

/*
 * Until it ends; `tick` is called about every 20 ms and may say false to have it stopped. The exit code; 128 + signal;
 * -1: `tick` said so, or we were asked to end.
 */
int child_wait(pid_t pid, bool (*tick)(void *), void *arg);
/* Starts it and waits. Its last line of errors is in `why` if it fails. */
bool child_run(const struct child_how *how, char *const argv[], struct why *why);

/* Waits for a condition: sleeps a little (less in the first rounds), unless we were asked to end: false. */
bool child_nap(int round);
double child_now(void); /* seconds, monotonic */

#endif
