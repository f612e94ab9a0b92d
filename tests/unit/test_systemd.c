/*
 * agent/service/systemd: the datagrams, as systemd's socket gets them.
 */
#include "unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/service/systemd.h"
#include "tests/unit/agent_parts.h"

static const char yaml[] = "agent: {state: \"%s/state.db\"}\n"
			   "tests:\n  a: {type: csv, file: a.csv}\n  b: {type: csv, file: b.csv}\n"
			   "  c: {type: bigquery, query: q}\n";

struct fixture {
	struct parts *parts;
	int socket;
	char name[128], watchdog[32], process[32];
	struct systemd *systemd;
	int stops; /* pulses to wait for */
};

static const char *environment(void *context, const char *name)
{
	const struct fixture *f = context;
	const char *value = strcmp(name, "NOTIFY_SOCKET") == 0   ? f->name
			    : strcmp(name, "WATCHDOG_USEC") == 0 ? f->watchdog
			    : strcmp(name, "WATCHDOG_PID") == 0  ? f->process
								 : "";

	return *value ? value : NULL;
}

static void bind_socket(struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(f->name);

	memcpy(address.sun_path, f->name, length);
	if (f->name[0] == '@')
		address.sun_path[0] = '\0';
	f->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->socket, (const struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
		0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->parts = parts_new(yaml);
	f->socket = -1;
	snprintf(f->name, sizeof f->name, "%s/notify", f->parts->folder);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(f->parts->agent.store);
	f->parts->agent.store = NULL;
	assert_true(engine_free(f->parts->agent.engine));
	f->parts->agent.engine = NULL;
	systemd_free(f->systemd);
	parts_free(f->parts);
	close(f->socket);
	free(f);
	return 0;
}

/* The next datagram; it is there. */
static const char *heard(const struct fixture *f)
{
	static char text[512];
	ssize_t length = recv(f->socket, text, sizeof text - 1, 0);

	text[length < 0 ? 0 : length] = '\0';
	return text;
}

static void expect_a_life(struct fixture *f)
{
	unsigned long long time;

	bind_socket(f);
	f->systemd = systemd_new(&f->parts->agent, environment, f);
	assert_non_null(f->systemd);
	systemd_ready(f->systemd);
	assert_string_equal(heard(f), "READY=1\nSTATUS=monitoring 2 tests\n");
	systemd_reloading(f->systemd);
	assert_int_equal(sscanf(heard(f), "RELOADING=1\nMONOTONIC_USEC=%llu", &time), 1);
	assert_in_range(clock_monotonic_ns() / 1000 - (int64_t)time, 0, 10000000);
	systemd_reloaded(f->systemd, "hunter.yaml:3: not YAML\nat all");
	assert_string_equal(heard(f), "READY=1\nSTATUS=monitoring 2 tests, reload failed, previous "
				      "configuration in use: hunter.yaml:3: not YAML\n");
	systemd_reloaded(f->systemd, NULL);
	assert_string_equal(heard(f), "READY=1\nSTATUS=monitoring 2 tests\n");
	error_set(&f->parts->agent.store_error, ERROR_STATE, "disk full");
	systemd_ready(f->systemd);
	assert_string_equal(heard(f), "READY=1\nSTATUS=not ready: disk full\n");
	systemd_stopping(f->systemd);
	assert_string_equal(heard(f), "STOPPING=1\nSTATUS=finishing deliveries in progress\n");
	assert_string_equal(heard(f), "");
}

static void test_a_path(void **state)
{
	expect_a_life(*state);
}

static void test_an_abstract_name(void **state)
{
	struct fixture *f = *state;

	snprintf(f->name, sizeof f->name, "@hunter-c-test-%d", getpid());
	expect_a_life(f);
}

static void stop(void *engine)
{
	engine_stop(engine);
}

static int64_t hear_pulses(void *context)
{
	struct fixture *f = context;

	while (*heard(f))
		if (--f->stops == 0)
			engine_stop(f->parts->agent.engine);
	return -1;
}

/* A sign at half the time, which the store has answered for. */
static void test_the_watchdog(void **state)
{
	struct fixture *f = *state;
	int64_t start;

	bind_socket(f);
	strcpy(f->watchdog, "40000");
	snprintf(f->process, sizeof f->process, "%d", getpid());
	f->systemd = systemd_new(&f->parts->agent, environment, f);
	start = clock_monotonic();
	systemd_ready(f->systemd); /* asks for the first sign */
	assert_string_equal(heard(f), "READY=1\nSTATUS=monitoring 2 tests\n");
	systemd_ready(f->systemd); /* does not begin the signs again */
	heard(f);
	f->stops = 4;
	engine_host(f->parts->agent.engine, f->socket, hear_pulses, f);
	assert_true(engine_run(f->parts->agent.engine));
	engine_unhost(f->parts->agent.engine, f->socket);
	assert_int_equal(f->stops, 0);
	assert_in_range(clock_monotonic() - start, 60, 20000);
}

/* Once it has said so, a store that does not answer costs the sign of life. */
static void test_a_store_that_is_stuck(void **state)
{
	struct fixture *f = *state;
	struct store *store = f->parts->agent.store;
	struct error error;
	char other[160];

	snprintf(other, sizeof other, "%s/other.db", f->parts->folder);
	bind_socket(f);
	strcpy(f->watchdog, "2000");
	/* Its answers go to an engine that nobody runs. */
	struct engine *aside = engine_new(&(struct engine_options){.jobs = 1}, &error);
	f->parts->agent.store = store_open(other, parts_post, aside, &error);
	f->systemd = systemd_new(&f->parts->agent, environment, f);
	systemd_ready(f->systemd);
	assert_string_equal(heard(f), "READY=1\nSTATUS=monitoring 2 tests\n");
	engine_after(f->parts->agent.engine, 30, stop, f->parts->agent.engine);
	assert_true(engine_run(f->parts->agent.engine));
	assert_string_equal(heard(f), "");
	store_close(f->parts->agent.store);
	engine_run(aside); /* now it is answered */
	assert_string_equal(heard(f), "WATCHDOG=1\nSTATUS=monitoring 2 tests\n");
	assert_true(engine_free(aside));
	f->parts->agent.store = store;
}

/* Another process is watched, or none. */
static void test_no_watchdog(void **state)
{
	struct fixture *f = *state;

	bind_socket(f);
	strcpy(f->watchdog, "1000");
	snprintf(f->process, sizeof f->process, "%d", getpid() + 1);
	f->systemd = systemd_new(&f->parts->agent, environment, f);
	systemd_ready(f->systemd);
	heard(f);
	assert_true(engine_run(f->parts->agent.engine)); /* there is nothing to do */
	assert_string_equal(heard(f), "");
}

static void test_nobody_to_tell(void **state)
{
	struct fixture *f = *state;

	snprintf(f->name, sizeof f->name, "%s/nobody", f->parts->folder);
	f->systemd = systemd_new(&f->parts->agent, environment, f);
	systemd_ready(f->systemd); /* nothing happens */
	systemd_free(f->systemd);
	strcpy(f->name, "relative/path");
	assert_null(systemd_new(&f->parts->agent, environment, f));
	memset(f->name, '/', sizeof f->name - 1);
	assert_null(systemd_new(&f->parts->agent, environment, f));
	f->name[0] = '\0';
	f->systemd = systemd_new(&f->parts->agent, environment, f);
	assert_null(f->systemd);
	systemd_ready(NULL);
	systemd_reloading(NULL);
	systemd_stopping(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_path),
		TEST(test_an_abstract_name),
		TEST(test_the_watchdog),
		TEST(test_a_store_that_is_stuck),
		TEST(test_no_watchdog),
		TEST(test_nobody_to_tell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
