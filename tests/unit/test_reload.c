/*
 * agent/service/reload: the whole new configuration or the old one, and what is said of it.
 */
#include "unit.h"
#include <semaphore.h>
#include <stdatomic.h>

#include "agent/runtime/metrics_table.h"
#include "agent/service/reload.h"
#include "tests/unit/agent_parts.h"

#define AGENT "agent: {state: \"%s/state.db\", interval: 1h, read_timeout: 1m"
#define TESTS "}\ntests:\n  a: {type: csv, file: a.csv}\n  b: {type: csv, file: b.csv}\n"

struct fixture {
	struct parts *parts;
	struct reloader *reloader;
	const char *refused; /* by the web configuration, or NULL */
	int adopted, begun, ended, told, expected;
	struct reload_report last; /* without its lists */
	char problem[512], problems[512], kept[512];
};

static atomic_bool hangs; /* the disk of the configuration */
static sem_t mended;

struct config *__real_config_load(
	const char *path, const struct config_source *source, struct problems *problems);
struct config *__wrap_config_load(
	const char *path, const struct config_source *source, struct problems *problems);

struct config *__wrap_config_load(
	const char *path, const struct config_source *source, struct problems *problems)
{
	if (atomic_load(&hangs))
		sem_wait(&mended);
	return __real_config_load(path, source, problems);
}

static void stop(void *engine)
{
	engine_stop(engine);
}

static const char *adopt(void *context)
{
	struct fixture *f = context;

	agent_hint(&f->parts->agent, HINT_CONFIGURATION);
	f->adopted++;
	return f->refused;
}

static void begun(void *context)
{
	((struct fixture *)context)->begun++;
}

static void ended(void *context, const struct reload_report *report)
{
	(void)report;
	((struct fixture *)context)->ended++;
}

static void join(char out[512], const struct strings *list)
{
	*out = '\0';
	for (size_t i = 0; i < list->count; i++) {
		strncat(out, list->items[i], 200);
		strcat(out, "\n");
	}
}

static void told(void *context, const struct reload_report *report)
{
	struct fixture *f = context;

	f->told++;
	f->last = *report;
	snprintf(f->problem, sizeof f->problem, "%s", report->problem ? report->problem : "");
	join(f->problems, &report->problems);
	join(f->kept, &report->kept);
	if (f->told == f->expected)
		engine_stop(f->parts->agent.engine);
}

/* Runs the agent until so many have been told. */
static void run_until_told(struct fixture *f, int expected)
{
	f->expected = expected;
	if (f->told < expected)
		assert_true(engine_run(f->parts->agent.engine));
	assert_int_equal(f->told, expected);
}

static int begin(void **state, int64_t patience)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->parts = parts_new(AGENT TESTS);
	f->reloader = reloader_new(
		&f->parts->agent, &(struct reloader_options){.source = f->parts->source,
					  .names = &f->parts->names,
					  .patience = patience,
					  .adopt = adopt,
					  .begun = begun,
					  .ended = ended,
					  .context = f});
	reloader_start(f->reloader);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return begin(state, 0);
}

static int setup_hasty(void **state)
{
	return begin(state, 50);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct parts *parts = f->parts;

	store_close(parts->agent.store);
	parts->agent.store = NULL;
	assert_true(engine_free(parts->agent.engine));
	parts->agent.engine = NULL;
	reloader_free(f->reloader);
	parts_free(parts);
	free(f);
	return 0;
}

static void reload(struct fixture *f, const char *yaml)
{
	parts_configure(f->parts, yaml);
	agent_reload(&f->parts->agent, told, f);
	run_until_told(f, f->told + 1);
}

static double metric(const struct fixture *f, enum metric_id id)
{
	const char *name = metric_rows[id].name;
	struct buf text = {0};
	const char *at;
	double value;

	metrics_print(f->parts->agent.metrics, METRICS_TEXT, &text);
	at = strstr(text.data, name); /* after HELP and TYPE, at the beginning of a line */
	while (at && (at == text.data || at[-1] != '\n'))
		at = strstr(at + 1, name);
	assert_non_null(at);
	value = strtod(at + strlen(name), NULL);
	buf_free(&text);
	return value;
}

static void test_taken_over(void **state)
{
	struct fixture *f = *state;
	const struct config_ref *before = f->parts->agent.config_ref;
	double hash = metric(f, METRIC_CONFIG_HASH);

	reload(f, AGENT ", group_wait: 7s}\n"
			"tests:\n  a: {type: csv, file: z.csv}\n  c: {type: csv, file: c.csv}\n"
			"  d: {type: csv, file: d.csv}\n");
	assert_true(f->last.loaded);
	assert_ptr_not_equal(f->parts->agent.config_ref, before);
	assert_int_equal(f->parts->agent.config->agent.group_wait, 7000);
	assert_int_equal(f->last.tests, 3);
	assert_int_equal(f->last.added, 2);
	assert_int_equal(f->last.removed, 1);
	assert_int_equal(f->last.changed, 1);
	assert_string_equal(f->kept, "");
	assert_int_equal(f->adopted, 1);
	assert_int_equal(f->begun, 1);
	assert_int_equal(f->ended, 1);
	assert_true(metric(f, METRIC_RELOAD_SUCCESSFUL) == 1);
	assert_true(metric(f, METRIC_CONFIG_HASH) != hash);
}

/* Each of what can be wrong with a configuration leaves the one before. */
static void test_kept(void **state)
{
	static const struct {
		const char *yaml, *problem;
	} wrong[] = {
		{"tests: [", "hunter.yaml:2:1: not YAML"},
		{"", "no tests configured"},
		{AGENT ", nonsense: 1" TESTS, "unknown key \"nonsense\""},
		{AGENT ", a: 1, b: 2" TESTS, "2 errors, the first: "},
		{AGENT TESTS "  c: {type: csv, file: \"${NOPE}\"}\n", "${NOPE} is not set"},
		{"slack: {bot_token_file: /nonexistent/token, channels: [\"#a\"]}\n" AGENT TESTS,
			":1:8: slack: bot_token_file: cannot read \"/nonexistent/token\""},
		{"slack: {bot_token: \"${NOPE}\", channels: [\"#a\"]}\n" AGENT TESTS,
			"slack: ${NOPE} is not set"},
		{"slack: {bot_token: x}\n" AGENT TESTS, "channel"},
	};
	struct fixture *f = *state;
	const struct config_ref *before = f->parts->agent.config_ref;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		reload(f, wrong[i].yaml);
		assert_false(f->last.loaded);
		if (!strstr(f->problem, wrong[i].problem))
			fail_msg("%s: %s", wrong[i].problem, f->problem);
		assert_ptr_equal(f->parts->agent.config_ref, before);
		assert_ptr_equal(f->parts->agent.config, before->config);
		assert_true(metric(f, METRIC_RELOAD_SUCCESSFUL) == 0);
	}
	assert_int_equal(f->adopted, 0);
	unlink(f->parts->path);
	agent_reload(&f->parts->agent, told, f);
	run_until_told(f, f->told + 1);
	assert_non_null(strstr(f->problem, "No such file or directory"));
	reload(f, AGENT TESTS);
	assert_true(f->last.loaded);
	assert_int_equal(f->last.changed + f->last.added + f->last.removed, 0);
	assert_true(metric(f, METRIC_RELOAD_SUCCESSFUL) == 1);
}

static void test_what_cannot_change(void **state)
{
	struct fixture *f = *state;
	char *state_file = strdup(f->parts->agent.config->agent.state);

	reload(f, "agent: {state: \"%s/other.db\", listen: \"127.0.0.1:1\", jobs: 9,\n"
		  "  metrics_listen: \"127.0.0.1:2\", read_timeout: 2m" TESTS);
	assert_true(f->last.loaded);
	assert_string_equal(
		f->kept, "agent.listen\nagent.metrics_listen\nagent.state\nagent.jobs\n");
	const struct agent_settings *now = &f->parts->agent.config->agent;
	assert_string_equal(now->state, state_file);
	assert_string_equal(now->listen.items[0], "127.0.0.1:9469");
	assert_null(now->metrics_listen);
	assert_int_equal(now->jobs, 0);
	assert_int_equal(now->read_timeout, 120000);
	free(state_file);
}

/* A folder's files; a warning is told and no hindrance. */
static void test_a_warning(void **state)
{
	struct fixture *f = *state;

	reload(f, AGENT TESTS "grafana: {nonsense: 1}\n");
	assert_true(f->last.loaded);
	assert_non_null(strstr(f->problems, "nonsense"));
}

/* The configuration is in use, the file of agent.web_config is not. */
static void test_a_broken_web_configuration(void **state)
{
	struct fixture *f = *state;

	f->refused = "web.yaml:1:1: expected a map";
	reload(f, AGENT TESTS);
	assert_true(f->last.loaded);
	assert_string_equal(f->problem, "agent.web_config: web.yaml:1:1: expected a map");
	assert_true(metric(f, METRIC_RELOAD_SUCCESSFUL) == 0);
	f->refused = NULL;
	reload(f, AGENT TESTS);
	assert_string_equal(f->problem, "");
	assert_true(metric(f, METRIC_RELOAD_SUCCESSFUL) == 1);
}

/* Who asks while it is being read waits for the next reading, which all of them share. */
static void test_two_at_once(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++)
		agent_reload(&f->parts->agent, told, f);
	run_until_told(f, 5);
	assert_int_equal(f->begun, 2);
	assert_int_equal(f->ended, 2);
}

/* What began under the old configuration can be finished under it. */
static void test_held(void **state)
{
	struct fixture *f = *state;
	struct config_ref *before = config_ref_hold(f->parts->agent.config_ref);

	reload(f, AGENT TESTS);
	assert_int_equal(before->holders, 1);
	assert_string_equal(before->tests[0]->name, "a");
	config_ref_release(before);
}

static void test_stopping(void **state)
{
	struct fixture *f = *state;

	agent_reload(&f->parts->agent, told, f); /* is under way */
	agent_reload(&f->parts->agent, told, f); /* waits */
	f->parts->agent.stopping = true;
	reloader_stop(f->reloader);
	assert_int_equal(f->told, 2);
	assert_string_equal(f->problem, "the agent is stopping");
	agent_reload(&f->parts->agent, told, f);
	assert_int_equal(f->told, 3);
	engine_after(f->parts->agent.engine, 100, stop, f->parts->agent.engine);
	assert_true(engine_run(f->parts->agent.engine));
	assert_int_equal(f->told, 3);
	assert_int_equal(f->adopted, 0);
}

static void test_freed_in_the_middle(void **state)
{
	struct fixture *f = *state;

	agent_reload(&f->parts->agent, told, f);
	agent_reload(&f->parts->agent, told, f);
}

/* Who waits hears that it failed, later ones at once, and when the disk is well it goes on. */
static void test_a_disk_that_hangs(void **state)
{
	struct fixture *f = *state;
	struct engine *engine = f->parts->agent.engine;

	sem_init(&mended, 0, 0);
	atomic_store(&hangs, true);
	agent_reload(&f->parts->agent, told, f);
	agent_reload(&f->parts->agent, told, f);
	run_until_told(f, 2);
	assert_false(f->last.loaded);
	assert_string_equal(f->problem, "previous reload still blocked");
	assert_int_equal(f->ended, 2);
	assert_true(metric(f, METRIC_RELOAD_SUCCESSFUL) == 0);
	atomic_store(&hangs, false);
	sem_post(&mended);
	for (int i = 0; i < 1000 && !f->last.loaded; i++) {
		engine_after(engine, 10, stop, engine);
		assert_true(engine_run(engine));
		int expected = f->told + 1;
		agent_reload(&f->parts->agent, told, f); /* tells at once if it hangs still */
		run_until_told(f, expected);
	}
	assert_true(f->last.loaded);
	sem_destroy(&mended);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_taken_over),
		TEST(test_kept),
		TEST(test_what_cannot_change),
		TEST(test_a_warning),
		TEST(test_a_broken_web_configuration),
		TEST(test_two_at_once),
		TEST(test_held),
		TEST(test_stopping),
		TEST(test_freed_in_the_middle),
		cmocka_unit_test_setup_teardown(test_a_disk_that_hangs, setup_hasty, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
