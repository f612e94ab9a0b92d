/*
 * `evaluate --from-triage`: the configured detections, each on the series that have it, and the
 * search for better ones.
 *
 * A proposal is searched on one half of the series and must be better on the other half, too.
 */
#include "agent/evaluate/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/analysis.h"
#include "agent/analysis/hourly.h"
#include "agent/base/dict.h"
#include "agent/base/hash.h"
#include "agent/base/when.h"
#include "agent/commands/gather.h"
#include "agent/commands/replay.h"
#include "agent/evaluate/proposal.h"
#include "agent/model/json_put.h"
#include "agent/store/store.h"
#include "detectors/online_eval.h"
#include "notifiers/text.h"

/*
 * Labelled series from triage (agent/model/triage.h): the state's changes on the data that the
 * sources return today.
 *
 * Expected, fixed and acknowledged changes are labels; a change found at a false one is a false
 * alarm. Around infra, ignored and open changes nothing counts; their outcomes are listed
 * separately.
 *
 * Tests are fetched once, each from so long before its first judged change that the agent could
 * have found it. Series become labelled ones on the workers, in the memory of their tests' data,
 * which is kept.
 */

/* A change that could not be judged, and why. */
struct unplaced {
	const struct change_record *record;
	enum triage_state state;
	const char *why;
};

/* Series that are detected in the same way. */
struct settings_group {
	const char *text; /* detection_text */
	const struct detection *detection;
	const struct labelled_series **series;
	size_t count;
};

struct triaged {
	struct config *config;
	const struct test *const *tests; /* those that were selected */
	size_t test_count;
	struct labelled_set set;       /* series of which people judged a change; class: the test */
	struct settings_group *groups; /* those with the most judgements first */
	size_t group_count;
	struct unplaced *unplaced; /* changes that people judged */
	size_t unplaced_count;
	int code; /* EXIT_NOTHING, or that of tests whose data could not be read */
};

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

struct work {
	struct cli *cli;
	const struct evaluate_options *options;
	struct triaged triaged;
	struct evaluation evaluation;
	struct contender *contenders; /* of each group */
	struct topic *topics;         /* by the names of their tests */
	size_t topic_count;
};

static int by_test(const void *name, const void *topic)
{
	return strcmp(name, ((const struct topic *)topic)->records->item.test);
}

static struct topic *find_topic(const struct work *work, const char *test)
{
	return bsearch(test, work->topics, work->topic_count, sizeof *work->topics, by_test);
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

static bool label_task(struct task *task, struct scratch *scratch, struct error *error)
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
	struct work *work = context;
	struct topic *topic = find_topic(work, task->test->name);
	task->query.since = replay_since(task->test, topic->from);
	if (task->test->evaluation_delay > 0)
		task->query.until = work->cli->now - task->test->evaluation_delay;
	task->result = topic;
	task->work = label_task;
}

static struct settings_group *find_group(struct work *work, const struct detection *detection)
{
	struct triaged *out = &work->triaged;
	const char *text = detection_text(&cli_schema, detection, work->cli->arena);
	for (size_t i = 0; i < out->group_count; i++)
		if (strcmp(out->groups[i].text, text) == 0)
			return &out->groups[i];
	out->groups =
		arena_grow(work->cli->arena, out->groups, out->group_count, sizeof *out->groups);
	struct settings_group *added = &out->groups[out->group_count++];
	*added = (struct settings_group){.text = text, .detection = detection};
	return added;
}

/* Takes over the memory of the task's data, and its series. */
static void ready(void *context, struct task *const *tasks)
{
	struct work *work = context;
	struct task *task = tasks[0];
	struct topic *topic = find_topic(work, task->test->name);
	struct triaged *out = &work->triaged;
	if (!gather_log(task) || task->abandoned)
		return;
	topic->fetched = true;
	for (size_t i = 0; i < topic->series_count; i++) {
		struct labelled_series *kept = arena_alloc(work->cli->arena, sizeof *kept);
		struct settings_group *group = find_group(work, topic->detections[i]);
		*kept = topic->series[i];
		group->series = arena_grow(
			work->cli->arena, group->series, group->count, sizeof *group->series);
		group->series[group->count++] = kept;
		out->set.count++;
	}
	arena_join(work->cli->arena, task->query.arena);
	task->query.arena = arena_new();
}

/* Makes the topics of the records: tests of which people have judged a change. */
static void sort_topics(struct work *work, struct record_rows rows)
{
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
			if (state_of(&rows.items[i], work->cli->now) != TRIAGE_OPEN &&
				rows.items[i].item.time < topic.from)
				topic.from = rows.items[i].item.time;
		if (topic.from == WHEN_NEVER)
			continue;
		topic.unplaced = arena_array(work->cli->arena, topic.count, sizeof *topic.unplaced);
		work->topics = arena_grow(
			work->cli->arena, work->topics, work->topic_count, sizeof *work->topics);
		work->topics[work->topic_count++] = topic;
	}
}

static void fetch(struct work *work)
{
	struct triaged *out = &work->triaged;
	const struct test **tests = arena_array(work->cli->arena, out->test_count, sizeof *tests);
	struct gather gather = {.tests = tests,
		.config = out->config,
		.judges = true,
		.prepare = prepare,
		.ready = ready,
		.context = work};
	for (size_t i = 0; i < out->test_count; i++)
		if (find_topic(work, out->tests[i]->name))
			tests[gather.count++] = out->tests[i];
	gather_run(&gather, work->cli);
	out->code = gather.code;
	for (size_t i = 0; i < work->topic_count; i++) {
		struct topic *topic = &work->topics[i];
		const char *name = topic->records->item.test, *why = "cannot read the test's data";
		if (!config_test(out->config, name))
			why = config_group(out->config, name)
				      ? "the change is of a cluster"
				      : "the configuration has no such test";
		if (!topic->fetched)
			topic->unplaced_count = 0;
		for (size_t k = 0; k < topic->count && !topic->fetched; k++)
			leave_out(topic, &topic->records[k], work->cli->now, why);
		for (size_t k = 0; k < topic->unplaced_count; k++) {
			out->unplaced = arena_grow(work->cli->arena, out->unplaced,
				out->unplaced_count, sizeof *out->unplaced);
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
static bool read_state(struct work *work, struct record_rows *rows, struct error *error)
{
	const char *state = work->options->state_file;
	struct cli *cli = work->cli;
	struct triaged *out = &work->triaged;
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

/* Reads the changes of the selected tests from the state, and the data. False and an error if
 * nothing can be judged. */
static bool load(struct work *work, struct error *error)
{
	struct triaged *out = &work->triaged;
	struct cli *cli = work->cli;
	struct record_rows rows;
	if (!config_select(out->config, &cli->arguments, cli->arena, &out->tests, &out->test_count,
		    error) ||
		!read_state(work, &rows, error))
		return false;
	sort_topics(work, rows);
	if (work->topic_count == 0)
		return error_set(error, ERROR_DATA,
			"none of the %zu changes%s is triaged: see hunter-c triage", rows.count,
			cli->arguments.count > 0 ? " of these tests" : "");
	fetch(work);
	if (out->group_count > 0)
		qsort(out->groups, out->group_count, sizeof *out->groups, by_judgements);
	return true;
}

/* ---- scores and searches ---- */

/* LEAST: real and false changes that each half must have for a search. */
enum { NAMES_SHOWN = 20, LEAST = 3 };

static const char as_configured[] = "as configured";

/* The search in one group of settings. */
struct search {
	const struct settings_group *group;
	const char *why;        /* nothing is proposed, since */
	size_t searched, tried; /* series */
	struct tuned tuned;
	struct result given, best; /* on the series that were not searched on */
	bool compared, proposed;
};

/* Evaluates the series by the group's own rule of confirmation, and at once. */
static void use_group(struct work *work, const struct settings_group *group)
{
	struct evaluation *evaluation = &work->evaluation;
	evaluation->rules[LIVE_CONFIRMED] = (struct live_rule){group->detection->confirm, true};
	evaluation->rules[LIVE_AT_ONCE] = (struct live_rule){{.mode = CONFIRM_OFF}, false};
	evaluation->rule_count = LIVES;
	evaluation->series = group->series;
	evaluation->count = group->count;
}

static void put_change(struct buf *out, const struct change_record *record)
{
	const struct announcement *item = &record->item;
	char time[WHEN_TEXT];
	buf_clean(out, item->test, 200);
	buf_char(out, '/');
	buf_clean(out, item->metric, 200);
	buf_printf(out, " %.16s (", when_format(item->time, time));
	text_percent(out, &item->change);
	buf_printf(out, ") #%lld", (long long)item->id);
}

static void put_unplaced(struct buf *out, const struct triaged *triaged)
{
	size_t count = triaged->unplaced_count;
	if (count == 0)
		return;
	buf_printf(
		out, "%zu triaged %s cannot be scored\n", count, count == 1 ? "change" : "changes");
	for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
		buf_text(out, "  ");
		put_change(out, triaged->unplaced[i].record);
		buf_printf(out, " %s: %s\n", triage_state_names[triaged->unplaced[i].state],
			triaged->unplaced[i].why);
	}
	if (count > NAMES_SHOWN)
		buf_printf(out, "  and %zu more\n", count - NAMES_SHOWN);
	buf_char(out, '\n');
}

static void put_change_json(
	struct buf *out, const struct change_record *record, enum triage_state state)
{
	const struct announcement *item = &record->item;

	json_put(out, "\n{id: %jd, test: %s, metric: %s, time: %jd time, size: %g, state: %s",
		item->id, item->test, item->metric, item->time, item->change.size,
		triage_state_names[state]);
}

static void put_json(struct work *work, struct buf *out, struct result *results, size_t count)
{
	const struct triaged *triaged = &work->triaged;
	const struct live *live = &results[0].whole.live[LIVE_CONFIRMED];
	struct judged judged = judged_of(live);
	buf_char(out, '{');
	evaluate_put_json(out, results, count, &work->evaluation, as_configured);
	json_put(out, "triage:");
	judged_put_json(out, &judged);
	json_put(out, "changes: [");
	for (size_t i = 0; i < live->outcome_count; i++) {
		const struct judged_outcome *outcome = &live->outcomes[i];
		put_change_json(out, outcome->judgement->record, outcome->judgement->state);
		json_put(out, "announced: %d bool, delay: %g}", outcome->announced,
			outcome->announced ? (double)outcome->delay : (double)NAN);
	}
	buf_text(out, "], \"not_scored\": [");
	for (size_t i = 0; i < triaged->unplaced_count; i++) {
		const struct unplaced *unplaced = &triaged->unplaced[i];
		put_change_json(out, unplaced->record, unplaced->state);
		json_put(out, "reason: %s}", unplaced->why);
	}
	buf_text(out, "]}}\n");
}

/* Scores all groups; the sum comes first where there are several. */
static bool score(struct work *work, struct buf *out, struct error *error)
{
	static const struct contender all = {.name = "all settings"};
	const struct triaged *triaged = &work->triaged;
	struct result *results = memory_new(triaged->group_count + 1, sizeof *results);
	size_t first = triaged->group_count > 1 ? 1 : 0, done = first;
	bool good = true;
	results[0] =
		(struct result){.contender = &all, .whole = {.arena = arena_new(), .group = ""}};
	work->evaluation.total = triaged->set.count;
	for (size_t i = 0; i < triaged->group_count && good; i++) {
		use_group(work, &triaged->groups[i]);
		good = evaluate_contender(
			&work->evaluation, &work->contenders[i], &results[done], error);
		if (first)
			result_add(&results[0], &results[done]);
		done++;
	}
	if (good)
		put_json(work, out, results, done);
	for (size_t i = 0; i < done; i++)
		result_free(&results[i]);
	free(results);
	return good;
}

static size_t count_false(const struct labelled_series *series)
{
	size_t count = 0;
	for (size_t i = 0; i < series->judgement_count; i++)
		count += series->judgements[i].state == TRIAGE_FALSE;
	return count;
}

/* A series in the order of dealing. */
struct dealt {
	const struct labelled_series *series;
	bool bad; /* people judged some of it false */
	uint64_t hash;
};

static int by_hash(const void *a, const void *b)
{
	const struct dealt *x = a, *y = b;
	if (x->bad != y->bad)
		return x->bad ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return strcmp(x->series->id, y->series->id);
}

/*
 * Deals the series to two halves, those with false alarms first, in an order that depends on their
 * names only. Those to search on come first; returns their number.
 */
static size_t deal(const struct settings_group *group, const struct labelled_series **out)
{
	struct dealt *dealt = memory_new(group->count, sizeof *dealt);
	size_t searched = (group->count + 1) / 2;
	for (size_t i = 0; i < group->count; i++) {
		const struct labelled_series *series = group->series[i];
		dealt[i].series = series;
		dealt[i].bad = count_false(series) > 0;
		dealt[i].hash = hash_keyed((struct hash_key){0}, series->id, strlen(series->id));
	}
	qsort(dealt, group->count, sizeof *dealt, by_hash);
	for (size_t i = 0; i < group->count; i++)
		out[i % 2 == 0 ? i / 2 : searched + i / 2] = dealt[i].series;
	free(dealt);
	return searched;
}

static bool are_enough(const struct labelled_series *const *series, size_t count)
{
	size_t bad = 0, real = 0;
	for (size_t i = 0; i < count; i++) {
		bad += count_false(series[i]);
		for (size_t k = 0; k < series[i]->judgement_count; k++)
			real += judged_real(series[i]->judgements[k].state);
	}
	return bad >= LEAST && real >= LEAST;
}

/* Scores a contender by one rule on the series that were not searched on. */
static bool try_on_rest(struct work *work, const struct contender *contender, struct live_rule rule,
	struct result *out, struct error *error)
{
	work->evaluation.rules[0] = rule;
	work->evaluation.rule_count = 1;
	return evaluate_contender(&work->evaluation, contender, out, error);
}

/* Searches in one half of the group's series and compares in the other. */
static bool search(struct work *work, struct search *out, struct error *error)
{
	const struct settings_group *group = out->group;
	const struct contender *given = &work->contenders[group - work->triaged.groups];
	const struct labelled_series **series =
		arena_array(work->cli->arena, group->count, sizeof(const struct labelled_series *));
	struct evaluation *evaluation = &work->evaluation;
	out->searched = deal(group, series);
	out->tried = group->count - out->searched;
	if (!are_enough(series, out->searched) || !are_enough(series + out->searched, out->tried)) {
		out->why = "too few judgements: each half of the series needs 3 real changes and 3 "
			   "false ones";
		return true;
	}
	use_group(work, group);
	evaluation->series = series;
	evaluation->count = out->searched;
	evaluation->sparse = true;
	if (!tune_judged(evaluation, given, work->cli->arena, &out->tuned, error))
		return false;
	evaluation->sparse = false;
	if (out->tuned.count == 0) {
		out->why = "no tried setting is better";
		return true;
	}
	evaluation->series = series + out->searched;
	evaluation->count = out->tried;
	evaluation->total = evaluation->done = 0;
	out->compared = true;
	if (!try_on_rest(work, given, (struct live_rule){group->detection->confirm, true},
		    &out->given, error) ||
		!try_on_rest(work, &out->tuned.contender, out->tuned.rule, &out->best, error))
		return false;
	if (judged_f1(&out->best.whole.live[0]) <= judged_f1(&out->given.whole.live[0]))
		out->why = "the best setting is no better on the validation series";
	return true;
}

/* The group that a proposal is for. */
struct choice {
	const struct work *work;
	const struct settings_group *group;
};

static bool is_chosen(void *context, const struct test *test, const struct detection *detection)
{
	const struct choice *choice = context;
	const struct triaged *triaged = &choice->work->triaged;
	bool selected = false;
	for (size_t i = 0; i < triaged->test_count && !selected; i++)
		selected = strcmp(triaged->tests[i]->name, test->name) == 0;
	return selected && strcmp(detection_text(&cli_schema, detection, choice->work->cli->arena),
				   choice->group->text) == 0;
}

/* "; missed: a/p99 2026-03-02 00:00 (+4.1%) #7": those the given settings find, or those they do
 * not. */
static void put_missed(struct buf *out, const char *title, const struct search *one, bool before)
{
	const struct live *best = &one->best.whole.live[0], *given = &one->given.whole.live[0];
	size_t count = 0;
	for (size_t i = 0; i < best->outcome_count; i++) {
		const struct judged_outcome *outcome = &best->outcomes[i];
		bool found = false;
		for (size_t k = 0; k < given->outcome_count; k++)
			found |= given->outcomes[k].judgement == outcome->judgement &&
				 given->outcomes[k].announced;
		if (outcome->announced || !judged_real(outcome->judgement->state) ||
			found != before)
			continue;
		if (count++ < NAMES_SHOWN) {
			buf_text(out, count == 1 ? title : ", ");
			put_change(out, outcome->judgement->record);
		}
	}
	if (count > NAMES_SHOWN)
		buf_printf(out, " and %zu more", count - NAMES_SHOWN);
	if (count > 0)
		buf_char(out, '\n');
}

static void put_price(struct buf *out, struct search *one)
{
	struct live *before = &one->given.whole.live[0], *after = &one->best.whole.live[0];
	struct judged was = judged_of(before), is = judged_of(after);
	size_t lost = was.found > is.found ? was.found - is.found : 0;
	size_t bad = was.announced[TRIAGE_FALSE], left = is.announced[TRIAGE_FALSE];
	buf_printf(out,
		"on the %zu validation series: false alarms %zu -> %zu, found %zu -> %zu of %zu, "
		"delay median %zu -> %zu points, alarms where no change is recorded %zu -> %zu\n",
		one->tried, bad, left, was.found, is.found, is.real, live_delay(before, 5),
		live_delay(after, 5), was.other, is.other);
	put_missed(out, "missed: ", one, true);
	put_missed(out, "missed before as well: ", one, false);
	if (lost > 0 && left + lost > bad)
		buf_printf(out,
			"note: it loses %zu real changes and avoids only %zu of the triaged false "
			"alarms\n",
			lost, bad > left ? bad - left : 0);
}

static void put_search_text(struct buf *out, struct search *one)
{
	const struct tuned *tuned = &one->tuned;
	buf_printf(out, "\n%s\n", one->group->text);
	if (tuned->trials > 0)
		buf_printf(out,
			"%zu combinations tried on %zu series: F1 of alarms %.3f as configured, "
			"%.3f at best\n",
			tuned->trials, one->searched, tuned->given_f1, tuned->f1);
	if (one->compared) {
		buf_text(out, "best: ");
		for (size_t i = 0; i < tuned->count; i++)
			buf_printf(out, "%s%s: %s", i ? ", " : "", tuned->settings[i].name,
				tuned->settings[i].value);
		buf_char(out, '\n');
	}
	if (one->proposed)
		return;
	buf_printf(out, "no proposal: %s\n", one->why);
	if (one->compared)
		put_price(out, one);
}

static void put_side(struct buf *out, const char *name, struct result *result)
{
	struct live *live = &result->whole.live[0];
	struct judged judged = judged_of(live);
	json_key(out, name);
	judged_put_json(out, &judged);
	json_put(out, "delay_p50: %zu}", live_delay(live, 5));
}

static void put_search_json(struct buf *out, struct search *one)
{
	json_put(out,
		"{detector: %s, tuned_on: %zu, tried_on: %zu, trials: %zu, proposed: %d bool, "
		"reason: %s, settings: {",
		one->group->text, one->searched, one->tried, one->tuned.trials, one->proposed,
		one->why);
	for (size_t i = 0; i < one->tuned.count; i++)
		json_put_text(out, one->tuned.settings[i].name, one->tuned.settings[i].value);
	buf_char(out, '}');
	if (one->compared) {
		put_side(out, "given", &one->given);
		put_side(out, "best", &one->best);
	}
	buf_char(out, '}');
}

static void put_searches(struct work *work, struct search *searches,
	const struct proposal *proposal, struct buf *out)
{
	size_t count = work->triaged.group_count;
	struct buf diff = {0};
	proposal_put_diff(proposal, &diff);
	if (work->options->output == EVALUATE_JSON) {
		buf_text(out, "{\"tuned\": [");
		for (size_t i = 0; i < count; i++) {
			json_line(out);
			put_search_json(out, &searches[i]);
		}
		buf_text(out, "]");
		json_put(out, "diff: %s}", diff.data);
		buf_char(out, '\n');
		buf_free(&diff);
		return;
	}
	put_unplaced(out, &work->triaged);
	for (size_t i = 0; i < count; i++)
		put_search_text(out, &searches[i]);
	if (diff.length > 0)
		buf_printf(out, "\n%s\nthe price\n", diff.data);
	for (size_t i = 0; i < count; i++)
		if (searches[i].proposed) {
			if (count > 1)
				buf_printf(out, "%s\n", searches[i].group->text);
			put_price(out, &searches[i]);
		}
	buf_free(&diff);
}

static bool tune(struct work *work, struct buf *out, struct error *error)
{
	size_t count = work->triaged.group_count;
	struct search *searches = arena_array(work->cli->arena, count, sizeof *searches);
	const struct config_source source = cli_config_source();
	struct proposal *proposal = proposal_new(work->triaged.config->path, &source, error);
	bool good = proposal != NULL;
	size_t few = 0;
	for (size_t i = 0; i < count && good; i++) {
		searches[i].group = &work->triaged.groups[i];
		good = search(work, &searches[i], error);
		few += searches[i].tuned.trials == 0;
	}
	if (good && few == count)
		good = error_set(error, ERROR_DATA, "--tune: %s", searches[0].why);
	for (size_t i = 0; i < count && good; i++) {
		struct choice choice = {work, searches[i].group};
		struct error problem;
		if (searches[i].why)
			continue;
		searches[i].proposed = proposal_set(proposal, searches[i].tuned.settings,
			searches[i].tuned.count, is_chosen, &choice, &problem);
		if (!searches[i].proposed)
			searches[i].why = arena_strdup(work->cli->arena, problem.text);
	}
	if (good)
		put_searches(work, searches, proposal, out);
	for (size_t i = 0; i < count; i++)
		if (searches[i].compared) {
			result_free(&searches[i].given);
			result_free(&searches[i].best);
		}
	proposal_free(proposal);
	return good;
}

static bool all_groups(struct work *work, struct buf *out, struct error *error)
{
	const struct triaged *triaged = &work->triaged;
	if (triaged->group_count == 0) {
		put_unplaced(out, triaged);
		if (out->data)
			fwrite(out->data, 1, out->length, stderr);
		return error_set(error, ERROR_DATA, "none of the triaged changes can be scored");
	}
	work->contenders =
		arena_array(work->cli->arena, triaged->group_count, sizeof *work->contenders);
	for (size_t i = 0; i < triaged->group_count; i++)
		work->contenders[i] = (struct contender){triaged->groups[i].text,
			detector_find(triaged->groups[i].detection->detector->name),
			triaged->groups[i].detection->options,
			analysis_season(triaged->groups[i].detection),
			analysis_clock(triaged->groups[i].detection)};
	return work->options->tune ? tune(work, out, error) : score(work, out, error);
}

int evaluate_triage(struct cli *cli)
{
	const struct evaluate_options *options = cli->options;
	struct work work = {.cli = cli,
		.options = options,
		.triaged.config = cli_config(cli),
		.evaluation = {
			.jobs = (size_t)options->jobs, .live = true, .progress = cli->progress}};
	struct buf text = {0};
	struct error error;
	if (!work.triaged.config)
		return EXIT_USAGE;
	bool good = load(&work, &error) && all_groups(&work, &text, &error);
	if (good && !options->tune && options->output == EVALUATE_TEXT)
		evaluate_print(&text, true, options->by_class, cli->out);
	else if (good)
		fwrite(text.data, 1, text.length, cli->out);
	int code = good ? work.triaged.code : cli_fail(&error);
	buf_free(&text);
	return code;
}
