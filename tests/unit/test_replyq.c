/* SPDX-License-Identifier: ISC */
#include "wire/replyq.h"

#include <string.h>

#include "unit.h"

/*
 * Plays a conversation. Words: ">Q" the client's message to the server, "!Q" one of ours (hidden), "!!" a barrier,
 * "<C" a message of the server that must be the client's, "(C" one that must be hidden, "<ZI" "(ZT" ReadyForQuery with
 * its status, "xZI" a ReadyForQuery that must be unexpected. "=settled" "=open" "=closed" "=boundary" "=middle"
 * "=barrier" "=wants" "=nowants" check the state.
 */
static void
check_state(const struct replyq *q, const char *word)
{
	static const struct {
		const char *word;
		bool (*holds)(const struct replyq *q);
		bool value;
	} checks[] = {
		{"=settled", replyq_is_settled, true},    {"=unsettled", replyq_is_settled, false},
		{"=open", replyq_is_open, true},          {"=closed", replyq_is_open, false},
		{"=boundary", replyq_at_boundary, true},  {"=middle", replyq_at_boundary, false},
		{"=barrier", replyq_wants_barrier, true}, {"=nobarrier", replyq_wants_barrier, false},
		{"=wants", replyq_copy_wants_data, true}, {"=nowants", replyq_copy_wants_data, false},
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (strcmp(checks[i].word, word) != 0)
			continue;
		ck_assert_msg(checks[i].holds(q) == checks[i].value, "%s does not hold", word);
		return;
	}
	ck_abort_msg("unknown word %s", word);
}

static void
play(const char *script)
{
	char *copy = strdup(script), *rest = copy, *word;
	struct replyq q;
	int at = 0;

	replyq_init(&q, 'I');
	while ((word = strsep(&rest, " ")) != NULL) {
		enum replyq_fate fate;

		at++;
		switch (word[0]) {
		case '>':
			ck_assert(replyq_sent(&q, word[1], false));
			break;
		case '!':
			ck_assert(word[1] == '!' ? replyq_sent_barrier(&q) : replyq_sent(&q, word[1], true));
			break;
		case '<':
		case '(':
		case 'x':
			fate = replyq_got(&q, word[1], word[2]);
			ck_assert_msg(fate == (word[0] == '<'   ? REPLYQ_FORWARD
			                       : word[0] == '(' ? REPLYQ_HIDE
			                                        : REPLYQ_UNEXPECTED),
			              "word %d, %s of: %s", at, word, script);
			break;
		case '=':
			check_state(&q, word);
			break;
		case '\0':
			break;
		default:
			ck_abort_msg("what is %s?", word);
		}
	}
	replyq_fini(&q);
	free(copy);
}

START_TEST(simple_queries)
{
	play("=settled >Q =open =boundary <T <D <C <ZI =settled");
	play(">Q <C <ZT =unsettled =closed >Q <E <ZE =unsettled >Q <C <ZI =settled");
	play(">Q >Q >Q <C <ZI =open <C <ZT <C <ZI =settled");
	play(">Q <I <ZI =settled");
	play(">F <V <ZI =settled");
	play("xZI");
	play(">Q <C <ZI xZI");
}
END_TEST

START_TEST(extended_units)
{
	play(">P >B >D >E =middle =open >S =boundary <1 <2 <T <D <C <ZI =settled");
	play(">P >D >S <1 <t <n <ZI =settled");
	play(">S <ZI =settled");
	play(">S >S >S <ZI <ZI <ZI =settled");
	/* Flush: the replies come, but the unit is open until its Sync */
	play(">P >B >E >H <1 <2 <C =open =middle >S <ZI =settled");
	play(">C >S <3 <ZI =settled");
	play(">B >E >E >S <2 <s <C <ZI =settled");
}
END_TEST

START_TEST(errors_skip_to_sync)
{
	play(">P >B >E >S <E <ZI =settled");
	play(">P >B >E >S <1 <2 <E <ZI =settled");
	/* a query inside the skipped part is never answered */
	play(">P >B >E >Q >S <E <ZI =settled xZI");
	play(">P >F >Q >S <E <ZI =settled xZI");
	/* but one that fails itself is, and so is the Sync behind it */
	play(">P >B >E >Q >S <1 <2 <C <E <ZI =open <ZI =settled");
	play(">P >B >E >Q >S <1 <2 <C <T <C <ZI <ZI =settled");
	/* the error comes before the Sync is sent */
	play(">P >H <E =open =middle >B >E >Q >S <ZI =settled xZI");
	play(">P >H <E >S >Q <ZI <C <ZI =settled");
	/* an error of the Sync itself (a deferred constraint at commit) skips nothing */
	play(">P >B >E >S >Q <1 <2 <C <E <ZI <C <ZI =settled");
	/* the group behind is whole */
	play(">P >B >E >S >P >B >E >S <1 <E <ZI =open <1 <2 <C <ZI =settled");
}
END_TEST

START_TEST(copy_by_simple_query)
{
	play(">Q <G =wants >d >d =middle >c =nowants <C <ZI =settled");
	play(">Q <G >f <E <ZI =settled");
	play(">Q >d >c <G <C <ZI =settled");
	play(">Q <G >c >Q <C <ZI <C <ZI =settled");
	play(">Q <G >c <C <G >c <C <ZI =settled");
	play(">Q >c >c <G <C <G <C <ZI =settled");
	/* the server fails in the middle, the client goes on sending */
	play(">Q <G >d <E <ZI >d >c =settled >Q <C <ZI =settled");
	play(">Q <G >d <E >c <ZI =settled");
	/* a Sync during the COPY is ignored by the server */
	play(">Q <G >S >c <C <ZI =settled xZI");
	play(">Q >S >c <G <C <ZI =settled");
	/* ends that belong to no COPY are ignored */
	play(">c >f =settled >Q >c <C <ZI =settled");
	play(">Q <H <d <c <C <ZI =settled");
}
END_TEST

START_TEST(copy_by_extended_protocol)
{
	play(">P >B >E >S <1 <2 <G >c >S <C <ZI =settled xZI");
	play(">P >B >E >S >d >c >S <1 <2 <G <C <ZI =settled xZI");
	play(">P >B >E >H <1 <2 <G >d >c >S <C <ZI =settled");
	play(">P >B >E >H <1 <2 <G >S >S >d >c >S <C <ZI =settled");
	play(">P >B >E >H <1 <2 <G >f >S <E <ZI =settled");
	/* the early Sync was ignored: without another one the unit is open, and its transaction, too */
	play(">P >B >E >S <1 <2 <G >d >c <C =open =middle >S <ZI =settled");
	play(">P >B >E >c >S <1 <2 <C <ZI =settled");
}
END_TEST

START_TEST(doubtful_syncs)
{
	/* the COPY fails: whether the server had read the early Sync depends on timing, and a barrier tells. Not read: one Z, for the second Sync */
	play(">P >B >E >S <1 <2 <G >d <E >c >S =open <ZI =barrier !! =nobarrier (3 (ZI =settled");
	/* read after the error: two */
	play(">P >B >E >S <1 <2 <G >d <E >c >S <ZI =barrier !! <ZI (3 (ZI =settled");
	play(">P >B >E >S <1 <2 <G >d <E <ZI =settled >c >S <ZI =settled");
	play(">P >B >E >S <1 <2 <G >d <E >c >S <ZI <ZI =settled");
}
END_TEST

START_TEST(hidden_units)
{
	play("!E !E !E !S >Q (1 (2 (D (C (ZI <C <ZI =settled");
	play("!E !E !E !S >Q (1 (E (ZI <C <ZI =settled");
	play("!Q (C (ZI =settled");
	play(">Q <C <ZT !Q (C (ZI =settled");
	play("!Q >P >B >E >S (C (ZI <1 <2 <C <ZI =settled");
}
END_TEST

START_TEST(grows_and_is_bounded)
{
	struct replyq q;
	bool ok = true;

	replyq_init(&q, 'I');
	for (uint32_t i = 0; i < REPLYQ_MAX; i++)
		ok = ok && replyq_sent(&q, 'Q', false);
	ck_assert(ok);
	ck_assert(!replyq_sent(&q, 'Q', false));
	for (uint32_t i = 0; i < REPLYQ_MAX; i++)
		ok = ok && replyq_got(&q, 'Z', 'I') == REPLYQ_FORWARD;
	ck_assert(ok);
	ck_assert(replyq_is_settled(&q));
	/* a flood of ends of no COPY costs no memory and leaves nothing */
	for (uint32_t i = 0; i < 2 * REPLYQ_MAX; i++)
		ok = ok && replyq_sent(&q, 'c', false);
	ck_assert(ok);
	ck_assert(replyq_is_settled(&q));
	replyq_fini(&q);
}
END_TEST

UNIT_MAIN("replyq", simple_queries, extended_units, errors_skip_to_sync, copy_by_simple_query,
          copy_by_extended_protocol, doubtful_syncs, hidden_units, grows_and_is_bounded)
