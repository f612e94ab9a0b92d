/*
 * conf/config: each tests/cases/config/NAME.yaml (or folder NAME.d) is loaded with the schema and
 * the environment of conf_schema.h; the problems and, if it loads, a print of the whole
 * configuration must be NAME.expected. HUNTER_WRITE_EXPECTED=1 writes them anew, to be read before
 * they are committed.
 */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "agent/base/zone.h"
#include "conf/known_changes.h"
#include "conf/mute.h"
#include "tests/unit/close.h"
#include "tests/unit/conf_schema.h"

static const struct config_source source = {.schema = &test_schema, .env = test_environment};

/* Prints the options that are not at their defaults. */
static void print_options(
	struct buf *out, const struct field *fields, const void *options, size_t size)
{
	struct arena *arena = arena_new();
	void *defaults = arena_alloc(arena, size);
	field_defaults(fields, defaults);
	for (const struct field *field = fields; field && field->name; field++) {
		struct buf is = {0}, would_be = {0};
		field_print(field, options, &is);
		field_print(field, defaults, &would_be);
		if (is.length != would_be.length ||
			(is.length && memcmp(is.data, would_be.data, is.length) != 0))
			buf_printf(out, " %s=%s", field->name, is.data ? is.data : "");
		buf_free(&is);
		buf_free(&would_be);
	}
	arena_free(arena);
}

static void print_belief(struct buf *out, const struct detection *detection)
{
	static const char *const modes[] = {"auto", "off", "points"};
	const struct confirm_rule *rule = &detection->confirm;
	if (rule->mode != CONFIRM_AUTO)
		buf_printf(out, " confirm=%s/%zu", modes[rule->mode], rule->points);
	if (detection->fdr > 0)
		buf_printf(out, " fdr=%g", detection->fdr);
}

static void print_control(struct buf *out, const struct test *test,
	const struct detection *detection, const char *metric)
{
	const struct control_rule *rule = control_of(test, detection, metric);
	if (rule)
		buf_printf(out, " %s=%s of %s", control_keys[rule->mode], rule->metric,
			rule->test->name);
}

static void print_detection(struct buf *out, const struct detection *detection)
{
	buf_printf(out, " %s", detection->detector->name);
	print_options(out, detection->detector->fields, detection->options,
		detection->detector->options_size);
	print_belief(out, detection);
	struct detection members[COMBINE_MOST];
	size_t count = combine_members(&test_schema, detection, members);
	if (count > 0)
		buf_printf(out, " %zu of (", combine_need(detection));
	for (size_t i = 0; i < count; i++)
		print_detection(out, &members[i]);
	buf_text(out, count > 0 ? " )" : "");
}

static void print_strings(struct buf *out, const char *label, const struct strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		buf_printf(out, "%s%s", i ? "," : label, list->items[i]);
}

static void print_metric(struct buf *out, const struct test *test, const struct metric *metric,
	const struct detection *detection)
{
	buf_printf(out, "    %s %+d x%g", metric->name, metric->direction, metric->scale);
	if (strcmp(metric->column, metric->name) != 0)
		buf_printf(out, " column=%s", metric->column);
	if (metric->suffix)
		buf_printf(out, " suffix=%s", metric->suffix);
	if (metric->query)
		buf_printf(out, " query=%s", metric->query);
	if (metric->unit)
		buf_printf(out, " unit=%s", metric->unit);
	print_strings(out, " annotate=", &metric->annotate);
	print_control(out, test, detection, metric->name);
	print_detection(out, detection);
	buf_char(out, '\n');
}

static void print_mutes(struct buf *out, const struct mutes *mutes)
{
	for (size_t i = 0; i < mutes->count; i++)
		buf_printf(out, "%s%s", i ? "," : " mute=", mute_name(mutes->items[i]));
}

static void print_test(struct buf *out, const struct test *test)
{
	char interval[WHEN_TEXT], delay[WHEN_TEXT];
	buf_printf(out, "test %s: %s", test->name, test->source ? test->source->name : "-");
	if (test->source)
		print_options(out, test->source->fields, test->options, test->source->options_size);
	if (test->server)
		buf_printf(out, " server=%s", test->server->name);
	buf_printf(out, " interval=%s", when_format_duration(test->interval, interval));
	if (test->evaluation_delay != 0)
		buf_printf(out, " evaluation_delay=%s",
			when_format_duration(test->evaluation_delay, delay));
	if (test->allow_empty)
		buf_text(out, " allow_empty=true");
	if (!test->vanished)
		buf_text(out, " vanished=false");
	if (test->stale_after > 0)
		buf_printf(out, " stale_after=%s", when_format_duration(test->stale_after, delay));
	print_strings(out, " notify=", &test->notify);
	print_mutes(out, &test->mute);
	print_strings(out, " tags=", &test->tags);
	print_strings(out, " annotate=", &test->annotate);
	if (test->links.commit_url)
		buf_printf(out, " commit_url=%s", test->links.commit_url);
	if (test->links.compare_url)
		buf_printf(out, " compare_url=%s", test->links.compare_url);
	if (test->links.dashboard)
		buf_printf(out, " dashboard=%s", test->links.dashboard);
	if (test->links.runbook)
		buf_printf(out, " runbook=%s", test->links.runbook);
	if (test->links.owner)
		buf_printf(out, " owner=%s", test->links.owner);
	if (test->environment)
		buf_printf(out, " environment=%s", test->environment);
	buf_text(out, "\n   ");
	print_detection(out, &test->detection);
	buf_char(out, '\n');
	if (test->bisect) {
		buf_printf(out, "    bisect in %s:", test->repository ? test->repository : "-");
		print_options(out, test_bisect_fields, test->bisect, sizeof *test->bisect);
		buf_char(out, '\n');
	}
	for (size_t i = 0; i < test->metric_count; i++)
		print_metric(out, test, &test->metrics[i], &test->detections[i]);
	if (test->unsupported)
		buf_printf(out, "    unsupported: %s\n", test->unsupported);
}

static void print_cluster(struct buf *out, const struct cluster_settings *cluster)
{
	buf_printf(out, " cluster interval=%lld", (long long)cluster->interval);
	print_strings(out, " notify=", &cluster->notify);
	print_mutes(out, &cluster->mute);
	print_options(out, cluster_test_fields, cluster->options, sizeof(struct cluster_test));
}

static void print_known(struct buf *out, const struct known_change *known)
{
	char time[WHEN_TEXT];
	buf_printf(out, "known %s:%d: %s", known->file, known->line, known->test);
	if (known->metric)
		buf_printf(out, " metric=%s", known->metric);
	if (known->commit)
		buf_printf(out, " commit=%s", known->commit);
	if (known->from != WHEN_ALWAYS)
		buf_printf(out, " from=%s", when_format_iso(known->from, time));
	if (known->to != WHEN_NEVER)
		buf_printf(out, " to=%s", when_format_iso(known->to, time));
	if (known->until != WHEN_NEVER)
		buf_printf(out, " until=%s", when_format_iso(known->until, time));
	buf_printf(out, " %+d at_most=%g: %s\n", known->direction, known->at_most, known->reason);
}

/* What the receiver is told, unless that is what its kind is told by default. */
static void print_told(struct buf *out, const struct receiver *receiver)
{
	const struct digest_times *digest = receiver->digest;
	unsigned able, defaults;
	if (receiver->heartbeat)
		buf_text(out, " heartbeat=weekly");
	test_notifier_events(receiver->notifier, &able, &defaults);
	for (size_t i = 0, n = 0; i < test_schema.event_count && receiver->events != defaults; i++)
		if (receiver->events & 1u << i)
			buf_printf(out, "%s%s", n++ == 0 ? " events=" : ",", test_events[i]);
	if (receiver->remind_after > 0)
		buf_printf(out, " remind_after=%lld", (long long)receiver->remind_after);
	if (digest)
		buf_printf(out, " digest=%lld/%x/%s", (long long)digest->at, digest->days,
			zone_name(digest->zone));
}

static void print_route(
	struct buf *out, const struct config *config, const struct notify_route *route, int depth)
{
	buf_printf(out, "%*sroute :%d", 4 * depth, "", route->line);
	if (route->match.count > 0)
		buf_char(out, ' ');
	matchers_print(&route->match, out);
	if (route->at_least > 0)
		buf_printf(out, " at_least=%g", route->at_least);
	if (route->verdict != 0 || route->events != 0)
		buf_printf(out, " verdict=%d events=%x", route->verdict, route->events);
	buf_text(out, " ->");
	for (size_t i = 0; i < route->receiver_count; i++)
		buf_printf(out, " %s", config->receivers[route->receivers[i]].name);
	print_strings(out, " group_by=", &route->group_by);
	buf_text(out, route->go_on ? " continue\n" : "\n");
	for (size_t i = 0; i < route->count; i++)
		print_route(out, config, &route->routes[i], depth + 1);
}

static void print_config(struct buf *out, const struct config *config)
{
	buf_text(out, "agent");
	print_options(out, agent_fields, &config->agent, sizeof config->agent);
	buf_text(out, "\ndetection");
	print_detection(out, &config->detection);
	buf_char(out, '\n');
	for (size_t i = 0; i < config->server_count; i++) {
		const struct server *server = &config->servers[i];
		buf_printf(out, "server %s: %s", server->name, server->source->name);
		print_options(out, endpoint_fields, server->options, server->source->server_size);
		buf_char(out, '\n');
	}
	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];
		buf_printf(out, "receiver %s:", receiver->name);
		if (strcmp(receiver->name, receiver->notifier->name) != 0)
			buf_printf(out, " %s", receiver->notifier->name);
		print_told(out, receiver);
		print_options(out, receiver->notifier->fields, receiver->options,
			receiver->notifier->options_size);
		buf_char(out, '\n');
	}
	if (config->routes)
		print_route(out, config, config->routes, 0);
	for (size_t i = 0; i < config->test_count; i++)
		print_test(out, &config->tests[i]);
	for (size_t i = 0; i < config->rename_count; i++)
		buf_printf(out, "%s%s%s was %s\n", config->renames[i].test,
			config->renames[i].metric ? "/" : "",
			config->renames[i].metric ? config->renames[i].metric : "",
			config->renames[i].was);
	for (size_t i = 0; i < config->group_count; i++) {
		buf_printf(out, "group %s:", config->groups[i].name);
		for (size_t j = 0; j < config->groups[i].count; j++)
			buf_printf(out, " %s", config->groups[i].tests[j]->name);
		if (config->groups[i].cluster)
			print_cluster(out, config->groups[i].cluster);
		buf_char(out, '\n');
	}
	for (size_t i = 0; i < config->known_change_count; i++)
		print_known(out, &config->known_changes[i]);
	if (config->missing)
		buf_printf(out, "missing: %s\n", config->missing);
}

/* What loading the file says and gives. */
static char *describe(const char *path)
{
	struct buf out = {0};
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	struct config *config = config_load(path, &source, &problems);
	for (size_t i = 0; i < problems.count; i++)
		buf_printf(&out, "%s\n", problems.items[i].text);
	assert_int_equal(config == NULL, problems.errors > 0);
	if (config)
		print_config(&out, config);
	config_free(config);
	arena_free(arena);
	return buf_steal(&out);
}

static char *read_text(const char *path)
{
	struct buf text = {0};
	char chunk[4096];
	FILE *file = fopen(path, "r");
	if (!file)
		return NULL;
	for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
		buf_append(&text, chunk, n);
	fclose(file);
	return buf_steal(&text);
}

static bool check_case(const char *name)
{
	char path[300];
	const char *dot = strrchr(name, '.');
	snprintf(path, sizeof path, "%.*s.expected", (int)(dot - name), name);
	char *is = describe(name);
	if (getenv("HUNTER_WRITE_EXPECTED")) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(is, file);
		fclose(file);
	}
	char *expected = read_text(path);
	bool same = expected && strcmp(is, expected) == 0;
	if (!same)
		fprintf(stderr, "%s is not what %s expects:\n%s\n", name, path, is);
	/* Whatever goes wrong, the environment's secret is in no message. */
	assert_null(strstr(is, "xoxb"));
	free(is);
	free(expected);
	return same;
}

static bool ends_with(const char *name, const char *ending)
{
	size_t n = strlen(name), m = strlen(ending);
	return n > m && strcmp(name + n - m, ending) == 0;
}

static void test_cases(void **state)
{
	(void)state;
	size_t cases = 0, bad = 0;
	assert_int_equal(chdir(HUNTER_TEST_DATA "/cases/config"), 0);
	DIR *dir = opendir(".");
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (!ends_with(entry->d_name, ".yaml") && !ends_with(entry->d_name, ".d"))
			continue;
		cases++;
		bad += !check_case(entry->d_name);
	}
	closedir(dir);
	assert_int_equal(bad, 0);
	assert_in_range(cases, 40, 1000);
}

/* Loads a text as a file of its own; the caller frees both. */
static struct config *load_text(const char *text, struct problems *problems)
{
	char path[] = "/tmp/hunter-config-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	problems->arena = arena_new();
	struct config *config = config_load(path, &source, problems);
	unlink(path);
	return config;
}

/* Of a template or file, unless a test has its own; none are those of the file either. */
static void test_holidays(void **state)
{
	static const char text[] =
		"detection: {holidays: " HUNTER_TEST_DATA "/cases/config/holidays-files/days.txt}\n"
		"templates: {t: {detection: {holidays: 2026-10-03}}}\n"
		"tests:\n"
		"  a: {type: csv, file: x, metrics: [m]}\n"
		"  b: {type: csv, file: x, metrics: [m], inherit: t}\n"
		"  c: {type: csv, file: x, metrics: [m], detection: {holidays: []}}\n";
	struct problems problems = {0};
	struct config *config = load_text(text, &problems);

	(void)state;
	assert_non_null(config);
	const struct holidays *a = &config->tests[0].detections[0].holidays;
	const struct holidays *b = &config->tests[1].detections[0].holidays;
	assert_int_equal(a->count, 2);
	assert_int_equal(a->days[0], INT64_C(1767225600000)); /* in order of time */
	assert_int_equal(a->days[1], INT64_C(1798156800000));
	assert_int_equal(b->count, 1);
	assert_int_equal(b->days[0], INT64_C(1790985600000));
	assert_int_equal(config->tests[2].detections[0].holidays.count, 0);
	assert_int_not_equal(config->tests[0].fingerprint, config->tests[2].fingerprint);
	arena_free(problems.arena);
	config_free(config);
}

static const char selection_text[] = "tests:\n"
				     "  b.one: {type: csv, file: x}\n"
				     "  a.two: {type: csv, file: x}\n"
				     "  a.one: {type: csv, file: x}\n"
				     "  both: {type: csv, file: x}\n"
				     "test_groups:\n"
				     "  all: [a.one, b.one]\n"
				     "  both: [a.two]\n";

static const char *select_names(
	const struct config *config, const char *const *names, size_t count, struct buf *out)
{
	struct error error;
	const struct test *const *tests;
	size_t n;
	buf_clear(out);
	if (!config_select(
		    config, &(struct strings){names, count}, config->arena, &tests, &n, &error)) {
		const char *at = strstr(error.text, " in /tmp");
		assert_non_null(at);
		buf_printf(out, "%.*s", (int)(at - error.text), error.text);
		at = strstr(at, " (did");
		buf_text(out, at ? at : "");
		return out->data;
	}
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s ", tests[i]->name);
	return out->data;
}

static void test_select(void **state)
{
	(void)state;
	struct problems problems = {0};
	struct buf out = {0};
	struct config *config = load_text(selection_text, &problems);
	assert_non_null(config);
	assert_string_equal(select_names(config, NULL, 0, &out), "b.one a.two a.one both ");
	assert_string_equal(
		select_names(config, (const char *[]){"a.two", "all", "b.one"}, 3, &out),
		"a.two a.one b.one ");
	assert_string_equal(select_names(config, (const char *[]){"a.*"}, 1, &out), "a.two a.one ");
	assert_string_equal(select_names(config, (const char *[]){"both"}, 1, &out), "a.two ");
	assert_string_equal(select_names(config, (const char *[]){"a.tow"}, 1, &out),
		"no test or group \"a.tow\" (did you mean \"a.two\"?)");
	assert_string_equal(
		select_names(config, (const char *[]){"z*"}, 1, &out), "no test or group \"z*\"");
	assert_ptr_equal(config_test(config, "a.one"), &config->tests[2]);
	assert_null(config_test(config, "all"));
	assert_int_equal(config_group(config, "all")->count, 2);
	assert_null(config_group(config, "a.one"));
	buf_free(&out);
	config_free(config);
	arena_free(problems.arena);
}

static void test_overlay(void **state)
{
	(void)state;
	struct error error;
	struct detection out;
	struct arena *arena = arena_new();
	struct edivisive_test options = {30, 0.01, 0.05, 1};
	const struct detection base = {.detector = &test_detectors[0], .options = &options};
	const struct setting p[] = {{"p_value", "0.5"}, {"window", "10"}};
	assert_true(detection_overlay(&test_schema, &base, p, 2, arena, &out, &error));
	const struct edivisive_test *got = out.options;
	assert_close(got->p_value, 0.5, 0);
	assert_int_equal(got->window, 10);
	assert_int_equal(got->profile, 1);
	assert_int_equal(options.window, 30);

	const struct setting other[] = {{"threshold", "7"}, {"detector", "stepfit"}};
	assert_true(detection_overlay(&test_schema, &base, other, 2, arena, &out, &error));
	assert_string_equal(out.detector->name, "stepfit");
	assert_close(((const struct stepfit_test *)out.options)->threshold, 7, 0);

	/* What the agent believes is no setting of a command, and stays as it was. */
	struct detection believing = base;
	believing.confirm = (struct confirm_rule){.mode = CONFIRM_POINTS, .points = 6};
	believing.fdr = 0.05;
	assert_true(detection_overlay(&test_schema, &believing, other, 2, arena, &out, &error));
	assert_int_equal(out.confirm.points, 6);
	assert_close(out.fdr, 0.05, 0);
	const struct setting confirm[] = {{"confirm", "off"}};
	assert_false(detection_overlay(&test_schema, &base, confirm, 1, arena, &out, &error));
	assert_string_equal(error.text, "the detector \"edivisive\" has no option \"confirm\"");

	const struct setting same[] = {{"detector", "edivisive"}};
	assert_true(detection_overlay(&test_schema, &base, same, 1, arena, &out, &error));
	assert_int_equal(((const struct edivisive_test *)out.options)->window, 30);

	assert_false(detection_overlay(&test_schema, &base, other, 1, arena, &out, &error));
	assert_string_equal(error.text, "the detector \"edivisive\" has no option \"threshold\"");
	const struct setting bad[] = {{"p_value", "2"}};
	assert_false(detection_overlay(&test_schema, &base, bad, 1, arena, &out, &error));
	assert_string_equal(error.text, "p_value: \"2\" is not above 0 and below 1");
	const struct setting unknown[] = {{"detector", "edivisve"}};
	assert_false(detection_overlay(&test_schema, &base, unknown, 1, arena, &out, &error));
	assert_string_equal(
		error.text, "unknown detector \"edivisve\" (did you mean \"edivisive\"?)");
	assert_int_equal(error.kind, ERROR_USAGE);
	arena_free(arena);
}

static void test_overlay_combine(void **state)
{
	(void)state;
	struct error error;
	struct detection out, members[COMBINE_MOST];
	struct arena *arena = arena_new();
	struct edivisive_test options = {30, 0.01, 0.05, 1};
	const struct detection base = {.detector = &test_detectors[0], .options = &options};
	const struct setting good[] = {{"combine", " 2 within 7 : edivisive ( window = 9 , "
						   "p_value=0.5 ), stepfit,stepfit(threshold=4)"}};
	assert_true(detection_overlay(&test_schema, &base, good, 1, arena, &out, &error));
	assert_int_equal(combine_members(&test_schema, &out, members), 3);
	assert_int_equal(combine_need(&out), 2);
	assert_int_equal(((const struct combine_options *)out.options)->tolerance, 7);
	assert_int_equal(((const struct edivisive_test *)members[0].options)->window, 9);
	assert_close(((const struct stepfit_test *)members[1].options)->threshold, 2, 0);
	assert_close(((const struct stepfit_test *)members[2].options)->threshold, 4, 0);
	static const struct setting over[] = {{"tolerance", "1"}};
	struct detection laid;
	assert_true(detection_overlay(&test_schema, &out, over, 1, arena, &laid, &error));
	assert_int_equal(combine_members(&test_schema, &laid, members), 3);
	assert_int_equal(combine_need(&base), 0);
	static const char *const bad[][2] = {
		{"stepfit", "combine: \"stepfit\": expected the form \"all: edivisive, "
			    "kernel(penalty=2)\""},
		{"all:", "combine: expected 1 to 16 detectors"},
		{"3: stepfit, stepfit",
			"combine: \"3\" of 2: expected any, all or a number up to that"},
		{"-1: stepfit", "combine: \"-1\" of 1: expected any, all or a number up to that"},
		{"all: stepfti",
			"combine: unknown detector \"stepfti\" (did you mean \"stepfit\"?)"},
		{"all: stepfit(threshold=", "combine: \"stepfit(threshold=\" lacks a )"},
		{"all: stepfit(threshold)", "combine: \"threshold\": expected OPTION=VALUE"},
		{"all: stepfit(window=3)",
			"combine: the detector \"stepfit\" has no option \"window\""},
		{"all: combine", "combine: combine: of what?"},
		{"all: combine(combine=x)",
			"combine: combine: \"x\": expected the form \"all: edivisive, "
			"kernel(penalty=2)\""},
		{"all within 1000: stepfit",
			"combine: tolerance: \"1000\" is not at least 0 and at most 100"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct setting setting = {"combine", bad[i][0]};
		assert_false(
			detection_overlay(&test_schema, &base, &setting, 1, arena, &out, &error));
		assert_string_equal(error.text, bad[i][1]);
	}
	const struct setting both[] = {{"detector", "stepfit"}, {"combine", "any: stepfit"}};
	assert_false(detection_overlay(&test_schema, &base, both, 2, arena, &out, &error));
	assert_string_equal(error.text, "detector and combine: use one of them");
	arena_free(arena);
}

static const char *place_environment(void *context, const char *name)
{
	const struct pair *variables = context;
	for (; variables->key; variables++)
		if (strcmp(variables->key, name) == 0)
			return variables->value;
	return NULL;
}

static void test_find(void **state)
{
	(void)state;
	struct error error;
	const char *path;
	char home[] = "/tmp/hunter-home-XXXXXX", file[200], folder[100];
	struct arena *arena = arena_new();
	assert_non_null(mkdtemp(home));
	assert_int_equal(chdir(home), 0);
	struct pair variables[] = {{"HUNTER_CONFIG", "h.yaml"}, {"OTAVA_CONFIG", "o.yaml"},
		{"HOME", home}, {NULL, NULL}};
	struct config_source from = {
		.schema = &test_schema, .env = place_environment, .env_context = variables};
	assert_true(config_find("flag.yaml", &from, arena, &path, &error));
	assert_string_equal(path, "flag.yaml");
	assert_true(config_find(NULL, &from, arena, &path, &error));
	assert_string_equal(path, "h.yaml");
	variables[0].value = "";
	assert_true(config_find(NULL, &from, arena, &path, &error));
	assert_string_equal(path, "o.yaml");
	variables[1].value = NULL;
	snprintf(folder, sizeof folder, "%s/.hunter", home);
	snprintf(file, sizeof file, "%s/hunter.yaml", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	fclose(fopen(file, "w"));
	assert_true(config_find(NULL, &from, arena, &path, &error));
	assert_string_equal(path, file);
	fclose(fopen("hunter.yaml", "w"));
	assert_true(config_find(NULL, &from, arena, &path, &error));
	assert_string_equal(path, "hunter.yaml");
	unlink("hunter.yaml");
	unlink(file);
	rmdir(folder);
	if (access("/etc/hunter-c/hunter.yaml", F_OK) != 0) {
		assert_false(config_find(NULL, &from, arena, &path, &error));
		assert_non_null(strstr(error.text, "$HUNTER_CONFIG"));
		assert_int_equal(error.kind, ERROR_USAGE);
	}
	assert_int_equal(chdir("/"), 0);
	rmdir(home);
	arena_free(arena);
}

static void expect_problem(const char *path, const char *text)
{
	struct problems problems = {.arena = arena_new()};
	assert_null(config_load(path, &source, &problems));
	assert_int_equal(problems.count, 1);
	assert_string_equal(problems.items[0].text, text);
	arena_free(problems.arena);
}

static void test_files(void **state)
{
	(void)state;
	char big[] = "/tmp/hunter-big-XXXXXX", empty[] = "/tmp/hunter-empty-XXXXXX";
	char text[200], inside[100];
	int fd = mkstemp(big);
	assert_int_equal(ftruncate(fd, 100000001), 0);
	close(fd);
	snprintf(text, sizeof text, "%s: too large: the configuration is limited to 100 MB", big);
	expect_problem(big, text);
	unlink(big);
	assert_non_null(mkdtemp(empty));
	snprintf(text, sizeof text, "%s: no *.yaml file in this folder", empty);
	expect_problem(empty, text);
	snprintf(inside, sizeof inside, "%s/1.yaml", empty);
	assert_int_equal(mkdir(inside, 0700), 0);
	expect_problem(empty, text); /* a folder is no file of it */
	rmdir(inside);
	assert_int_equal(mkfifo(inside, 0600), 0);
	snprintf(text, sizeof text, "%s: cannot read the file: not a regular file", inside);
	expect_problem(empty, text); /* and does not wait for a writer */
	expect_problem(inside, text);
	unlink(inside);
	rmdir(empty);
	expect_problem("/nonexistent.yaml",
		"/nonexistent.yaml: cannot read the file: No such file or directory");
	expect_problem("/dev/zero", "/dev/zero: cannot read the file: not a regular file");
}

/* Templates that double at each step, and groups of groups: a sentence, in time. */
static void test_bombs(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_text(&text, "templates:\n  t0: {tags: [x], metrics: [m]}\n");
	for (int i = 1; i < 45; i++)
		buf_printf(&text, "  t%d: {inherit: [t%d, t%d]}\n", i, i - 1, i - 1);
	buf_text(&text, "tests:\n  a: {inherit: t44, type: csv, file: x}\n");
	struct problems problems = {0};
	assert_null(load_text(text.data, &problems));
	assert_int_equal(problems.errors, 1);
	assert_non_null(strstr(problems.items[0].text,
		"too large: more than 20,000,000 values once templates and groups are expanded"));
	arena_free(problems.arena);

	buf_clear(&text);
	buf_text(&text, "templates:\n  t: {type: csv, file: x, metrics: {");
	for (int i = 0; i < 10000; i++)
		buf_printf(&text, "m%d: {}, ", i);
	buf_text(&text, "}}\ntests:\n");
	for (int i = 0; i < 20000; i++)
		buf_printf(&text, "  a%d: {inherit: t}\n", i);
	problems = (struct problems){0};
	assert_null(load_text(text.data, &problems));
	assert_int_equal(problems.errors, 1);
	assert_non_null(strstr(problems.items[0].text, "too large"));
	arena_free(problems.arena);

	buf_clear(&text);
	buf_text(&text, "templates:\n  t0: {tags: [x]}\n");
	for (int i = 1; i < 100; i++)
		buf_printf(&text, "  t%d: {inherit: [t%d]}\n", i, i - 1);
	buf_text(&text, "tests:\n  a: {inherit: t99, type: csv, file: x}\n");
	problems = (struct problems){0};
	assert_null(load_text(text.data, &problems));
	assert_int_equal(problems.errors, 1);
	assert_non_null(strstr(problems.items[0].text, "more than 50 templates deep"));
	arena_free(problems.arena);
	buf_free(&text);
}

/* A thousand problems are kept, the rest counted. */
/* The search for the ends of references is linear in the line. */
static void test_many_references(void **state)
{
	(void)state;
	struct buf text = {0};
	struct problems problems = {0};
	buf_text(&text, "x-a: '");
	for (int i = 0; i < 200000; i++)
		buf_text(&text, "${A:-");
	buf_text(&text, "'\n");
	struct config *config = load_text(text.data, &problems);
	assert_non_null(config);
	config_free(config);
	buf_free(&text);
	arena_free(problems.arena);
}

static void test_many_problems(void **state)
{
	(void)state;
	struct buf text = {0};
	struct problems problems = {0};
	buf_text(&text, "tests:\n");
	for (int i = 0; i < 1500; i++)
		buf_printf(&text, "  t%d: {type: csv}\n", i);
	assert_null(load_text(text.data, &problems));
	assert_int_equal(problems.errors, 1500);
	assert_int_equal(problems.count, 1001);
	assert_string_equal(problems.items[1000].text, "... and 500 more problems");
	buf_free(&text);
	arena_free(problems.arena);
}

/* One line a problem in a template, however many tests inherit it. */
static void test_told_once(void **state)
{
	(void)state;
	struct buf text = {0};
	struct problems problems = {0};
	buf_text(&text,
		"templates:\n  t: {type: csv, file: x, tiem_column: y, detection: {window: 1}}\n"
		"tests:\n");
	for (int i = 0; i < 100; i++)
		buf_printf(&text, "  t%d: {inherit: t}\n", i);
	assert_null(load_text(text.data, &problems));
	assert_int_equal(problems.count, 2);
	buf_free(&text);
	arena_free(problems.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_holidays),
		cmocka_unit_test(test_select),
		cmocka_unit_test(test_overlay),
		cmocka_unit_test(test_overlay_combine),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_many_references),
		cmocka_unit_test(test_many_problems),
		cmocka_unit_test(test_told_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
