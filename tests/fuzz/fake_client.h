/* SPDX-License-Identifier: ISC */
/*
 * A client that says what the fuzzer's input tells it, and the private server that it believes to have: every message is
 * given to that server at once, and what comes from the daemon must be what it answered, byte by byte and in order.
 *
 * All that a client sends and only it sends carries its tag, "@" and a letter, and so do the answers.
 */
#ifndef PGWEIR_TESTS_FUZZ_FAKE_CLIENT_H
#define PGWEIR_TESTS_FUZZ_FAKE_CLIENT_H

#include "fake_server.h"

/* What the fuzzer gave. Behind its end there are zeros. */
struct fake_input {
	const uint8_t *p, *end;
};

static inline uint8_t
fake_input_byte(struct fake_input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

enum fake_client_state {
	FAKE_ABSENT,
	FAKE_GREETING, /* until the first ReadyForQuery */
	FAKE_TALKING,
	/*
	 * It sent something else than copy data, Sync and Flush before it had ended a COPY FROM STDIN or heard that it
	 * failed: the protocol leaves open what becomes of that. Its replies are not looked at any more.
	 */
	FAKE_DOUBTFUL,
	FAKE_LEAVING,  /* said goodbye between two units: is answered all, then the connection ends */
	FAKE_BREAKING, /* ended its side in the middle of something: may be answered less */
};

struct fake_client {
	enum fake_client_state state;
	char tag;
	int fd;
	unsigned n_said;
	uint32_t n_seen; /* of the private server's answers */
	bool sync_in_copy;
	uint32_t copy_ended_at; /* value of private.copy_failed_at when it last ended a COPY */
	struct fake_server private;
	struct buf outgoing; /* said, and not given to the socket yet */
	struct buf greeting;
};

void fake_client_init(struct fake_client *c, char tag, int fd); /* the startup packet is outgoing */
void fake_client_fini(struct fake_client *c);                   /* closes the socket */
/* Says one or a few messages. */
void fake_client_say(struct fake_client *c, struct fake_input *in);
void fake_client_say_end(struct fake_client *c);         /* what ends any unit and COPY */
bool fake_client_must_wait(const struct fake_client *c); /* for answers, before it says anything outside a COPY */
void fake_client_say_rollback(struct fake_client *c);
void fake_client_say_goodbye(struct fake_client *c);
void fake_client_hear(struct fake_client *c, const uint8_t *p, size_t n); /* checked */
/* With FUZZ_TRACE set in the environment: a line about a message, for whoever looks into a crash. */
void fake_trace(const char *who, char tag, const uint8_t *p, size_t n);

#endif
