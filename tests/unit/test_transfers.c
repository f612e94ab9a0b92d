/* Transfers against a server of our own that answers well, badly or not at all. */
#include "unit.h"

#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "agent/base/arena.h"
#include "agent/io/exchange.h"
#include "agent/io/transfers.h"
#include "peer.h"

enum { MOST_CALLS = 200 };

/* What a test looks at after its calls have ended. */
struct world {
	struct transfers *transfers;
	struct endpoint endpoint;
	struct transfer requests[MOST_CALLS];
	struct client_request calls[MOST_CALLS];
	int order[MOST_CALLS]; /* in which the calls ended */
	int count, ended;
};

static struct world *world; /* of the running test: cmocka's tests have no better place for it */

static int set_up(void **state)
{
	(void)state;
	world = calloc(1, sizeof *world);
	world->transfers = transfers_new(TRANSFERS_MEMORY);
	world->endpoint = (struct endpoint){.connect_timeout = 60000, /* busy as the machine is */
		.timeout = 60000,
		.max_concurrent = 16,
		.max_body = 1 << 20};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < world->count; i++)
		transfers_release(world->transfers, &world->calls[i]);
	transfers_free(world->transfers);
	free(world);
	return 0;
}

static void ended(struct client_request *call)
{
	world->order[world->ended++] = (int)(call - world->calls);
}

static void start(const struct transfer *transfer)
{
	struct client_request *call = &world->calls[world->count];
	world->requests[world->count] = *transfer;
	world->requests[world->count].endpoint = &world->endpoint;
	*call = (struct client_request){
		.transfer = &world->requests[world->count++], .done = ended};
	transfers_start(world->transfers, call);
}

static void start_get(const char *url)
{
	start(&(struct transfer){.method = "GET", .url = url});
}

static void run(int until_ended)
{
	while (world->ended < until_ended) {
		transfers_run(world->transfers);
		if (world->ended < until_ended)
			transfers_wait(world->transfers, NULL, 0, 10000);
	}
}

/* One call, carried out; its reply. */
static const struct reply *ask(const struct transfer *transfer)
{
	start(transfer);
	run(world->count);
	return &world->calls[world->count - 1].reply;
}

static const struct reply *get(const char *url)
{
	return ask(&(struct transfer){.method = "GET", .url = url});
}

static const struct reply *get_path(const struct peer *peer, const char *path)
{
	static char url[128];
	snprintf(url, sizeof url, "%s%s", peer->url, path);
	return get(url);
}

static const struct reply *post(const char *url, const char *body)
{
	struct pair headers[] = {{"Content-Type", "application/json"}};
	return ask(&(struct transfer){.method = "POST",
		.url = url,
		.headers = {headers, 1},
		.body = body,
		.body_length = strlen(body)});
}

static bool answer_hello(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_answer(fd, 200, "Content-Type: text/plain\r\n", "hello");
	return true;
}

static void test_answer(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_hello, NULL);
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->kind, REPLY_ANSWER);
	assert_int_equal(reply->status, 200);
	assert_int_equal(reply->retry_after, -1);
	assert_string_equal(reply->content_type, "text/plain");
	assert_string_equal(reply->body, "hello");
	assert_int_equal(reply->length, 5);
	assert_null(reply->redirected);
	assert_null(reply->problem);
	assert_true(peer_saw(peer, "User-Agent: hunter-c/"));
	assert_true(peer_saw(peer, "Accept-Encoding: "));
	assert_false(peer_saw(peer, "Authorization"));
	peer_free(peer);
}

static void test_post_headers_and_credentials(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_hello, NULL);
	struct pair fixed[] = {{"X-Scope-OrgID", "perf"}, {"X-Empty", ""}};
	world->endpoint.url = peer->url;
	world->endpoint.username = "me";
	world->endpoint.password = "secret";
	world->endpoint.headers = (struct pairs){fixed, 2};
	assert_int_equal(post(peer->url, "{\"a\":1}")->status, 200);
	assert_true(peer_saw(peer, "POST / HTTP/1.1\r\n"));
	assert_true(peer_saw(peer, "Authorization: Basic bWU6c2VjcmV0\r\n"));
	assert_true(peer_saw(peer, "X-Scope-OrgID: perf\r\n"));
	assert_true(peer_saw(peer, "X-Empty:\r\n"));
	assert_true(peer_saw(peer, "Content-Type: application/json\r\n"));
	assert_true(peer_saw(peer, "\r\n\r\n{\"a\":1}"));
	assert_false(peer_saw(peer, "Expect"));
	peer_free(peer);
}

static void test_bearer_from_a_file_read_at_use(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_hello, NULL);
	char path[] = "/tmp/hunter-token-XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "first\n", 6), 6);
	world->endpoint.url = peer->url;
	world->endpoint.bearer_token_file = path;
	assert_int_equal(get(peer->url)->status, 200);
	assert_true(peer_saw(peer, "Authorization: Bearer first\r\n"));
	assert_int_equal(pwrite(fd, "other\n", 6, 0), 6);
	assert_int_equal(get(peer->url)->status, 200);
	assert_true(peer_saw(peer, "Authorization: Bearer other\r\n"));

	assert_int_equal(pwrite(fd, "a\nb\n", 4, 0), 4);
	assert_int_equal(get(peer->url)->kind, REPLY_UNREACHABLE);
	unlink(path);
	close(fd);
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->kind, REPLY_UNREACHABLE);
	assert_non_null(strstr(reply->problem, "bearer_token_file"));
	assert_non_null(strstr(reply->problem, "No such file"));
	peer_free(peer);
}

static void test_credentials_go_to_the_configured_server_only(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_hello, NULL);
	struct pair fixed[] = {{"X-Api-Key", "secret"}};
	world->endpoint.url = "http://elsewhere.example/";
	world->endpoint.bearer_token = "secret";
	world->endpoint.headers = (struct pairs){fixed, 1};
	assert_int_equal(get(peer->url)->status, 200);
	assert_false(peer_saw(peer, "secret"));
	world->endpoint.url = NULL; /* a notifier that knows its address itself */
	assert_int_equal(get(peer->url)->status, 200);
	assert_true(peer_saw(peer, "Bearer secret"));
	assert_true(peer_saw(peer, "X-Api-Key: secret"));
	peer_free(peer);
}

static void test_credentials_within_the_url(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_hello, NULL);
	char url[128];
	snprintf(url, sizeof url, "http://me:s%%40cret@127.0.0.1:%d/", peer->port);
	world->endpoint.url = url;
	assert_int_equal(get(peer->url)->status, 200);
	assert_true(peer_saw(peer, "Authorization: Basic bWU6c0BjcmV0\r\n"));
	peer_free(peer);
}

/* Refuses, or not, and repeats what it was sent, as a proxy's page of errors may. */
static bool answer_echo(struct peer *peer, int fd, const char *request)
{
	(void)peer;
	peer_answer(fd, strstr(request, " /refuse") ? 401 : 200, "", request);
	return true;
}

static void expect_silence(const struct peer *peer, const char *const secrets[], size_t count)
{
	char url[128];
	snprintf(url, sizeof url, "%s/refuse", peer->url);
	const struct reply *reply = get(url);
	assert_int_equal(reply->status, 401);
	assert_non_null(strstr(reply->body, "User-Agent: hunter-c"));
	for (size_t i = 0; i < count; i++)
		assert_null(strstr(reply->body, secrets[i]));
	snprintf(url, sizeof url, "%s/", peer->url);
	reply = get(url); /* data: left as they are, and the secrets told to who shows some */
	assert_int_equal(reply->status, 200);
	for (size_t i = 0; i < count; i++) {
		bool told = false;
		assert_non_null(strstr(reply->body, secrets[i]));
		for (size_t k = 0; k < reply->secrets.count; k++)
			told |= strcmp(reply->secrets.items[k], secrets[i]) == 0;
		assert_true(told);
	}
}

static void test_secrets_that_a_server_repeats(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_echo, NULL);
	struct pair fixed[] = {{"X-Api-Key", "k3yk3y"}, {"X-Auth", "Token t0ken"}};
	char url[128], path[] = "/tmp/hunter-password-XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "c\xc3\xa4nary\n", 8), 8);
	world->endpoint.url = peer->url;
	world->endpoint.headers = (struct pairs){fixed, 2};
	world->endpoint.bearer_token = "s3cret\n";
	expect_silence(peer, (const char *const[]){"k3yk3y", "t0ken", "s3cret"}, 3);
	assert_true(peer_saw(peer, "Authorization: Bearer s3cret\r\n"));

	world->endpoint.bearer_token = NULL;
	world->endpoint.headers = (struct pairs){0};
	world->endpoint.username = "u";
	world->endpoint.password_file = path;
	expect_silence(peer, (const char *const[]){"dTpjw6RuYXJ5"}, 1);

	world->endpoint.username = NULL;
	snprintf(url, sizeof url, "http://me:s%%40cret@127.0.0.1:%d/", peer->port);
	world->endpoint.url = url;
	expect_silence(peer, (const char *const[]){"bWU6c0BjcmV0"}, 1);
	unlink(path);
	close(fd);
	peer_free(peer);
}

static void test_token_with_a_line_break(void **state)
{
	(void)state;
	world->endpoint.bearer_token = "s3cret\r\nX-Evil: b";
	const struct reply *reply = get("http://127.0.0.1:1/");
	assert_int_equal(reply->kind, REPLY_UNREACHABLE);
	assert_non_null(strstr(reply->problem, "bearer_token: contains a line break"));
	reply = ask(&(struct transfer){
		.method = "GET", .url = "http://127.0.0.1:1/", .bearer = "s3cret\nX-Evil: b"});
	assert_non_null(strstr(reply->problem, "the token: contains a line break"));
}

static void test_server_name_that_is_none(void **state)
{
	(void)state;
	world->endpoint.url = "https://127.0.0.1:1/";
	world->endpoint.server_name = "prom.internal/x";
	const struct reply *reply = get("https://127.0.0.1:1/");
	assert_int_equal(reply->kind, REPLY_UNREACHABLE);
	assert_string_equal(reply->problem, "server_name: must be a host name");
}

static bool answer_with_an_end(struct peer *peer, int fd, const char *request)
{
	(void)peer;
	peer_text(fd, "HTTP/1.1 200 OK\r\n");
	if (strstr(request, " /length"))
		peer_text(fd, "Content-Length: 2\r\n\r\nab");
	else if (strstr(request, " /chunks"))
		peer_text(fd, "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
	else
		peer_text(fd, "Connection: close\r\n\r\nab");
	return false;
}

static void test_where_the_body_ends(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_with_an_end, NULL);
	const char *const paths[] = {"/length", "/chunks", "/close"};
	for (size_t i = 0; i < 3; i++) {
		const struct reply *reply = get_path(peer, paths[i]);
		assert_string_equal(reply->body, "ab");
		assert_int_equal(reply->open_ended, i == 2);
		assert_true(reply->took > 0);
	}
	peer_free(peer);
}

static void test_header_with_a_line_break(void **state)
{
	(void)state;
	struct pair fixed[] = {{"X-Tag", "a\r\nX-Evil: b"}};
	world->endpoint.headers = (struct pairs){fixed, 1};
	const struct reply *reply = get("http://127.0.0.1:1/");
	assert_int_equal(reply->kind, REPLY_UNREACHABLE);
	assert_non_null(strstr(reply->problem, "\"X-Tag\""));
	assert_null(strstr(reply->problem, "X-Evil"));
}

/* Sends /here elsewhere, with the status in `context`. */
struct redirect {
	int status;
	char headers[256];
};

static bool answer_redirect(struct peer *peer, int fd, const char *request)
{
	struct redirect *redirect = peer->context;
	if (strstr(request, " /there"))
		peer_answer(fd, 200, "", "there");
	else
		peer_answer(fd, redirect->status, redirect->headers, "");
	return true;
}

static void test_redirect_within_the_server(void **state)
{
	(void)state;
	struct redirect redirect = {301, "Location: /there?a=1\r\n"};
	struct peer *peer = peer_new(answer_redirect, &redirect);
	world->endpoint.bearer_token = "secret";
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->status, 200);
	assert_string_equal(reply->body, "there");
	assert_null(reply->redirected);
	assert_true(peer_saw(peer, "GET /there?a=1"));
	assert_true(peer_saw(peer, "Bearer secret"));
	peer_free(peer);
}

static void test_redirect_within_the_server_keeps_the_user(void **state)
{
	(void)state;
	struct redirect redirect = {302, "Location: /there\r\n"};
	struct peer *peer = peer_new(answer_redirect, &redirect);
	world->endpoint.username = "me";
	world->endpoint.password = "secret";
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->kind, REPLY_ANSWER);
	assert_string_equal(reply->body, "there");
	assert_true(peer_saw(peer, "GET /there"));
	assert_true(peer_saw(peer, "Authorization: Basic bWU6c2VjcmV0"));
	peer_free(peer);
}

static void test_redirect_to_another_server_takes_no_secret_along(void **state)
{
	(void)state;
	struct redirect redirect = {302, ""};
	struct peer *peer = peer_new(answer_redirect, &redirect),
		    *other = peer_new(answer_hello, NULL);
	snprintf(redirect.headers, sizeof redirect.headers, "Location: %s/login\r\n", other->url);
	struct pair fixed[] = {{"X-Api-Key", "secret"}};
	world->endpoint.headers = (struct pairs){fixed, 1};
	world->endpoint.username = "me";
	world->endpoint.password = "secret";
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->status, 200);
	assert_string_equal(reply->body, "hello");
	assert_string_equal(reply->redirected, other->url);
	assert_true(peer_saw(peer, "Authorization: Basic"));
	assert_true(peer_saw(other, "GET /login"));
	assert_false(peer_saw(other, "Authorization"));
	assert_false(peer_saw(other, "secret"));
	peer_free(peer);
	peer_free(other);
}

/* The peer's address by another name: another host as far as anybody can tell. */
static const char *localhost(const struct peer *peer)
{
	static char url[64];
	snprintf(url, sizeof url, "http://localhost%s", strrchr(peer->url, ':'));
	return url;
}

static void test_redirects_that_are_wanted(void **state)
{
	(void)state;
	struct redirect redirect = {302, ""};
	struct peer *peer = peer_new(answer_redirect, &redirect),
		    *other = peer_new(answer_hello, NULL);
	snprintf(redirect.headers, sizeof redirect.headers, "Location: %s/\r\n", localhost(other));
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->status, 302);
	assert_string_equal(reply->barred, localhost(other));
	assert_null(reply->redirected);
	world->endpoint.redirects = REDIRECTS_NONE;
	assert_string_equal(get(peer->url)->barred, localhost(other));
	assert_int_equal(atomic_load(&other->requests), 0);
	world->endpoint.redirects = REDIRECTS_ANY;
	reply = get(peer->url);
	assert_string_equal(reply->body, "hello");
	assert_null(reply->barred);
	assert_string_equal(reply->redirected, localhost(other));

	strcpy(redirect.headers, "Location: /there\r\n");
	assert_int_equal(get(peer->url)->status, 200);
	world->endpoint.redirects = REDIRECTS_NONE;
	assert_int_equal(get(peer->url)->status, 302);
	peer_free(peer);
	peer_free(other);
}

/* Origins are in lower case, and are shown. */
static void test_redirect_to_a_host_named_by_a_secret(void **state)
{
	(void)state;
	struct redirect redirect = {302, ""};
	struct peer *peer = peer_new(answer_redirect, &redirect);
	world->endpoint.bearer_token = "S3cretToken";
	strcpy(redirect.headers, "Location: http://S3cretToken.localhost:1/\r\n");
	assert_string_equal(get(peer->url)->barred, "http://***********.localhost:1");
	world->endpoint.redirects = REDIRECTS_ANY;
	const struct reply *reply = get(peer->url);
	assert_string_equal(reply->redirected, "http://***********.localhost:1");
	assert_null(strcasestr(reply->problem, "http://s3cret"));
	peer_free(peer);
}

static bool answer_secret(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_answer(fd, 500, "", "an internal matter");
	return true;
}

static void test_words_of_a_foreign_failure_are_gone(void **state)
{
	(void)state;
	struct redirect redirect = {302, ""};
	struct peer *peer = peer_new(answer_redirect, &redirect),
		    *other = peer_new(answer_secret, NULL);
	snprintf(redirect.headers, sizeof redirect.headers, "Location: %s/\r\n", other->url);
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->status, 500);
	assert_string_equal(reply->redirected, other->url);
	assert_string_equal(reply->body, "");
	assert_int_equal(reply->length, 0);
	peer_free(peer);
	peer_free(other);
}

static void test_redirects_that_are_not_followed(void **state)
{
	(void)state;
	struct redirect redirect = {302, "Location: /here\r\n"};
	struct peer *peer = peer_new(answer_redirect, &redirect);
	assert_int_equal(get(peer->url)->status, 302); /* round and round */
	assert_int_equal(atomic_load(&peer->requests), 6);

	strcpy(redirect.headers, "Location: file:///etc/passwd\r\n");
	assert_int_equal(get(peer->url)->status, 302);
	strcpy(redirect.headers, "");
	assert_int_equal(get(peer->url)->status, 302);

	strcpy(redirect.headers, "Location: /there\r\n");
	int before = atomic_load(&peer->requests);
	assert_int_equal(post(peer->url, "")->status, 302);
	assert_int_equal(atomic_load(&peer->requests), before + 1);

	redirect.status = 307;
	assert_string_equal(post(peer->url, "body")->body, "there");
	assert_true(peer_saw(peer, "POST /there"));
	assert_true(peer_saw(peer, "\r\n\r\nbody"));
	peer_free(peer);
}

static void test_nobody_there(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_hello, NULL);
	char url[64];
	strcpy(url, peer->url);
	peer_free(peer);
	const struct reply *reply = get(url);
	assert_int_equal(reply->kind, REPLY_UNREACHABLE);
	assert_non_null(strstr(reply->problem, url));
	assert_non_null(strstr(reply->problem, "Connection refused"));

	assert_int_equal(get("ftp://127.0.0.1/")->kind, REPLY_UNREACHABLE);
	assert_int_equal(get("hooks.example/secret")->kind, REPLY_UNREACHABLE);
	assert_null(strstr(world->calls[world->count - 1].reply.problem, "secret"));
	reply = get("http://me:secret@:/x");
	assert_int_equal(reply->kind, REPLY_UNREACHABLE);
	assert_null(strstr(reply->problem, "secret"));
}

static bool answer_badly(struct peer *peer, int fd, const char *request)
{
	(void)peer;
	if (strstr(request, " /cut"))
		peer_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
	else if (strstr(request, " /reset"))
		peer_reset(fd);
	else if (strstr(request, " /hang"))
		peer_hang(fd);
	else if (strstr(request, " /drip")) {
		peer_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
		peer_hang(fd);
	} else if (strstr(request, " /alien"))
		peer_text(fd, "\x15\x03\x03\x00\x02\x02\x46");
	else if (strstr(request, " /headers"))
		for (int i = 0; i < 40000; i++)
			peer_text(fd, i ? "X-More: of the same\r\n" : "HTTP/1.1 200 OK\r\n");
	return false;
}

static void test_no_whole_answer(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_badly, NULL);
	assert_int_equal(get_path(peer, "/cut")->kind, REPLY_AMBIGUOUS);
	assert_int_equal(get_path(peer, "/reset")->kind, REPLY_AMBIGUOUS);
	assert_int_equal(get_path(peer, "/close")->kind, REPLY_AMBIGUOUS);
	assert_int_equal(get_path(peer, "/headers")->kind, REPLY_AMBIGUOUS);
	world->endpoint.timeout = 150;
	const struct reply *reply = get_path(peer, "/hang");
	assert_int_equal(reply->kind, REPLY_AMBIGUOUS);
	assert_non_null(strstr(reply->problem, "no complete response within 150ms"));
	assert_int_equal(get_path(peer, "/drip")->kind, REPLY_AMBIGUOUS);
	reply = get_path(peer, "/alien");
	assert_int_equal(reply->kind, REPLY_AMBIGUOUS);
	assert_non_null(strstr(reply->problem, "the server does not speak HTTP"));
	peer_free(peer);
}

static bool answer_plainly(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_text(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
	return false;
}

static void test_tls_to_a_plain_port(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_plainly, NULL);
	char url[64];
	snprintf(url, sizeof url, "https://127.0.0.1:%d/", peer->port);
	const struct reply *reply = get(url);
	assert_int_equal(reply->kind, REPLY_UNREACHABLE);
	assert_non_null(strstr(reply->problem, "the server does not speak TLS"));
	peer_free(peer);
}

/* 100,000 zeros, by gzip. */
static const unsigned char bomb[] = {
	0x1f,
	0x8b,
	0x08,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x02,
	0x03,
	0xed,
	0xc1,
	0x31,
	0x01,
	0x00,
	0x00,
	0x00,
	0xc2,
	0xa0,
	0x4a,
	0xeb,
	0x9f,
	0xce,
	0x1a,
	0x1e,
	0x40,
	0x01,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0xaf,
	0x06,
	0x85,
	0xc2,
	0x4d,
	0xc5,
	0xa0,
	0x86,
	0x01,
	0x00,
};

static bool answer_much(struct peer *peer, int fd, const char *request)
{
	(void)peer;
	char head[128];
	if (strstr(request, " /announced")) {
		peer_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
		return false;
	}
	if (strstr(request, " /chunks")) {
		peer_text(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
		for (int i = 0; i < 100; i++)
			peer_text(fd, "40\r\n0123456789abcdef0123456789abcdef0123456789abcdef012345"
				      "6789abcdef\r\n");
		return false;
	}
	snprintf(head, sizeof head,
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
		sizeof bomb);
	peer_text(fd, head);
	peer_write(fd, bomb, sizeof bomb);
	return false;
}

static void test_too_big(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_much, NULL);
	world->endpoint.max_body = 4096;
	const struct reply *reply = get_path(peer, "/announced");
	assert_int_equal(reply->kind, REPLY_TOO_BIG);
	assert_int_equal(reply->cut_status, 200);
	assert_non_null(strstr(reply->problem, "max_body"));
	assert_int_equal(get_path(peer, "/chunks")->kind, REPLY_TOO_BIG);
	assert_int_equal(get_path(peer, "/bomb")->kind, REPLY_TOO_BIG);
	world->endpoint.max_body = 100000;
	assert_int_equal(get_path(peer, "/bomb")->length, 100000);
	peer_free(peer);
}

static void test_retry_after(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		int64_t wait;
	} cases[] = {
		{"0", 0},
		{"3", 3000},
		{" 600 ", 600000},
		{"999999999", 999999999000},
		{"9999999999", 1000000000000},
		{"99999999999999999999", 1000000000000},
		{"", -1},
		{"-5", -1},
		{"3.5", 4000},
		{"3.0001 ", 4000},
		{".5", -1},
		{"3.5.1", -1},
		{"soon", -1},
		{"3 s", -1},
		{"1e3", -1},
		{"Fri, 20 Nov 2026 12:00:20 GMT", 20000},
		{"Fri, 20 Nov 2026 11:00:00 GMT", 0},
		{"Friday, 20-Nov-26 12:00:20 GMT", 20000},
		{"Fri Nov 20 12:00:20 2026", 20000},
		{"Fri, 41 Nov 2026 12:00:20 GMT", -1},
		{"12:00", -1},
		{"a:b", -1},
	};
	const int64_t now = 1795176000; /* 2026-11-20 12:00:00 */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (exchange_retry_after(cases[i].value, now) != cases[i].wait)
			fail_msg("\"%s\": %lld", cases[i].value,
				(long long)exchange_retry_after(cases[i].value, now));
}

static void test_reset_after(void **state)
{
	(void)state;
	static const struct {
		const char *remaining, *reset;
		int64_t wait;
	} cases[] = {
		{"0", "1795176060", 60000},
		{" 0", "1795176060.5", 61000},
		{"0", "1795175000", 0},
		{"0", "30", 30000},
		{"0", "0", 0},
		{"0", "99999999999999999999", 1000000000000},
		{"1", "1795176060", -1},
		{"", "1795176060", -1},
		{"none", "1795176060", -1},
		{"0", "", -1},
		{"0", "-5", -1},
		{"0", "soon", -1},
	};
	const int64_t now = 1795176000; /* 2026-11-20 12:00:00 */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t wait = exchange_reset_after(cases[i].remaining, cases[i].reset, now);
		if (wait != cases[i].wait)
			fail_msg("\"%s\": %lld", cases[i].reset, (long long)wait);
	}
}

static bool answer_used_up(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_answer(fd, 403,
		"Date: Fri, 20 Nov 2026 12:00:00 GMT\r\nx-ratelimit-remaining: 0\r\n"
		"x-ratelimit-reset: 1795176090\r\n",
		"{}");
	return true;
}

static void test_limit_used_up(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_used_up, NULL);
	assert_int_equal(get(peer->url)->retry_after, 90000);
	peer_free(peer);
}

static bool answer_later(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_answer(fd, 429,
		"Date: Fri, 20 Nov 2026 12:00:00 GMT\r\nRetry-After: Fri, 20 Nov 2026 12:00:07 "
		"GMT\r\n",
		"slow down");
	return true;
}

static void test_retry_after_a_date_of_the_server(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_later, NULL);
	const struct reply *reply = get(peer->url);
	assert_int_equal(reply->status, 429);
	assert_int_equal(reply->retry_after, 7000);
	peer_free(peer);
}

static bool answer_with_a_date(struct peer *peer, int fd, const char *request)
{
	(void)request;
	peer_answer(fd, 200, peer->context, "hello");
	return true;
}

/* What a cache has kept for a day is a day old. */
static void test_the_clock_of_a_server(void **state)
{
	static const struct {
		const char *headers;
		bool dated;
		int64_t hours;
	} cases[] = {
		{"Date: Fri, 20 Nov 2020 12:00:00 GMT\r\n", true, 0},
		{"Date: Fri, 20 Nov 2020 12:00:00 GMT\r\nAge: 86400\r\n", true, -24},
		{"", false, 0},
		{"Date: tomorrow\r\n", false, 0},
		{"Date: Fri, 20 Nov 2020 12:00:00 GMT\r\nAge: -5\r\n", false, 0},
		{"Date: Fri, 20 Nov 2020 12:00:00 GMT\r\nAge: 99999999999999999999\r\n", false, 0},
	};
	const int64_t date = 1605873600;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		union {
			const char *constant;
			void *context;
		} headers = {.constant = cases[i].headers};
		struct peer *peer = peer_new(answer_with_a_date, headers.context);
		int64_t before = time(NULL);
		const struct reply *reply = get(peer->url);
		int64_t shift = date - cases[i].hours * 3600;

		assert_int_equal(reply->dated, cases[i].dated);
		if (reply->dated)
			assert_in_range(
				reply->ahead, (before - shift) * 1000, (time(NULL) - shift) * 1000);
		peer_free(peer);
	}
}

static void test_limit_of_a_server(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_hello, NULL);
	world->endpoint.max_concurrent = 3;
	for (int i = 0; i < 100; i++)
		start_get(peer->url);
	while (world->ended < 100) {
		transfers_run(world->transfers);
		for (int i = 0; i < world->count; i++) /* as soon as they have ended */
			if (world->calls[i].reply.status == 200)
				transfers_release(world->transfers, &world->calls[i]);
		if (world->ended < 100)
			transfers_wait(world->transfers, NULL, 0, 10000);
	}
	assert_int_equal(atomic_load(&peer->requests), 100);
	assert_in_range(atomic_load(&peer->most_at_once), 1, 3);
	peer_free(peer);
}

/* Answers once the gate is open. */
static bool answer_behind_gate(struct peer *peer, int fd, const char *request)
{
	sem_t *gate = peer->context;
	sem_wait(gate);
	sem_post(gate);
	return answer_hello(peer, fd, request);
}

/* A server with a long queue does not hold up another that was asked last: that one answers before
 * any of the queue has been answered. */
static void test_servers_take_turns(void **state)
{
	(void)state;
	sem_t gate;
	sem_init(&gate, 0, 0);
	struct peer *crowded = peer_new(answer_behind_gate, &gate),
		    *quiet = peer_new(answer_hello, NULL);
	world->endpoint.max_concurrent = 2;
	for (int i = 0; i < 100; i++)
		start_get(crowded->url);
	start_get(quiet->url);
	run(1); /* one of the queue, by its timeout, if the other had to wait */
	sem_post(&gate);
	run(101);
	for (int i = 0; i < 101; i++)
		assert_int_equal(world->calls[i].reply.status, 200);
	assert_int_equal(world->order[0], 100);
	assert_int_equal(atomic_load(&crowded->requests), 100);
	peer_free(crowded);
	peer_free(quiet);
	sem_destroy(&gate);
}

static void test_cancel(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_badly, NULL);
	char url[128];
	snprintf(url, sizeof url, "%s/hang", peer->url);
	world->endpoint.max_concurrent = 2;
	for (int i = 0; i < 5; i++)
		start_get(url);
	while (atomic_load(&peer->requests) < 2) {
		transfers_run(world->transfers);
		transfers_wait(world->transfers, NULL, 0, 10);
	}
	transfers_release(world->transfers, &world->calls[3]); /* queued */
	transfers_release(
		world->transfers, &world->calls[0]); /* in flight: the next one takes its place */
	while (atomic_load(&peer->requests) < 3) {
		transfers_run(world->transfers);
		transfers_wait(world->transfers, NULL, 0, 10);
	}
	assert_int_equal(world->ended, 0);
	for (int i = 0; i < 5; i++)
		transfers_release(world->transfers, &world->calls[i]);
	peer_free(peer);
}

/* libcurl takes in less at a time. */
enum { LARGE_CALLS = 8, LARGE_PART = 400 << 10, LARGE = 4000 << 10 };

/* Closed when answers may go on. */
struct gate {
	int ends[2];
	atomic_int begun; /* answers */
};

static void gate_open(struct gate *gate)
{
	close(gate->ends[1]);
}

static void gate_wait(const struct gate *gate)
{
	char byte;
	while (read(gate->ends[0], &byte, 1) > 0)
		;
}

/* No answer is whole before all have begun. */
static bool answer_in_parts(struct peer *peer, int fd, const char *request)
{
	(void)request;
	static char body[LARGE];
	char head[64];
	struct gate *gate = peer->context;
	snprintf(head, sizeof head, "HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n", LARGE);
	peer_text(fd, head);
	peer_write(fd, body, LARGE_PART);
	if (atomic_fetch_add(&gate->begun, 1) == LARGE_CALLS - 1)
		gate_open(gate);
	gate_wait(gate);
	peer_write(fd, body, LARGE - LARGE_PART);
	return true;
}

/* Bytes that the calls count for; by the way, what the budget says is checked. */
static size_t claims_in_flight(void)
{
	size_t claims = 0;
	for (int i = 0; i < world->count; i++)
		claims += world->calls[i].exchange ? exchange_claim(world->calls[i].exchange) : 0;
	assert_int_equal(transfers_memory(world->transfers).used, 2 * claims);
	return claims;
}

static void set_memory(size_t bytes)
{
	transfers_free(world->transfers);
	world->transfers = transfers_new(bytes);
	world->endpoint.max_body = 16 << 20;
}

/* Runs until `count` calls have ended, each released as soon as it has; the most that was claimed
 * at a time. */
static size_t run_large(int count)
{
	size_t most = 0;
	for (int seen = 0; seen < count;) {
		transfers_run(world->transfers);
		for (; seen < world->ended; seen++) {
			struct client_request *call = &world->calls[world->order[seen]];
			assert_int_equal(call->reply.status, 200);
			transfers_release(world->transfers, call);
		}
		size_t claims = claims_in_flight();
		most = claims > most ? claims : most;
		transfers_run(world->transfers); /* there is room again */
		if (seen == world->ended && seen < count)
			transfers_wait(world->transfers, NULL, 0, 10000);
	}
	return most;
}

static void test_answers_in_flight_are_bounded(void **state)
{
	(void)state;
	struct gate gate = {.begun = 0};
	assert_int_equal(pipe(gate.ends), 0);
	struct peer *peer = peer_new(answer_in_parts, &gate);
	set_memory(2 * 2 * LARGE);
	for (int i = 0; i < LARGE_CALLS; i++)
		start_get(peer->url);
	assert_in_range(run_large(LARGE_CALLS), LARGE, 2 * LARGE);
	/* What is given up is asked for once more, when there is room. */
	assert_in_range(atomic_load(&peer->requests), LARGE_CALLS + 1, 2 * LARGE_CALLS);
	assert_in_range(transfers_memory(world->transfers).waits, 1, LARGE_CALLS);
	peer_free(peer);
	close(gate.ends[0]);
}

/* Without a length: how large it is shows when it is there. */
static bool answer_without_length(struct peer *peer, int fd, const char *request)
{
	static char body[LARGE];
	(void)peer, (void)request;
	peer_text(fd, "HTTP/1.1 200 X\r\n\r\n");
	peer_write(fd, body, LARGE);
	return false;
}

static void test_answers_of_unknown_length_are_bounded(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_without_length, NULL);
	set_memory(2 * 2 * LARGE);
	for (int i = 0; i < LARGE_CALLS; i++)
		start_get(peer->url);
	run_large(LARGE_CALLS);
	assert_in_range(atomic_load(&peer->requests), LARGE_CALLS, 3 * LARGE_CALLS);
	peer_free(peer);
}

static void test_an_answer_larger_than_the_budget_goes_alone(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_without_length, NULL);
	set_memory(LARGE);
	for (int i = 0; i < LARGE_CALLS; i++)
		start_get(peer->url);
	run_large(LARGE_CALLS);
	assert_int_equal(world->ended, LARGE_CALLS);
	peer_free(peer);
}

/* Announces much, and sends it when `context` allows. */
static bool answer_when_allowed(struct peer *peer, int fd, const char *request)
{
	static char body[LARGE];
	char head[64];
	(void)request;
	snprintf(head, sizeof head, "HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n", LARGE);
	peer_text(fd, head);
	peer_write(fd, body, 1);
	gate_wait(peer->context);
	peer_write(fd, body, LARGE - 1);
	return true;
}

/* A server that has all memory for answers that do not come is cut to its share. */
static void test_a_server_does_not_keep_others_out(void **state)
{
	(void)state;
	struct gate gate = {.begun = 0};
	assert_int_equal(pipe(gate.ends), 0);
	struct peer *huge = peer_new(answer_when_allowed, &gate),
		    *small = peer_new(answer_hello, NULL);
	set_memory(2 * 4 * LARGE);
	for (int i = 0; i < LARGE_CALLS; i++)
		start_get(huge->url);
	while (claims_in_flight() < 4 * LARGE || transfers_memory(world->transfers).waits == 0) {
		transfers_run(world->transfers);
		transfers_wait(world->transfers, NULL, 0, 10);
	}
	for (int i = 0; i < 3; i++)
		start_get(small->url);
	run(3);
	for (int i = 0; i < 3; i++)
		assert_true(world->order[i] >= LARGE_CALLS);
	gate_open(&gate);
	run_large(LARGE_CALLS + 3);
	peer_free(huge);
	close(gate.ends[0]);
	peer_free(small);
}

/* A message goes out though reads have taken all memory. */
static void test_messages_do_not_wait_for_memory(void **state)
{
	(void)state;
	struct gate gate = {.begun = 0};
	assert_int_equal(pipe(gate.ends), 0);
	struct peer *huge = peer_new(answer_when_allowed, &gate),
		    *chat = peer_new(answer_hello, NULL);
	set_memory(2 * LARGE);
	start_get(huge->url);
	while (claims_in_flight() < LARGE) {
		transfers_run(world->transfers);
		transfers_wait(world->transfers, NULL, 0, 10);
	}
	start(&(struct transfer){.method = "POST", .url = chat->url, .once = true});
	run(1);
	assert_int_equal(world->order[0], 1);
	gate_open(&gate);
	run_large(2);
	peer_free(huge);
	close(gate.ends[0]);
	peer_free(chat);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_answer),
		WORLD_TEST(test_post_headers_and_credentials),
		WORLD_TEST(test_bearer_from_a_file_read_at_use),
		WORLD_TEST(test_credentials_go_to_the_configured_server_only),
		WORLD_TEST(test_credentials_within_the_url),
		WORLD_TEST(test_secrets_that_a_server_repeats),
		WORLD_TEST(test_token_with_a_line_break),
		WORLD_TEST(test_server_name_that_is_none),
		WORLD_TEST(test_where_the_body_ends),
		WORLD_TEST(test_header_with_a_line_break),
		WORLD_TEST(test_redirect_within_the_server),
		WORLD_TEST(test_redirect_within_the_server_keeps_the_user),
		WORLD_TEST(test_redirect_to_another_server_takes_no_secret_along),
		WORLD_TEST(test_redirects_that_are_wanted),
		WORLD_TEST(test_redirect_to_a_host_named_by_a_secret),
		WORLD_TEST(test_words_of_a_foreign_failure_are_gone),
		WORLD_TEST(test_redirects_that_are_not_followed),
		WORLD_TEST(test_nobody_there),
		WORLD_TEST(test_no_whole_answer),
		WORLD_TEST(test_tls_to_a_plain_port),
		WORLD_TEST(test_too_big),
		WORLD_TEST(test_retry_after),
		WORLD_TEST(test_retry_after_a_date_of_the_server),
		WORLD_TEST(test_reset_after),
		WORLD_TEST(test_limit_used_up),
		WORLD_TEST(test_the_clock_of_a_server),
		WORLD_TEST(test_limit_of_a_server),
		WORLD_TEST(test_servers_take_turns),
		WORLD_TEST(test_cancel),
		WORLD_TEST(test_answers_in_flight_are_bounded),
		WORLD_TEST(test_answers_of_unknown_length_are_bounded),
		WORLD_TEST(test_an_answer_larger_than_the_budget_goes_alone),
		WORLD_TEST(test_a_server_does_not_keep_others_out),
		WORLD_TEST(test_messages_do_not_wait_for_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
