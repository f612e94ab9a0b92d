/*
 * Connections to the state's database, through a proxy that loses what it is told to lose. Needs a
 * server: HUNTER_TEST_POSTGRES; without one only addresses are tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fnmatch.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "agent/base/clock.h"
#include "agent/store/postgresql/connection.h"
#include "agent/store/store.h"
#include "tests/unit/state_address.h"
#include "tests/unit/waiting.h"

enum loses {
	NOTHING,
	COMMITS,    /* cuts the connection when COMMIT comes, which the server does not see */
	ANSWERS,    /* cuts it when COMMIT's answer comes */
	LATE,       /* cuts the client off when COMMIT comes, and passes it on when `pass` is set */
	EVERYTHING, /* passes nothing on, and keeps connections open */
	NEWCOMERS,  /* as ANSWERS, and then accepts nobody */
};

/* Serves one connection at a time; another may come while it waits to pass something on. */
struct proxy {
	pthread_t thread;
	int listener, port, server_port;
	const char *server_host;
	_Atomic int loses;
	_Atomic bool pass, passed, stop;
	_Atomic int links; /* that are served */
};

struct link {
	struct proxy *proxy;
	int client, server;
	bool committing;
};

static int connect_to(const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, host, &address.sin_addr);
	if (connect(server, (struct sockaddr *)&address, sizeof address) != 0)
		abort();
	return server;
}

static bool pass_on(int to, const char *bytes, ssize_t length)
{
	return send(to, bytes, (size_t)length, MSG_NOSIGNAL) == length;
}

/* True while both sides are to be kept. */
static bool from_client(struct link *link)
{
	struct proxy *proxy = link->proxy;
	char bytes[1 << 16];
	ssize_t length = recv(link->client, bytes, sizeof bytes, 0);

	if (length <= 0)
		return false;
	link->committing |= memmem(bytes, (size_t)length, "COMMIT", 6) != NULL;
	if (proxy->loses == EVERYTHING)
		return true;
	if (link->committing && proxy->loses == COMMITS) {
		proxy->loses = NOTHING;
		return false;
	}
	if (link->committing && proxy->loses == LATE) {
		proxy->loses = NOTHING;
		shutdown(link->client, SHUT_RDWR);
		wait_until(proxy->pass);
		(void)pass_on(link->server, bytes, length);
		/* The server does what it got, and then closes its side. */
		shutdown(link->server, SHUT_WR);
		while (recv(link->server, bytes, sizeof bytes, 0) > 0)
			;
		proxy->passed = true;
		return false;
	}
	return pass_on(link->server, bytes, length);
}

static bool from_server(struct link *link)
{
	struct proxy *proxy = link->proxy;
	char bytes[1 << 16];
	ssize_t length = recv(link->server, bytes, sizeof bytes, 0);

	if (length <= 0)
		return false;
	if (proxy->loses == EVERYTHING)
		return true;
	if (link->committing && (proxy->loses == ANSWERS || proxy->loses == NEWCOMERS)) {
		if (proxy->loses == ANSWERS)
			proxy->loses = NOTHING;
		return false;
	}
	return pass_on(link->client, bytes, length);
}

static void *serve_one(void *argument)
{
	struct link *link = argument;
	bool kept = true;

	while (kept && !link->proxy->stop) {
		struct pollfd fds[] = {{.fd = link->client, .events = POLLIN},
			{.fd = link->server, .events = POLLIN}};

		if (poll(fds, 2, 20) <= 0)
			continue;
		if (fds[0].revents)
			kept = from_client(link);
		else if (fds[1].revents)
			kept = from_server(link);
	}
	close(link->client);
	close(link->server);
	link->proxy->links--;
	free(link);
	return NULL;
}

static void *serve(void *argument)
{
	struct proxy *proxy = argument;

	while (!proxy->stop) {
		struct pollfd fd = {.fd = proxy->listener, .events = POLLIN};
		struct link *link;
		pthread_t thread;
		int client;

		if (poll(&fd, 1, 20) <= 0)
			continue;
		client = accept(proxy->listener, NULL, NULL);
		if (proxy->loses == NEWCOMERS) {
			close(client);
			continue;
		}
		link = calloc(1, sizeof *link);
		*link = (struct link){
			proxy, client, connect_to(proxy->server_host, proxy->server_port), false};
		proxy->links++;
		pthread_create(&thread, NULL, serve_one, link);
		pthread_detach(thread);
	}
	return NULL;
}

struct fixture {
	struct proxy proxy;
	char folder[8], state[256], through[256], host[64];
	struct connection *direct, *connection; /* connection: through the proxy */
};

static struct connection *connected(const char *address)
{
	struct error error;
	struct connection *connection = connection_new(address, &error);

	if (!connection)
		fail_msg("%s", error.text);
	return connection;
}

static void run(struct connection *connection, const char *sql)
{

	if (!connection_run(connection, sql, NULL))
		fail_msg("%s", connection_problem(connection));
}

static int64_t number(struct connection *connection, const char *sql)
{
	PGresult *result = connection_ask(connection, sql, NULL);
	int64_t found;

	if (!result)
		fail_msg("%s", connection_problem(connection));
	found = cell_integer(result, 0, 0);
	PQclear(result);
	return found;
}

/* The server's address, "scheme://user@host:port/...", through the proxy. */
static void put_proxy(struct fixture *f)
{
	const char *at = strchr(f->state, '@'), *host = at ? at + 1 : strstr(f->state, "//") + 2;
	size_t length = strcspn(host, ":/");

	snprintf(f->host, sizeof f->host, "%.*s", (int)length, host);
	f->proxy.server_host = strcmp(f->host, "localhost") == 0 ? "127.0.0.1" : f->host;
	f->proxy.server_port = host[length] == ':' ? atoi(host + length + 1) : 5432;
	snprintf(f->through, sizeof f->through, "%.*s127.0.0.1:%d%s", (int)(host - f->state),
		f->state, f->proxy.port, strchr(host, '/'));
}

static void start_proxy(struct proxy *proxy)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(proxy->listener, 8), 0);
	getsockname(proxy->listener, (struct sockaddr *)&address, &size);
	proxy->port = ntohs(address.sin_port);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct error error;

	*state = f;
	if (!getenv("HUNTER_TEST_POSTGRES"))
		return 0;
	setenv("HUNTER_TEST_STATE", "postgresql", 1);
	state_new(f->folder, f->state, sizeof f->state);
	/* Makes the tables. */
	store_close(store_open(f->state, NULL, NULL, &error));
	start_proxy(&f->proxy);
	put_proxy(f);
	pthread_create(&f->proxy.thread, NULL, serve, &f->proxy);
	f->direct = connected(f->state);
	f->connection = connected(f->through);
	connection_number(f->connection);
	connection_patience(f->connection, 3000);
	run(f->direct, "CREATE TABLE marks (mark BIGINT)");
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->proxy.port) {
		connection_free(f->connection);
		connection_free(f->direct);
		f->proxy.stop = true;
		pthread_join(f->proxy.thread, NULL);
		wait_until(f->proxy.links == 0);
		close(f->proxy.listener);
		state_drop(f->state);
	}
	free(f);
	return 0;
}

#define SERVER_IS_NEEDED(f)                                                                        \
	do                                                                                         \
		if (!(f)->connection)                                                              \
			skip("HUNTER_TEST_POSTGRES names no server");                              \
	while (0)

static bool write_mark(struct connection *connection, int64_t mark)
{
	struct parameters parameters = {0};

	parameter_add(&parameters, v_int(mark));
	return connection_begin(connection, TRANSACTION_WRITES) &&
	       connection_send(connection, "INSERT INTO marks VALUES ($1)", &parameters) &&
	       connection_commit(connection);
}

static void must_write(struct fixture *f, int64_t mark)
{

	if (!write_mark(f->connection, mark))
		fail_msg("%s", connection_problem(f->connection));
}

static int64_t marks(struct fixture *f)
{
	return number(f->direct, "SELECT count(*) FROM marks");
}

static void test_addresses(void **state)
{
	static const struct {
		const char *address, *shown;
	} cases[] = {
		{"/var/lib/hunter-c/state.db", "/var/lib/hunter-c/state.db"},
		{"postgresql://db/hunter", "postgresql://db/hunter"},
		{"postgresql://u:geheim@db1,db2:1/h?sslmode=require",
			"postgresql://u@db1,db2:1/h?sslmode=require"},
		{"postgres://u:ge@heim:x@db/h", "postgres://u@db/h"},
		{"postgresql://db/h?password=geheim", "postgresql://db/h"},
		{"postgresql://db/h?a=1&password=geheim&b=2", "postgresql://db/h?a=1&b=2"},
		{"postgresql://db/h?pass%77ord=geheim&b=2", "postgresql://db/h?b=2"},
		{"postgresql://db/h?password_file=%2Fgeheim&b=2", "postgresql://db/h?b=2"},
		{"postgresql://u:ge?heim@db/h", "postgresql://..."},
		{"postgresql://u:ge/h?eim@db/h", "postgresql://..."},
		{"postgresql://db?password=ge@heim", "postgresql://..."},
		{"postgresql://u@db/h?application_name=a@b",
			"postgresql://u@db/h?application_name=a@b"},
	};
	struct arena *arena = arena_new();
	const char *file, *with;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(database_shown(arena, cases[i].address), cases[i].shown);
	assert_false(database_is("postgresql.db"));
	assert_true(database_is("postgres://db"));
	with = database_with_password_file(arena, "postgresql://db/h", "/etc/a b&c%");
	assert_string_equal(database_address(arena, with, &file), "postgresql://db/h");
	assert_string_equal(file, "/etc/a b&c%");
	with = database_with_password_file(arena, "postgresql://db/h?a=1", "x");
	assert_string_equal(database_address(arena, with, &file), "postgresql://db/h?a=1");
	assert_string_equal(file, "x");
	assert_string_equal(
		database_address(arena, "postgresql://db/h", &file), "postgresql://db/h");
	assert_null(file);
	arena_free(arena);
}

static void test_bad_addresses_do_not_show_what_is_in_them(void **state)
{
	static const char *const bad[] = {"postgresql://u:geheim@[::1/h",
		"postgresql://u:geheim@db/h?nonsense=1", "postgresql://u:geheim%zz@db/h",
		"postgresql://u:geheim@db1,db2,db3/h?port=1,2", "postgresql://u:ge@geheim@db/h",
		"postgresql://u:ge?geheim@db@x/h"};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_null(connection_new(bad[i], &error));
		assert_int_equal(error.kind, ERROR_USAGE);
		assert_null(strstr(error.text, "geheim"));
	}
}

/* One that refuses, one that takes connections and says nothing, and the server. */
static void test_hosts(void **state)
{
	struct fixture *f = *state;
	struct proxy silent = {0};
	struct connection *connection;
	char address[512];
	int64_t begun;

	SERVER_IS_NEEDED(f);
	start_proxy(&silent);
	snprintf(address, sizeof address,
		"%.*s127.0.0.1:1,127.0.0.1:%d,127.0.0.1:%d%s?connect_timeout=1",
		(int)(strstr(f->through, "127.0.0.1") - f->through), f->through, silent.port,
		f->proxy.port, strrchr(f->through, '/'));
	connection = connected(address);
	begun = clock_monotonic();
	assert_int_equal(number(connection, "SELECT 7"), 7);
	assert_true(clock_monotonic() - begun >= 1000);
	connection_free(connection);
	close(silent.listener);
}

/* A server that takes no writes is none. */
static void test_a_standby_is_not_taken(void **state)
{
	struct fixture *f = *state;
	struct connection *connection;
	char sql[128];

	SERVER_IS_NEEDED(f);
	snprintf(sql, sizeof sql, "ALTER DATABASE %s SET default_transaction_read_only = on",
		strrchr(f->state, '/') + 1);
	state_administer(sql);
	connection = connected(f->state);
	assert_false(connection_run(connection, "SELECT 1", NULL));
	assert_int_equal(connection_trouble(connection), TROUBLE_AWAY);
	connection_free(connection);
}

static void test_a_closed_connection_is_noticed(void **state)
{
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	must_write(f, 1);
	run(f->direct, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
		       " current_database() AND pid != pg_backend_pid()"
		       " AND usename = current_user"); /* an autovacuum is not ours */
	wait_until(f->proxy.links == 0);
	must_write(f, 2);
	assert_int_equal(marks(f), 2);
}

/* Its connection breaks between two statements: nothing of it is written, neither before nor after,
 * although the server can be reached again at once. */
static void test_a_transaction_ends_with_its_connection(void **state)
{
	static const char sql[] = "INSERT INTO marks VALUES (1)";
	struct fixture *f = *state;
	char end[80];

	SERVER_IS_NEEDED(f);
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	assert_true(connection_run(f->connection, sql, NULL));
	snprintf(end, sizeof end, "SELECT pg_terminate_backend(%lld)",
		(long long)number(f->connection, "SELECT pg_backend_pid()"));
	run(f->direct, end);
	assert_false(connection_run(f->connection, sql, NULL));
	assert_false(connection_run(f->connection, sql, NULL));
	assert_false(connection_send(f->connection, sql, NULL));
	assert_false(connection_commit(f->connection));
	connection_rollback(f->connection);
	assert_int_equal(marks(f), 0);
	must_write(f, 2);
	assert_int_equal(marks(f), 1);
}

static void test_a_lost_commit_is_not_committed(void **state)
{
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	must_write(f, 1);
	f->proxy.loses = COMMITS;
	assert_false(write_mark(f->connection, 2));
	assert_int_equal(connection_trouble(f->connection), TROUBLE_CONFLICT);
	assert_int_equal(marks(f), 1);
	must_write(f, 2);
	assert_int_equal(marks(f), 2);
}

static void test_a_lost_answer_is_asked_for(void **state)
{
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	must_write(f, 1);
	f->proxy.loses = ANSWERS;
	must_write(f, 2);
	assert_int_equal(marks(f), 2);
	must_write(f, 3);
	assert_int_equal(marks(f), 3);
}

/* It comes to the server after the question, and is refused. */
static void test_a_late_commit_is_refused(void **state)
{
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	must_write(f, 1);
	f->proxy.loses = LATE;
	assert_false(write_mark(f->connection, 2));
	assert_int_equal(connection_trouble(f->connection), TROUBLE_CONFLICT);
	f->proxy.pass = true;
	wait_until(f->proxy.passed);
	assert_int_equal(marks(f), 1);
	must_write(f, 2);
	assert_int_equal(marks(f), 2);
}

static void test_doubt_lasts_until_somebody_can_be_asked(void **state)
{
	struct fixture *f = *state;
	int64_t doubtful;

	SERVER_IS_NEEDED(f);
	must_write(f, 1);
	f->proxy.loses = NEWCOMERS;
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	doubtful = connection_transaction(f->connection);
	assert_true(connection_send(f->connection, "INSERT INTO marks VALUES (2)", NULL));
	assert_false(connection_commit(f->connection));
	assert_int_equal(connection_trouble(f->connection), TROUBLE_DOUBT);
	connection_rollback(f->connection);
	assert_false(connection_has_committed(f->connection, doubtful));
	f->proxy.loses = NOTHING;
	wait_until(write_mark(f->connection, 3)); /* nothing is tried for a while after a failure */
	assert_true(connection_has_committed(f->connection, doubtful));
	assert_int_equal(marks(f), 3);
}

static void test_silence_has_an_end(void **state)
{
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	must_write(f, 1);
	connection_patience(f->connection, 500);
	f->proxy.loses = EVERYTHING;
	assert_false(connection_run(f->connection, "SELECT 1", NULL));
	assert_int_equal(connection_trouble(f->connection), TROUBLE_AWAY);
}

/* A statement that waits for a lock is ended by the server, too, in a transaction or not. At most
 * one is left behind, on a connection that has answered until then. */
static void test_nothing_is_left_waiting(void **state)
{
	static const char waiting[] =
		"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
		" AND wait_event_type = 'Lock'";
	struct fixture *f = *state;
	struct connection *watcher;

	SERVER_IS_NEEDED(f);
	watcher = connected(f->state);
	connection_patience(f->direct, 60000);
	assert_true(connection_begin(f->direct, TRANSACTION_PLAIN));
	run(f->direct, "LOCK TABLE marks");
	connection_patience(f->connection, 200);
	for (int i = 0; i < 3; i++) {
		assert_false(connection_run(f->connection, "INSERT INTO marks VALUES (1)", NULL));
		assert_non_null(strstr(connection_problem(f->connection), "SQLSTATE 57014"));
		assert_int_equal(connection_trouble(f->connection), TROUBLE_AWAY);
	}
	assert_int_equal(number(watcher, waiting), 0);
	run(f->connection, "SELECT 1");
	for (int i = 0; i < 3; i++) {
		assert_false(connection_run(f->connection, "INSERT INTO marks VALUES (1)", NULL));
		assert_int_equal(
			!strstr(connection_problem(f->connection), "SQLSTATE 57014"), i == 0);
	}
	assert_int_equal(number(watcher, waiting), 1);
	connection_rollback(f->direct);
	connection_free(watcher);
}

/* The server parses it once; what differs is noticed. */
static void test_a_statement_that_is_sent_again(void **state)
{
	static const char sql[] = "INSERT INTO marks VALUES (length(CAST($1 AS TEXT)))";
	struct fixture *f = *state;
	struct parameters text = {0}, whole = {0}, missing = {0};

	SERVER_IS_NEEDED(f);
	parameter_add(&text, v_text("four"));
	parameter_add(&whole, v_int(123456));
	parameter_add(&missing, v_text(NULL));
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	for (int i = 0; i < 20; i++)
		assert_true(connection_send(f->connection, sql, &text));
	assert_true(connection_send(f->connection, sql, &missing));
	assert_true(connection_send(f->connection, sql, &whole));
	assert_int_equal(
		number(f->connection, "SELECT CAST(sum(mark) AS BIGINT) FROM marks"), 20 * 4 + 6);
	assert_true(connection_send(f->connection, sql, &whole));
	assert_true(connection_commit(f->connection));
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	assert_true(connection_send(f->connection, sql, &whole));
	assert_true(connection_commit(f->connection));
	assert_int_equal(
		number(f->direct, "SELECT CAST(sum(mark) AS BIGINT) FROM marks"), 20 * 4 + 3 * 6);
	assert_int_equal(number(f->direct, "SELECT count(*) FROM marks WHERE mark IS NULL"), 1);
}

static void load_marks(struct fixture *f, int64_t count)
{

	if (!connection_load_begin(f->connection, "COPY marks (mark) FROM STDIN (FORMAT binary)"))
		fail_msg("%s", connection_problem(f->connection));
	for (int64_t i = 0; i < count; i++) {
		struct parameters row = {0};

		if (i == 0)
			parameter_add(&row, v_null());
		else
			parameter_add(&row, v_int(i));
		assert_true(connection_send(f->connection, "", &row));
	}
}

static void test_rows_are_loaded(void **state)
{
	enum { ROWS = 20000 }; /* more than goes at once */
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	run(f->connection, "INSERT INTO marks VALUES (-1)");
	load_marks(f, ROWS);
	assert_true(connection_load_end(f->connection));
	run(f->connection, "INSERT INTO marks VALUES (-2)");
	load_marks(f, 2);
	assert_true(connection_load_end(f->connection));
	assert_true(connection_commit(f->connection));
	assert_int_equal(number(f->direct, "SELECT count(*) FROM marks"), ROWS + 4);
	assert_int_equal(number(f->direct, "SELECT CAST(sum(mark) AS BIGINT) FROM marks"),
		(int64_t)ROWS * (ROWS - 1) / 2 - 3 + 1);

	/* Given up in the middle. */
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	load_marks(f, 100);
	connection_rollback(f->connection);
	must_write(f, 7);
	/* Refused in the middle, and at the beginning. */
	run(f->direct, "ALTER TABLE marks ADD CHECK (mark < 1000000)");
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	load_marks(f, 3);
	for (int64_t i = 0; i < ROWS; i++) {
		struct parameters row = {0};

		parameter_add(&row, v_int(2000000));
		if (!connection_send(f->connection, "", &row))
			break;
	}
	assert_false(connection_load_end(f->connection));
	assert_non_null(strstr(connection_problem(f->connection), "check constraint"));
	connection_rollback(f->connection);
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	assert_false(
		connection_load_begin(f->connection, "COPY nothing FROM STDIN (FORMAT binary)"));
	assert_non_null(strstr(connection_problem(f->connection), "SQLSTATE 42P01"));
	connection_rollback(f->connection);
	must_write(f, 8);
	assert_int_equal(number(f->direct, "SELECT count(*) FROM marks"), ROWS + 6);
}

static void test_conflicts_are_told_from_mistakes(void **state)
{
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	assert_true(connection_begin(f->direct, TRANSACTION_WRITES));
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	assert_int_equal(number(f->direct, "SELECT count(*) FROM marks"), 0);
	assert_int_equal(number(f->connection, "SELECT count(*) FROM marks"), 0);
	run(f->direct, "INSERT INTO marks VALUES (1)");
	run(f->connection, "INSERT INTO marks VALUES (2)");
	assert_true(connection_commit(f->direct));
	assert_false(connection_commit(f->connection));
	assert_int_equal(connection_trouble(f->connection), TROUBLE_CONFLICT);
	connection_rollback(f->connection);
	assert_false(connection_run(f->connection, "SELECT nothing", NULL));
	assert_int_equal(connection_trouble(f->connection), TROUBLE_STATEMENT);
	assert_non_null(strstr(connection_problem(f->connection), "SQLSTATE 42703"));
	/* An error of a statement that nobody waited for. */
	assert_true(connection_begin(f->connection, TRANSACTION_WRITES));
	assert_true(connection_send(f->connection, "SELECT 1 / 0", NULL));
	assert_true(connection_send(f->connection, "INSERT INTO marks VALUES (3)", NULL));
	assert_false(connection_commit(f->connection));
	assert_non_null(strstr(connection_problem(f->connection), "division by zero"));
	connection_rollback(f->connection);
	assert_int_equal(marks(f), 1);
}

/* What was read is there: only the statements are waited for, and what comes next passes over the
 * answer to COMMIT. */
static void test_the_end_of_reading_is_not_waited_for(void **state)
{
	struct fixture *f = *state;
	struct store_traffic before, after;

	SERVER_IS_NEEDED(f);
	assert_true(write_mark(f->connection, 1));
	connection_traffic(&before);
	for (int i = 0; i < 10; i++) {
		assert_true(connection_begin(f->connection, TRANSACTION_READS));
		assert_int_equal(number(f->connection, "SELECT count(*) FROM marks"), 1);
		assert_true(connection_commit(f->connection));
	}
	connection_traffic(&after);
	assert_int_equal(after.round_trips - before.round_trips, 10);
	assert_true(connection_begin(f->connection, TRANSACTION_READS));
	assert_true(connection_send(f->connection, "SELECT 1 / 0", NULL));
	assert_false(connection_commit(f->connection));
	connection_rollback(f->connection);
	assert_true(write_mark(f->connection, 2));
	assert_int_equal(marks(f), 2);
	assert_int_equal(number(f->connection, "SELECT count(*) FROM pg_stat_activity WHERE state ="
					       " 'idle in transaction' AND datname ="
					       " current_database()"),
		0);
}

static void test_values_come_back(void **state)
{
	static const unsigned char bytes[] = {0, 255, 1};
	struct fixture *f = *state;
	struct parameters parameters = {0};
	PGresult *result;

	SERVER_IS_NEEDED(f);
	parameter_add(&parameters, v_int(INT64_MIN));
	parameter_add(&parameters, v_number(-0.1));
	parameter_add(&parameters, v_number((double)NAN));
	parameter_add(&parameters, v_text("\xc3\xa9'\"\\"));
	parameter_add(&parameters, v_text(NULL));
	parameter_add(&parameters, v_bytes(bytes, sizeof bytes));
	result = connection_ask(f->connection,
		"SELECT $1, $2, $3, $4, $5, $6, true, CAST(-3 AS SMALLINT), -4", &parameters);
	if (!result)
		fail_msg("%s", connection_problem(f->connection));
	assert_true(cell_integer(result, 0, 0) == INT64_MIN);
	assert_int_equal(cell_value(result, 0, 0).type, SQL_INTEGER);
	assert_int_equal(cell_value(result, 0, 1).type, SQL_NUMBER);
	assert_true(cell_value(result, 0, 1).number == -0.1);
	assert_int_equal(cell_value(result, 0, 2).type, SQL_NULL);
	assert_int_equal(cell_value(result, 0, 3).type, SQL_TEXT);
	assert_string_equal(cell_value(result, 0, 3).text, "\xc3\xa9'\"\\");
	assert_int_equal(cell_value(result, 0, 4).type, SQL_NULL);
	assert_int_equal(cell_value(result, 0, 5).type, SQL_BYTES);
	assert_int_equal(cell_value(result, 0, 5).length, sizeof bytes);
	assert_memory_equal(cell_value(result, 0, 5).bytes, bytes, sizeof bytes);
	assert_int_equal(cell_integer(result, 0, 6), 1);
	assert_int_equal(cell_integer(result, 0, 7), -3);
	assert_int_equal(cell_integer(result, 0, 8), -4);
	PQclear(result);
}

/* Patterns are those of the shell, as fnmatch() takes them. */
static void test_patterns(void **state)
{
	static const char *const patterns[] = {"db.*", "*", "?", "a?c", "[a-c]x", "[!a-c]x",
		"[^a]x", "[]a]", "a\\*b", "a[*]b", "(a|b)", "a.b", "a+b{1}", "[[:digit:]]*", "[a",
		"^a$", "", "a\\\\b", "*\xc3\xa9"};
	static const char *const texts[] = {"db.read", "db", "a", "abc", "bx", "dx", "]", "a*b",
		"axb", "(a|b)", "a.b", "aab{1}", "a+b{1}", "7up", "[a", "^a$", "", "a\\b", "a/b",
		"\xc3\xa9", "a\nb", "caf\xc3\xa9"};
	struct fixture *f = *state;

	SERVER_IS_NEEDED(f);
	assert_non_null(setlocale(LC_ALL, "C.UTF-8")); /* a character is one, as for the server */
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
			struct parameters parameters = {0};
			PGresult *result;
			bool expected = fnmatch(patterns[i], texts[k], 0) == 0;

			parameter_add(&parameters, v_text(texts[k]));
			parameter_add(&parameters, v_text(patterns[i]));
			result = connection_ask(
				f->direct, "SELECT $1 ~ (SELECT pattern_of($2))", &parameters);
			if (!result)
				fail_msg("%s: %s", patterns[i], connection_problem(f->connection));
			if ((cell_integer(result, 0, 0) == 1) != expected)
				fail_msg("\"%s\" and \"%s\"", patterns[i], texts[k]);
			PQclear(result);
		}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_bad_addresses_do_not_show_what_is_in_them),
		CASE(test_hosts),
		CASE(test_a_standby_is_not_taken),
		CASE(test_a_closed_connection_is_noticed),
		CASE(test_a_transaction_ends_with_its_connection),
		CASE(test_a_lost_commit_is_not_committed),
		CASE(test_a_lost_answer_is_asked_for),
		CASE(test_a_late_commit_is_refused),
		CASE(test_doubt_lasts_until_somebody_can_be_asked),
		CASE(test_silence_has_an_end),
		CASE(test_nothing_is_left_waiting),
		CASE(test_a_statement_that_is_sent_again),
		CASE(test_rows_are_loaded),
		CASE(test_conflicts_are_told_from_mistakes),
		CASE(test_the_end_of_reading_is_not_waited_for),
		CASE(test_values_come_back),
		CASE(test_patterns),
	};

	if (!getenv("HUNTER_TEST_POSTGRES"))
		fputs("most of it is skipped: HUNTER_TEST_POSTGRES names no server\n", stderr);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
