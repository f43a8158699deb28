/* SPDX-License-Identifier: ISC */
/* Results that a peer or the environment can cause. Amounts go into out-parameters. */
#ifndef PGWEIR_BASE_STATUS_H
#define PGWEIR_BASE_STATUS_H

#define must_check __attribute__((warn_unused_result))

enum status {
	STATUS_OK,
	STATUS_MORE,    /* well-formed so far, more bytes needed */
	STATUS_BAD,     /* the peer broke the protocol or the text is malformed */
	STATUS_TOO_BIG, /* over a limit */
	STATUS_NO_MEM,
	STATUS_CLOSED,  /* the peer is gone */
	STATUS_REFUSED, /* a limit or rule says no */
};

#endif
