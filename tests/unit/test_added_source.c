/*
 * Adding a source: what it declares is all that configuration, checks and engine need.
 */
#include "unit.h"

#include "agent/cli/cli.h"
#include "agent/io/engine.h"
#include "peer.h"
#include "timed_source.h"

/* The line in the registry. */
static const struct plugin *const registry[] = {&timed_source.plugin, NULL};

const struct source *__wrap_source_find(const char *name);

const struct source *__wrap_source_find(const char *name)
{
	return (const struct source *)plugin_find(registry, name);
}

static const char *no_environment(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static struct config *load(const char *yaml, struct problems *problems)
{
	char path[] = "/tmp/hunter-added-XXXXXX";
	struct schema schema = cli_schema;
	struct config_source source = {.schema = &schema, .env = no_environment};
	FILE *file = fdopen(mkstemp(path), "w");
	fputs(yaml, file);
	fclose(file);
	schema.sources = registry;
	struct config *config = config_load(path, &source, problems);
	unlink(path);
	return config;
}

static bool answer(struct peer *peer, int fd, const char *request)
{
	(void)peer;
	assert_non_null(strstr(request, "GET /p99 "));
	peer_answer(fd, 200, "", "1700000060 2\n1700000000 1.5\nnonsense\n");
	return true;
}

static void keep(struct task *task)
{
	const struct dataset *data = &task->query.data;
	size_t *points = task->context;
	assert_false(task->failed);
	assert_int_equal(data->count, 1);
	*points = data->series->axis->n;
	assert_true(data->series->axis->times[0] == INT64_C(1700000000000));
	assert_true(data->series->values[0] == 15 && data->series->values[1] == 20);
	assert_non_null(strstr(task->query.notices.items[0], "nonsense"));
	task_free(task);
}

static void test_its_tests_run(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer, NULL);
	struct problems problems = {.arena = arena_new()};
	struct error error;
	size_t points = 0;
	struct config *config = load(arena_printf(problems.arena,
					     "timed: {url: '%s'}\ntests:\n  web: {type: timed, "
					     "path: p99, metrics: {p99: {scale: 10}}}\n",
					     peer->url),
		&problems);
	assert_non_null(config);
	struct engine *engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	struct task *task = task_new(config_test(config, "web"), INT64_C(1700000100000));
	task->done = keep;
	task->context = &points;
	engine_submit(engine, task);
	assert_true(engine_run(engine));
	assert_int_equal(points, 2);
	assert_true(engine_free(engine));
	config_free(config);
	arena_free(problems.arena);
	peer_free(peer);
}

static void assert_refused(const char *yaml, const char *text)
{
	struct problems problems = {.arena = arena_new()};
	assert_null(load(yaml, &problems));
	assert_non_null(strstr(problems.items[0].text, text));
	arena_free(problems.arena);
}

static void test_its_options_are_checked(void **state)
{
	(void)state;
	assert_refused("timed: {url: 'http://h', timout: 1s}\n", "did you mean \"timeout\"");
	assert_refused("timd: {url: 'http://h'}\n", "did you mean \"timed\"");
	assert_refused("timed: {url: 'http://h'}\ntests: {a: {type: timd, path: x}}\n",
		"did you mean \"timed\"");
	assert_refused("timed: {url: 'http://h'}\ntests: {a: {type: timed, metrics: [x]}}\n",
		"\"path\" is missing");
	assert_refused("timed: {url: 'http://h'}\ntests: {a: {type: timed, path: x}}\n",
		"metrics: one is needed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_its_tests_run),
		cmocka_unit_test(test_its_options_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
