/* SPDX-License-Identifier: ISC */
/*
 * The world a real-server test lives in: an unprivileged user, one temporary
 * folder, child processes, ports. Whatever way a test program ends, killed
 * included, its children die with it and a janitor process removes the folder.
 * Main thread only.
 */
#ifndef PGWEIR_TEST_PROC_H
#define PGWEIR_TEST_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Call first in main(). Started as root it becomes user postgres (or nobody),
 * because neither PostgreSQL nor pgweir runs as root. Makes the temporary folder
 * and goes there, so resolve relative paths before (proc_path()).
 */
void proc_init(void);
/* The same, still root if it was started so. */
void proc_init_keep_user(void);

/* Ends the test program with a message: for the harness's own failures outside a test. */
_Noreturn void proc_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

const char *proc_tmpdir(void);      /* a short path: a Unix socket fits below it */
const char *proc_daemon_path(void); /* the binary under test: $PGWEIR or ./pgweir */
const char *proc_pg_bindir(void);   /* initdb, postgres */
/* A client program: there, or where the shell finds it, since some packages have only the server. */
const char *proc_pg_program(const char *name);

char *proc_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* malloc'd; leaks are fine in tests */
char *proc_read_file(const char *path);                                     /* malloc'd; "" when there is none */
void proc_write_file(const char *path, const char *text);

/*
 * Starts argv[0] with stdout and stderr appended to the file log. It gets
 * death_signal when this process dies and at exit of the program.
 */
pid_t proc_spawn(const char *log, int death_signal, char *const argv[]);
/* Exit code, 128 + signal, or -1 when it still runs after timeout_ms. */
int proc_wait(pid_t pid, int timeout_ms);
void proc_kill(pid_t pid, int sig); /* to one of ours that is not yet waited for */

/* Runs a shell command to its end, 128 + signal if killed; *output (may be NULL) gets stdout and stderr, malloc'd. */
int proc_run(char **output, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

uint16_t proc_free_port(void); /* TCP, below 32768, reserved for this program while it lives */

int proc_n_fds(pid_t pid);
long proc_rss_kib(pid_t pid);
double proc_cpu_seconds(pid_t pid);
int proc_children(pid_t pid, pid_t *out, int cap); /* direct children */

int64_t proc_now_ms(void);

/* Evaluates cond until it is true; false after timeout_ms. */
#define wait_until(cond, timeout_ms)                                                                                   \
	({                                                                                                             \
		int64_t wait_deadline = proc_now_ms() + (timeout_ms);                                                  \
		bool wait_ok;                                                                                          \
		for (int wait_round = 0; !(wait_ok = (cond)) && proc_now_ms() < wait_deadline; wait_round++)           \
			proc_nap(wait_round);                                                                          \
		wait_ok;                                                                                               \
	})
void proc_nap(int round); /* 1 ms at first, up to 20 ms */

#endif
