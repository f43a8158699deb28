/* SPDX-License-Identifier: ISC */
#include "poolconf.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

/* The text in a buffer, which is given up for it. */
static char *
take_text(struct buf *b)
{
	char *s;

	buf_append_u8(b, '\0');
	s = text_dup(b->failed ? "" : (const char *)buf_head(b));
	buf_fini(b);
	return s;
}

static int
share_of_pool(const struct system_spec *spec, int process)
{
	int share = spec->pool / spec->n_processes;

	return process < spec->pool % spec->n_processes ? share + 1 : share;
}

/* pgbouncer and pgweir read the same file. */
static char *
write_ini(const struct poolconf *c, int process)
{
	const struct system_spec *spec = c->spec;
	struct buf b;

	buf_init(&b);
	buf_printf(&b, "[databases]\n%s = host=%s port=%d dbname=%s\n\n[%s]\n", c->database, c->server_hosts,
	           c->server_port, c->database, spec->kind == SYSTEM_PGWEIR ? "pgweir" : "pgbouncer");
	if (spec->kind == SYSTEM_PGWEIR)
		buf_printf(&b, "proxies = %d\n", spec->threads);
	if (spec->n_processes > 1)
		buf_append_str(&b, "so_reuseport = 1\n");
	buf_printf(&b,
	           "listen_addr = 127.0.0.1\n"
	           "listen_port = %d\n"
	           "listen_backlog = 4096\n"
	           "unix_socket_dir =%s%s\n"
	           "auth_type = trust\n"
	           "auth_file = %s/users.txt\n"
	           "pool_mode = transaction\n"
	           "default_pool_size = %d\n"
	           "max_client_conn = %d\n"
	           "log_connections = 0\n"
	           "log_disconnections = 0\n"
	           "log_stats = 0\n",
	           c->port, c->socket != NULL ? " " : "", c->socket != NULL ? c->socket : "", c->folder,
	           share_of_pool(spec, process), c->max_clients);
	if (c->cert != NULL)
		buf_printf(&b, "client_tls_sslmode = allow\nclient_tls_cert_file = %s\nclient_tls_key_file = %s\n",
		           c->cert, c->key);
	return take_text(&b);
}

static void
odyssey_hosts(struct buf *b, const struct poolconf *c)
{
	buf_printf(b, "\thost \"%s\"\n\tport %d\n", c->server_hosts, c->server_port);
}

static char *
write_odyssey(const struct poolconf *c)
{
	struct buf b;

	buf_init(&b);
	buf_printf(&b,
	           "daemonize no\n"
	           "log_to_stdout yes\n"
	           "log_format \"%%t %%l %%m\\n\"\n"
	           "log_config no\n"
	           "log_session no\n"
	           "log_query no\n"
	           "log_stats no\n"
	           "log_debug no\n"
	           "locks_dir \"%s\"\n"
	           "workers %d\n"
	           "resolvers 1\n"
	           "nodelay yes\n"
	           "client_max %d\n\n"
	           "listen {\n\thost \"127.0.0.1\"\n\tport %d\n\tbacklog 4096\n",
	           c->folder, c->spec->threads, c->max_clients, c->port);
	if (c->cert != NULL)
		buf_printf(&b, "\ttls \"allow\"\n\ttls_cert_file \"%s\"\n\ttls_key_file \"%s\"\n", c->cert, c->key);
	else
		buf_append_str(&b, "\ttls \"disable\"\n");
	buf_append_str(&b, "}\n\nstorage \"server\" {\n\ttype \"remote\"\n");
	odyssey_hosts(&b, c);
	buf_printf(&b,
	           "\ttls \"disable\"\n}\n\n"
	           "database \"%s\" {\n\tuser \"%s\" {\n"
	           "\t\tauthentication \"none\"\n"
	           "\t\tstorage \"server\"\n",
	           c->database, c->user);
	if (c->password[0] != '\0')
		buf_printf(&b, "\t\tstorage_user \"%s\"\n\t\tstorage_password \"%s\"\n", c->user, c->password);
	buf_printf(&b,
	           "\t\tpool \"transaction\"\n"
	           "\t\tpool_size %d\n"
	           "\t\tpool_discard no\n"
	           "\t\tpool_reserve_prepared_statement yes\n"
	           "\t\tclient_max %d\n"
	           "\t}\n}\n",
	           c->spec->pool, c->max_clients);
	return take_text(&b);
}

static void
haproxy_addresses(struct buf *b, const struct poolconf *c)
{
	struct text_list hosts = {0};

	if (c->socket != NULL)
		buf_printf(b, "\tbind unix@%s/.s.PGSQL.%d mode 777 backlog 4096\n", c->socket, c->port);
	else
		buf_printf(b, "\tbind 127.0.0.1:%d backlog 4096\n", c->port);
	text_list_split(&hosts, c->server_hosts, ',');
	for (size_t i = 0; i < hosts.n; i++)
		if (hosts.items[i][0] == '/')
			buf_printf(b, "\tserver server%zu unix@%s/.s.PGSQL.%d\n", i, hosts.items[i], c->server_port);
		else
			buf_printf(b, "\tserver server%zu %s:%d\n", i, hosts.items[i], c->server_port);
	text_list_fini(&hosts);
}

static char *
write_haproxy(const struct poolconf *c)
{
	struct buf b;

	buf_init(&b);
	buf_printf(&b,
	           "global\n"
	           "\tnbthread %d\n"
	           "\tmaxconn %d\n"
	           "defaults\n"
	           "\tmode tcp\n"
	           "\ttimeout connect 30s\n"
	           "\ttimeout client 1h\n"
	           "\ttimeout server 1h\n"
	           "listen postgresql\n"
	           "\tbalance leastconn\n",
	           c->spec->threads, c->max_clients);
	haproxy_addresses(&b, c);
	return take_text(&b);
}

char *
poolconf_write(const struct poolconf *c, int process)
{
	switch (c->spec->kind) {
	case SYSTEM_PGWEIR:
	case SYSTEM_PGBOUNCER:
		return write_ini(c, process);
	case SYSTEM_ODYSSEY:
		return write_odyssey(c);
	case SYSTEM_HAPROXY:
		return write_haproxy(c);
	case SYSTEM_DIRECT:
	case SYSTEM_OTHER:
		break;
	}
	return NULL;
}

char *
poolconf_write_users(const struct poolconf *c)
{
	return text_fmt("\"%s\" \"%s\"\n", c->user, c->password);
}
