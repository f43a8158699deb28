/* SPDX-License-Identifier: ISC */
/*
 * Plays every scenario of the corpus against PostgreSQL itself and through the
 * daemon, with pools of 1, 2 and 16 backends, in three segmentations, while
 * another session uses the same pool, and compares what was answered.
 *
 *   player FILE-OR-FOLDER...     (default: tests/wire/cases)
 */
#include "scenario.h"
#include "suite.h"
#include "transcript.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define ANSWER_TIMEOUT_MS 8000

enum segmentation { SEGMENT_WHOLE, SEGMENT_BYTES, SEGMENT_GLUED, N_SEGMENTATIONS };
static const char *const segmentation_names[] = {"message by message", "byte by byte", "glued"};

static const struct {
	int pool_size, n_proxies, max_prepared; /* so small that pipelines must evict: the second */
} setups[] = {{1, 1, 200}, {2, 2, 2}, {16, 2, 200}};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

static struct daemon *daemons[N_SETUPS];
static struct scenario **scenarios;
static size_t n_scenarios;

/* ---- one connection, played ---- */

struct player {
	const struct scenario *scenario;
	enum segmentation segmentation;
	uint16_t port;
	int fd;
	struct transcript said;
	struct packet out; /* not sent yet */
	struct packet in;  /* not read as a message yet */
	int came[256];     /* messages by type, minus those waited for */
	bool closed, said_closed, quiet_login;
	uint32_t pid, key;
	int64_t deadline_ms;
};

/* The test's own connection to the server, for setup, check and until. */
static PGconn *
direct(void)
{
	static PGconn *conn;

	if (conn == NULL)
		conn = PQconnectdb(proc_fmt("host=%s port=%d user=app dbname=app application_name=direct "
		                            "options='-c client_min_messages=warning'",
		                            pg->dir, pg->port));
	return conn;
}

static void
read_messages(struct player *p)
{
	size_t used = 0;

	while (p->in.n - used >= 5) {
		const uint8_t *m = p->in.data + used;
		uint32_t n = packet_read_u32(m + 1);

		if (n < 4) {
			transcript_add(&p->said, "garbage: type %02x length %u", m[0], n);
			p->closed = true;
			break;
		}
		if (p->in.n - used < 1 + (size_t)n)
			break;
		if (m[0] == 'K') {
			p->pid = packet_read_u32(m + 5);
			p->key = packet_read_u32(m + 9);
		}
		if (!p->quiet_login && strchr(p->scenario->ignored, m[0]) == NULL)
			transcript_add_message(&p->said, (char)m[0], m + 5, n - 4, p->scenario->compares_error_text);
		p->came[m[0]]++;
		used += 1 + (size_t)n;
	}
	if (used > 0)
		memmove(p->in.data, p->in.data + used, p->in.n - used);
	p->in.n -= used;
}

static void
receive(struct player *p)
{
	uint8_t buf[65536];
	ssize_t n = recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n > 0)
		packet_bytes(&p->in, buf, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		p->closed = true;
}

/* Receives until there is something new, or the peer is gone; false: too late. */
static bool
wait_for_more(struct player *p, short also)
{
	struct pollfd pfd = {.fd = p->fd, .events = (short)(POLLIN | also)};
	int64_t left = p->deadline_ms - proc_now_ms();

	if (poll(&pfd, 1, left > 0 ? (int)left : 0) <= 0) {
		transcript_add(&p->said, "nothing more within %d ms", ANSWER_TIMEOUT_MS);
		p->closed = true;
		return false;
	}
	if (pfd.revents & (POLLIN | POLLHUP | POLLERR))
		receive(p);
	return true;
}

/* Reads while it writes: both sides may be full. */
static void
send_all(struct player *p, const uint8_t *data, size_t n)
{
	while (n > 0 && !p->closed) {
		ssize_t sent = send(p->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0)
			data += sent, n -= (size_t)sent;
		else if (sent < 0 && errno == EAGAIN)
			wait_for_more(p, POLLOUT);
		else if (sent < 0 && errno != EINTR)
			return; /* the peer is gone; what it said last is still to be read */
	}
}

static void
send_in_bytes(struct player *p, const uint8_t *data, size_t n)
{
	size_t single = n < 200 ? n : 40; /* the head of a long message, then pieces of odd size */

	for (size_t i = 0; i < single; i++)
		send_all(p, data + i, 1);
	for (size_t i = single; i < n; i += 1777)
		send_all(p, data + i, n - i < 1777 ? n - i : 1777);
}

static void
send_pending(struct player *p)
{
	send_all(p, p->out.data, p->out.n);
	packet_clear(&p->out);
}

static void
step_send(struct player *p, const struct packet *bytes)
{
	switch (p->segmentation) {
	case SEGMENT_WHOLE:
		send_all(p, bytes->data, bytes->n);
		break;
	case SEGMENT_BYTES:
		send_in_bytes(p, bytes->data, bytes->n);
		break;
	case SEGMENT_GLUED:
	case N_SEGMENTATIONS:
		packet_bytes(&p->out, bytes->data, bytes->n);
		break;
	}
}

static void
step_wait(struct player *p, uint8_t type, int n)
{
	p->deadline_ms = proc_now_ms() + ANSWER_TIMEOUT_MS;
	for (;;) {
		read_messages(p);
		if (p->came[type] >= n || p->closed)
			break;
		wait_for_more(p, 0);
	}
	p->came[type] -= n;
}

static void
step_wait_eof(struct player *p)
{
	p->deadline_ms = proc_now_ms() + ANSWER_TIMEOUT_MS;
	while (!p->closed)
		wait_for_more(p, 0);
	read_messages(p);
	if (!p->said_closed)
		transcript_add(&p->said, "closed%s", p->in.n > 0 ? " in the middle of a message" : "");
	p->said_closed = true;
}

static void
step_byte(struct player *p)
{
	p->deadline_ms = proc_now_ms() + ANSWER_TIMEOUT_MS;
	while (p->in.n == 0 && !p->closed)
		wait_for_more(p, 0);
	if (p->in.n == 0)
		return;
	transcript_add(&p->said, "byte %c", p->in.data[0]);
	memmove(p->in.data, p->in.data + 1, --p->in.n);
}

static void
step_until(struct player *p, const char *sql)
{
	if (!wait_until(query_text(direct(), "%s", sql)[0] == 't', ANSWER_TIMEOUT_MS))
		transcript_add(&p->said, "never true: %s", sql);
}

static void
play_step(struct player *p, const struct step *step)
{
	if (step->kind != STEP_SEND)
		send_pending(p);
	switch (step->kind) {
	case STEP_SEND:
		step_send(p, &step->bytes);
		break;
	case STEP_WAIT:
		step_wait(p, (uint8_t)step->type, step->n);
		break;
	case STEP_WAIT_EOF:
		step_wait_eof(p);
		break;
	case STEP_BYTE:
		step_byte(p);
		break;
	case STEP_UNTIL:
		step_until(p, step->sql);
		break;
	case STEP_CANCEL:
		raw_cancel(p->port, p->pid, p->key);
		break;
	case STEP_HALF_CLOSE:
		shutdown(p->fd, SHUT_WR);
		break;
	case STEP_CLOSE:
		close(p->fd);
		p->fd = -1;
		p->closed = true;
		break;
	}
}

static void
log_in(struct player *p)
{
	struct packet hello = {0};
	const char *pairs[4 + SCENARIO_STARTUP_MAX + 1] = {"user", "app", "database", "app"};

	for (int i = 0; p->scenario->startup[i] != NULL; i++)
		pairs[4 + i] = p->scenario->startup[i];
	packet_startup(&hello, 3 << 16, pairs);
	p->quiet_login = !p->scenario->compares_login;
	step_send(p, &hello);
	send_pending(p);
	step_wait(p, 'Z', 1);
	p->quiet_login = false;
	packet_free(&hello);
}

static void
say_goodbye(struct player *p)
{
	static const uint8_t terminate[] = {'X', 0, 0, 0, 4};

	send_pending(p);
	if (p->fd < 0)
		return;
	if (!p->closed)
		send_all(p, terminate, sizeof(terminate));
	step_wait_eof(p);
	close(p->fd);
}

/* Where a scenario is played. */
struct place {
	uint16_t port;
	const char *socket_dir;
};

static struct transcript
play(const struct scenario *s, struct place place, enum segmentation segmentation)
{
	struct player p = {.scenario = s, .segmentation = segmentation, .port = place.port};
	struct rawconn *c;

	if (s->setup != NULL)
		query_ok(direct(), "%s", s->setup);
	c = s->over_unix ? raw_unix(place.socket_dir, place.port) : raw_tcp(place.port);
	p.fd = c->fd;
	free(c);
	if (s->logs_in)
		log_in(&p);
	for (size_t i = 0; i < s->n_steps; i++)
		play_step(&p, &s->steps[i]);
	say_goodbye(&p);
	transcript_sort_parameters(&p.said);
	if (s->check != NULL)
		transcript_add(&p.said, "check: %s", query_text(direct(), "%s", s->check));
	packet_free(&p.in);
	packet_free(&p.out);
	return p.said;
}

/* ---- the session that interferes ---- */

struct interference {
	pthread_t thread;
	atomic_bool stop;
	uint16_t port;
};

/* A named statement whose text changes and that others, too, may call so; used when the backend may be another one. */
static void
interfere_with_statement(struct rawconn *c, const char *mark)
{
	packet_parse(&c->out, "a", proc_fmt("select '%s'", mark));
	packet_simple(&c->out, 'S');
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	packet_bind(&c->out, "", "a");
	packet_execute(&c->out, "", 0);
	packet_begin(&c->out, 'C');
	packet_i8(&c->out, 'S');
	packet_str(&c->out, "a");
	packet_end(&c->out);
	packet_simple(&c->out, 'S');
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, proc_fmt("%s;", mark));
}

static void
interfere_once(struct rawconn *c, int i)
{
	char *mark = proc_fmt("interference %d", i);

	raw_query(c, proc_fmt("select '%s'", mark));
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, proc_fmt("%s;", mark));
	packet_query(&c->out, "begin");
	packet_query(&c->out, "select 1/0");
	packet_query(&c->out, "rollback");
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'T');
	ck_assert_int_eq(raw_until_ready(c), 'E');
	ck_assert_str_eq(c->sqlstate, "22012");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	packet_parse(&c->out, "", proc_fmt("select '%s'", mark));
	packet_bind(&c->out, "", "");
	packet_execute(&c->out, "", 0);
	packet_simple(&c->out, 'S');
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, proc_fmt("%s;", mark));
	interfere_with_statement(c, mark);
	free(mark);
}

static void *
interfere(void *arg)
{
	struct interference *in = arg;
	struct rawconn *c = raw_login(in->port, "app", "app");
	const struct timespec pause = {.tv_nsec = 300000};

	for (int i = 0; !atomic_load(&in->stop); i++) {
		interfere_once(c, i);
		nanosleep(&pause, NULL); /* lint: leaves the scenario some of the machine */
	}
	raw_close(c);
	return NULL;
}

/* ---- the tests ---- */

static void
compare(const struct scenario *s, const struct transcript *want, struct transcript got, const char *against,
        enum segmentation segmentation)
{
	char *diff = transcript_diff(want, &got);

	ck_assert_msg(diff == NULL, "%s: %s\n  %s, %s:\n%s", s->path, s->title, against,
	              segmentation_names[segmentation], diff);
	transcript_free(&got);
}

/* PLAYER_SEGMENTS="m g" leaves out byte by byte. */
static bool
is_wanted(enum segmentation segmentation)
{
	const char *wanted = getenv("PLAYER_SEGMENTS");

	return wanted == NULL || strchr(wanted, segmentation_names[segmentation][0]) != NULL;
}

START_TEST(scenario_is_answered_as_by_the_server)
{
	const struct scenario *s = scenarios[_i];
	struct place server = {pg->port, pg->dir};
	struct transcript want = play(s, server, SEGMENT_WHOLE);

	if (getenv("PLAYER_VERBOSE") != NULL)
		for (size_t i = 0; i < want.n; i++)
			printf("%s: %s\n", s->path, want.lines[i]);
	/* Logins on the server are the slow part: this check of the corpus itself is for whoever adds to it. */
	for (int seg = SEGMENT_BYTES; getenv("PLAYER_CHECK_CORPUS") != NULL && seg < N_SEGMENTATIONS; seg++)
		compare(s, &want, play(s, server, (enum segmentation)seg),
		        "the scenario itself is not deterministic on PostgreSQL", (enum segmentation)seg);
	for (size_t i = 0; i < N_SETUPS && daemons[i] != NULL; i++) {
		struct interference in = {.port = daemons[i]->port};
		struct place through = {daemons[i]->port, daemons[i]->dir};
		char *against = proc_fmt("through the daemon with %d backends", setups[i].pool_size);

		ck_assert_int_eq(pthread_create(&in.thread, NULL, interfere, &in), 0);
		for (int seg = SEGMENT_WHOLE; seg < N_SEGMENTATIONS; seg++)
			if (is_wanted((enum segmentation)seg))
				compare(s, &want, play(s, through, (enum segmentation)seg), against,
				        (enum segmentation)seg);
		atomic_store(&in.stop, true);
		pthread_join(in.thread, NULL);
	}
}
END_TEST

static void
start_daemons(void)
{
	if (getenv("PLAYER_DIRECT_ONLY") != NULL)
		return;
	for (size_t i = 0; i < N_SETUPS; i++)
		daemons[i] = daemon_start(pg, &(struct daemon_conf){
						      .settings = proc_fmt("default_pool_size = %d\nproxies = %d\n"
		                                                           "session_state = preserve\n"
		                                                           "max_prepared_statements = %d\n",
		                                                           setups[i].pool_size, setups[i].n_proxies,
		                                                           setups[i].max_prepared)});
}

/* ---- the corpus ---- */

static void
read_scenario(const char *path)
{
	char *error;
	struct scenario *s = scenario_read(path, &error);

	if (s == NULL)
		proc_die("%s", error);
	scenarios = realloc(scenarios, (n_scenarios + 1) * sizeof(struct scenario *));
	if (scenarios == NULL)
		proc_die("no memory");
	scenarios[n_scenarios++] = s;
}

static int
only_cases(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 5 && strcmp(e->d_name + n - 5, ".wire") == 0;
}

static void
read_corpus(const char *path)
{
	struct stat st;
	struct dirent **entries;
	int n;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		read_scenario(path);
		return;
	}
	n = scandir(path, &entries, only_cases, alphasort);
	if (n <= 0)
		proc_die("%s: no scenarios", path);
	for (int i = 0; i < n; i++)
		read_scenario(proc_fmt("%s/%s", path, entries[i]->d_name));
}

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("wire");
	TCase *tcase = tcase_create("wire");
	SRunner *runner;
	int n_failed;

	for (int i = 1; i < argc; i++)
		read_corpus(argv[i]);
	if (argc < 2)
		read_corpus("tests/wire/cases");
	proc_init();
	pg = cluster_new();
	tcase_add_unchecked_fixture(tcase, start_daemons, NULL);
	tcase_add_loop_test(tcase, scenario_is_answered_as_by_the_server, 0, (int)n_scenarios);
	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	for (size_t i = 0; i < N_SETUPS && daemons[i] != NULL; i++) {
		char *problem = daemon_end(daemons[i]);

		if (problem != NULL) {
			printf("%s\n", problem);
			n_failed++;
		}
	}
	cluster_stop(pg);
	return n_failed == 0 ? 0 : 1;
}
