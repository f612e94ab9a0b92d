/* Who may do what: the file, the headers, pauses after failures, on a clock of the test. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/http/access.h"
#include "agent/http/authorization.h"
#include "agent/http/passwords.h"
#include "agent/http/throttle.h"
#include "agent/io/engine.h"
#include "agent/runtime/metrics.h"
#include "conf/web_config.h"

/* "secret" and "other", cost 4. */
#define SECRET "$2b$04$VqMvDM0pkkFdxLhCuqCshuB6yInZoQWxVIipEeq5RTokGkl/BfGsi"
#define OTHER "$2b$04$n7/QKy/c3zaOO.wm3GBfkOPkr/ikeBcWQveGAUz4hgLbMDzovXgsK"
#define ANN_SECRET "Basic YW5uOnNlY3JldA=="
#define ANN_OTHER "Basic YW5uOm90aGVy"
#define BOB_OTHER "Basic Ym9iOm90aGVy"
#define EVE_SECRET "Basic ZXZlOnNlY3JldA=="

static bool address_in(const char *address, const char *network)
{
	unsigned char bytes[NETWORK_ADDRESS];
	struct network parsed;
	struct error error;

	assert_true(network_address(address, bytes));
	assert_true(network_parse(network, &parsed, &error));
	return network_has(&parsed, bytes);
}

static void test_networks(void **state)
{
	static const char *const wrong[] = {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1",
		"10.0.0/8", "10.0.0.0/0", "::/0", "fd00::/129", "localhost", "10.0.0.0/8/8",
		"10.0.0.1 ", "10.0.0.0/1e1", "[::1]"};
	struct network network;
	struct error error;

	(void)state;
	assert_true(address_in("10.1.2.3", "10.0.0.0/8"));
	assert_true(address_in("10.1.2.3", "10.255.0.0/8")); /* other bits do not matter */
	assert_false(address_in("11.1.2.3", "10.0.0.0/8"));
	assert_true(address_in("192.0.2.130", "192.0.2.128/25"));
	assert_false(address_in("192.0.2.127", "192.0.2.128/25"));
	assert_true(address_in("127.0.0.1", "127.0.0.1"));
	assert_false(address_in("127.0.0.2", "127.0.0.1"));
	assert_true(address_in("::ffff:10.1.2.3", "10.0.0.0/8")); /* as [::] reports it */
	assert_true(address_in("fd12::1", "fd00::/8"));
	assert_false(address_in("fe80::1", "fd00::/8"));
	assert_false(address_in("::a01:203", "10.0.0.0/8"));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (network_parse(wrong[i], &network, &error))
			fail_msg("%s", wrong[i]);
}

static void test_authorization(void **state)
{
	static const char *const wrong[] = {"", "Basic", "Basic ",
		"Basic =", "Basic ====", "Basic YW5u", "Basic YW5uOnNlY3JldA",
		"Basic YW5uOnNlY3JldB==", "Basic YW5uOnNlY3JldA== x",
		"Basic YW5uOnNl\tY3JldA==", "Basic OnNlY3JldA==" /* no name */,
		"Basic YW4AOnNlY3JldA==" /* a NUL */, "Basic YW4KOnNlY3I=" /* a line break */,
		"Digest username=ann", "Bearer", "Bearer a b", "Bearer \x01",
		"BasicYW5uOnNlY3JldA=="};
	struct arena *arena = arena_new();
	struct authorization given;
	char *much = calloc(1, 20000);

	(void)state;
	assert_true(authorization_parse(ANN_SECRET, arena, &given));
	assert_string_equal(given.user, "ann");
	assert_string_equal(given.secret, "secret");
	assert_true(authorization_parse("bASIC YTpiOmM=", arena, &given));
	assert_string_equal(given.user, "a");
	assert_string_equal(given.secret, "b:c");
	assert_true(authorization_parse("Basic YW5uOg==", arena, &given)); /* an empty password */
	assert_string_equal(given.secret, "");
	assert_true(authorization_parse("bearer x.y-z", arena, &given));
	assert_null(given.user);
	assert_string_equal(given.secret, "x.y-z");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (authorization_parse(wrong[i], arena, &given))
			fail_msg("%s", wrong[i]);
	memset(much, 'Y', 19999);
	memcpy(much, "Basic ", 6);
	assert_false(authorization_parse(much, arena, &given));
	memcpy(much, "Bearer ", 7);
	assert_false(authorization_parse(much, arena, &given));
	free(much);
	arena_free(arena);
}

static void test_pauses(void **state)
{
	static const int64_t pauses[] = {0, 0, 0, 500, 1000, 2000, 4000, 8000, 8000};
	struct throttle *throttle = calloc(1, sizeof *throttle);
	int64_t now = 1000;

	(void)state;
	throttle->free = 3;
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		assert_int_equal(throttle_failed(throttle, 7, now), i + 1);
		assert_int_equal(throttle_pause(throttle, 7, now), pauses[i]);
		now += pauses[i];
		assert_int_equal(throttle_pause(throttle, 7, now), 0);
	}
	assert_int_equal(throttle_pause(throttle, 8, now), 0); /* others are not held up */
	throttle_succeeded(throttle, 7);
	assert_int_equal(throttle_failed(throttle, 7, now), 1);
	for (int i = 0; i < 8; i++)
		throttle_failed(throttle, 7, now);
	assert_int_equal(throttle_failed(throttle, 7, now + 8000 + THROTTLE_FORGET), 1);
	/* Many keys take the places of those whose pauses end first. */
	now += 1000000;
	for (int i = 0; i < 9; i++)
		throttle_failed(throttle, 9, now);
	for (uint64_t key = 100; key < 100 + 2 * THROTTLE_PLACES; key++)
		throttle_failed(throttle, key, now);
	assert_int_equal(throttle->count, THROTTLE_PLACES);
	assert_int_equal(throttle_pause(throttle, 9, now), 8000);
	free(throttle);
}

/* Parses the file; its problems, a line each. */
static struct web_config *parse(struct arena *arena, const char *text, const char **told)
{
	struct problems problems = {.arena = arena};
	struct web_config *config =
		web_config_parse("/etc/x/web.yaml", text, strlen(text), &problems);

	*told = "";
	for (size_t i = 0; i < problems.count; i++)
		*told = arena_printf(arena, "%s%s\n", *told, problems.items[i].text);
	return config;
}

static void test_file(void **state)
{
	struct arena *arena = arena_new();
	const char *told;
	struct web_config *config = parse(arena,
		"tls_server_config: {cert_file: a.pem, key_file: /b.pem, min_version: TLS13}\n"
		"basic_auth_users: {ann: \"" SECRET "\", bob: " OTHER "}\n"
		"roles: {ann: admin, zoe: triager}\n"
		"tokens: [{name: ci, file: ci.token, role: triager}, {name: grafana, file: /g}]\n"
		"trusted_proxies: [127.0.0.1, \"fd00::/8\"]\n"
		"user_header: X-User\n",
		&told);

	(void)state;
	assert_string_equal(told, "/etc/x/web.yaml:2:25: warning: basic_auth_users \"ann\": the "
				  "cost of the bcrypt hash is below 10: too easy to guess\n"
				  "/etc/x/web.yaml:2:94: warning: basic_auth_users \"bob\": the "
				  "cost of the bcrypt hash is below 10: too easy to guess\n");
	assert_non_null(config);
	assert_string_equal(config->cert_file, "/etc/x/a.pem");
	assert_string_equal(config->key_file, "/b.pem");
	assert_true(config->tls13);
	assert_int_equal(config->user_count, 2);
	assert_string_equal(config->users[0].hash, SECRET);
	assert_int_equal(web_config_role(config, "ann"), ROLE_ADMIN);
	assert_int_equal(web_config_role(config, "bob"), ROLE_VIEWER);
	assert_int_equal(web_config_role(config, "zoe"), ROLE_TRIAGER);
	assert_int_equal(config->token_count, 2);
	assert_string_equal(config->tokens[0].file, "/etc/x/ci.token");
	assert_int_equal(config->tokens[0].role, ROLE_TRIAGER);
	assert_int_equal(config->tokens[1].role, ROLE_VIEWER);
	assert_int_equal(config->proxy_count, 2);
	assert_string_equal(config->user_header, "X-User");
	assert_null(config->role_header);
	web_config_free(config);
	arena_free(arena);
}

static void test_readable_hashes(void **state)
{
	char path[] = "/tmp/web.XXXXXX";
	struct arena *arena = arena_new();
	int fd = mkstemp(path);

	(void)state;
	dprintf(fd, "roles: {}\nbasic_auth_users: {ann: \"%s\"}\n", SECRET);
	for (int open = 0; open < 2; open++) {
		struct problems problems = {.arena = arena};

		fchmod(fd, open ? 0644 : 0640);
		web_config_free(web_config_read(path, &problems));
		assert_int_equal(problems.errors, 0);
		assert_int_equal(problems.count, 1 + open); /* the cost is low */
		if (open)
			assert_non_null(strstr(problems.items[1].text,
				":2:20: warning: basic_auth_users: every user of this machine"));
	}
	close(fd);
	unlink(path);
	arena_free(arena);
}

static void test_refused_files(void **state)
{
	static const struct {
		const char *text, *told;
	} cases[] = {
		{"", "web.yaml: the file is empty"},
		{"[1]", "1:1: expected a map"},
		{"basic_auth_users: [ann]", "1:19: basic_auth_users: expected a map"},
		{"basic_auth_users: {ann: secret}",
			"1:25: basic_auth_users \"ann\": expected a bcrypt"},
		{"basic_auth_users: {ann: $1$abc$def}", "expected a bcrypt"},
		{"basic_auth_users: {ann: \"$2x$"
		 "10$VqMvDM0pkkFdxLhCuqCshuB6yInZoQWxVIipEeq5RTokGkl/"
		 "BfGsi\"}",
			"expected a bcrypt"},
		{"basic_auth_users: {ann: \"$2b$"
		 "31$VqMvDM0pkkFdxLhCuqCshuB6yInZoQWxVIipEeq5RTokGkl/"
		 "BfGsi\"}",
			"from 4 to 15"},
		{"basic_auth_users: {\"a:b\": \"" SECRET "\"}", "no colon"},
		{"basic_auth_users: {ann: \"" SECRET "\", ann: \"" OTHER "\"}",
			"duplicate key \"ann\""},
		{"tls_server_config: {cert_file: a}", "tls_server_config: \"key_file\" is missing"},
		{"tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}",
			"min_version"},
		{"tls_server_config: {cert_file: a, key_file: b,\n client_ca_file: c}",
			"2:2: tls_server_config: unknown key \"client_ca_file\""},
		{"tls_server_config: {cert_file: a, key_file: b, cipher_suites: [x]}",
			"unknown key \"cipher_suites\""},
		{"http_server_config: {http2: true}", "1:1: unknown key \"http_server_config\""},
		{"rate_limit: {}", "unknown key \"rate_limit\""},
		{"roles: {ann: root}", "1:14: roles \"ann\": expected viewer, triager or admin"},
		{"tokens: {a: b}", "tokens: expected a list"},
		{"tokens: [a]", "tokens: expected a map"},
		{"tokens: [{name: a}]", "\"file\" is missing"},
		{"trusted_proxies: [10.0.0.1]\nrole_header:",
			"2:13: role_header: a value is missing"},
		{"trusted_proxies: ~", "trusted_proxies: a value is missing"},
		{"roles: {ann: viewer}\ntokens:", "tokens: a value is missing"},
		{"roles: {ann: null}", "ann: a value is missing"},
		{"trusted_proxies: [10.0.0.1, ~]", "trusted_proxies: a value is missing"},
		{"roles: {ann: viewer}\ntls_server_config: {cert_file: , key_file: }",
			"cert_file: a value is missing"},
		{"tokens: [{name: a, file: b}, {name: a, file: c}]", "duplicate token name"},
		{"tokens: [{name: a, file: b, role: root}]", "role"},
		{"tokens: [{name: a, file: \"${HOME}/x\"}]",
			"environment variables are not expanded"},
		{"trusted_proxies: [0.0.0.0/0]", "matches all addresses"},
		{"trusted_proxies: [\"::ffff:10.0.0.0/8\"]", "all IPv4 addresses"},
		{"trusted_proxies: [\"::/80\"]", "all IPv4 addresses"},
		{"trusted_proxies: [proxy]", "is not an address or a network"},
		{"trusted_proxies: [10.0.0.1]\nuser_header: Authorization", "2:14: user_header"},
		{"trusted_proxies: [10.0.0.1]\nuser_header: X-A\nrole_header: x-a",
			"is not allowed as the name"},
		{"trusted_proxies: [10.0.0.1]\nrole_header: \"a b\"", "is not allowed as the name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		const char *told;

		if (parse(arena, cases[i].text, &told) || !strstr(told, cases[i].told) ||
			strstr(told, "VqMvDM0pkkF"))
			fail_msg("%s: %s", cases[i].text, told);
		arena_free(arena);
	}
}

/* An agent's access, whose files lie in a folder of the test. */
struct world {
	char folder[64], path[100];
	struct engine *engine;
	struct metrics *metrics;
	struct access *access;
	struct arena *arena;
	enum access_outcome outcome;
	size_t decided;
};

static int64_t clock_now;

static int64_t now(void)
{
	return clock_now;
}

static void write_file(const struct world *world, const char *name, const char *text)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s.new", world->folder, name);
	FILE *file = fopen(path, "w");
	char final[200];

	snprintf(final, sizeof final, "%s/%s", world->folder, name);
	fputs(text, file);
	fclose(file);
	chmod(path, 0600);
	rename(path, final); /* another inode: it has changed, whatever the clock's grain */
}

#define USERS "basic_auth_users: {ann: \"" SECRET "\", bob: \"" OTHER "\"}\nroles: {ann: admin}\n"
#define TOKENS "tokens: [{name: ci, file: ci.token, role: triager}]\n"
#define PROXIES "trusted_proxies: [192.0.2.1, 10.0.0.0/8]\nrole_header: X-ROLES\n"

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error error;

	strcpy(world->folder, "/tmp/test_access.XXXXXX");
	if (!mkdtemp(world->folder))
		return -1;
	snprintf(world->path, sizeof world->path, "%s/web.yaml", world->folder);
	world->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	world->metrics = metrics_new();
	world->arena = arena_new();
	clock_now = 1000000;
	write_file(world, "ci.token", "a-token-of-some-length\n");
	write_file(world, "web.yaml", USERS TOKENS PROXIES);
	world->access = access_new(&(struct access_options){.engine = world->engine,
					   .metrics = world->metrics,
					   .path = world->path,
					   .now = now},
		&error);
	if (!world->access)
		fail_msg("%s", error.text);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	char path[200];

	engine_free(world->engine);
	access_free(world->access);
	metrics_free(world->metrics);
	arena_free(world->arena);
	snprintf(path, sizeof path, "%s/ci.token", world->folder);
	unlink(path);
	unlink(world->path);
	rmdir(world->folder);
	free(world);
	return 0;
}

static void decide(struct sign_in *sign_in, enum access_outcome outcome)
{
	struct world *world = sign_in->context;

	world->outcome = outcome;
	world->decided++;
}

static struct sign_in *ask_from(struct world *world, const char *address, const char *authorization)
{
	struct sign_in *sign_in = arena_alloc(world->arena, sizeof *sign_in);

	*sign_in = (struct sign_in){.access = world->access,
		.arena = world->arena,
		.authorization = authorization,
		.decided = decide,
		.context = world};
	assert_true(network_address(address, sign_in->peer.address));
	return sign_in;
}

/* Asks, and waits for the worker. */
static enum access_outcome answer(struct world *world, struct sign_in *sign_in)
{
	enum access_outcome outcome = access_sign_in(sign_in);

	if (outcome != ACCESS_PENDING)
		return outcome;
	engine_run(world->engine);
	return world->outcome;
}

static void is_granted(
	struct world *world, struct sign_in *sign_in, const char *name, enum role role)
{
	if (answer(world, sign_in) != ACCESS_GRANTED)
		fail_msg("%s: %d %s", name, sign_in->status, sign_in->problem);
	assert_string_equal(sign_in->person.name, name);
	assert_int_equal(sign_in->person.role, role);
}

static void is_refused(struct world *world, struct sign_in *sign_in, int status)
{
	assert_int_equal(answer(world, sign_in), ACCESS_REFUSED);
	if (sign_in->status != status)
		fail_msg("%d instead of %d: %s", sign_in->status, status, sign_in->problem);
}

static void test_credentials(void **state)
{
	struct world *world = *state;

	is_granted(world, ask_from(world, "192.0.2.9", ANN_SECRET), "ann", ROLE_ADMIN);
	is_granted(world, ask_from(world, "192.0.2.9", BOB_OTHER), "bob", ROLE_VIEWER);
	is_granted(
		world, ask_from(world, "::1", "Bearer a-token-of-some-length"), "ci", ROLE_TRIAGER);
	is_refused(world, ask_from(world, "192.0.2.9", ANN_OTHER), 401);
	is_refused(world, ask_from(world, "192.0.2.9", EVE_SECRET), 401);
	is_refused(world, ask_from(world, "192.0.2.9", "Bearer a-token-of-some-lengt"), 401);
	is_refused(world, ask_from(world, "192.0.2.9", "Bearer a-token-of-some-length1"), 401);
	is_refused(world, ask_from(world, "192.0.2.9", "Negotiate abc"), 401);
	is_refused(world, ask_from(world, "192.0.2.9", NULL), 401);
	is_refused(
		world, ask_from(world, "127.0.0.1", NULL), 401); /* the loopback is no exception */
	/* What was right is known without a worker, what was wrong is not. */
	assert_int_equal(access_sign_in(ask_from(world, "192.0.2.9", ANN_SECRET)), ACCESS_GRANTED);
	assert_int_equal(access_sign_in(ask_from(world, "192.0.2.8", ANN_OTHER)), ACCESS_PENDING);
	engine_run(world->engine);
}

static void test_proxies(void **state)
{
	struct world *world = *state;
	struct sign_in *sign_in = ask_from(world, "192.0.2.1", NULL);

	sign_in->user = "zoë";
	sign_in->roles = "editor, Triager,viewer";
	is_granted(world, sign_in, "zoë", ROLE_TRIAGER);
	sign_in = ask_from(world, "10.9.9.9", NULL);
	sign_in->user = "ann"; /* without roles: those of the file */
	is_granted(world, sign_in, "ann", ROLE_ADMIN);
	sign_in = ask_from(world, "10.9.9.9", ANN_OTHER);
	sign_in->user = "zoe"; /* the proxy passes on what it was signed in with */
	is_granted(world, sign_in, "zoe", ROLE_VIEWER);
	sign_in->user = "zoe\n";
	is_refused(world, sign_in, 400);
	sign_in->user = "";
	is_refused(world, sign_in, 400);
	/* Without the header the proxy's client has to sign in like others. */
	is_refused(world, ask_from(world, "10.9.9.9", NULL), 401);
	/* From elsewhere the headers do not count. */
	sign_in = ask_from(world, "11.0.0.1", NULL);
	sign_in->user = "ann";
	sign_in->roles = "admin";
	is_refused(world, sign_in, 401);
	sign_in = ask_from(world, "127.0.0.1", BOB_OTHER);
	sign_in->user = "ann";
	sign_in->roles = "admin";
	is_granted(world, sign_in, "bob", ROLE_VIEWER);
	/* Where it came from: the last that is no proxy. */
	sign_in = ask_from(world, "10.9.9.9", BOB_OTHER);
	sign_in->forwarded = "127.0.0.1, 203.0.113.5,10.1.1.1 ";
	is_granted(world, sign_in, "bob", ROLE_VIEWER);
	assert_string_equal(sign_in->person.from, "203.0.113.5");
	sign_in = ask_from(world, "10.9.9.9", BOB_OTHER);
	sign_in->forwarded = "203.0.113.5, unknown";
	is_granted(world, sign_in, "bob", ROLE_VIEWER);
	assert_string_equal(sign_in->person.from, "10.9.9.9");
	sign_in = ask_from(world, "203.0.113.7", BOB_OTHER);
	sign_in->forwarded = "203.0.113.5";
	is_granted(world, sign_in, "bob", ROLE_VIEWER);
	assert_string_equal(sign_in->person.from, "203.0.113.7");
}

static void test_socket(void **state)
{
	struct world *world = *state;
	struct sign_in *sign_in = ask_from(world, "::", NULL);

	sign_in->peer = (struct peer){.local = true, .uid = 0};
	is_granted(world, sign_in, "root", ROLE_ADMIN);
	assert_string_equal(sign_in->person.from, "uid 0");
	sign_in->peer.uid = 3999999999;
	is_granted(world, sign_in, "uid 3999999999", ROLE_ADMIN);
	sign_in->relayed = true;
	is_refused(world, sign_in, 403);
}

static void test_without_file(void **state)
{
	struct world *world = *state;
	struct error error;
	struct access *access =
		access_new(&(struct access_options){.engine = world->engine, .now = now}, &error);
	struct sign_in *sign_in = ask_from(world, "127.0.0.1", NULL);

	assert_null(access_config(access));
	assert_null(access_tls(access));
	sign_in->access = access;
	is_granted(world, sign_in, "local", ROLE_ADMIN);
	access_free(access);
}

static void test_slowed_down(void **state)
{
	struct world *world = *state;

	is_granted(world, ask_from(world, "192.0.2.9", ANN_SECRET), "ann", ROLE_ADMIN);
	for (int i = 0; i < 4; i++)
		is_refused(world, ask_from(world, "192.0.2.9", ANN_OTHER), 401);
	/* The right password is not even looked at. */
	struct sign_in *sign_in = ask_from(world, "192.0.2.9", ANN_SECRET);

	is_refused(world, sign_in, 429);
	assert_int_equal(sign_in->retry_after, 1);
	/* Others, and the same user elsewhere, are not held up. */
	is_granted(world, ask_from(world, "192.0.2.9", BOB_OTHER), "bob", ROLE_VIEWER);
	is_granted(world, ask_from(world, "192.0.2.10", ANN_SECRET), "ann", ROLE_ADMIN);
	/* A name that does not exist pauses as one that does. */
	for (int i = 0; i < 4; i++)
		is_refused(world, ask_from(world, "192.0.2.9", EVE_SECRET), 401);
	is_refused(world, ask_from(world, "192.0.2.9", EVE_SECRET), 429);
	/* So do tokens, apart from passwords. */
	for (int i = 0; i < 4; i++)
		is_refused(world, ask_from(world, "192.0.2.9", "Bearer wrong"), 401);
	is_refused(world, ask_from(world, "192.0.2.9", "Bearer wrong"), 429);
	/* A right token is no guess. */
	is_granted(world, ask_from(world, "192.0.2.9", "Bearer a-token-of-some-length"), "ci",
		ROLE_TRIAGER);
	is_refused(world, ask_from(world, "192.0.2.9", "Bearer wrong"), 429);
	clock_now += 500;
	is_granted(world, ask_from(world, "192.0.2.9", "Bearer a-token-of-some-length"), "ci",
		ROLE_TRIAGER);
	is_granted(world, ask_from(world, "192.0.2.9", ANN_SECRET), "ann", ROLE_ADMIN);
	/* An IPv6 network of 56 bits is one customer. */
	for (int i = 0; i < 4; i++)
		is_refused(world,
			ask_from(world, i % 2 ? "2001:db8::1" : "2001:db8:0:ff::2", ANN_OTHER),
			401);
	is_refused(world, ask_from(world, "2001:db8::3", ANN_SECRET), 429);
	is_granted(world, ask_from(world, "2001:db8:0:100::1", ANN_SECRET), "ann", ROLE_ADMIN);
}

/* Base64 of "u%06d:x". */
static const char *many_names(struct arena *arena, int number)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[16], *out = arena_alloc(arena, 64), *at = out + sprintf(out, "Basic ");

	snprintf(text, sizeof text, "u%06d:x", number);
	for (size_t i = 0; i < 9; i += 3) {
		unsigned bits = (unsigned)(unsigned char)text[i] << 16 |
				(unsigned)(unsigned char)text[i + 1] << 8 |
				(unsigned char)text[i + 2];
		for (int shift = 18; shift >= 0; shift -= 6)
			*at++ = digits[bits >> shift & 63];
	}
	return out;
}

static void test_many_names(void **state)
{
	struct world *world = *state;
	int tried = 0;

	is_granted(world, ask_from(world, "192.0.2.9", BOB_OTHER), "bob", ROLE_VIEWER);
	for (int i = 0; i < 1000; i++) {
		struct sign_in *sign_in = ask_from(world, "192.0.2.9", many_names(world->arena, i));

		assert_int_equal(answer(world, sign_in), ACCESS_REFUSED);
		tried += sign_in->status == 401;
	}
	assert_int_equal(tried, 21);
	/* Who has been there before is still served; who has not waits. */
	is_granted(world, ask_from(world, "192.0.2.9", BOB_OTHER), "bob", ROLE_VIEWER);
	is_refused(world, ask_from(world, "192.0.2.9", ANN_SECRET), 429);
	is_granted(world, ask_from(world, "192.0.2.10", ANN_SECRET), "ann", ROLE_ADMIN);
}

static void test_queue(void **state)
{
	struct world *world = *state;
	struct sign_in *asked[20], *left;
	size_t pending = 0;

	/* An address has a share of it. */
	for (int i = 0; i < 6; i++) {
		asked[i] = ask_from(world, "192.0.2.9", many_names(world->arena, i));
		pending += access_sign_in(asked[i]) == ACCESS_PENDING;
	}
	assert_int_equal(pending, 4);
	assert_int_equal(asked[5]->status, 429);
	/* All together have 16 places; a client that leaves gives its place back. */
	left = ask_from(world, "192.0.2.10", ANN_SECRET);
	assert_int_equal(access_sign_in(left), ACCESS_PENDING);
	access_abandon(left);
	for (int i = 0; i < 16; i++) {
		char address[20];

		snprintf(address, sizeof address, "192.0.3.%d", i);
		pending += access_sign_in(ask_from(world, address, ANN_SECRET)) == ACCESS_PENDING;
	}
	assert_int_equal(pending, 16);
	engine_run(world->engine);
	assert_int_equal(world->decided, 16);
}

/* A client that has left while its password is checked, and an agent that stops. */
static void test_abandoned(void **state)
{
	struct world *world = *state;
	struct sign_in *sign_in = ask_from(world, "192.0.2.9", ANN_SECRET);

	assert_int_equal(access_sign_in(sign_in), ACCESS_PENDING);
	access_abandon(sign_in);
	engine_run(world->engine);
	assert_int_equal(world->decided, 0);
	assert_int_equal(access_sign_in(ask_from(world, "192.0.2.10", BOB_OTHER)), ACCESS_PENDING);
}

static void test_changed_files(void **state)
{
	struct world *world = *state;

	is_granted(world, ask_from(world, "192.0.2.9", ANN_SECRET), "ann", ROLE_ADMIN);
	write_file(world, "web.yaml",
		"basic_auth_users: {ann: \"" OTHER "\", bob: \"" OTHER "\"}\n" TOKENS);
	clock_now += 1000;
	is_refused(world, ask_from(world, "192.0.2.9", ANN_SECRET), 401);
	is_granted(world, ask_from(world, "192.0.2.9", ANN_OTHER), "ann", ROLE_VIEWER);
	write_file(world, "ci.token", "another-token-of-some-length\n");
	clock_now += 1000;
	is_refused(world, ask_from(world, "192.0.2.9", "Bearer a-token-of-some-length"), 401);
	is_granted(world, ask_from(world, "192.0.2.9", "Bearer another-token-of-some-length"), "ci",
		ROLE_TRIAGER);
	/* What cannot be used changes nothing: broken, of nobody, with a token that is missing. */
	static const char *const broken[] = {"basic_auth_users: {ann: x}", "roles: {}",
		"tokens: [{name: a, file: missing}]",
		"tls_server_config: {cert_file: a, key_file: b}", "{"};

	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		write_file(world, "web.yaml", broken[i]);
		clock_now += 1000;
		is_granted(world, ask_from(world, "192.0.2.9", ANN_OTHER), "ann", ROLE_VIEWER);
		is_refused(world, ask_from(world, "192.0.2.11", NULL), 401);
	}
	unlink(world->path);
	assert_non_null(strstr(access_reload(world->access), "No such file"));
	assert_non_null(access_reload(world->access)); /* unchanged, and not read again */
	clock_now += 1000;
	is_granted(world, ask_from(world, "192.0.2.9", ANN_OTHER), "ann", ROLE_VIEWER);
	write_file(world, "web.yaml", USERS);
	assert_null(access_reload(world->access)); /* at once */
	is_granted(world, ask_from(world, "192.0.2.9", ANN_SECRET), "ann", ROLE_ADMIN);
	is_refused(world, ask_from(world, "192.0.2.9", "Bearer another-token-of-some-length"), 401);
}

/* The file is replaced while a password is checked: the new one counts. */
static void test_changed_meanwhile(void **state)
{
	struct world *world = *state;
	struct sign_in *sign_in = ask_from(world, "192.0.2.9", ANN_SECRET);

	assert_int_equal(access_sign_in(sign_in), ACCESS_PENDING);
	write_file(world, "web.yaml", "basic_auth_users: {ann: \"" OTHER "\"}\n");
	assert_null(access_reload(world->access));
	engine_run(world->engine);
	assert_int_equal(world->decided, 1);
	assert_int_equal(world->outcome, ACCESS_REFUSED);
}

static void test_bad_start(void **state)
{
	static const struct {
		const char *text, *told;
	} cases[] = {
		{"basic_auth_users: {ann: x}", "web.yaml:1:25: basic_auth_users \"ann\": expected"},
		{"tokens: [{name: a, file: missing}]", "missing: No such file"},
		{"tokens: [{name: a, file: web.yaml}]", "a token has at"},
		{"tls_server_config: {cert_file: a, key_file: b}", "cert_file: cannot read"},
		{"tls_server_config: {cert_file: web.yaml, key_file: web.yaml}", "cert_file"},
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error error;

		write_file(world, "web.yaml", cases[i].text);
		assert_null(access_new(
			&(struct access_options){.engine = world->engine, .path = world->path},
			&error));
		assert_int_equal(error.kind, ERROR_USAGE);
		if (!strstr(error.text, cases[i].told))
			fail_msg("%s: %s", cases[i].text, error.text);
	}
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_authorization),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_readable_hashes),
		cmocka_unit_test(test_refused_files),
		WITH(test_credentials),
		WITH(test_proxies),
		WITH(test_socket),
		WITH(test_without_file),
		WITH(test_slowed_down),
		WITH(test_many_names),
		WITH(test_queue),
		WITH(test_abandoned),
		WITH(test_changed_files),
		WITH(test_changed_meanwhile),
		WITH(test_bad_start),
	};
	return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
