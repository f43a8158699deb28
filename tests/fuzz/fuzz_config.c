/* SPDX-License-Identifier: ISC */
/* The configuration loader, and every setting written back as text. Touches no file (config_file_load_text). */
#include "base/obj.h"
#include "ops/config_file.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read must be read again from its own text, to the same text. */
static void
check_settings(const struct config *c)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);
	struct config *copy = config_new();
	char text[1024], again[1024], why[512];

	invariant(copy != NULL);
	for (size_t i = 0; i < n; i++) {
		enum status status;
		config_setting_text(c, i, text, sizeof text);
		if (strlen(text) == sizeof text - 1)
			continue; /* cut */
		status = config_set(copy, settings[i].name, text, why, sizeof why);
		invariant(status == STATUS_OK);
		config_setting_text(copy, i, again, sizeof again);
		invariant(strcmp(text, again) == 0);
	}
	config_unref(&copy);
}

static void
check_databases(const struct config *c)
{
	for (const struct database_conf *d = c->databases; d != NULL; d = d->hh.next) {
		invariant(config_database(c, d->name) == d);
		invariant(config_pool_size(c, d, NULL) >= 0);
		invariant(d->n_hosts > 0);
		for (unsigned i = 0; i < d->n_hosts; i++)
			invariant(d->hosts[i].port > 0);
	}
	for (const struct user_conf *u = c->users; u != NULL; u = u->hh.next)
		invariant(config_user(c, u->name) == u);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_messages m;
	struct config *c = NULL;

	config_messages_init(&m);
	if (config_file_load_text((const char *)data, size, "fuzz.ini", &c, &m) == STATUS_OK) {
		check_settings(c);
		check_databases(c);
	} else {
		invariant(m.n_errors > 0);
	}
	config_unref(&c);
	config_messages_fini(&m);
	return 0;
}
