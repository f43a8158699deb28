/* SPDX-License-Identifier: ISC */
/* SASLprep (RFC 4013) as PostgreSQL applies it to passwords. Pure, any thread. */
#ifndef PGWEIR_AUTH_SASLPREP_H
#define PGWEIR_AUTH_SASLPREP_H

#include "base/secret.h"
#include "base/status.h"

/*
 * The form of a password that goes into the SCRAM computation: normalised, or unchanged where it is ASCII, not valid
 * UTF-8, empty after normalisation or has prohibited characters. STATUS_NO_MEM leaves *out as it was.
 */
enum status saslprep(const char *password, struct secret *out) must_check;

#endif
