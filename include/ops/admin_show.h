/* SPDX-License-Identifier: ISC */
/* What the commands of the console answer; see admin_command.c for which is which. */
#ifndef PGWEIR_OPS_ADMIN_SHOW_H
#define PGWEIR_OPS_ADMIN_SHOW_H

#include "ops/admin_command.h"

/* admin_show.c: the daemon as a whole */
void admin_show_config(struct admin_call *call);
void admin_show_help(struct admin_call *call);
void admin_show_lists(struct admin_call *call);
void admin_show_proxies(struct admin_call *call);
void admin_show_state(struct admin_call *call);
void admin_show_version(struct admin_call *call);

/* admin_show_names.c: what is configured, and what it has come to */
void admin_show_databases(struct admin_call *call);
void admin_show_users(struct admin_call *call);
const char *admin_mode_text(int64_t mode);         /* enum pool_mode; NULL: CONFIG_UNSET */
size_t admin_n_databases(struct admin_call *call); /* rows that the two show */
size_t admin_n_users(struct admin_call *call);

/* admin_show_links.c: rows of the proxies */
void admin_show_clients(struct admin_call *call);
void admin_show_servers(struct admin_call *call);
void admin_show_sockets(struct admin_call *call);
void admin_show_active_sockets(struct admin_call *call);
void admin_show_pools(struct admin_call *call);
void admin_show_prepared(struct admin_call *call);

struct reply;
void admin_reply_time(struct reply *r, const struct weir *w, uint64_t us); /* monotonic, shown as a date */
/* One row for each group, by name, malloc'ed; NULL: no memory. */
struct snapshot_pool *admin_merge_pools(const struct ask *a, size_t *n);

/* admin_show_hosts.c */
void admin_show_hosts(struct admin_call *call);

/* admin_show_state.c: what sessions keep between their transactions */
void admin_show_pins(struct admin_call *call);
void admin_show_session_state(struct admin_call *call);
void admin_show_settings(struct admin_call *call);

/* admin_show_stats.c: counters and averages */
void admin_show_stats(struct admin_call *call);
void admin_show_stats_totals(struct admin_call *call);
void admin_show_stats_averages(struct admin_call *call);
void admin_show_totals(struct admin_call *call);
/* Makes the pools' counters of a the latest reading of st; false: no memory. */
bool admin_read_stats(struct stats *st, const struct ask *a);
/* The line of log_stats, over the last period. */
void admin_log_stats(const struct stats *st);

/* admin_parameters.c: what drivers want to see at login, set and show */
void admin_build_parameters(struct buf *out);
void admin_show_parameter(struct admin_call *call);
void admin_set(struct admin_call *call);

#endif
