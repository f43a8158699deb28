/* SPDX-License-Identifier: ISC */
#include "base/obj.h"

#include <stdlib.h>

#include "base/log.h"

_Noreturn void
obj_invariant_failed(const char *expr, const char *file, int line)
{
	log_event(LOG_FATAL_, "invariant", LOG_S("expr", expr), LOG_S("file", file), LOG_I("line", line));
	abort();
}
