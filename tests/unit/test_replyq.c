/* SPDX-License-Identifier: ISC */
#include "wire/replyq.h"

#include <string.h>

#include "unit.h"

/*
 * Plays a conversation. Words: ">Q" the client's message to the server, "!Q" one of ours (hidden), "!!" a barrier,
 * "<C" a message of the server that must be the client's, "(C" one that must be hidden, "<ZI" "(ZT" ReadyForQuery with
 * its status, "xZI" a ReadyForQuery that must be unexpected. "=settled" "=open" "=closed" "=boundary" "=middle"
 * "=barrier" "=wants" "=nowants" check the state.
 *
 * Statements carry a note, a letter: "+Pa" the client's Parse, "~Pa" one of ours among the client's messages, "^Ca" a Close in
 * place of the client's Parse, "+Da" "~Da" a Describe, "+Qa" a Query with a note. "p3" is a CloseComplete that must become a ParseComplete.
 * "@a+b!c-" checks what was told since the last such word, in order: done, failed, skipped.
 */
static char notes[26];
static char told[256];

static void
on_settle(void *what, enum replyq_outcome outcome)
{
	size_t n = strlen(told);

	ck_assert_uint_lt(n + 2, sizeof(told));
	told[n] = *(char *)what;
	told[n + 1] = "+!-"[outcome];
	told[n + 2] = '\0';
}

static char *
note(char letter)
{
	notes[letter - 'a'] = letter;
	return &notes[letter - 'a'];
}

static void
send_noted(struct replyq *q, const char *word)
{
	enum replyq_kind kind = word[1] == 'P' ? REPLYQ_PARSE : word[1] == 'C' ? REPLYQ_CLOSE : REPLYQ_DESCRIBE;
	enum replyq_answer answer = word[0] == '+' ? REPLYQ_PASS : word[0] == '~' ? REPLYQ_SWALLOW : REPLYQ_AS_PARSE;

	if (word[1] == 'Q')
		ck_assert(replyq_sent_query(q, note(word[2])));
	else
		ck_assert(replyq_sent_statement(q, kind, answer, note(word[2])));
}

static void
check_told(const char *want, const char *script)
{
	ck_assert_msg(strcmp(told, want) == 0, "told \"%s\" instead of \"%s\" in: %s", told, want, script);
	told[0] = '\0';
}

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
		{"=half", replyq_is_half_sent, true},     {"=whole", replyq_is_half_sent, false},
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
	q.settle = on_settle;
	told[0] = '\0';
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
		case 'p':
			fate = replyq_got(&q, word[1], word[2]);
			ck_assert_msg(fate == (word[0] == '<'   ? REPLYQ_FORWARD
			                       : word[0] == '(' ? REPLYQ_HIDE
			                       : word[0] == 'p' ? REPLYQ_PARSED
			                                        : REPLYQ_UNEXPECTED),
			              "word %d, %s of: %s", at, word, script);
			break;
		case '+':
		case '~':
		case '^':
			send_noted(&q, word);
			break;
		case '@':
			check_told(word + 1, script);
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
	play(">P >B >E >S <1 <2 <G >c >c <C =open =middle >S <ZI =settled");
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

START_TEST(statements_with_notes)
{
	play("+Pa =open =middle >B >E >S <1 @a+ <2 <C <ZI =settled @");
	play("~Pa >B >E >S (1 @a+ <2 <C <ZI =settled");
	play("^Ca >D >B >E >S p3 @a+ <t <T <2 <C <ZI =settled");
	play("+Ca >S <3 @a+ <ZI =settled");
	/* evicted and parsed ahead, in the middle of what the client sends */
	play(">B >E ~Ca ~Pb >B >E >S <2 <C (3 (1 @a+b+ <2 <C <ZI =settled");
	/* a ParseComplete comes for the statement whose turn it is */
	play("+Pa ~Pb +Pc >S <1 (1 <1 @a+b+c+ <ZI =settled");
	play("+Pa =middle <1 @a+ =middle =open >S <ZI =settled");
	/* a Z that can't be for it */
	play("+Pa >S xZI");
	play("+Qa <C <ZI @a+ =settled");
	play("+Qa <E <ZI @a+ =settled");
}
END_TEST

START_TEST(statements_that_fail_and_are_skipped)
{
	play("+Pa >B >E >S <E @a! <ZI =settled");
	/* the latest first, so that changes can be undone */
	play("+Pa +Cb +Pc >S <E @c-b-a! <ZI =settled");
	play("+Pa +Cb +Pc >S <1 <E @a+c-b! <ZI =settled");
	play("+Pa >B +Cb +Pc >S <1 <E @a+c-b- <ZI =settled");
	play(">B >E ~Pa >B >S <2 <E @a- <ZI =settled");
	/* the next unit is not concerned */
	play("+Pa >B >S +Pb >S <E @a! <ZI <1 @b+ <ZI =settled");
	/* a Query among what is skipped is not executed */
	play("+Pa +Qb >S <E @b-a! <ZI =settled");
	/* sent when it is known already that it will be skipped */
	play("+Pa <E @a! +Pb @b- ~Cc @c- +Qd @d- >B >S <ZI =settled");
	/* the error is one of another message behind the statement */
	play("+Pa >S <1 <E <ZI @a+ =settled");
	/* the connection is lost: the end of play() skips what is left */
	play("+Pa +Pb >S <1 @a+");
	ck_assert_str_eq(told, "b-");
}
END_TEST

START_TEST(statements_and_copy)
{
	play("~Pa >B >E >d >c +Pb >S (1 <2 <G <C <1 @a+b+ <ZI =settled");
	/* the COPY fails: it is not the Parse behind it that has failed */
	play(">B >E >d >c +Pb >S <2 <G <E @b- <ZI =settled");
	play(">B >E >c +Pb >S <2 <G <E @b- <ZI =settled");
	/* ends of no COPY hide nothing */
	play("+Pa >c ~Pb >f >S <1 (1 @a+b+ <ZI =settled");
	play("+Pa >c ~Pb >S <1 <E @a+b! <ZI =settled");
	play(">Q >B >E >c >S <C <ZI <2 <G <C <ZI =settled");
	play(">Q >D >c +Pa >S <E <ZI <E @a- <ZI =settled");
}
END_TEST

START_TEST(descriptions)
{
	play(">P +Da >S <1 <t <T @a+ <ZI =settled");
	play(">P +Da >S <1 <t <n @a+ <ZI =settled");
	/* ours, in front of the client's Bind; nothing else of it is hidden */
	play("~Pa ~Db =open (1 @a+ (t (T @b+ >B >D >E >S <2 <T <D <C <ZI =settled");
	play("~Da (t (n @a+ >B >E >S <2 <C <ZI =settled");
	/* a Describe of the client's before ours */
	play(">D +Da ~Db >S <t <T <t <T @a+ (t (T @b+ <ZI =settled");
	/* missing; the parameters have been told when the plan fails */
	play("+Da >S <E @a! <ZI =settled");
	play("+Da >B >S <t <E @a! <ZI =settled");
	play(">P +Da >S <E @a- <ZI =settled");
	play("~Pa ~Db <E @b-a! >B >S <ZI =settled");
	/* a result's description is not its own */
	play(">Q <T <D <C <ZI +Da >S <t <T @a+ <ZI =settled");
}
END_TEST

/* A unit must wait while it is not known which Syncs of a COPY that failed are answered. */
START_TEST(doubt_is_settled_before_the_next_unit)
{
	struct replyq q;

	replyq_init(&q, 'I');
	for (const char *p = "BESdcS"; *p != '\0'; p++)
		ck_assert(replyq_sent(&q, *p, false));
	ck_assert(!replyq_must_wait(&q));
	for (const char *p = "2GE"; *p != '\0'; p++)
		ck_assert_int_eq(replyq_got(&q, *p, 0), REPLYQ_FORWARD);
	ck_assert(replyq_must_wait(&q));
	ck_assert_int_eq(replyq_got(&q, 'Z', 'I'), REPLYQ_FORWARD);
	ck_assert(replyq_wants_barrier(&q) && replyq_sent_barrier(&q) && replyq_must_wait(&q));
	ck_assert_int_eq(replyq_got(&q, '3', 0), REPLYQ_HIDE);
	ck_assert(!replyq_must_wait(&q));
	ck_assert_int_eq(replyq_got(&q, 'Z', 'I'), REPLYQ_HIDE);
	ck_assert(replyq_is_settled(&q));
	replyq_fini(&q);
	/* the Sync is read after the error or not: so the Parse is executed or not */
	play(">B >E >S <2 <G >d <E +Pa @a- >S <ZI <1 =barrier !! <ZI (3 (ZI =settled");
}
END_TEST

START_TEST(half_sent)
{
	play("=whole >Q =whole <G =half >d =half >c =whole <C <ZI =whole");
	play(">P =half >B >E >S =whole <1 <E =whole <ZI =whole");
	/* the Query is skipped, too, and then nothing ends it */
	play(">E >Q =whole <E =half >S =whole");
	play(">P >B >E <1 <2 <G =half >c =half >S =whole");
	/* the early Sync is ignored */
	play(">P >B >E >S =whole <1 <2 <G =half >c =half >S =whole");
}
END_TEST

START_TEST(doubt_when_more_was_sent_behind_a_failed_copy)
{
	/* a Sync was sent into it: whether the Z is that one's or the function call's can't be told */
	play(">Q <G >d >S >c >F <E <ZI <ZI =barrier =unsettled !! <V <ZI (3 (ZI =settled");
	play(">P >B >E <1 <2 <G >d >S >c >P >S <E <ZI =barrier !! <1 <ZI (3 (ZI =settled");
	/* Syncs alone */
	play(">Q <G >d >S >c >S <E <ZI <ZI =barrier !! <ZI (3 (ZI =settled");
	/* and without that Sync nothing is doubtful */
	play(">Q <G >d >c >F <E <ZI <V <ZI =settled");
	/* without an end of the COPY: the Parse made it fail, or came later and was executed, whatever its note was told */
	play(">Q <G >d +Pa >S <E @a- <ZI <1 <ZI =barrier =unsettled !! (3 (ZI =settled");
	play(">Q <G >d +Pa >S <E @a- <ZI <ZI =barrier !! (3 (ZI =settled");
	play(">Q <G >d >B >S <E <ZI <2 <ZI =barrier !! (3 (ZI =settled");
	play(">B >E >S <2 <G >d +Pa >S <E @a- <ZI <1 <ZI =barrier =unsettled !! (3 (ZI =settled");
	/* behind a COPY by the extended protocol all is skipped up to the Sync */
	play(">B >E <2 <G >d +Pa >S <E @a- <ZI =settled");
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
          copy_by_extended_protocol, doubtful_syncs, hidden_units, statements_with_notes,
          statements_that_fail_and_are_skipped, statements_and_copy, descriptions,
          doubt_is_settled_before_the_next_unit, half_sent, doubt_when_more_was_sent_behind_a_failed_copy,
          grows_and_is_bounded)
