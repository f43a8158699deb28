/* SPDX-License-Identifier: ISC */
#include "poolconf.h"
#include "unit.h"

#include <string.h>

static struct poolconf
conf_of(struct system_spec *spec, const char *system)
{
	struct why why;

	ck_assert(system_spec_parse(system, spec, &why));
	return (struct poolconf){.spec = spec,
	                         .folder = "/scratch",
	                         .port = 12001,
	                         .max_clients = 150,
	                         .server_hosts = "127.0.0.1",
	                         .server_port = 12002,
	                         .database = "bench",
	                         .user = "user",
	                         .password = ""};
}

static void
has_line(const char *text, const char *line)
{
	char *whole = text_fmt("\n%s\n", text), *wanted = text_fmt("\n%s\n", line);

	ck_assert_msg(strstr(whole, wanted) != NULL, "no line \"%s\" in:\n%s", line, text);
	free(whole);
	free(wanted);
}

START_TEST(pgweir_and_pgbouncer_get_the_same)
{
	struct system_spec ours, theirs;
	struct poolconf a = conf_of(&ours, "pgweir:20/2"), b = conf_of(&theirs, "pgbouncer:20");
	char *weir = poolconf_write(&a, 0), *bouncer = poolconf_write(&b, 0), *rest = strstr(weir, "listen_addr");

	has_line(weir, "[pgweir]");
	has_line(weir, "proxies = 2");
	has_line(bouncer, "[pgbouncer]");
	has_line(bouncer, "bench = host=127.0.0.1 port=12002 dbname=bench");
	has_line(bouncer, "listen_port = 12001");
	has_line(bouncer, "default_pool_size = 20");
	has_line(bouncer, "max_client_conn = 150");
	has_line(bouncer, "auth_type = trust");
	has_line(bouncer, "pool_mode = transaction");
	/* but for the section's name and the proxies, not a letter differs */
	ck_assert_str_eq(rest, strstr(bouncer, "listen_addr"));
	free(weir);
	free(bouncer);
}
END_TEST

START_TEST(processes_share_the_pool)
{
	struct system_spec spec;
	struct poolconf c = conf_of(&spec, "pgbouncer:17x2");
	char *first = poolconf_write(&c, 0), *second = poolconf_write(&c, 1);

	has_line(first, "so_reuseport = 1");
	has_line(first, "default_pool_size = 9");
	has_line(second, "default_pool_size = 8");
	has_line(second, "listen_port = 12001");
	free(first);
	free(second);
}
END_TEST

START_TEST(tls_only_where_it_is_measured)
{
	struct system_spec spec;
	struct poolconf c = conf_of(&spec, "pgbouncer");
	char *text = poolconf_write(&c, 0);

	ck_assert_ptr_null(strstr(text, "tls"));
	free(text);
	c.cert = "/scratch/server.crt";
	c.key = "/scratch/server.key";
	text = poolconf_write(&c, 0);
	has_line(text, "client_tls_cert_file = /scratch/server.crt");
	has_line(text, "client_tls_key_file = /scratch/server.key");
	free(text);
}
END_TEST

START_TEST(odyssey_gets_its_own)
{
	struct system_spec spec;
	struct poolconf c = conf_of(&spec, "odyssey:64/4");
	char *text = poolconf_write(&c, 0);

	has_line(text, "workers 4");
	has_line(text, "\tport 12001");
	has_line(text, "\tport 12002");
	has_line(text, "\t\tpool_size 64");
	has_line(text, "\t\tpool \"transaction\"");
	has_line(text, "\ttls \"disable\"");
	ck_assert_ptr_null(strstr(text, "storage_password"));
	free(text);
	c.password = "secret";
	text = poolconf_write(&c, 0);
	has_line(text, "\t\tstorage_password \"secret\"");
	free(text);
}
END_TEST

START_TEST(haproxy_has_a_line_for_each_server)
{
	struct system_spec spec;
	struct poolconf c = conf_of(&spec, "haproxy:2");
	char *text;

	c.server_hosts = "127.0.0.1,127.0.0.2,127.0.0.3";
	text = poolconf_write(&c, 0);
	has_line(text, "\tnbthread 2");
	has_line(text, "\tmaxconn 150");
	has_line(text, "\tbind 127.0.0.1:12001 backlog 4096");
	has_line(text, "\tserver server0 127.0.0.1:12002");
	has_line(text, "\tserver server2 127.0.0.3:12002");
	free(text);
}
END_TEST

START_TEST(over_unix_sockets_no_address_is_left)
{
	struct system_spec spec;
	struct poolconf c = conf_of(&spec, "haproxy");
	char *text;

	c.socket = "/scratch";
	c.server_hosts = "/data/node0,/data/node1";
	text = poolconf_write(&c, 0);
	has_line(text, "\tbind unix@/scratch/.s.PGSQL.12001 mode 777 backlog 4096");
	has_line(text, "\tserver server0 unix@/data/node0/.s.PGSQL.12002");
	has_line(text, "\tserver server1 unix@/data/node1/.s.PGSQL.12002");
	ck_assert_ptr_null(strstr(text, "127.0.0.1"));
	free(text);
	c = conf_of(&spec, "pgbouncer");
	text = poolconf_write(&c, 0);
	has_line(text, "unix_socket_dir =");
	free(text);
	c.socket = "/scratch";
	c.server_hosts = "/data/node0";
	text = poolconf_write(&c, 0);
	has_line(text, "unix_socket_dir = /scratch");
	has_line(text, "bench = host=/data/node0 port=12002 dbname=bench");
	free(text);
}
END_TEST

START_TEST(what_is_not_ours_has_no_file)
{
	struct system_spec spec;
	struct poolconf c = conf_of(&spec, "direct");

	ck_assert_ptr_null(poolconf_write(&c, 0));
	c = conf_of(&spec, "other=host=db");
	ck_assert_ptr_null(poolconf_write(&c, 0));
}
END_TEST

UNIT_MAIN("bench poolconf", pgweir_and_pgbouncer_get_the_same, processes_share_the_pool, tls_only_where_it_is_measured,
          odyssey_gets_its_own, haproxy_has_a_line_for_each_server, over_unix_sockets_no_address_is_left,
          what_is_not_ours_has_no_file)
