/* SPDX-License-Identifier: ISC */
#include "auth/saslprep.h"

#include <stdlib.h>
#include <string.h>
#include <stringprep.h>

#define PROFILE_MAX 32 /* steps; libidn's has 17 */
#define GROWTH_MAX 11  /* no text in UTF-8 grows more by NFKC (Unicode's normalization FAQ) */

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
 * The order of the steps is the server's, not the RFC's: it maps, looks for prohibited and unassigned characters and
 * at the directions, and normalises last. So libidn's steps are taken as they are, but for the place of one.
 */
static void
profile_fill(Stringprep_profile profile[PROFILE_MAX])
{
	size_t n = 0;
	for (const Stringprep_profile *step = stringprep_saslprep; step->operation != 0 && n < PROFILE_MAX - 2;
	     step++) {
		if (step->operation != STRINGPREP_NFKC)
			profile[n++] = *step;
	}
	profile[n++] = (Stringprep_profile){.operation = STRINGPREP_NFKC};
	profile[n] = (Stringprep_profile){0};
}

/*
 * libidn knows Unicode 3.2, which the RFC names; the server normalises by newer tables. As both refuse what 3.2 had
 * not assigned, they differ for five compatibility ideographs only, whose mapping was corrected since.
 */
enum status
saslprep(const char *password, struct secret *out)
{
	size_t n = strlen(password);
	if (is_ascii(password))
		return secret_set(out, password, n) ? STATUS_OK : STATUS_NO_MEM;

	Stringprep_profile profile[PROFILE_MAX];
	profile_fill(profile);
	size_t cap = n * GROWTH_MAX + 1;
	char *text = malloc(cap);
	if (text == NULL)
		return STATUS_NO_MEM;
	memcpy(text, password, n + 1);
	int rc = stringprep(text, cap, STRINGPREP_NO_UNASSIGNED, profile);
	const char *result = rc == STRINGPREP_OK && text[0] != 0 ? text : password;
	bool ok = rc != STRINGPREP_MALLOC_ERROR && secret_set(out, result, strlen(result));
	secret_wipe_bytes(text, cap);
	free(text);
	return ok ? STATUS_OK : STATUS_NO_MEM;
}
