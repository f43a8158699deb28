/* SPDX-License-Identifier: ISC */
/* The table made from settings.def: reading a setting from text and writing it as text. */
#include "core/config.h"

#include "base/obj.h"
#include "base/str.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct setting_word {
	const char *word;
	int value; /* of several words with one value the first is the one shown */
	bool not_yet;
};

/* One table for each ENUM row, named after the setting and ended by a NULL word. */
static const struct setting_word pool_mode_words[] = {
	{"session", POOL_SESSION, false},
	{"transaction", POOL_TRANSACTION, false},
	{"statement", POOL_STATEMENT, false},
	{NULL, 0, false},
};
static const struct setting_word session_state_words[] = {
	{"preserve", STATE_PRESERVE, false},
	{"strict", STATE_STRICT, false},
	{"ignore", STATE_IGNORE, false},
	{NULL, 0, false},
};
static const struct setting_word session_schedule_words[] = {
	{"least-loaded", SCHEDULE_LEAST_LOADED, false},
	{"round-robin", SCHEDULE_ROUND_ROBIN, false},
	{"random", SCHEDULE_RANDOM, false},
	{NULL, 0, false},
};
static const struct setting_word auth_type_words[] = {
	{"any", AUTH_TYPE_ANY, false},
	{"trust", AUTH_TYPE_TRUST, false},
	{"password", AUTH_TYPE_PASSWORD, false},
	{"plain", AUTH_TYPE_PASSWORD, false},
	{"md5", AUTH_TYPE_MD5, false},
	{"scram-sha-256", AUTH_TYPE_SCRAM, false},
	{"cert", 0, true},
	{"hba", 0, true},
	{"ldap", 0, true},
	{"pam", 0, true},
	{NULL, 0, false},
};
static const struct setting_word client_tls_sslmode_words[] = {
	{"disable", TLS_DISABLE, false},
	{"allow", TLS_ALLOW, true},
	{"prefer", TLS_PREFER, true},
	{"require", TLS_REQUIRE, true},
	{"verify-ca", TLS_VERIFY_CA, true},
	{"verify-full", TLS_VERIFY_FULL, true},
	{NULL, 0, false},
};
static const struct setting_word server_tls_sslmode_words[] = {
	{"disable", TLS_DISABLE, false},
	{"allow", TLS_ALLOW, false},
	{"prefer", TLS_PREFER, false},
	{"require", TLS_REQUIRE, true},
	{"verify-ca", TLS_VERIFY_CA, true},
	{"verify-full", TLS_VERIFY_FULL, true},
	{NULL, 0, false},
};

enum setting_kind { KIND_INT, KIND_BOOL, KIND_TIME, KIND_TEXT, KIND_ENUM };

struct setting_row {
	struct setting_info info;
	enum setting_kind kind;
	size_t offset; /* of the field in struct config */
	int64_t min, max;
	const struct setting_word *words;
	unsigned flags;
};

/* The braces of this one would be taken for a block. */
/* clang-format off */
#define INFO(name, unit, def, flags, help)                                                                             \
	{#name, unit, def, help, ((flags) & SETTING_RESTART) == 0, ((flags) & SETTING_NOT_YET) == 0}
/* clang-format on */
#define SETTING_INT(name, def, lo, hi, unit, flags, help)                                                              \
	{INFO(name, unit, def, flags, help), KIND_INT, offsetof(struct config, name), lo, hi, NULL, flags},
#define SETTING_BOOL(name, def, flags, help)                                                                           \
	{INFO(name, "", def, flags, help), KIND_BOOL, offsetof(struct config, name), 0, 1, NULL, flags},
#define SETTING_TIME(name, def, lo, hi, flags, help)                                                                   \
	{INFO(name, "s", def, flags, help), KIND_TIME, offsetof(struct config, name##_us), lo, hi, NULL, flags},
#define SETTING_TEXT(name, def, flags, help)                                                                           \
	{INFO(name, "", def, flags, help), KIND_TEXT, offsetof(struct config, name), 0, 0, NULL, flags},
#define SETTING_ENUM(name, type, def, flags, help)                                                                     \
	{INFO(name, "", def, flags, help), KIND_ENUM, offsetof(struct config, name), 0, 0, name##_words, flags},

static struct setting_row rows[] = {
#include "core/settings.def"
};

#define N_ROWS (sizeof rows / sizeof rows[0])

/* The rows in the order of their names, and the part of them that others see. */
static struct setting_info infos[N_ROWS];
static pthread_once_t rows_once = PTHREAD_ONCE_INIT;

static int
compare_rows(const void *a, const void *b)
{
	const struct setting_row *ra = a, *rb = b;

	return strcmp(ra->info.name, rb->info.name);
}

static void
sort_rows(void)
{
	qsort(rows, N_ROWS, sizeof rows[0], compare_rows);
	for (size_t i = 0; i < N_ROWS; i++)
		infos[i] = rows[i].info;
}

static const struct setting_row *
find_row(const char *name)
{
	struct setting_row key = {.info = {.name = name}};

	pthread_once(&rows_once, sort_rows);
	return bsearch(&key, rows, N_ROWS, sizeof rows[0], compare_rows);
}

const struct setting_info *
config_settings(size_t *n)
{
	pthread_once(&rows_once, sort_rows);
	*n = N_ROWS;
	return infos;
}

static void *
field_of(const struct config *c, const struct setting_row *row)
{
	return (char *)(uintptr_t)c + row->offset;
}

static enum status
read_int(const struct setting_row *row, const char *value, int64_t *field, char *why, size_t why_cap)
{
	if (strcmp(row->info.unit, "octal") == 0) {
		char *end;
		long mode = strtol(value, &end, 8);
		if (value[0] >= '0' && value[0] <= '7' && *end == '\0' && mode <= row->max) {
			*field = mode;
			return STATUS_OK;
		}
		snprintf(why, why_cap, "%s: \"%s\" is not an octal number up to %04" PRIo64, row->info.name, value,
		         (uint64_t)row->max);
		return STATUS_BAD;
	}
	if (str_parse_int(value, row->min, row->max, field))
		return STATUS_OK;
	snprintf(why, why_cap, "%s: \"%s\" is not a whole number from %" PRId64 " to %" PRId64, row->info.name, value,
	         row->min, row->max);
	return STATUS_BAD;
}

static enum status
read_bool(const struct setting_row *row, const char *value, bool *field, char *why, size_t why_cap)
{
	int64_t v;

	if (!str_parse_int(value, 0, 1, &v)) {
		snprintf(why, why_cap, "%s: \"%s\" is neither 0 nor 1", row->info.name, value);
		return STATUS_BAD;
	}
	*field = v != 0;
	return STATUS_OK;
}

static enum status
read_time(const struct setting_row *row, const char *value, int64_t *field, char *why, size_t why_cap)
{
	uint64_t us;

	if (!str_parse_seconds_us(value, &us) || us < (uint64_t)row->min * 1000000 ||
	    us > (uint64_t)row->max * 1000000) {
		snprintf(why, why_cap, "%s: \"%s\" is not a number of seconds from %" PRId64 " to %" PRId64,
		         row->info.name, value, row->min, row->max);
		return STATUS_BAD;
	}
	*field = (int64_t)us;
	return STATUS_OK;
}

static enum status
read_text(const char *value, char **field, char *why, size_t why_cap)
{
	char *copy = str_dup(value);

	if (copy == NULL) {
		snprintf(why, why_cap, "out of memory");
		return STATUS_NO_MEM;
	}
	free(*field);
	*field = copy;
	return STATUS_OK;
}

static const struct setting_word *
find_word(const struct setting_word *words, const char *word)
{
	for (; words->word != NULL; words++) {
		if (strcmp(words->word, word) == 0)
			return words;
	}
	return NULL;
}

static enum status
read_enum(const struct setting_row *row, const char *value, unsigned *field, char *why, size_t why_cap)
{
	const struct setting_word *w = find_word(row->words, value);

	if (w == NULL) {
		int n = snprintf(why, why_cap, "%s: \"%s\" is none of", row->info.name, value);
		const char *sep = " ";
		for (w = row->words; w->word != NULL; w++) {
			if (w->not_yet || n < 0 || (size_t)n >= why_cap)
				continue;
			n += snprintf(why + n, why_cap - (size_t)n, "%s%s", sep, w->word);
			sep = ", ";
		}
		return STATUS_BAD;
	}
	if (w->not_yet) {
		snprintf(why, why_cap, "%s: \"%s\" is not supported yet", row->info.name, value);
		return STATUS_REFUSED;
	}
	*field = (unsigned)w->value;
	return STATUS_OK;
}

static enum status
read_row(struct config *c, const struct setting_row *row, const char *value, char *why, size_t why_cap)
{
	void *field = field_of(c, row);

	switch (row->kind) {
	case KIND_INT:
		return read_int(row, value, field, why, why_cap);
	case KIND_BOOL:
		return read_bool(row, value, field, why, why_cap);
	case KIND_TIME:
		return read_time(row, value, field, why, why_cap);
	case KIND_TEXT:
		return read_text(value, field, why, why_cap);
	case KIND_ENUM:
		return read_enum(row, value, field, why, why_cap);
	}
	return STATUS_BAD;
}

static const char *
enum_text(const struct setting_row *row, unsigned value)
{
	for (const struct setting_word *w = row->words; w->word != NULL; w++) {
		if (!w->not_yet && (unsigned)w->value == value)
			return w->word;
	}
	return "";
}

static void
time_text(int64_t us, char *buf, size_t cap)
{
	int n = snprintf(buf, cap, "%" PRId64 ".%06" PRId64, us / 1000000, us % 1000000);

	if (n < 0 || (size_t)n >= cap)
		return;
	while (buf[n - 1] == '0')
		buf[--n] = '\0';
	if (buf[n - 1] == '.')
		buf[n - 1] = '\0';
}

static void
row_text(const struct config *c, const struct setting_row *row, char *buf, size_t cap)
{
	const void *field = field_of(c, row);
	bool octal = strcmp(row->info.unit, "octal") == 0;

	switch (row->kind) {
	case KIND_INT:
		if (octal)
			snprintf(buf, cap, "%04" PRIo64, *(const uint64_t *)field);
		else
			snprintf(buf, cap, "%" PRId64, *(const int64_t *)field);
		break;
	case KIND_BOOL:
		snprintf(buf, cap, "%d", *(const bool *)field ? 1 : 0);
		break;
	case KIND_TIME:
		time_text(*(const int64_t *)field, buf, cap);
		break;
	case KIND_TEXT:
		snprintf(buf, cap, "%s", *(char *const *)field);
		break;
	case KIND_ENUM:
		snprintf(buf, cap, "%s", enum_text(row, *(const unsigned *)field));
		break;
	}
}

void
config_setting_text(const struct config *c, size_t index, char *buf, size_t cap)
{
	invariant(index < N_ROWS);
	pthread_once(&rows_once, sort_rows);
	row_text(c, &rows[index], buf, cap);
	/* conffile can't be set yet, but it is no secret where the configuration came from. */
	if (strcmp(rows[index].info.name, "conffile") == 0 && c->path != NULL)
		snprintf(buf, cap, "%s", c->path);
}

/* Whether the value just read is the default one. Texts may be longer than a buffer, so they are compared in place. */
static bool
row_is_default(const struct config *c, const struct setting_row *row)
{
	char text[64];

	if (row->kind == KIND_TEXT)
		return strcmp(*(char *const *)field_of(c, row), row->info.default_text) == 0;
	row_text(c, row, text, sizeof text);
	return strcmp(text, row->info.default_text) == 0;
}

static enum status
refuse_not_yet(struct config *c, const struct setting_row *row, char *why, size_t why_cap)
{
	char ignored[128];
	enum status status = STATUS_OK;

	if (row_is_default(c, row)) {
		snprintf(why, why_cap, "%s: not supported yet; it has its default, so nothing is lost", row->info.name);
		return STATUS_OK;
	}
	status = read_row(c, row, row->info.default_text, ignored, sizeof ignored);
	snprintf(why, why_cap, "%s: not supported yet", row->info.name);
	return status == STATUS_OK ? STATUS_REFUSED : status;
}

enum status
config_set(struct config *c, const char *name, const char *value, char *why, size_t why_cap)
{
	const struct setting_row *row = find_row(name);
	enum status status;

	why[0] = '\0';
	if (row == NULL) {
		snprintf(why, why_cap, "unknown setting \"%s\"", name);
		return STATUS_BAD;
	}
	status = read_row(c, row, value, why, why_cap);
	if (status != STATUS_OK)
		return status;
	if ((row->flags & SETTING_NOT_YET) != 0)
		return refuse_not_yet(c, row, why, why_cap);
	if ((row->flags & SETTING_NO_EFFECT) != 0)
		snprintf(why, why_cap, "%s: has no effect in pgweir", row->info.name);
	return STATUS_OK;
}

bool
config_session_state_parse(const char *word, enum session_state_policy *out)
{
	const struct setting_word *w = find_word(session_state_words, word);

	if (w == NULL)
		return false;
	*out = (enum session_state_policy)w->value;
	return true;
}

bool
config_pool_mode_parse(const char *word, enum pool_mode *out)
{
	const struct setting_word *w = find_word(pool_mode_words, word);

	if (w == NULL)
		return false;
	*out = (enum pool_mode)w->value;
	return true;
}
