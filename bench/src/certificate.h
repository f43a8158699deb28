/* SPDX-License-Identifier: ISC */
/* A self-signed certificate for the runs over TLS. */
#ifndef PGWEIR_BENCH_CERTIFICATE_H
#define PGWEIR_BENCH_CERTIFICATE_H

#include "text.h"

#include <stdbool.h>

/* ECDSA on P-256, for localhost, of one week. The key is readable by its owner alone. */
bool certificate_write(const char *cert_path, const char *key_path, struct why *why);

#endif
