/* SPDX-License-Identifier: ISC */
#include "wire/frame.h"

uint32_t
frame_client_limit(char type)
{
	switch (type) {
	case FE_QUERY:
	case FE_FUNCTION_CALL:
	case FE_PARSE:
	case FE_BIND:
	case FE_COPY_DATA:
		return MSG_CLIENT_LARGE_MAX;
	case FE_CLOSE:
	case FE_DESCRIBE:
	case FE_EXECUTE:
	case FE_FLUSH:
	case FE_SYNC:
	case FE_TERMINATE:
	case FE_COPY_DONE:
	case FE_COPY_FAIL:
		return MSG_CLIENT_SMALL_MAX;
	default:
		return 0;
	}
}
