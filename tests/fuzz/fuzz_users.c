/* SPDX-License-Identifier: ISC */
/* The input is an auth file. What could be read is also looked up. */
#include "auth/users.h"

#include <stdlib.h>
#include <string.h>

#include "auth/md5.h"
#include "base/obj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[200] = "";
	struct users *u = users_new();
	enum status status = users_load_text(u, (const char *)data, size, "f", why, sizeof(why));
	invariant(status == STATUS_OK ? why[0] == 0 : strncmp(why, "f:", 2) == 0);

	/* The first line's user, if it has no escapes, is in the table. */
	const uint8_t *quote = size > 1 && data[0] == '"' ? memchr(data + 1, '"', size - 1) : NULL;
	if (status == STATUS_OK && quote != NULL && (quote + 1 == data + size || quote[1] != '"')) {
		char *name = strndup((const char *)data + 1, (size_t)(quote - data) - 1);
		const struct auth_user *user = users_find(u, name);
		invariant(user != NULL && strcmp(user->name, name) == 0);
		invariant(user->secret.len == strlen(user->secret.text) && user->secret.len <= USERS_SECRET_MAX);
		bool is_md5 = md5_is_secret(user->secret.text);
		invariant(!is_md5 || user->secret.len == MD5_SECRET_LEN);
		free(name);
	}
	users_free(&u);
	return 0;
}
