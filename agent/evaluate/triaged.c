/*
 * Tests are fetched once, each from so long before its first judged change that the agent could
 * have found it. Series become labelled ones on the workers, in the memory of their tests' data,
 * which is kept.
 */
#include "agent/evaluate/triaged.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/analysis.h"
#include "agent/analysis/hourly.h"
#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/commands/gather.h"
#include "agent/commands/replay.h"
#include "detectors/online_eval.h"

enum { MOST_CHANGES = 1000000 };

/* The records of one test's changes, which are adjacent. */
struct topic {
	const struct change_record *records;
	size_t count;
	int64_t from; /* ms, the first that was judged */
	bool fetched;
	struct labelled_series *series;      /* made by its task */
	const struct detection **detections; /* of each series */
	size_t series_count;
	struct unplaced *unplaced; /* room for all */
	size_t unplaced_count;
};

struct loading {
	struct cli *cli;
	struct triaged *out;
	struct topic *topics; /* by the names of their tests */
	size_t topic_count;
};

static int by_test(const void *name, const void *topic)
{
	return strcmp(name, ((const struct topic *)topic)->records->item.test);
}

static struct topic *find_topic(const struct loading *loading, const char *test)
{
	return bsearch(
		test, loading->topics, loading->topic_count, sizeof *loading->topics, by_test);
}

bool judged_real(enum triage_state state)
{
	return state == TRIAGE_ACKNOWLEDGED || state == TRIAGE_EXPECTED || state == TRIAGE_FIXED;
}

/* Its current triage. What it inherited is nobody's judgement of it. */
static enum triage_state state_of(const struct change_record *record, int64_t now)
{
	return record->triage.inherited != 0 ? TRIAGE_OPEN : triage_at(&record->triage, now);
}

static int by_series(const void *a, const void *b)
{
	const struct change_record *x = a, *y = b;
	int order = strcmp(x->item.test, y->item.test);
	order = order ? order : strcmp(x->series, y->series);
	order = order ? order : strcmp(x->branch, y->branch);
	if (order == 0 && x->item.time != y->item.time)
		order = x->item.time < y->item.time ? -1 : 1;
	return order ? order : (x->item.id > y->item.id) - (x->item.id < y->item.id);
}

static void leave_out(
	struct topic *topic, const struct change_record *record, int64_t now, const char *why)
{
	enum triage_state state = state_of(record, now);
	if (state != TRIAGE_OPEN)
		topic->unplaced[topic->unplaced_count++] = (struct unplaced){record, state, why};
}

static void leave_out_all(struct topic *topic, int64_t now, const char *why)
{
	topic->unplaced_count = 0;
	for (size_t i = 0; i < topic->count; i++)
		leave_out(topic, &topic->records[i], now, why);
}

/* The nearest point to the change's time. NULL, or why there is none. */
static const char *find_point(
	const struct series *series, const struct change_record *record, size_t *at)
{
	const struct axis *axis = series->axis;
	int64_t time = record->item.time;
	size_t next = axis_lower_bound(axis, time);
	if (axis->n == 0 || (next == 0 && axis->times[0] > time))
		return "the source no longer has points of that time";
	*at = next;
	if (next == axis->n ||
		(next > 0 && axis->times[next] - time > time - axis->times[next - 1]))
		*at = next - 1;
	if (!change_near(time, record->item.spacing, axis->times[*at], record->item.spacing))
		return "the source has no point near that time";
	return *at < ONLINE_FIRST ? "too few points remain before the change" : NULL;
}

/* A span that does not count: the interval of the change's place, with a margin for alarms beside
 * it. */
static struct score_span span_of(
	const struct axis *axis, const struct change_record *record, size_t at)
{
	size_t from = at, to = at;
	if (record->item.place_from != 0 && record->item.place_to != 0) {
		size_t first = axis_lower_bound(axis, record->item.place_from);
		size_t last = axis_lower_bound(axis, record->item.place_to);
		from = first < from ? first : from;
		to = last > to && last < axis->n ? last : to;
	}
	from = from > ONLINE_SAME ? from - ONLINE_SAME : 0;
	to = to + ONLINE_SAME + 1;
	return (struct score_span){from, to < axis->n ? to : axis->n};
}

/* Labels a series by its changes; false if none that was judged is on it. */
static bool label(struct arena *arena, struct topic *topic, const struct series *series,
	const struct change_record *records, size_t count, int64_t now, struct labelled_series *out)
{
	struct judgement *judgements = arena_array(arena, count, sizeof *judgements);
	struct score_span *spans = arena_array(arena, count, sizeof *spans);
	size_t *places = arena_array(arena, count, sizeof *places);
	struct places *all = &out->labels.all;
	size_t said = 0;
	*all = (struct places){places, 0};
	for (size_t i = 0; i < count; i++) {
		enum triage_state state = state_of(&records[i], now);
		size_t at;
		const char *why = find_point(series, &records[i], &at);
		if (why) {
			leave_out(topic, &records[i], now, why);
			continue;
		}
		said += state != TRIAGE_OPEN;
		judgements[out->judgement_count++] = (struct judgement){&records[i], state, at};
		if (judged_real(state) && (all->count == 0 || places[all->count - 1] != at))
			places[all->count++] = at;
		else if (!judged_real(state) && state != TRIAGE_FALSE)
			spans[out->labels.span_count++] = span_of(series->axis, &records[i], at);
	}
	out->judgements = judgements;
	out->labels.spans = spans;
	out->labels.annotators = all;
	out->labels.annotator_count = 1;
	out->labels.n = series->axis->n;
	return said > 0;
}

/* The topic's records of the series, which are adjacent; those without a branch are the first. */
static const struct change_record *find_records(
	const struct topic *topic, const char *series, size_t *count)
{
	size_t low = 0, high = topic->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		bool before = strcmp(topic->records[middle].series, series) < 0;
		low = before ? middle + 1 : low;
		high = before ? high : middle;
	}
	for (*count = 0; low + *count < topic->count; (*count)++) {
		const struct change_record *record = &topic->records[low + *count];
		if (strcmp(record->series, series) != 0 || *record->branch)
			break;
	}
	return topic->records + low;
}

static bool add_series(struct task *task, struct topic *topic, const struct series *series,
	struct scratch *scratch, struct error *error)
{
	struct arena *arena = task->query.arena;
	int64_t now = task->query.now;
	size_t count, said = 0;
	const struct change_record *records = find_records(topic, series->identity, &count);
	const struct detection *detection = analysis_configured(task->test, series->metric);
	const struct control_rule *rule;
	const struct series *other;
	struct findings findings;
	struct sampling sampling;
	struct labelled_series *out = &topic->series[topic->series_count];
	for (size_t i = 0; i < count; i++)
		said += state_of(&records[i], now) != TRIAGE_OPEN;
	if (said == 0)
		return true;
	series = hourly_series(arena, detection, series, WHEN_ALWAYS, scratch);
	*out = (struct labelled_series){0};
	if (!label(arena, topic, series, records, count, now, out))
		return true;
	if (!sampling_read(arena, task->test, series->axis, &sampling, error) ||
		!analysis_other(arena, task->test, &task->query.data, task->companions, series,
			detection, &rule, &other, error))
		return error_prefix(error, "test \"%s\": ", task->test->name);
	/* The part explained by a control is removed. */
	findings = analysis_adjust(arena, series, detection, rule, other, scratch);
	out->values = findings_points(&findings);
	out->id = arena_printf(arena, "%s/%s", task->test->name, series->name);
	out->group = task->test->name;
	out->runs = sampling.runs;
	out->hashes = sampling.hashes;
	out->times = series->axis->times;
	topic->detections[topic->series_count++] = detection;
	return true;
}

/* Notes triaged changes of series that the source no longer has. */
static void leave_out_rest(
	struct arena *arena, struct topic *topic, const struct dataset *data, int64_t now)
{
	struct dict names = {.arena = arena};
	for (size_t s = 0; s < data->count; s++)
		*dict_place(&names, data->series[s].identity) = &data->series[s];
	for (size_t i = 0; i < topic->count; i++) {
		const struct change_record *record = &topic->records[i];
		if (*record->branch)
			leave_out(topic, record, now, "the change is of another branch");
		else if (!dict_get(&names, record->series))
			leave_out(topic, record, now, "the source no longer has the series");
	}
}

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	struct topic *topic = task->result;
	struct arena *arena = task->query.arena;
	const struct dataset *data = &task->query.data;
	topic->series = arena_array(arena, data->count, sizeof *topic->series);
	topic->detections = arena_array(arena, data->count, sizeof *topic->detections);
	leave_out_rest(arena, topic, data, task->query.now);
	for (size_t s = 0; s < data->count; s++)
		if (!add_series(task, topic, &data->series[s], scratch, error))
			return false;
	return true;
}

static void prepare(void *context, struct task *task)
{
	struct loading *loading = context;
	struct topic *topic = find_topic(loading, task->test->name);
	task->query.since = replay_since(task->test, topic->from);
	if (task->test->evaluation_delay > 0)
		task->query.until = loading->cli->now - task->test->evaluation_delay;
	task->result = topic;
	task->work = work;
}

static struct settings_group *find_group(struct loading *loading, const struct detection *detection)
{
	struct triaged *out = loading->out;
	const char *text = detection_text(&cli_schema, detection, loading->cli->arena);
	for (size_t i = 0; i < out->group_count; i++)
		if (strcmp(out->groups[i].text, text) == 0)
			return &out->groups[i];
	out->groups = memory_resize(out->groups, out->group_count + 1, sizeof *out->groups);
	struct settings_group *added = &out->groups[out->group_count++];
	*added = (struct settings_group){.text = text, .detection = detection};
	return added;
}

/* Takes over the memory of the task's data, and its series. */
static void ready(void *context, struct task *const *tasks)
{
	struct loading *loading = context;
	struct task *task = tasks[0];
	struct topic *topic = find_topic(loading, task->test->name);
	struct triaged *out = loading->out;
	if (!gather_log(task) || task->abandoned)
		return;
	topic->fetched = true;
	for (size_t i = 0; i < topic->series_count; i++) {
		struct labelled_series *kept = arena_alloc(loading->cli->arena, sizeof *kept);
		struct settings_group *group = find_group(loading, topic->detections[i]);
		*kept = topic->series[i];
		group->series = memory_grow(
			group->series, &group->capacity, group->count + 1, sizeof *group->series);
		group->series[group->count++] = kept;
		out->set.count++;
	}
	arena_join(loading->cli->arena, task->query.arena);
	task->query.arena = arena_new();
}

/* Makes the topics of the records: tests of which people have judged a change. */
static void sort_topics(struct loading *loading, struct record_rows rows)
{
	size_t room = 0;
	if (rows.count > 0)
		qsort(rows.items, rows.count, sizeof *rows.items, by_series);
	for (size_t first = 0, end; first < rows.count; first = end) {
		const char *test = rows.items[first].item.test;
		for (end = first + 1; end < rows.count; end++)
			if (strcmp(rows.items[end].item.test, test) != 0)
				break;
		struct topic topic = {
			.records = &rows.items[first], .count = end - first, .from = WHEN_NEVER};
		for (size_t i = first; i < end; i++)
			if (state_of(&rows.items[i], loading->cli->now) != TRIAGE_OPEN &&
				rows.items[i].item.time < topic.from)
				topic.from = rows.items[i].item.time;
		if (topic.from == WHEN_NEVER)
			continue;
		topic.unplaced =
			arena_array(loading->cli->arena, topic.count, sizeof *topic.unplaced);
		loading->topics = memory_grow(
			loading->topics, &room, loading->topic_count + 1, sizeof *loading->topics);
		loading->topics[loading->topic_count++] = topic;
	}
}

static void fetch(struct loading *loading)
{
	struct triaged *out = loading->out;
	size_t room = 0;
	const struct test **tests =
		arena_array(loading->cli->arena, out->test_count, sizeof *tests);
	struct gather gather = {.tests = tests,
		.config = out->config,
		.judges = true,
		.prepare = prepare,
		.ready = ready,
		.context = loading};
	for (size_t i = 0; i < out->test_count; i++)
		if (find_topic(loading, out->tests[i]->name))
			tests[gather.count++] = out->tests[i];
	gather_run(&gather, loading->cli);
	out->code = gather.code;
	for (size_t i = 0; i < loading->topic_count; i++) {
		struct topic *topic = &loading->topics[i];
		const char *name = topic->records->item.test;
		if (!topic->fetched)
			leave_out_all(topic, loading->cli->now,
				config_test(out->config, name) ? "cannot read the test's data"
				: config_group(out->config, name)
					? "the change is of a cluster"
					: "the configuration has no such test");
		for (size_t k = 0; k < topic->unplaced_count; k++) {
			out->unplaced = memory_grow(out->unplaced, &room, out->unplaced_count + 1,
				sizeof *out->unplaced);
			out->unplaced[out->unplaced_count++] = topic->unplaced[k];
		}
	}
}

static size_t judgements_of(const struct settings_group *group)
{
	size_t count = 0;
	for (size_t i = 0; i < group->count; i++)
		for (size_t k = 0; k < group->series[i]->judgement_count; k++)
			count += group->series[i]->judgements[k].state != TRIAGE_OPEN;
	return count;
}

static int by_judgements(const void *a, const void *b)
{
	const struct settings_group *x = a, *y = b;
	size_t m = judgements_of(x), n = judgements_of(y);
	return m != n ? (m > n ? -1 : 1) : strcmp(x->text, y->text);
}

/* The records of the selected tests, of all tests if none were. */
static bool read_state(
	struct loading *loading, const char *state, struct record_rows *rows, struct error *error)
{
	struct cli *cli = loading->cli;
	struct triaged *out = loading->out;
	struct store_list *list = store_list_new(NULL, NULL);
	bool read;

	list->filter.limit = MOST_CHANGES;
	if (cli->arguments.count > 0) {
		const char **names = arena_array(cli->arena, out->test_count, sizeof *names);
		for (size_t i = 0; i < out->test_count; i++)
			names[i] = out->tests[i]->name;
		list->filter.names = (struct strings){names, out->test_count};
	}
	read = store_tx(state ? state : out->config->agent.state, STORE_READ, &list->call, error);
	*rows = list->records;
	arena_join(cli->arena, list->call.arena);
	return read;
}

static bool load(struct loading *loading, const char *state, struct error *error)
{
	struct triaged *out = loading->out;
	struct cli *cli = loading->cli;
	struct record_rows rows;
	if (!config_select(out->config, &cli->arguments, cli->arena, &out->tests, &out->test_count,
		    error) ||
		!read_state(loading, state, &rows, error))
		return false;
	sort_topics(loading, rows);
	if (loading->topic_count == 0)
		return error_set(error, ERROR_DATA,
			"none of the %zu changes%s is triaged: see hunter-c triage", rows.count,
			cli->arguments.count > 0 ? " of these tests" : "");
	fetch(loading);
	if (out->group_count > 0)
		qsort(out->groups, out->group_count, sizeof *out->groups, by_judgements);
	return true;
}

bool triaged_load(struct cli *cli, const char *state, struct triaged *out, struct error *error)
{
	struct loading loading = {.cli = cli, .out = out};
	bool good = load(&loading, state, error);
	if (!cli->abandoned)
		free(loading.topics);
	return good;
}

void triaged_free(struct cli *cli, struct triaged *triaged)
{
	if (cli->abandoned)
		return;
	for (size_t i = 0; i < triaged->group_count; i++)
		free(triaged->groups[i].series);
	free(triaged->groups);
	free(triaged->unplaced);
}
