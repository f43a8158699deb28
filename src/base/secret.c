/* SPDX-License-Identifier: ISC */
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>

bool
secret_set(struct secret *s, const char *text, size_t len)
{
	char *copy = malloc(len + 1);
	if (copy == NULL)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	secret_fini(s); /* after the copy: text may be part of s */
	s->text = copy;
	s->len = len;
	return true;
}

void
secret_fini(struct secret *s)
{
	if (s->text != NULL)
		secret_wipe_bytes(s->text, s->len);
	free(s->text);
	*s = (struct secret){0};
}

void
secret_wipe_bytes(void *p, size_t n)
{
	if (n > 0)
		explicit_bzero(p, n);
}

bool
secret_equal(const void *a, size_t na, const void *b, size_t nb)
{
	/* With another length b is compared with itself, for the same number of steps. */
	const volatile uint8_t *x = na == nb ? a : b;
	const volatile uint8_t *y = b;
	volatile uint8_t differ = na != nb;
	for (size_t i = 0; i < nb; i++)
		differ |= x[i] ^ y[i];
	return differ == 0;
}
