/* SPDX-License-Identifier: ISC */
/* The first byte chooses the parser, the rest is the body. Whatever is answered must lie inside the body. */
#include "wire/parse.h"

#include <string.h>

#include "base/obj.h"
#include "wire/pgmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *body;
static size_t body_len;

/* A text must be absent, empty by default, or terminated inside the body. */
static void
check_text(const char *text, enum status status)
{
	const uint8_t *p = (const uint8_t *)text;
	if (status != STATUS_OK || text == NULL)
		return;
	invariant(p >= body && p < body + body_len && memchr(p, 0, (size_t)(body + body_len - p)) != NULL);
}

static void
check_bytes(const uint8_t *p, size_t n)
{
	invariant(n == 0 || (p >= body && n <= (size_t)(body + body_len - p)));
}

static void
fuzz_error(void)
{
	struct error_fields e;
	enum status status = parse_error(body, body_len, &e);
	check_text(e.severity, status);
	check_text(e.sqlstate, status);
	check_text(e.message, status);
	check_text(e.detail, status);
	check_text(e.hint, status);
}

static void
fuzz_parameter_status(void)
{
	struct parameter_status p;
	enum status status = parse_parameter_status(body, body_len, &p);
	check_text(p.name, status);
	check_text(p.value, status);
}

static void
fuzz_key_data(void)
{
	struct key_data k;
	if (parse_key_data(body, body_len, &k) != STATUS_OK)
		return;
	invariant(k.secret_len >= KEY_SECRET_MIN && k.secret_len <= KEY_SECRET_MAX);
	check_bytes(k.secret, k.secret_len);
}

static void
fuzz_auth(void)
{
	struct auth_request a;
	if (parse_auth(body, body_len, &a) == STATUS_OK)
		check_bytes(a.data, a.data_len);
}

static void
fuzz_sasl_initial(void)
{
	struct sasl_initial s;
	enum status status = parse_sasl_initial(body, body_len, &s);
	check_text(s.mechanism, status);
	if (status == STATUS_OK)
		check_bytes(s.data, s.data_len);
}

static void
fuzz_statement_ref(char type)
{
	struct statement_ref r;
	enum status status = parse_statement_ref(type, body, body_len, &r);
	check_text(r.name, status);
	invariant(status != STATUS_OK || r.kind == 'S' || r.kind == 'P');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char tx_status;
	if (size == 0)
		return 0;
	body = data + 1;
	body_len = size - 1;
	switch (data[0]) {
	case BE_ERROR:
		fuzz_error();
		break;
	case BE_PARAMETER_STATUS:
		fuzz_parameter_status();
		break;
	case BE_READY:
		invariant(parse_ready(body, body_len, &tx_status) != STATUS_OK || body_len == 1);
		break;
	case BE_KEY_DATA:
		fuzz_key_data();
		break;
	case BE_AUTH:
		fuzz_auth();
		break;
	case FE_PASSWORD:
		fuzz_sasl_initial();
		break;
	default:
		fuzz_statement_ref((char)data[0]);
		break;
	}
	return 0;
}
