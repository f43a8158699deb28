/* SPDX-License-Identifier: ISC */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char
to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

bool
str_parse_int(const char *s, int64_t min, int64_t max, int64_t *out)
{
	/* strtoll alone would accept leading blanks and a plus sign. */
	if (!is_digit(s[s[0] == '-']))
		return false;
	char *end;
	errno = 0;
	long long v = strtoll(s, &end, 10);
	if (errno != 0 || *end != '\0' || v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool
str_parse_seconds_us(const char *s, uint64_t *out_us)
{
	uint64_t us = 0;
	int n_digits = 0;
	for (; is_digit(*s); s++, n_digits++) {
		if (__builtin_mul_overflow(us, 10, &us) ||
		    __builtin_add_overflow(us, (uint64_t)(*s - '0') * 1000000, &us))
			return false;
	}
	if (*s == '.') {
		s++;
		/* Digits after the sixth are checked and dropped. */
		for (uint64_t unit = 100000; is_digit(*s); s++, n_digits++, unit /= 10)
			if (__builtin_add_overflow(us, (uint64_t)(*s - '0') * unit, &us))
				return false;
	}
	if (n_digits == 0 || *s != '\0')
		return false;
	*out_us = us;
	return true;
}

bool
str_copy(char *dst, size_t cap, const char *src)
{
	size_t n = strlen(src);
	bool fits = n < cap;
	if (cap == 0)
		return false;
	if (!fits)
		n = cap - 1;
	memcpy(dst, src, n);
	dst[n] = '\0';
	return fits;
}

char *
str_dup(const char *s)
{
	return s == NULL ? NULL : strdup(s);
}

char *
str_trim(char *s)
{
	while (is_space(*s))
		s++;
	char *end = s + strlen(s);
	while (end > s && is_space(end[-1]))
		end--;
	*end = '\0';
	return s;
}

bool
str_equal_nocase(const char *a, const char *b)
{
	while (*a != '\0' && to_lower(*a) == to_lower(*b)) {
		a++;
		b++;
	}
	return to_lower(*a) == to_lower(*b);
}

static int
min3(int a, int b, int c)
{
	int m = a < b ? a : b;
	return m < c ? m : c;
}

int
str_distance(const char *a, const char *b)
{
	enum { MAX = 64 };
	int na = (int)strnlen(a, MAX), nb = (int)strnlen(b, MAX);
	if (na == MAX || nb == MAX)
		return MAX;  /* names that long have no near neighbour worth naming */
	int row[3][MAX + 1]; /* row[i % 3][j]: distance of the first i bytes of a and the first j of b */
	for (int j = 0; j <= nb; j++)
		row[0][j] = j;
	for (int i = 1; i <= na; i++) {
		int *now = row[i % 3], *above = row[(i - 1) % 3], *two_above = row[(i + 1) % 3];
		now[0] = i;
		for (int j = 1; j <= nb; j++) {
			int change = above[j - 1] + (a[i - 1] != b[j - 1]);
			now[j] = min3(above[j] + 1, now[j - 1] + 1, change);
			bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
			if (swapped && two_above[j - 2] + 1 < now[j])
				now[j] = two_above[j - 2] + 1;
		}
	}
	return row[na % 3][nb];
}
