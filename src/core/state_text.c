/* SPDX-License-Identifier: ISC */
/* The texts that may be why a session gets pinned, for the console and the log. */
#include "core/session.h"
#include "core/state.h"
#include "wire/sql_fingerprint.h"

#include <stdlib.h>
#include <string.h>

static void
append(struct state_text *t, const uint8_t *p, size_t n)
{
	size_t room = sizeof(t->text) - t->n, take = n < room ? n : room;

	memcpy(t->text + t->n, p, take);
	t->n += (uint32_t)take;
}

void
state_text_note(struct session *s, const uint8_t *sql, size_t n)
{
	struct state_text *t = s->marks.text;
	uint64_t print;

	if (t == NULL)
		t = s->marks.text = calloc(1, sizeof(*t));
	if (t == NULL)
		return; /* then it is not known */
	print = sql_fingerprint(sql, n, session_standard_strings(s), NULL, 0);
	t->fingerprint = t->n_texts == 0 ? print : t->fingerprint * 31 + print;
	if (t->n_texts++ > 0)
		append(t, (const uint8_t *)"; ", 2);
	append(t, sql, n);
}

void
state_text_forget(struct session *s)
{
	free(s->marks.text);
	s->marks.text = NULL;
}
