/* SPDX-License-Identifier: ISC */
#include "core/config.h"

#include "auth/users.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static size_t
index_of(const char *name)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(settings[i].name, name) == 0)
			return i;
	}
	ck_abort_msg("no setting %s", name);
}

static enum status
set(struct config *c, const char *name, const char *value)
{
	char why[256];

	return config_set(c, name, value, why, sizeof why);
}

static const char *
text_of(const struct config *c, const char *name)
{
	static char buf[256];

	config_setting_text(c, index_of(name), buf, sizeof buf);
	return buf;
}

START_TEST(settings_are_sorted_and_explained)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);

	ck_assert_uint_gt(n, 90);
	for (size_t i = 0; i < n; i++) {
		ck_assert(i == 0 || strcmp(settings[i - 1].name, settings[i].name) < 0);
		ck_assert_msg(strlen(settings[i].help) > 10, "%s", settings[i].name);
		ck_assert_msg(settings[i].help[strlen(settings[i].help) - 1] == '.', "%s", settings[i].name);
	}
}
END_TEST

START_TEST(defaults_read_back_as_written)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);
	struct config *c = config_new();
	char buf[512];

	ck_assert_ptr_nonnull(c);
	for (size_t i = 0; i < n; i++) {
		config_setting_text(c, i, buf, sizeof buf);
		ck_assert_str_eq(buf, settings[i].default_text);
	}
	ck_assert_int_eq(c->listen_port, 6432);
	ck_assert_int_eq(c->unix_socket_mode, 0777);
	ck_assert_int_eq(c->server_lifetime_us, 3600000000);
	ck_assert_int_eq(c->auth_type, AUTH_TYPE_MD5);
	ck_assert_int_eq(c->pool_mode, POOL_SESSION);
	ck_assert_str_eq(c->server_reset_query, "DISCARD ALL");
	ck_assert(c->log_connections && !c->syslog);
	ck_assert_ptr_nonnull(c->auth_users);
	config_unref(&c);
	ck_assert_ptr_null(c);
	config_unref(&c);
}
END_TEST

START_TEST(sets_each_kind)
{
	struct config *c = config_new();

	ck_assert_int_eq(set(c, "max_client_conn", "5000"), STATUS_OK);
	ck_assert_int_eq(c->max_client_conn, 5000);
	ck_assert_int_eq(set(c, "unix_socket_mode", "700"), STATUS_OK);
	ck_assert_int_eq(c->unix_socket_mode, 0700);
	ck_assert_str_eq(text_of(c, "unix_socket_mode"), "0700");
	ck_assert_int_eq(set(c, "log_connections", "0"), STATUS_OK);
	ck_assert(!c->log_connections);
	ck_assert_int_eq(set(c, "query_wait_timeout", "0.25"), STATUS_OK);
	ck_assert_int_eq(c->query_wait_timeout_us, 250000);
	ck_assert_str_eq(text_of(c, "query_wait_timeout"), "0.25");
	ck_assert_int_eq(set(c, "query_wait_timeout", "100"), STATUS_OK);
	ck_assert_str_eq(text_of(c, "query_wait_timeout"), "100");
	ck_assert_int_eq(set(c, "admin_users", "ada, bob"), STATUS_OK);
	ck_assert_str_eq(c->admin_users, "ada, bob");
	ck_assert_int_eq(set(c, "pool_mode", "transaction"), STATUS_OK);
	ck_assert_int_eq(c->pool_mode, POOL_TRANSACTION);
	ck_assert_int_eq(set(c, "auth_type", "plain"), STATUS_OK);
	ck_assert_int_eq(c->auth_type, AUTH_TYPE_PASSWORD);
	ck_assert_str_eq(text_of(c, "auth_type"), "password");
	config_unref(&c);
}
END_TEST

START_TEST(malformed_values_change_nothing)
{
	static const struct {
		const char *name, *value;
	} cases[] = {
		{"listen_port", "0"},
		{"listen_port", "65536"},
		{"listen_port", "6432x"},
		{"listen_port", ""},
		{"max_client_conn", "99999999999999999999"},
		{"unix_socket_mode", "0778"},
		{"unix_socket_mode", "1777"},
		{"unix_socket_mode", ""},
		{"unix_socket_mode", "-1"},
		{"syslog", "yes"},
		{"syslog", "2"},
		{"server_lifetime", "-1"},
		{"server_lifetime", "1h"},
		{"server_lifetime", "1000000001"},
		{"stats_period", "0"},
		{"pool_mode", "Transaction"},
		{"pool_mode", ""},
		{"auth_type", "kerberos"},
		{"no_such_setting", "1"},
	};
	struct config *c = config_new(), *fresh = config_new();
	char why[256];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ck_assert_msg(config_set(c, cases[i].name, cases[i].value, why, sizeof why) == STATUS_BAD, "%s=%s",
		              cases[i].name, cases[i].value);
		ck_assert_ptr_nonnull(strstr(why, cases[i].name));
	}
	for (size_t i = 0; i + 1 < sizeof cases / sizeof cases[0]; i++) {
		char before[256];
		snprintf(before, sizeof before, "%s", text_of(fresh, cases[i].name));
		ck_assert_str_eq(text_of(c, cases[i].name), before);
	}
	config_unref(&c);
	config_unref(&fresh);
}
END_TEST

START_TEST(reasons_name_what_would_do)
{
	struct config *c = config_new();
	char why[256];

	ck_assert_int_eq(config_set(c, "listen_port", "x", why, sizeof why), STATUS_BAD);
	ck_assert_str_eq(why, "listen_port: \"x\" is not a whole number from 1 to 65535");
	ck_assert_int_eq(config_set(c, "unix_socket_mode", "9", why, sizeof why), STATUS_BAD);
	ck_assert_str_eq(why, "unix_socket_mode: \"9\" is not an octal number up to 0777");
	ck_assert_int_eq(config_set(c, "pool_mode", "x", why, sizeof why), STATUS_BAD);
	ck_assert_str_eq(why, "pool_mode: \"x\" is none of session, transaction, statement");
	ck_assert_int_eq(config_set(c, "auth_type", "x", why, 24), STATUS_BAD);
	ck_assert_str_eq(why, "auth_type: \"x\" is none "); /* cut, not overrun */
	config_unref(&c);
}
END_TEST

START_TEST(missing_features_are_refused_unless_at_their_default)
{
	struct config *c = config_new();
	char why[256];

	ck_assert_int_eq(config_set(c, "so_reuseport", "1", why, sizeof why), STATUS_REFUSED);
	ck_assert_str_eq(why, "so_reuseport: not supported yet");
	ck_assert(!c->so_reuseport);
	ck_assert_int_eq(config_set(c, "auth_query", "SELECT 1", why, sizeof why), STATUS_REFUSED);
	ck_assert_str_ne(c->auth_query, "SELECT 1");
	ck_assert_int_eq(config_set(c, "suspend_timeout", "11", why, sizeof why), STATUS_REFUSED);
	ck_assert_int_eq(c->suspend_timeout_us, 10000000);
	ck_assert_int_eq(config_set(c, "so_reuseport", "0", why, sizeof why), STATUS_OK);
	ck_assert_str_ne(why, "");
	ck_assert_int_eq(config_set(c, "suspend_timeout", "10.0", why, sizeof why), STATUS_OK);
	ck_assert_str_ne(why, "");

	ck_assert_int_eq(config_set(c, "auth_type", "hba", why, sizeof why), STATUS_REFUSED);
	ck_assert_str_eq(why, "auth_type: \"hba\" is not supported yet");
	ck_assert_int_eq(c->auth_type, AUTH_TYPE_MD5);
	ck_assert_int_eq(set(c, "client_tls_sslmode", "prefer"), STATUS_REFUSED);
	ck_assert_int_eq(set(c, "server_tls_sslmode", "require"), STATUS_REFUSED);
	ck_assert_int_eq(config_set(c, "server_tls_sslmode", "prefer", why, sizeof why), STATUS_OK);
	ck_assert_str_eq(why, "");

	ck_assert_int_eq(config_set(c, "pkt_buf", "75", why, sizeof why), STATUS_OK);
	ck_assert_str_eq(why, "pkt_buf: has no effect in pgweir");
	config_unref(&c);
}
END_TEST

START_TEST(flags_reach_the_console)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);

	ck_assert(!settings[index_of("listen_port")].changeable);
	ck_assert(settings[index_of("pool_mode")].changeable);
	ck_assert(settings[index_of("pool_mode")].supported);
	ck_assert(!settings[index_of("auth_hba_file")].supported);
	ck_assert_str_eq(settings[index_of("server_lifetime")].unit, "s");
	ck_assert_str_eq(settings[index_of("tcp_user_timeout")].unit, "ms");
}
END_TEST

START_TEST(conffile_shows_where_the_configuration_came_from)
{
	struct config *c = config_new();

	ck_assert_str_eq(text_of(c, "conffile"), "");
	c->path = strdup("/etc/pgweir.ini");
	ck_assert_str_eq(text_of(c, "conffile"), "/etc/pgweir.ini");
	config_unref(&c);
}
END_TEST

static struct database_conf *
add_database(struct config *c, const char *name)
{
	struct database_conf *d = database_conf_new(name), *kept = d;

	ck_assert_ptr_nonnull(d);
	ck_assert_int_eq(config_add_database(c, &d), STATUS_OK);
	ck_assert_ptr_null(d);
	return kept;
}

START_TEST(databases_by_name_then_fallback)
{
	struct config *c = config_new();
	struct database_conf *app = add_database(c, "app"), *fallback, *again;

	ck_assert_ptr_eq(config_database(c, "app"), app);
	ck_assert_ptr_null(config_database(c, "ap"));
	ck_assert_ptr_null(config_database(c, "other"));
	fallback = add_database(c, "*");
	ck_assert_ptr_eq(config_database(c, "app"), app);
	ck_assert_ptr_eq(config_database(c, "other"), fallback);
	ck_assert_ptr_eq(config_database(c, ""), fallback);
	ck_assert_ptr_null(config_database(c, "pgweir"));
	ck_assert_ptr_null(config_database(c, "pgbouncer"));
	ck_assert_uint_eq(HASH_COUNT(c->databases), 1);

	again = add_database(c, "app");
	again->pool_size = 7;
	ck_assert_int_eq(config_database(c, "app")->pool_size, 7);
	ck_assert_uint_eq(HASH_COUNT(c->databases), 1);
	fallback = add_database(c, "*");
	ck_assert_ptr_eq(config_database(c, "other"), fallback);
	config_unref(&c);
}
END_TEST

static struct user_conf *
add_user(struct config *c, const char *name)
{
	struct user_conf *u = user_conf_new(name), *kept = u;

	ck_assert_ptr_nonnull(u);
	ck_assert_int_eq(config_add_user(c, &u), STATUS_OK);
	ck_assert_ptr_null(u);
	return kept;
}

START_TEST(users_by_name)
{
	struct config *c = config_new();
	struct user_conf *ada = add_user(c, "ada");

	ck_assert_ptr_eq(config_user(c, "ada"), ada);
	ck_assert_ptr_null(config_user(c, "bob"));
	ada = add_user(c, "ada");
	ck_assert_ptr_eq(config_user(c, "ada"), ada);
	ck_assert_uint_eq(HASH_COUNT(c->users), 1);
	config_unref(&c);
}
END_TEST

START_TEST(user_counts_before_database_before_global)
{
	struct config *c = config_new();
	struct database_conf *d = add_database(c, "app");
	struct user_conf *u = add_user(c, "ada");

	ck_assert_int_eq(config_pool_size(c, d, u), 20);
	ck_assert_int_eq(config_pool_size(c, d, NULL), 20);
	ck_assert_int_eq(config_pool_mode(c, d, u), POOL_SESSION);
	d->pool_size = 5;
	d->pool_mode = POOL_STATEMENT;
	ck_assert_int_eq(config_pool_size(c, d, u), 5);
	ck_assert_int_eq(config_pool_mode(c, d, NULL), POOL_STATEMENT);
	u->pool_size = 0; /* given, and no limit */
	u->pool_mode = POOL_TRANSACTION;
	ck_assert_int_eq(config_pool_size(c, d, u), 0);
	ck_assert_int_eq(config_pool_mode(c, d, u), POOL_TRANSACTION);

	ck_assert_int_eq(config_query_wait_timeout_us(c, d, u), 120000000);
	d->query_wait_timeout_us = 2;
	ck_assert_int_eq(config_query_wait_timeout_us(c, d, u), 2);
	u->query_wait_timeout_us = 3;
	ck_assert_int_eq(config_query_wait_timeout_us(c, d, u), 3);
	config_unref(&c);
}
END_TEST

START_TEST(other_effective_values)
{
	struct config *c = config_new();
	struct database_conf *d = add_database(c, "app");
	struct user_conf *u = add_user(c, "ada");

	ck_assert_int_eq(set(c, "min_pool_size", "1"), STATUS_OK);
	ck_assert_int_eq(set(c, "reserve_pool_size", "2"), STATUS_OK);
	ck_assert_int_eq(set(c, "max_db_connections", "3"), STATUS_OK);
	ck_assert_int_eq(set(c, "max_user_connections", "4"), STATUS_OK);
	ck_assert_int_eq(set(c, "max_db_client_connections", "5"), STATUS_OK);
	ck_assert_int_eq(set(c, "max_user_client_connections", "6"), STATUS_OK);
	ck_assert_int_eq(set(c, "idle_transaction_timeout", "7"), STATUS_OK);
	ck_assert_int_eq(set(c, "client_idle_timeout", "8"), STATUS_OK);
	ck_assert_int_eq(config_min_pool_size(c, d), 1);
	ck_assert_int_eq(config_reserve_pool_size(c, d, u), 2);
	ck_assert_int_eq(config_max_db_connections(c, d), 3);
	ck_assert_int_eq(config_max_user_connections(c, u), 4);
	ck_assert_int_eq(config_max_user_connections(c, NULL), 4);
	ck_assert_int_eq(config_max_db_client_connections(c, d), 5);
	ck_assert_int_eq(config_max_user_client_connections(c, u), 6);
	ck_assert_int_eq(config_idle_transaction_timeout_us(c, u), 7000000);
	ck_assert_int_eq(config_client_idle_timeout_us(c, NULL), 8000000);
	ck_assert_int_eq(config_server_lifetime_us(c, d), 3600000000);
	ck_assert_int_eq(config_query_timeout_us(c, u), 0);
	ck_assert_int_eq(config_transaction_timeout_us(c, u), 0);

	d->min_pool_size = d->reserve_pool_size = d->max_db_connections = 11;
	d->max_db_client_connections = d->server_lifetime_us = 11;
	ck_assert_int_eq(config_min_pool_size(c, d), 11);
	ck_assert_int_eq(config_reserve_pool_size(c, d, u), 11);
	ck_assert_int_eq(config_max_db_connections(c, d), 11);
	ck_assert_int_eq(config_max_db_client_connections(c, d), 11);
	ck_assert_int_eq(config_server_lifetime_us(c, d), 11);
	u->reserve_pool_size = u->max_user_connections = u->max_user_client_connections = 12;
	u->idle_transaction_timeout_us = u->client_idle_timeout_us = 12;
	u->query_timeout_us = u->transaction_timeout_us = 12;
	ck_assert_int_eq(config_reserve_pool_size(c, d, u), 12);
	ck_assert_int_eq(config_max_user_connections(c, u), 12);
	ck_assert_int_eq(config_max_user_client_connections(c, u), 12);
	ck_assert_int_eq(config_idle_transaction_timeout_us(c, u), 12);
	ck_assert_int_eq(config_client_idle_timeout_us(c, u), 12);
	ck_assert_int_eq(config_query_timeout_us(c, u), 12);
	ck_assert_int_eq(config_transaction_timeout_us(c, u), 12);
	config_unref(&c);
}
END_TEST

START_TEST(words_of_lists)
{
	ck_assert(config_list_has("ada", "ada"));
	ck_assert(config_list_has("ada,bob", "bob"));
	ck_assert(config_list_has(" ada , bob ", "ada"));
	ck_assert(config_list_has("ada,,bob", "bob"));
	ck_assert(!config_list_has("ada,bob", "ad"));
	ck_assert(!config_list_has("ada,bob", "adaa"));
	ck_assert(!config_list_has("ada,bob", ""));
	ck_assert(!config_list_has("", "ada"));
	ck_assert(!config_list_has("", ""));
}
END_TEST

START_TEST(references_keep_it_alive)
{
	struct config *c = config_new(), *other = config_ref(c);

	ck_assert_ptr_eq(c, other);
	config_unref(&c);
	ck_assert_int_eq(other->listen_port, 6432);
	config_unref(&other);
	ck_assert_ptr_null(other);
}
END_TEST

UNIT_MAIN("config", settings_are_sorted_and_explained, defaults_read_back_as_written, sets_each_kind,
          malformed_values_change_nothing, reasons_name_what_would_do,
          missing_features_are_refused_unless_at_their_default, flags_reach_the_console,
          conffile_shows_where_the_configuration_came_from, databases_by_name_then_fallback, users_by_name,
          user_counts_before_database_before_global, other_effective_values, words_of_lists, references_keep_it_alive)
