/* SPDX-License-Identifier: ISC */
/* The hosts of a database entry: two lists of the same length, host= and port=. */
#include "base/str.h"
#include "core/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PORT_DEFAULT 5432

/* One more than the commas. */
static size_t
count_items(const char *list)
{
	size_t n = 1;

	for (; *list != '\0'; list++)
		n += *list == ',';
	return n;
}

/* The next item of *list, blanks around it taken off, a copy; NULL: no memory. Moves *list behind it. */
static char *
next_item(const char **list)
{
	size_t n = strcspn(*list, ",");
	char *copy = malloc(n + 1), *trimmed;

	if (copy != NULL) {
		memcpy(copy, *list, n);
		copy[n] = '\0';
		trimmed = str_trim(copy);
		memmove(copy, trimmed, strlen(trimmed) + 1);
	}
	*list += n + ((*list)[n] == ',');
	return copy;
}

static enum status
set_name(struct host_conf *h, const char **list, char *why, size_t why_cap)
{
	h->name = next_item(list);
	if (h->name == NULL) {
		snprintf(why, why_cap, "out of memory");
		return STATUS_NO_MEM;
	}
	if (h->name[0] != '\0')
		return STATUS_OK;
	snprintf(why, why_cap, "host: an empty name in the list");
	return STATUS_BAD;
}

/* As libpq has it, nothing between two commas is the default port. */
static enum status
set_port(struct host_conf *h, const char **list, char *why, size_t why_cap)
{
	char *item = next_item(list);
	int64_t port = PORT_DEFAULT;
	bool ok;

	if (item == NULL) {
		snprintf(why, why_cap, "out of memory");
		return STATUS_NO_MEM;
	}
	ok = item[0] == '\0' || str_parse_int(item, 1, 65535, &port);
	if (!ok)
		snprintf(why, why_cap, "port: \"%s\" is not a whole number from 1 to 65535", item);
	free(item);
	h->port = (uint16_t)port;
	return ok ? STATUS_OK : STATUS_BAD;
}

static enum status
fill(struct database_conf *d, const char *hosts, const char *ports, bool one_port, char *why, size_t why_cap)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < d->n_hosts && status == STATUS_OK; i++) {
		struct host_conf *h = &d->hosts[i];

		if (hosts != NULL)
			status = set_name(h, &hosts, why, why_cap);
		if (status == STATUS_OK && one_port && i > 0)
			h->port = d->hosts[0].port;
		else if (status == STATUS_OK)
			status = set_port(h, &ports, why, why_cap);
	}
	return status;
}

void
database_conf_free_hosts(struct database_conf *d)
{
	for (size_t i = 0; i < d->n_hosts; i++)
		free(d->hosts[i].name);
	free(d->hosts);
	d->hosts = NULL;
	d->n_hosts = 0;
}

enum status
database_conf_set_hosts(struct database_conf *d, const char *hosts, const char *ports, char *why, size_t why_cap)
{
	size_t n_hosts = hosts != NULL ? count_items(hosts) : 1;
	size_t n_ports = ports != NULL ? count_items(ports) : 1;

	database_conf_free_hosts(d);
	if (n_hosts > CONFIG_MAX_HOSTS) {
		snprintf(why, why_cap, "host: %zu hosts, and %d is the most", n_hosts, CONFIG_MAX_HOSTS);
		return STATUS_BAD;
	}
	if (n_ports != 1 && n_ports != n_hosts) {
		snprintf(why, why_cap, "port: %zu ports for %zu host%s", n_ports, n_hosts, n_hosts == 1 ? "" : "s");
		return STATUS_BAD;
	}
	d->hosts = calloc(n_hosts, sizeof(*d->hosts));
	if (d->hosts == NULL) {
		snprintf(why, why_cap, "out of memory");
		return STATUS_NO_MEM;
	}
	d->n_hosts = (unsigned)n_hosts;
	return fill(d, hosts, ports != NULL ? ports : "", n_ports == 1, why, why_cap);
}

static const char *const policies[] = {[HOSTS_ROUND_ROBIN] = "round-robin", [HOSTS_DISABLE] = "disable"};

bool
config_load_balance_parse(const char *word, enum load_balance_hosts *out)
{
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		if (strcasecmp(word, policies[i]) == 0) {
			*out = (enum load_balance_hosts)i;
			return true;
		}
	return false;
}

const char *
config_load_balance_text(const struct database_conf *d)
{
	return d->n_hosts > 1 ? policies[d->load_balance] : NULL;
}
