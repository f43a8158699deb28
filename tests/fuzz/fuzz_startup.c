/* SPDX-License-Identifier: ISC */
/* A first packet: any prefix of it must ask for more or say the same; its parameters and `options` are walked. */
#include "wire/startup.h"

#include <string.h>

#include "base/obj.h"
#include "wire/pgmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
on_setting(const char *name, const char *value, void *arg)
{
	size_t *left =
		arg; /* settings and their escapes can't be longer than the text, but for the -d and -f switches */
	invariant(strlen(name) + strlen(value) < STARTUP_MAX);
	return (*left)-- > 0;
}

static void
walk(const struct startup_packet *sp)
{
	const char *cursor = NULL, *end = sp->params + sp->params_len;
	struct startup_param param;
	while (startup_next_param(sp, &cursor, &param)) {
		char why[128];
		size_t left = 10000;
		invariant(param.name >= sp->params && param.value + strlen(param.value) + 1 < end && cursor < end);
		if (strcmp(param.name, "options") == 0)
			(void)!startup_split_options(param.value, on_setting, &left, why, sizeof(why));
	}
	invariant(cursor == NULL || cursor == end - 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct startup_packet sp, part;
	const char *why = NULL, *part_why = NULL;
	enum status status = startup_parse(data, size, &sp, &why);
	invariant(status != STATUS_MORE || size < STARTUP_MAX);
	if (status == STATUS_BAD || status == STATUS_TOO_BIG || status == STATUS_REFUSED)
		invariant(why != NULL && why[0] != 0);
	if (size > 0) {
		enum status part_status = startup_parse(data, size - 1, &part, &part_why);
		invariant(part_status == STATUS_MORE ||
		          (part_status == status && part.len == sp.len && part.kind == sp.kind));
	}
	if (status != STATUS_OK)
		return 0;
	invariant(sp.len <= size && sp.len <= STARTUP_MAX);
	if (sp.kind == STARTUP_CANCEL)
		invariant(sp.cancel_secret >= data && sp.cancel_secret + sp.cancel_secret_len == data + sp.len);
	if (sp.kind == STARTUP_LOGIN) {
		bool must_negotiate;
		uint32_t minor = startup_negotiate(&sp, &must_negotiate);
		invariant(minor == 0 || minor == 2);
		walk(&sp);
	}
	return 0;
}
