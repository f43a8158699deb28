/* SPDX-License-Identifier: ISC */
/*
 * A name for every message byte of the PostgreSQL frontend/backend protocol
 * (documentation chapter "Message Formats"). FE_ is what a client sends, BE_ what
 * a server sends.
 */
#ifndef PGWEIR_WIRE_PGMSG_H
#define PGWEIR_WIRE_PGMSG_H

#define FE_BIND 'B'
#define FE_CLOSE 'C'
#define FE_DESCRIBE 'D'
#define FE_EXECUTE 'E'
#define FE_FUNCTION_CALL 'F'
#define FE_FLUSH 'H'
#define FE_PARSE 'P'
#define FE_PASSWORD 'p' /* also GSS, SASLInitialResponse, SASLResponse */
#define FE_QUERY 'Q'
#define FE_SYNC 'S'
#define FE_TERMINATE 'X'
#define FE_COPY_DATA 'd'
#define FE_COPY_DONE 'c'
#define FE_COPY_FAIL 'f'

#define BE_PARSE_COMPLETE '1'
#define BE_BIND_COMPLETE '2'
#define BE_CLOSE_COMPLETE '3'
#define BE_NOTIFICATION 'A'
#define BE_COMMAND_COMPLETE 'C'
#define BE_DATA_ROW 'D'
#define BE_ERROR 'E'
#define BE_COPY_IN 'G'
#define BE_COPY_OUT 'H'
#define BE_COPY_BOTH 'W'
#define BE_EMPTY_QUERY 'I'
#define BE_KEY_DATA 'K'
#define BE_NOTICE 'N'
#define BE_AUTH 'R'
#define BE_PARAMETER_STATUS 'S'
#define BE_ROW_DESCRIPTION 'T'
#define BE_FUNCTION_RESULT 'V'
#define BE_READY 'Z'
#define BE_COPY_DATA 'd'
#define BE_COPY_DONE 'c'
#define BE_NO_DATA 'n'
#define BE_PORTAL_SUSPENDED 's'
#define BE_PARAMETER_DESCRIPTION 't'
#define BE_NEGOTIATE 'v'

#define TX_IDLE 'I'   /* ReadyForQuery status: no transaction */
#define TX_OPEN 'T'   /* in a transaction block */
#define TX_FAILED 'E' /* in a failed transaction block */

/* Authentication requests (BE_AUTH sub-codes). */
#define AUTH_OK 0
#define AUTH_KERBEROS5 2
#define AUTH_CLEARTEXT 3
#define AUTH_MD5 5
#define AUTH_GSS 7
#define AUTH_GSS_CONT 8
#define AUTH_SSPI 9
#define AUTH_SASL 10
#define AUTH_SASL_CONT 11
#define AUTH_SASL_FINAL 12

/* First-packet codes (documentation: StartupMessage, CancelRequest, SSLRequest, GSSENCRequest). */
#define PROTO_3_0 0x00030000u
#define PROTO_3_2 0x00030002u
#define PROTO_CANCEL 0x04D2162Eu
#define PROTO_SSL 0x04D2162Fu
#define PROTO_GSSENC 0x04D21630u

/*
 * Sizes. The server's MAX_STARTUP_PACKET_LENGTH, 10000, does not count the packet's own length word.
 * A length field counts itself but not the type byte.
 */
#define STARTUP_MAX 10004u               /* bytes of a whole first packet */
#define MSG_HEADER 5u                    /* type byte + int32 length */
#define MSG_LEN_MAX 0x40000002u          /* length field of the largest message a server can build (1 GiB StringInfo) */
#define MSG_CLIENT_LARGE_MAX 0x3ffffffeu /* length field from a client: PQ_LARGE_MESSAGE_LIMIT */
#define MSG_CLIENT_SMALL_MAX 10000u      /* PQ_SMALL_MESSAGE_LIMIT */
#define MSG_AUTH_MAX 65535u              /* PG_MAX_AUTH_TOKEN_LENGTH: a password message */
#define MSG_SASL_MAX 1024u               /* PG_MAX_SASL_MESSAGE_LENGTH: a SASL message */
#define KEY_SECRET_MIN 4u                /* secret of BackendKeyData and CancelRequest; exactly this many in 3.0 */
#define KEY_SECRET_MAX 256u              /* in 3.2 */

#endif
