/* SPDX-License-Identifier: ISC */
#include "auth/saslprep.h"

#include <stdlib.h>
#include <string.h>
#include <stringprep.h>

static bool
is_ascii(const char *s)
{
	for (; *s != 0; s++) {
		if ((unsigned char)*s >= 0x80)
			return false;
	}
	return true;
}

/*
 * libidn normalises by Unicode 3.2, which RFC 4013 names; the server by its own, newer tables. They differ for five
 * corrected CJK compatibility ideographs and for about 600 compatibility characters added since (squared letters,
 * Arabic mathematical symbols ...): here such a password is used unchanged.
 */
enum status
saslprep(const char *password, struct secret *out)
{
	char *prepared = NULL;
	if (!is_ascii(password)) {
		int rc = stringprep_profile(password, &prepared, "SASLprep", STRINGPREP_NO_UNASSIGNED);
		if (rc == STRINGPREP_MALLOC_ERROR)
			return STATUS_NO_MEM;
		if (rc != STRINGPREP_OK)
			prepared = NULL;
	}
	const char *text = prepared != NULL && prepared[0] != 0 ? prepared : password;
	bool ok = secret_set(out, text, strlen(text));
	if (prepared != NULL)
		secret_wipe_bytes(prepared, strlen(prepared));
	free(prepared);
	return ok ? STATUS_OK : STATUS_NO_MEM;
}
