/* SPDX-License-Identifier: ISC */
#include "nearest.h"

#include "base/str.h"

#include <string.h>

const char *
nearest_find(const char *word, nearest_names *names)
{
	size_t len = strlen(word);
	int best = (int)len / 3 + 1; /* more changes than that make another word */
	const char *name, *found = NULL;

	if (len < 3 || len > 60) /* nobody means a name with so long a word */
		return NULL;
	for (size_t i = 0; (name = names(i)) != NULL; i++) {
		/* The beginning of a name stands for it, however much is missing. */
		int d = strncmp(name, word, len) == 0 ? 1 : str_distance(word, name);

		if (d < best || (d == best && found == NULL)) {
			best = d;
			found = name;
		}
	}
	return found;
}

bool
nearest_refuse(struct why *why, const char *what, const char *word, nearest_names *names, const char *all)
{
	const char *near = nearest_find(word, names);

	if (near != NULL)
		return why_set(why, "unknown %s %s: is %s meant? (%s)", what, word, near, all);
	return why_set(why, "unknown %s %s (%s)", what, word, all);
}
