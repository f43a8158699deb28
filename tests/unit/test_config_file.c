/* SPDX-License-Identifier: ISC */
#include "ops/config_file.h"

#include "auth/users.h"
#include "ops/config_source.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

/* What a load answered. Messages are joined by newlines, as they would be printed. */
struct outcome {
	struct config *config;
	char *messages;
	size_t n_errors;
};

static char *
printed(const struct config_messages *m)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	config_messages_print(m, f);
	fclose(f);
	return text;
}

static void
finish(struct outcome *o, struct config_messages *m, enum status status)
{
	o->messages = printed(m);
	o->n_errors = m->n_errors;
	ck_assert_int_eq(status == STATUS_OK, o->config != NULL);
	ck_assert_int_eq(status == STATUS_OK, m->n_errors == 0);
	config_messages_fini(m);
}

static struct outcome
load_bytes(const char *text, size_t n)
{
	struct outcome o = {0};
	struct config_messages m;

	config_messages_init(&m);
	finish(&o, &m, config_file_load_text(text, n, "t.ini", &o.config, &m));
	return o;
}

static struct outcome
load(const char *text)
{
	return load_bytes(text, strlen(text));
}

static void
drop(struct outcome *o)
{
	config_unref(&o->config);
	free(o->messages);
}

/* Quiet otherwise: every database and an auth_file, so that no warning comes from what a test leaves out. */
#define QUIET "[databases]\n*=\n[pgweir]\nauth_file=users\n"

#define assert_loads(text)                                                                                             \
	({                                                                                                             \
		struct outcome loaded = load(text);                                                                    \
		ck_assert_str_eq(loaded.messages, "");                                                                 \
		ck_assert_ptr_nonnull(loaded.config);                                                                  \
		loaded;                                                                                                \
	})

#define assert_refused(text, expected)                                                                                 \
	do {                                                                                                           \
		struct outcome refused = load(text);                                                                   \
		ck_assert_str_eq(refused.messages, expected);                                                          \
		ck_assert_ptr_null(refused.config);                                                                    \
		drop(&refused);                                                                                        \
	} while (0)

/* What a file for pgbouncer relies on stays as it is there, unless it says otherwise. */
START_TEST(session_state_by_section)
{
	struct outcome own = assert_loads(QUIET),
		       other = assert_loads("[databases]\n*=\n[pgbouncer]\nauth_file=users\n"),
		       said = assert_loads(
			       "[databases]\na = session_state=strict\n*=\n[pgbouncer]\nsession_state=preserve\n"
			       "auth_file=users\n[users]\nada = session_state=ignore\n");
	const struct config *c = said.config;

	ck_assert_int_eq(own.config->session_state, STATE_PRESERVE);
	ck_assert_int_eq(other.config->session_state, STATE_IGNORE);
	ck_assert_int_eq(c->session_state, STATE_PRESERVE);
	ck_assert_int_eq(config_session_state(c, config_database(c, "a"), NULL), STATE_STRICT);
	ck_assert_int_eq(config_session_state(c, config_database(c, "b"), NULL), STATE_PRESERVE);
	ck_assert_int_eq(config_session_state(c, config_database(c, "a"), config_user(c, "ada")), STATE_IGNORE);
	drop(&own);
	drop(&other);
	drop(&said);
	assert_refused("[databases]\na = session_state=some\n[pgweir]\nauth_file=users\n",
	               "t.ini:2: database \"a\": session_state: \"some\" is none of preserve, strict, ignore\n");
}
END_TEST

START_TEST(reads_a_pgbouncer_ini)
{
	struct outcome o = assert_loads(";; comment\n"
	                                "[databases]\n"
	                                "app = host=127.0.0.1 port=5433 dbname=bazdb user=baz password='it''s'\n"
	                                "* = host=/run/postgresql\n"
	                                "[users]\n"
	                                "ada = pool_mode=transaction max_user_connections=10\n"
	                                "[pgbouncer]\n"
	                                "  listen_addr = 127.0.0.1, ::1\n"
	                                "listen_port=6433\n"
	                                "# comment\n"
	                                "auth_file = /etc/pgbouncer/userlist.txt\n"
	                                "pidfile =\n");
	const struct database_conf *d = config_database(o.config, "app");

	ck_assert_str_eq(d->host, "127.0.0.1");
	ck_assert_int_eq(d->hosts[0].port, 5433);
	ck_assert_str_eq(d->dbname, "bazdb");
	ck_assert_str_eq(d->user, "baz");
	ck_assert_str_eq(d->password.text, "it's");
	ck_assert_int_eq(d->pool_size, CONFIG_UNSET);
	d = config_database(o.config, "any");
	ck_assert_str_eq(d->host, "/run/postgresql");
	ck_assert_int_eq(d->hosts[0].port, 5432);
	ck_assert_ptr_null(d->dbname);
	ck_assert_int_eq(config_user(o.config, "ada")->max_user_connections, 10);
	ck_assert_int_eq(config_user(o.config, "ada")->pool_mode, POOL_TRANSACTION);
	ck_assert_str_eq(o.config->listen_addr, "127.0.0.1, ::1");
	ck_assert_int_eq(o.config->listen_port, 6433);
	ck_assert_str_eq(o.config->pidfile, "");
	drop(&o);
}
END_TEST

START_TEST(later_ones_win_and_sections_come_again)
{
	struct outcome o = assert_loads(QUIET "verbose=1\nverbose=2\n"
	                                      "[databases]\na = pool_size=1 port=9\na = pool_size=2\n"
	                                      "[pgbouncer]\nverbose=3\n[pgweir]\nmax_connecting=2\n");

	ck_assert_int_eq(o.config->verbose, 3);
	ck_assert_int_eq(o.config->max_connecting, 2);
	ck_assert_int_eq(config_database(o.config, "a")->pool_size, 2);
	ck_assert_int_eq(config_database(o.config, "a")->hosts[0].port, 5432); /* an entry is replaced as a whole */
	drop(&o);
}
END_TEST

/* Each of these is cut, joined or split by inih when it reads a file by itself. */
START_TEST(values_are_taken_as_they_are)
{
	struct outcome o = assert_loads(QUIET "server_reset_query = SELECT 1 ; SELECT 2 # 3: 4 = 5 \n"
	                                      "    verbose = 1\n"
	                                      "\t; a comment, indented\n"
	                                      "server_check_query =select [1] %d\n");

	ck_assert_str_eq(o.config->server_reset_query, "SELECT 1 ; SELECT 2 # 3: 4 = 5");
	ck_assert_int_eq(o.config->verbose, 1);
	ck_assert_str_eq(o.config->server_check_query, "select [1] %d");
	drop(&o);
}
END_TEST

START_TEST(long_values_are_whole)
{
	size_t n = 70000;
	char *value = malloc(n + 1), *text = NULL;
	struct outcome o;

	memset(value, 'x', n);
	value[n] = '\0';
	ck_assert_int_gt(asprintf(&text, QUIET "[databases]\nlong = user=u password=%s host=h\n", value), 0);
	o = load(text);
	ck_assert_str_eq(o.messages, "");
	ck_assert_str_eq(config_database(o.config, "long")->password.text, value);
	ck_assert_str_eq(config_database(o.config, "long")->host, "h");
	drop(&o);
	free(value);
	free(text);
}
END_TEST

START_TEST(a_line_too_long_is_an_error)
{
	size_t n = CONFIG_LINE_MAX + 1;
	char *text = malloc(sizeof QUIET + n + 64);
	struct outcome o;

	memcpy(text, QUIET, strlen(QUIET));
	memset(text + strlen(QUIET), 'v', n);
	stpcpy(text + strlen(QUIET) + n, "\nverbse = 1\n");
	o = load(text);
	ck_assert_str_eq(o.messages, "t.ini:5: the line is longer than 131072 bytes\n"
	                             "t.ini:6: unknown setting \"verbse\"; did you mean \"verbose\"?\n");
	drop(&o);
	free(text);
}
END_TEST

START_TEST(quoted_names)
{
	struct outcome o =
		assert_loads(QUIET "[databases]\n\"my ; \"\"db\"\" = [x]\" = port=1\n\"q\"=port=2\na.b-c_d:e=port=3\n"
	                           "caf\xc3\xa9 = port=4\n");

	ck_assert_int_eq(config_database(o.config, "my ; \"db\" = [x]")->hosts[0].port, 1);
	ck_assert_int_eq(config_database(o.config, "q")->hosts[0].port, 2);
	ck_assert_int_eq(config_database(o.config, "a.b-c_d:e")->hosts[0].port, 3);
	ck_assert_int_eq(config_database(o.config, "caf\xc3\xa9")->hosts[0].port, 4);
	drop(&o);
}
END_TEST

START_TEST(entry_grammar)
{
	struct outcome o =
		assert_loads(QUIET "[databases]\n"
	                           "a = host = h\tport= 7  user ='o''x y' connect_query='set a=''1''; select 2'\r\n"
	                           "b=\n"
	                           "c = dbname=x'y reserve_pool=3 pool_mode=statement server_lifetime=1.5\n");
	const struct database_conf *d = config_database(o.config, "a");

	ck_assert_str_eq(d->host, "h");
	ck_assert_int_eq(d->hosts[0].port, 7);
	ck_assert_str_eq(d->user, "o'x y");
	ck_assert_str_eq(d->connect_query, "set a='1'; select 2");
	ck_assert_ptr_null(config_database(o.config, "b")->host);
	d = config_database(o.config, "c");
	ck_assert_str_eq(d->dbname, "x'y");
	ck_assert_int_eq(d->reserve_pool_size, 3);
	ck_assert_int_eq(d->pool_mode, POOL_STATEMENT);
	ck_assert_int_eq(d->server_lifetime_us, 1500000);
	drop(&o);
}
END_TEST

START_TEST(all_keys_of_entries)
{
	struct outcome o = assert_loads(
		QUIET "[databases]\n"
		      "a = dbname=b host=c port=1 user=d password=e connect_query=f client_encoding=g datestyle=h "
		      "timezone=i application_name=j pool_size=2 min_pool_size=3 reserve_pool_size=4 "
		      "max_db_connections=5 max_db_client_connections=6 pool_mode=session server_lifetime=7 "
		      "query_wait_timeout=8\n"
		      "[users]\n"
		      "u = pool_mode=session pool_size=1 reserve_pool_size=2 max_user_connections=3 "
		      "max_user_client_connections=4 query_wait_timeout=5 idle_transaction_timeout=6 "
		      "client_idle_timeout=7\n");
	const struct database_conf *d = config_database(o.config, "a");
	const struct user_conf *u = config_user(o.config, "u");

	ck_assert_str_eq(d->dbname, "b");
	ck_assert_str_eq(d->client_encoding, "g");
	ck_assert_str_eq(d->datestyle, "h");
	ck_assert_str_eq(d->timezone, "i");
	ck_assert_str_eq(d->application_name, "j");
	ck_assert_int_eq(d->pool_size, 2);
	ck_assert_int_eq(d->min_pool_size, 3);
	ck_assert_int_eq(d->reserve_pool_size, 4);
	ck_assert_int_eq(d->max_db_connections, 5);
	ck_assert_int_eq(d->max_db_client_connections, 6);
	ck_assert_int_eq(d->pool_mode, POOL_SESSION);
	ck_assert_int_eq(d->server_lifetime_us, 7000000);
	ck_assert_int_eq(d->query_wait_timeout_us, 8000000);
	ck_assert_int_eq(u->pool_mode, POOL_SESSION);
	ck_assert_int_eq(u->pool_size, 1);
	ck_assert_int_eq(u->reserve_pool_size, 2);
	ck_assert_int_eq(u->max_user_connections, 3);
	ck_assert_int_eq(u->max_user_client_connections, 4);
	ck_assert_int_eq(u->query_wait_timeout_us, 5000000);
	ck_assert_int_eq(u->idle_transaction_timeout_us, 6000000);
	ck_assert_int_eq(u->client_idle_timeout_us, 7000000);
	drop(&o);
}
END_TEST

START_TEST(every_error_is_reported_with_its_place)
{
	assert_refused("stray = 1\n"
	               "[databases]\n"
	               "* =\n"
	               "a = pool_sze=1 port=x pool_size=2 host='' user= host=h\n"
	               "b = port\n"
	               "c = password='secret\n"
	               "d = password='x'y host=h\n"
	               "[pgweir]\n"
	               "auth_file = users\n"
	               "defualt_pool_size = 3\n"
	               "xyzzy = 1\n"
	               "listen_port = none\n"
	               "no equals sign\n"
	               "\"open = 1\n"
	               "%inclde x\n"
	               "[users\n"
	               "[users] trailing\n"
	               "u = pool_mode=fast query_timeout=1\n",
	               "t.ini:1: \"stray\" stands before the first section\n"
	               "t.ini:4: database \"a\": unknown key \"pool_sze\"; did you mean \"pool_size\"?\n"
	               "t.ini:4: database \"a\": host: the value is empty\n"
	               "t.ini:4: database \"a\": user: the value is empty, or needs quotes\n"
	               "t.ini:4: database \"a\": port: \"x\" is not a whole number from 1 to 65535\n"
	               "t.ini:5: database \"b\": expected key=value at \"port\"\n"
	               "t.ini:6: database \"c\": password: the closing quote is missing\n"
	               "t.ini:7: database \"d\": password: text after the closing quote\n"
	               "t.ini:10: unknown setting \"defualt_pool_size\"; did you mean \"default_pool_size\"?\n"
	               "t.ini:11: unknown setting \"xyzzy\"\n"
	               "t.ini:12: listen_port: \"none\" is not a whole number from 1 to 65535\n"
	               "t.ini:13: expected name = value\n"
	               "t.ini:14: the closing quote of the name is missing\n"
	               "t.ini:15: expected %include and the name of a file\n"
	               "t.ini:16: the ] of the section is missing\n"
	               "t.ini:17: text after the section's name\n"
	               "t.ini:18: user \"u\": pool_mode: \"fast\" is none of session, transaction, statement\n"
	               "t.ini:18: user \"u\": query_timeout: not supported yet\n");
}
END_TEST

/* "name:port name:port ..." */
static const char *
hosts_text(const struct database_conf *d)
{
	static char text[400];
	size_t n = 0;

	for (unsigned i = 0; i < d->n_hosts; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%d", i > 0 ? " " : "",
		                      d->hosts[i].name != NULL ? d->hosts[i].name : "-", d->hosts[i].port);
	return text;
}

START_TEST(lists_of_hosts)
{
	struct outcome o = assert_loads(QUIET "[databases]\n"
	                                      "one = port=7\n"
	                                      "none =\n"
	                                      "same = host=a,127.0.0.1,::1 port=7 load_balance_hosts=Disable\n"
	                                      "each = host='/tmp, @x,b' port='1, 2,' load_balance_hosts=round-robin\n");
	const struct config *c = o.config;

	ck_assert_str_eq(hosts_text(config_database(c, "one")), "-:7");
	ck_assert_str_eq(hosts_text(config_database(c, "none")), "-:5432");
	ck_assert_str_eq(hosts_text(config_database(c, "same")), "a:7 127.0.0.1:7 ::1:7");
	ck_assert_int_eq(config_database(c, "same")->load_balance, HOSTS_DISABLE);
	ck_assert_str_eq(config_load_balance_text(config_database(c, "same")), "disable");
	ck_assert_str_eq(hosts_text(config_database(c, "each")), "/tmp:1 @x:2 b:5432");
	ck_assert_int_eq(config_database(c, "each")->load_balance, HOSTS_ROUND_ROBIN);
	ck_assert_ptr_null(config_load_balance_text(config_database(c, "one")));
	drop(&o);
}
END_TEST

START_TEST(lists_of_hosts_that_do_not_fit)
{
	assert_refused(QUIET "[databases]\na = host=x,y,z port=1,2\nb = port=1,2\nc = host=x,,y\n"
	                     "d = host=x,y port=1,0\ne = host=x load_balance_hosts=random\n",
	               "t.ini:6: database \"a\": port: 2 ports for 3 hosts\n"
	               "t.ini:7: database \"b\": port: 2 ports for 1 host\n"
	               "t.ini:8: database \"c\": host: an empty name in the list\n"
	               "t.ini:9: database \"d\": port: \"0\" is not a whole number from 1 to 65535\n"
	               "t.ini:10: database \"e\": load_balance_hosts: \"random\" is none of round-robin, disable\n");
}
END_TEST

START_TEST(sections_unknown_or_missing_features)
{
	/* What follows an unknown section is skipped, not taken for the section before. */
	assert_refused(
		QUIET "[database]\nverbose=x\n[databases]\na=port=0\n",
		"t.ini:5: unknown section [database]; there are [pgweir] (or [pgbouncer]), [databases] and [users]\n"
		"t.ini:8: database \"a\": port: \"0\" is not a whole number from 1 to 65535\n");
	assert_refused(QUIET "[peers]\n1 = host=h\n", "t.ini:6: peer \"1\": [peers] is not supported yet\n");
	struct outcome o = assert_loads(QUIET "[peers]\n[users]; comment\n");
	drop(&o);
	assert_refused(QUIET "[databases]\na = auth_user=x\nb = target_session_attrs=any\n",
	               "t.ini:6: database \"a\": auth_user: not supported yet\n"
	               "t.ini:7: database \"b\": target_session_attrs: not supported yet\n");
	assert_refused(QUIET "auth_type=hba\nso_reuseport=1\n", "t.ini:5: auth_type: \"hba\" is not supported yet\n"
	                                                        "t.ini:6: so_reuseport: not supported yet\n");
}
END_TEST

START_TEST(names_of_entries)
{
	char text[512], name[130];

	assert_refused(QUIET "[databases]\npgbouncer = port=1\npgweir=\n",
	               "t.ini:6: database \"pgbouncer\": this name is the admin console's\n"
	               "t.ini:7: database \"pgweir\": this name is the admin console's\n");
	assert_refused(QUIET "[databases]\n\"\" = port=1\n= port=2\n", "t.ini:6: database with an empty name\n"
	                                                               "t.ini:7: database with an empty name\n");
	memset(name, 'n', sizeof name);
	snprintf(text, sizeof text, QUIET "[databases]\n%.64s=\n[users]\n%.128s=\n", name, name);
	assert_refused(text, "t.ini:6: database name is longer than 63 bytes\n"
	                     "t.ini:8: user name is longer than 127 bytes\n");
	snprintf(text, sizeof text, QUIET "[databases]\n%.63s=\n[users]\n%.127s=\n", name, name);
	struct outcome o = assert_loads(text);
	drop(&o);
}
END_TEST

START_TEST(warnings_let_it_load)
{
	struct outcome o = load("[pgweir]\nso_reuseport=0\npkt_buf=75\n");

	ck_assert_ptr_nonnull(o.config);
	ck_assert_str_eq(o.messages,
	                 "warning: t.ini:2: so_reuseport: not supported yet; it has its default, so nothing is lost\n"
	                 "warning: t.ini:3: pkt_buf: has no effect in pgweir\n"
	                 "warning: t.ini: [databases] has no entry\n"
	                 "warning: t.ini: no auth_file is set, so no user is known and none can log in\n");
	drop(&o);
}
END_TEST

START_TEST(settings_that_contradict)
{
	char text[512], dir[200];

	assert_refused(QUIET "listen_addr=\nunix_socket_dir=\n",
	               "t.ini:6: nothing to listen on: listen_addr and unix_socket_dir are both empty\n");
	assert_refused(QUIET "syslog_facility=local8\n", "t.ini:5: syslog_facility: unknown facility \"local8\"\n");
	memset(dir, 'd', sizeof dir);
	dir[0] = '/';
	/* 108 bytes, the zero among them: 93 + "/.s.PGSQL.6432" (14) + 1. */
	snprintf(text, sizeof text, QUIET "unix_socket_dir=%.93s\n", dir);
	struct outcome o = assert_loads(text);
	drop(&o);
	snprintf(text, sizeof text, QUIET "unix_socket_dir=%.94s\n", dir);
	o = load(text);
	ck_assert_uint_eq(o.n_errors, 1);
	ck_assert_ptr_nonnull(strstr(o.messages, "is too long for a Unix socket"));
	drop(&o);
}
END_TEST

START_TEST(odd_bytes)
{
	static const char with_zero[] = QUIET "verb\0ose=1\nverbose=2\n";
	struct outcome o = load_bytes(with_zero, sizeof with_zero - 1);

	ck_assert_str_eq(o.messages, "t.ini:5: the line has a zero byte in it\n");
	drop(&o);
	o = assert_loads("\xef\xbb\xbf" QUIET "verbose=1\r\n\r\n;x\r\n");
	ck_assert_int_eq(o.config->verbose, 1);
	drop(&o);
	o = assert_loads(QUIET "verbose=2"); /* no newline at the end */
	ck_assert_int_eq(o.config->verbose, 2);
	drop(&o);
	o = load_bytes("", 0);
	ck_assert_ptr_nonnull(o.config);
	drop(&o);
}
END_TEST

START_TEST(so_many_errors_are_counted)
{
	char *text = calloc(1, 3 * 1000 + 1);
	struct outcome o;

	for (int i = 0; i < 1000; i++)
		memcpy(text + 3 * i, "[x\n", 3);
	o = load(text);
	ck_assert_uint_eq(o.n_errors, 1000);
	ck_assert_ptr_nonnull(strstr(o.messages, "\nand 800 errors more\n"));
	drop(&o);
	free(text);
}
END_TEST

/* --- files -------------------------------------------------------------------------------------------------------- */

static char folder[64];

static void
make_folder(void)
{
	snprintf(folder, sizeof folder, "/tmp/pgweir-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
remove_folder(void)
{
	static const char *const names[] = {"main.ini", "more.ini", "users"};
	char path[128];

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	ck_assert_int_eq(rmdir(folder), 0);
}

/* %s in text stands for the folder. */
static const char *
write_file(const char *name, const char *text)
{
	static char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (; *text != '\0'; text++) {
		if (text[0] == '%' && text[1] == 's') {
			fputs(folder, f);
			text++;
		} else {
			fputc(*text, f);
		}
	}
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

static struct outcome
load_file(const char *path)
{
	struct outcome o = {0};
	struct config_messages m;

	config_messages_init(&m);
	finish(&o, &m, config_file_load(path, &o.config, &m));
	return o;
}

static void
assert_messages(const struct outcome *o, const char *fmt)
{
	char expected[1024], *to = expected;

	for (; *fmt != '\0'; fmt++) {
		if (fmt[0] == '%' && fmt[1] == 's') {
			to = stpcpy(to, folder);
			fmt++;
		} else {
			*to++ = *fmt;
		}
	}
	*to = '\0';
	ck_assert_str_eq(o->messages, expected);
}

START_TEST(loads_files_and_users)
{
	struct outcome o;

	write_file("users", "\"ada\" \"lovelace\"\n");
	o = load_file(write_file("main.ini", "[databases]\n*=\n[pgweir]\nauth_file=%s/users\n"));
	assert_messages(&o, "");
	ck_assert_ptr_nonnull(o.config);
	ck_assert_uint_eq(users_n(o.config->auth_users), 1);
	ck_assert_ptr_nonnull(users_find(o.config->auth_users, "ada"));
	ck_assert_ptr_nonnull(strstr(o.config->path, "/main.ini"));
	drop(&o);
}
END_TEST

START_TEST(includes_as_if_the_text_stood_there)
{
	struct outcome o;

	write_file("more.ini", "verbose=1\nlisten_port=7000\n[databases]\na=port=bad\n");
	write_file("users", "");
	o = load_file(write_file("main.ini", "[databases]\n*=\n[pgweir]\nverbose=3\nauth_file=%s/users\n"
	                                     "%include %s/more.ini\nb=port=worse\n"));
	assert_messages(&o, "%s/more.ini:4: database \"a\": port: \"bad\" is not a whole number from 1 to 65535\n"
	                    "%s/main.ini:7: database \"b\": port: \"worse\" is not a whole number from 1 to 65535\n");
	drop(&o);
	write_file("more.ini", "verbose=1\nlisten_port=7000\n");
	o = load_file(write_file("main.ini", "[databases]\n*=\n[pgweir]\nverbose=3\nauth_file=%s/users\n"
	                                     "  %include   %s/more.ini  \nlisten_port=7001\n"));
	assert_messages(&o, "");
	ck_assert_int_eq(o.config->verbose, 1);
	ck_assert_int_eq(o.config->listen_port, 7001);
	drop(&o);
}
END_TEST

START_TEST(includes_that_fail)
{
	struct outcome o;

	write_file("users", "");
	o = load_file(write_file("main.ini", "[databases]\n*=\n[pgweir]\nauth_file=%s/users\n"
	                                     "%include %s/none.ini\n%include %s\nverbose=x\n"));
	assert_messages(&o, "%s/main.ini:5: can't read \"%s/none.ini\": No such file or directory\n"
	                    "%s/main.ini:6: can't read \"%s\": Is a directory\n"
	                    "%s/main.ini:7: verbose: \"x\" is not a whole number from 0 to 5\n");
	drop(&o);
	o = load_file(write_file("main.ini", "[pgweir]\n%include %s/main.ini\n[databases]\n*=\n[pgweir]\n"
	                                     "auth_file=%s/users\n"));
	assert_messages(&o, "%s/main.ini:2: includes are nested more than 10 deep\n");
	drop(&o);
	assert_refused(QUIET "%include /etc/passwd\n", "t.ini:5: %include is not possible here\n");
}
END_TEST

START_TEST(files_that_are_not_there)
{
	struct outcome o = load_file("/nowhere/main.ini");

	ck_assert_str_eq(o.messages, "can't read \"/nowhere/main.ini\": No such file or directory\n");
	drop(&o);
	o = load_file(write_file("main.ini", "[databases]\n*=\n[pgweir]\nauth_file=%s/none\nuser=no such\n"
	                                     "unix_socket_group=no such\n"));
	ck_assert_uint_eq(o.n_errors, 3);
	ck_assert_ptr_nonnull(strstr(o.messages, "main.ini:5: user: there is no user \"no such\"\n"));
	ck_assert_ptr_nonnull(strstr(o.messages, "main.ini:6: unix_socket_group: there is no group \"no such\"\n"));
	ck_assert_ptr_nonnull(strstr(o.messages, "main.ini:4: auth_file: "));
	drop(&o);
	/* Nobody's password is asked for, so the daemon may run without. */
	o = load_file(write_file("main.ini", "[databases]\n*=\n[pgweir]\nauth_type=any\nauth_file=%s/none\n"));
	ck_assert_ptr_nonnull(o.config);
	ck_assert_ptr_nonnull(strstr(o.messages, "warning: "));
	drop(&o);
}
END_TEST

static char *
read_file(const char *path)
{
	enum { CAP = 100000 };
	char *text = calloc(1, CAP);
	FILE *f = fopen(path, "r");
	size_t n;

	ck_assert_msg(f != NULL, "%s: run this from the top of the tree", path);
	n = fread(text, 1, CAP, f);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, CAP);
	fclose(f);
	return text;
}

/* The sample must load as it is, and with every default in it uncommented: then nothing changes. */
START_TEST(the_sample_is_right)
{
	char *text = read_file("conf/pgweir.ini"), *p = strstr(text, "All settings with their defaults");
	struct outcome plain, full;
	size_t n;

	ck_assert_ptr_nonnull(p);
	plain = load(text);
	ck_assert_ptr_nonnull(plain.config);
	ck_assert_str_eq(plain.messages, "warning: t.ini: [databases] has no entry\n");
	/* The defaults come last, so they win over what the top of the file sets. */
	while ((p = strstr(p, "\n;")) != NULL) {
		if (p[2] >= 'a' && p[2] <= 'z')
			p[1] = ' ';
		p += 2;
	}
	full = load(text);
	ck_assert_ptr_nonnull(full.config);
	const struct setting_info *settings = config_settings(&n);
	for (size_t i = 0; i < n; i++) {
		char value[512];
		config_setting_text(full.config, i, value, sizeof value);
		ck_assert_str_eq(value, settings[i].default_text);
	}
	drop(&plain);
	drop(&full);
	free(text);
}
END_TEST

START_TEST(daemon_needs_a_pidfile)
{
	struct outcome o = assert_loads(QUIET "pidfile=/run/p.pid\n");
	struct config_messages m;

	config_messages_init(&m);
	ck_assert(config_check_start(o.config, true, &m));
	drop(&o);
	o = assert_loads(QUIET);
	ck_assert(config_check_start(o.config, false, &m));
	ck_assert_uint_eq(m.n_errors, 0);
	ck_assert(!config_check_start(o.config, true, &m));
	ck_assert_str_eq(m.list[0].text, "-d needs a pidfile, and none is set");
	drop(&o);
	config_messages_fini(&m);
}
END_TEST

/* --- conninfos ---------------------------------------------------------------------------------------------------- */

static void
clear_environment(void)
{
	static const char *const names[] = {"PGHOST",     "PGHOSTADDR", "PGPORT",    "PGDATABASE", "PGUSER",
	                                    "PGPASSWORD", "PGSSLMODE",  "PGSERVICE", "PGAPPNAME",  "PGCLIENTENCODING"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		unsetenv(names[i]);
}

static struct outcome
load_conninfo(const char *conninfo)
{
	struct outcome o = {0};
	struct config_messages m;

	config_messages_init(&m);
	finish(&o, &m, config_conninfo_load(conninfo, &o.config, &m));
	return o;
}

START_TEST(tells_conninfos_from_files)
{
	ck_assert(config_is_conninfo("host=h"));
	ck_assert(config_is_conninfo("postgresql://h/db"));
	ck_assert(config_is_conninfo("postgres://"));
	ck_assert(!config_is_conninfo("/etc/pgweir.ini"));
	ck_assert(!config_is_conninfo("pgweir.ini"));
	ck_assert(!config_is_conninfo(write_file("main.ini", "")));
}
END_TEST

START_TEST(conninfo_makes_a_closed_pool)
{
	struct outcome o = load_conninfo("host=/run/x dbname=app port=5433");
	const struct database_conf *d;

	ck_assert_str_eq(o.messages, "");
	ck_assert_int_eq(o.config->pool_mode, POOL_TRANSACTION);
	ck_assert_int_eq(o.config->auth_type, AUTH_TYPE_TRUST);
	ck_assert_str_eq(o.config->listen_addr, "");
	ck_assert_str_eq(o.config->unix_socket_dir, "/tmp");
	ck_assert_int_eq(o.config->unix_socket_mode, 0700);
	ck_assert_ptr_null(o.config->path);
	d = config_database(o.config, "app");
	ck_assert_str_eq(d->name, "app");
	ck_assert_str_eq(d->host, "/run/x");
	ck_assert_int_eq(d->hosts[0].port, 5433);
	ck_assert_ptr_null(d->dbname);
	ck_assert_ptr_null(d->user);
	d = config_database(o.config, "other");
	ck_assert_str_eq(d->name, "*");
	ck_assert_int_eq(d->hosts[0].port, 5433);
	drop(&o);
}
END_TEST

START_TEST(conninfo_takes_user_and_environment)
{
	struct outcome o = load_conninfo("postgresql://ada:s3cret@db.example:7000/app?application_name=x");
	const struct database_conf *d = config_database(o.config, "app");

	ck_assert_str_eq(d->host, "db.example");
	ck_assert_int_eq(d->hosts[0].port, 7000);
	ck_assert_str_eq(d->user, "ada");
	ck_assert_str_eq(d->password.text, "s3cret");
	ck_assert_str_eq(d->application_name, "x");
	drop(&o);

	setenv("PGHOST", "envhost", 1);
	setenv("PGPORT", "7001", 1);
	setenv("PGUSER", "bob", 1);
	setenv("PGPASSWORD", "pw", 1);
	o = load_conninfo("dbname=app");
	d = config_database(o.config, "app");
	ck_assert_str_eq(d->host, "envhost");
	ck_assert_int_eq(d->hosts[0].port, 7001);
	ck_assert_str_eq(d->user, "bob");
	ck_assert_str_eq(d->password.text, "pw");
	drop(&o);
	unsetenv("PGUSER");
	unsetenv("PGPASSWORD");
	o = load_conninfo("password=pw"); /* whose? that of the user who runs this, as for psql */
	ck_assert_ptr_nonnull(config_database(o.config, "x")->user);
	drop(&o);
}
END_TEST

START_TEST(conninfo_with_hosts)
{
	struct outcome o = load_conninfo("host=a,/run/x port=5,6");

	ck_assert_str_eq(hosts_text(config_database(o.config, "x")), "a:5 /run/x:6");
	drop(&o);
}
END_TEST

START_TEST(conninfo_errors)
{
	static const struct {
		const char *conninfo, *message;
	} cases[] = {
		{"host", "missing \"=\" after \"host\""},
		{"hots=x", "invalid connection option \"hots\""},
		{"host=h sslmode=require", "conninfo: sslmode: \"require\" is not supported yet\n"},
		{"host=h target_session_attrs=primary", "conninfo: target_session_attrs: not supported yet\n"},
		{"host=a,b port=1,2,3", "conninfo: port: 3 ports for 2 hosts\n"},
		{"host=h port=99999", "conninfo: port: \"99999\" is not a whole number from 1 to 65535\n"},
		{"host=h dbname=pgbouncer", "conninfo: dbname: \"pgbouncer\" is the admin console's name\n"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct outcome o = load_conninfo(cases[i].conninfo);
		ck_assert_ptr_null(o.config);
		ck_assert_msg(strstr(o.messages, cases[i].message) != NULL, "%s: %s", cases[i].conninfo, o.messages);
		drop(&o);
	}
	setenv("PGSSLMODE", "verify-full", 1);
	struct outcome o = load_conninfo("host=h");
	ck_assert_str_eq(o.messages, "conninfo: sslmode: \"verify-full\" is not supported yet\n");
	drop(&o);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_a_pgbouncer_ini,
		later_ones_win_and_sections_come_again,
		values_are_taken_as_they_are,
		long_values_are_whole,
		a_line_too_long_is_an_error,
		quoted_names,
		entry_grammar,
		all_keys_of_entries,
		every_error_is_reported_with_its_place,
		lists_of_hosts,
		lists_of_hosts_that_do_not_fit,
		sections_unknown_or_missing_features,
		names_of_entries,
		warnings_let_it_load,
		settings_that_contradict,
		odd_bytes,
		so_many_errors_are_counted,
		loads_files_and_users,
		includes_as_if_the_text_stood_there,
		includes_that_fail,
		files_that_are_not_there,
		the_sample_is_right,
		session_state_by_section,
		daemon_needs_a_pidfile,
		tells_conninfos_from_files,
		conninfo_makes_a_closed_pool,
		conninfo_takes_user_and_environment,
		conninfo_with_hosts,
		conninfo_errors,
	};
	TCase *tcase = tcase_create("config_file");

	clear_environment();
	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_run_tcase("config_file", tcase);
}
