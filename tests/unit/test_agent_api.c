/* agent/cli/agent_api: finds the agent and asks it, here a server of the agent's own kind that
 * echoes what it was asked. TLS and the whole agent are in e2e/test_agent_api.py. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cli/agent_api.h"
#include "agent/http/request.h"
#include "agent/io/engine.h"
#include "agent/runtime/metrics.h"

#define TOKEN "d41d8cd98f00b204e9800998ecf8427e"

struct world {
	struct engine *engine;
	struct metrics *metrics;
	struct access *access;
	struct http *tcp, *local; /* with a token; a Unix socket */
	char folder[64], socket[96], token[96], web[96];
	/* What the client's thread asks, and what comes of it. */
	struct agent_api *api;
	const char *path, *key;
	const struct pairs *form;
	json_t *answer;
	struct error error;
	bool done;
};

/* {"who": ..., "id": ..., "a": ..., "posted": ...} */
static void echo(struct http_request *request)
{
	struct http_answer answer = {0};
	const char *status = http_parameter(request, "status");
	const char *a = http_parameter(request, "a");

	answer.status = status ? atoi(status) : 0;
	if (answer.status == 500) {
		http_fail(request, 500, "it is broken");
		return;
	}
	buf_printf(&answer.body,
		"{\"who\": \"%s\", \"id\": %lld, \"a\": ", request->sign_in.person.name,
		(long long)request->id);
	buf_json_text(&answer.body, a ? a : "-");
	buf_text(&answer.body,
		answer.status == 409 ? ", \"error\": \"it is another now\"}\n" : "}\n");
	http_answer(request, &answer);
}

static void chat(struct http_request *request)
{
	struct http_answer answer = {.type = "text/html"};

	buf_text(&answer.body, "<html>sign in</html>");
	http_answer(request, &answer);
}

static const char names[] = "a status";

static const struct route routes[] = {
	{"/things/*/echo", HTTP_READ | HTTP_POST, ROLE_VIEWER, 0, names, echo},
	{"/strict", HTTP_POST, ROLE_ADMIN, 0, names, echo},
	{"/chat", HTTP_READ, ROLE_ANYBODY, 0, names, chat},
	{0},
};

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
}

static struct http *start(struct world *world, const char *listen)
{
	struct error error;
	struct http *http = http_start(world->engine,
		&(struct http_options){.listen = {.address = listen, .mode = "0600"},
			.access = world->access,
			.routes = {routes},
			.context = world},
		&error);

	if (!http)
		fail_msg("%s", error.text);
	return http;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error error;
	char listen[128];

	*state = world;
	strcpy(world->folder, "/tmp/agent-api.XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->socket, sizeof world->socket, "%s/api.sock", world->folder);
	snprintf(world->token, sizeof world->token, "%s/ci.token", world->folder);
	snprintf(world->web, sizeof world->web, "%s/web.yaml", world->folder);
	write_file(world->token, TOKEN "\n", 0600);
	write_file(world->web, "tokens: [{name: ci, file: ci.token, role: triager}]\n", 0600);
	world->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	world->metrics = metrics_new();
	world->access = access_new(
		&(struct access_options){
			.engine = world->engine, .metrics = world->metrics, .path = world->web},
		&error);
	world->tcp = start(world, "127.0.0.1:0");
	snprintf(listen, sizeof listen, "unix:%s", world->socket);
	world->local = start(world, listen);
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	json_decref(world->answer);
	http_stop(world->tcp);
	http_stop(world->local);
	engine_free(world->engine);
	http_free(world->tcp);
	http_free(world->local);
	access_free(world->access);
	metrics_free(world->metrics);
	unlink(world->token);
	unlink(world->web);
	rmdir(world->folder);
	free(world);
	return 0;
}

static void stop(void *engine)
{
	engine_stop(engine);
}

static void *run_client(void *argument)
{
	struct world *world = argument;

	world->answer =
		agent_api_call(world->api, world->path, world->form, world->key, &world->error);
	world->done = world->answer != NULL;
	engine_post(world->engine, stop, NULL, world->engine);
	return NULL;
}

static bool ask_for(struct world *world, const char *key, struct agent_api *api, const char *path,
	const struct pairs *form)
{
	pthread_t thread;

	json_decref(world->answer);
	world->answer = NULL;
	world->api = api;
	world->path = path;
	world->form = form;
	world->key = key;
	engine_hold(world->engine);
	pthread_create(&thread, NULL, run_client, world);
	engine_run(world->engine);
	pthread_join(thread, NULL);
	engine_release(world->engine);
	return world->done;
}

static bool ask(
	struct world *world, struct agent_api *api, const char *path, const struct pairs *form)
{
	return ask_for(world, "who", api, path, form);
}

static const char *text_of(const struct world *world, const char *key)
{
	return json_string_value(json_object_get(world->answer, key));
}

static void refused(const struct world *world, enum error_kind kind, const char *text)
{
	assert_false(world->done);
	assert_null(world->answer);
	assert_int_equal(world->error.kind, kind);
	if (!strstr(world->error.text, text))
		fail_msg("no \"%s\" in: %s", text, world->error.text);
	assert_null(strstr(world->error.text, TOKEN));
}

static struct agent_api *at(const char *agent, const char *token_file)
{
	struct error error;
	struct agent_api *api =
		agent_api_new(&(struct agent_api_options){.agent = agent, .token_file = token_file},
			NULL, &error);

	if (!api)
		fail_msg("%s", error.text);
	return api;
}

static struct agent_api *at_port(const struct world *world, const char *token_file)
{
	char url[64];

	snprintf(url, sizeof url, "http://127.0.0.1:%u/", http_port(world->tcp));
	return at(url, token_file);
}

static const struct pair pairs[] = {{"a", "ü & =+%\n\"x\""}, {"status", NULL}};
static const struct pairs form = {pairs, 2};

static void test_with_a_token(void **state)
{
	struct world *world = *state;
	struct agent_api *api = at_port(world, world->token);

	assert_true(ask(world, api, "/things/812/echo", &form));
	assert_string_equal(text_of(world, "who"), "ci");
	assert_string_equal(text_of(world, "a"), pairs[0].value);
	assert_int_equal(json_integer_value(json_object_get(world->answer, "id")), 812);
	assert_true(ask(world, api, "/things/7/echo?a=b", NULL));
	assert_string_equal(text_of(world, "a"), "b");
	/* A conflict is an answer, with what it is now. */
	assert_true(ask(world, api, "/things/7/echo?status=409", NULL));
	agent_api_free(api);
}

static void test_refused(void **state)
{
	struct world *world = *state;
	struct agent_api *api = at_port(world, world->token), *nobody = at_port(world, NULL),
			 *wrong;
	char path[128];

	ask(world, api, "/strict", &form);
	refused(world, ERROR_USAGE, "requires the role admin; ci has the role triager");
	ask(world, api, "/things/7/other", NULL);
	refused(world, ERROR_USAGE, "not found");
	ask(world, api, "/things/7/echo?b=1", NULL);
	refused(world, ERROR_USAGE, "unknown parameter \"b\"");
	ask(world, api, "/things/7/echo?status=500", NULL);
	refused(world, ERROR_STATE, "it is broken");
	ask(world, api, "/chat", NULL);
	refused(world, ERROR_STATE, "is it the right address?");
	ask_for(world, "agents", api, "/things/7/echo", NULL);
	refused(world, ERROR_STATE,
		"the response has no \"agents\": is it a hunter-c of this version?");
	ask(world, nobody, "/things/7/echo", NULL);
	refused(world, ERROR_USAGE, "--token-file");
	snprintf(path, sizeof path, "%s/other.token", world->folder);
	write_file(path, "another-token-of-some-length", 0600);
	wrong = at_port(world, path);
	ask(world, wrong, "/things/7/echo", NULL);
	refused(world, ERROR_USAGE, "wrong name, password or token");
	unlink(path);
	agent_api_free(api);
	agent_api_free(nobody);
	agent_api_free(wrong);
}

static void test_the_socket(void **state)
{
	struct world *world = *state;
	char name[128];
	struct agent_api *api;

	snprintf(name, sizeof name, "unix:%s", world->socket);
	api = at(name, NULL);
	assert_string_equal(agent_api_name(api), name);
	assert_true(ask(world, api, "/strict", &form));
	http_stop(world->local);
	ask(world, api, "/strict", &form);
	refused(world, ERROR_STATE, "cannot reach unix:/tmp/agent-api.");
	agent_api_free(api);
}

/* The configuration has several addresses: the socket first, and the next one if it is closed. */
static void test_configured(void **state)
{
	struct world *world = *state;
	char tcp[64], local[128];
	const char *listen[] = {tcp, local, "0.0.0.0:1"};
	struct config config = {.agent = {.listen = {listen, 3}}};
	const struct agent_api_options options = {.token_file = world->token};
	struct agent_api *api;
	struct error error;

	snprintf(tcp, sizeof tcp, "127.0.0.1:%u", http_port(world->tcp));
	snprintf(local, sizeof local, "unix:%s", world->socket);
	api = agent_api_new(&options, &config, &error);
	assert_string_equal(agent_api_name(api), local);
	assert_true(ask(world, api, "/strict", &form));
	http_stop(world->local);
	assert_true(ask(world, api, "/things/7/echo", &form));
	assert_string_equal(text_of(world, "who"), "ci");
	assert_null(strstr(agent_api_name(api), "unix:"));
	agent_api_free(api);

	config.agent.listen = (struct strings){(const char *const[]){"127.0.0.1:0"}, 1};
	assert_null(agent_api_new(&options, &config, &error));
	assert_int_equal(error.kind, ERROR_STATE);
	assert_non_null(strstr(error.text, "add unix:/path"));
	config.agent.listen.items = (const char *const[]){"127.0.0.1:1"};
	config.agent.web_config = "/nowhere/web.yaml";
	assert_null(agent_api_new(&options, &config, &error));
	assert_non_null(strstr(error.text, "/nowhere/web.yaml"));
}

/* What can be told without asking anybody. */
static void test_wrong_options(void **state)
{
	static const struct {
		struct agent_api_options options;
		enum error_kind kind;
		const char *told;
	} cases[] = {
		{{.agent = "localhost:9469"}, ERROR_USAGE, "expected http://, https:// or unix:"},
		{{.agent = "http://ann:secret@localhost/"}, ERROR_USAGE, "it contains a user"},
		{{.agent = "http://localhost/?x=1"}, ERROR_USAGE, "it contains a query"},
		{{.agent = "http://local host/"}, ERROR_USAGE, "it contains a blank"},
		{{.agent = "unix:api.sock"}, ERROR_USAGE, "an absolute path"},
		{{.agent = "http://localhost/", .token_file = "/nowhere/x"}, ERROR_USAGE,
			"--token-file"},
		{{.agent = NULL}, ERROR_STATE, "give --agent, or set $HUNTER_AGENT"},
	};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_null(agent_api_new(&cases[i].options, NULL, &error));
		assert_int_equal(error.kind, cases[i].kind);
		if (!strstr(error.text, cases[i].told))
			fail_msg("no \"%s\" in: %s", cases[i].told, error.text);
		assert_null(strstr(error.text, "secret"));
	}
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_with_a_token),
		WORLD_TEST(test_refused),
		WORLD_TEST(test_the_socket),
		WORLD_TEST(test_configured),
		cmocka_unit_test(test_wrong_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
