/* SPDX-License-Identifier: ISC */
/*
 * One event, one line: `time level event key=value ...`. Any thread; lines are
 * written whole (one write). Values with spaces, quotes, '=' or control bytes are
 * quoted and escaped; secrets and SQL texts are never passed here.
 *
 *   log_event(LOG_INFO_, "login", LOG_S("db", name), LOG_I("ms", ms), LOG_S("msg", "login attempt"));
 */
#ifndef PGWEIR_BASE_LOG_H
#define PGWEIR_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_FATAL_, /* the daemon stops */
	LOG_ERROR_, /* something the operator must look at */
	LOG_WARN_,  /* refused or degraded */
	LOG_INFO_,  /* life-cycle events */
	LOG_DEBUG_, /* -v */
	LOG_TRACE_, /* -v -v: state changes, messages */
	LOG_LEVEL_N
};

enum log_kind { LOG_END_KIND, LOG_STR_KIND, LOG_INT_KIND, LOG_UINT_KIND };

struct log_field {
	enum log_kind kind;
	const char *key;
	const char *str; /* NULL: the field is left out */
	int64_t num;
};

#define LOG_S(key, value) ((struct log_field){LOG_STR_KIND, (key), (value), 0})
#define LOG_I(key, value) ((struct log_field){LOG_INT_KIND, (key), "", (int64_t)(value)})
#define LOG_U(key, value) ((struct log_field){LOG_UINT_KIND, (key), "", (int64_t)(value)})

#define log_event(level, event, ...)                                                                                   \
	do {                                                                                                           \
		if (log_enabled(level))                                                                                \
			log_emit((level), (event), (const struct log_field[]){__VA_ARGS__, {LOG_END_KIND, 0, 0, 0}});  \
	} while (0)

extern _Atomic int log_verbosity; /* the highest level written; see log_set_verbose() */

static inline bool
log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&log_verbosity, memory_order_relaxed);
}

void log_emit(enum log_level level, const char *event, const struct log_field *fields);

/*
 * Targets. stderr is on from the start. `path` is opened for append (NULL: no file); returns false with errno when
 * that fails. log_reopen() opens the same path again (log rotation).
 */
bool log_open_file(const char *path);
void log_reopen(void);
void log_set_stderr(bool on);
void log_open_syslog(const char *ident, const char *facility); /* facility: daemon, local0, ...; unknown: daemon */
void log_set_verbose(int n_v);                                 /* number of -v: 0 = up to INFO, 1 DEBUG, 2 TRACE */

/*
 * Repeats are batched: at most one line per `struct log_repeat` and second; the next line carries repeated=N.
 *   static struct log_repeat r; if (log_repeat_pass(&r, &n)) log_event(..., LOG_U("repeated", n));
 */
struct log_repeat {
	_Atomic uint64_t last_us;
	_Atomic uint32_t n_held;
};
bool log_repeat_pass(struct log_repeat *r, uint32_t *n_held);

#endif
