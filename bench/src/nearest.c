/* SPDX-License-Identifier: ISC */
#include "nearest.h"

#include <string.h>

#define MAX_NAME 48

static int
least(int a, int b)
{
	return a < b ? a : b;
}

/* Characters to insert, remove, replace, or to swap with their neighbour. Both are at most MAX_NAME long. */
static int
distance(const char *a, const char *b)
{
	int rows[MAX_NAME + 1][MAX_NAME + 1], n = (int)strlen(a), m = (int)strlen(b);

	for (int i = 0; i <= n; i++)
		rows[i][0] = i;
	for (int j = 0; j <= m; j++)
		rows[0][j] = j;
	for (int i = 1; i <= n; i++)
		for (int j = 1; j <= m; j++) {
			int best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			best = least(best, least(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = least(best, rows[i - 2][j - 2] + 1);
			rows[i][j] = best;
		}
	return rows[n][m];
}

const char *
nearest_find(const char *word, nearest_names *names)
{
	size_t len = strlen(word);
	int best = (int)len / 3 + 1; /* more changes than that make another word */
	const char *name, *found = NULL;

	if (len < 3 || len > MAX_NAME)
		return NULL;
	for (size_t i = 0; (name = names(i)) != NULL; i++) {
		/* The beginning of a name stands for it, however much is missing. */
		int d = strlen(name) > MAX_NAME ? best + 1 : strncmp(name, word, len) == 0 ? 1 : distance(word, name);

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
