/*
 * `regressions`: is the current performance worse than at a baseline? Hunter's comparison, test
 * by test.
 *
 * The baseline is the level around the point that --since selects (the first at or after a date,
 * the last of a version or commit; by default the beginning). The 30 days before it are read
 * too, as its level needs points. It is compared with the level at the end; --last treats the
 * last points as a series of their own, and --branch uses the end of another branch. A branch
 * without --since is compared with the end of the main branch.
 */
#include <math.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/analysis/compare.h"
#include "agent/analysis/timeline.h"
#include "agent/base/log.h"
#include "agent/base/when.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gate.h"
#include "agent/commands/gather.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "agent/report/document.h"
#include "agent/report/report.h"
#include "agent/report/table.h"
#include "detectors/recovery.h"
#include "notifiers/text.h"

/* The p threshold for metrics whose detector has none. */
#define REGRESSION_P_VALUE 0.001

#define EARLIER (INT64_C(30) * 24 * 3600 * 1000) /* ms */

struct regression_flags {
	int output; /* enum cli_output */
	bool ignore_direction;
	const char *base_branch;
};

static const struct field regression_fields[] = {
	OPTION_CHOICE(struct regression_flags, output, "text", cli_list_outputs, "output format"),
	OPTION_BOOL(struct regression_flags, ignore_direction,
		"also count improvements and changes of metrics without a direction"),
	OPTION_STRING(struct regression_flags, base_branch, NULL,
		"baseline of --branch; default: the test's base_branch, else \"main\"",
		.metavar = "NAME"),
	{0},
};

struct regressions_options {
	struct regression_flags flags;
	struct gate_flags gate;
	struct selection_flags selection;
	struct detection_flags detection;
};

static const struct option_part regressions_parts[] = {
	{regression_fields, offsetof(struct regressions_options, flags)},
	{gate_fields, offsetof(struct regressions_options, gate)},
	{range_fields, offsetof(struct regressions_options, selection)},
	{selection_fields, offsetof(struct regressions_options, selection)},
	{detection_flag_fields, offsetof(struct regressions_options, detection)},
	{0},
};

struct regression {
	const struct series *before, *after; /* the same one, unless branches are compared */
	struct comparison comparison;
	const struct change *trend; /* the trend that made it worse, or NULL */
	struct announcement item;   /* where it happened, and by which other series it was judged */
	bool neither;               /* not worse or better: without a direction it does not count */
	const char *accepted;       /* why it does not count, or NULL */
	const char *blocking; /* the changes for which it counts, although others are accepted */
};

/* The result of the comparison of one test. */
struct comparisons {
	struct regression *worse;
	size_t count, compared; /* compared: metrics that have enough data for it */
	struct gate_lacks lacks;
};

struct regressions {
	struct command_context ask;
	const struct regression_flags *flags;
	struct gate *gate;
	const struct gather *gather;
	/* Reported so far. */
	size_t tests, regressed; /* regressed: those with regressions */
	size_t accepted;         /* regressions that do not count */
	size_t changed;          /* changes of metrics without a direction, which do not count */
	struct buf failed;       /* JSON: the tests that failed */
};

/* ---- the report: as text it is Hunter's, since scripts parse it, except for units and "new" ----
 */

static const char *const csv_columns[] = {"test", "metric", "time", "direction", "unit",
	"commit_before", "commit_after", "kind", "level_before", "level_after", "size", "size_low",
	"size_high", "forward_change_percent", "pvalue", "regression", "accepted", NULL};

/* "2026-02-18 00:00 15ce8e36..a60027ff": the time, and the suspects. */
static void print_place(const struct announcement *item, FILE *out)
{
	char time[WHEN_TEXT], scratch[2][TABLE_SCRATCH];
	const char *before, *after;

	announcement_range(item, &before, &after);
	before = table_commit(before, scratch[0]);
	after = table_commit(after, scratch[1]);
	text_line(out, "        %.16s%s%s%s%s", when_format(item->time, time),
		before || after ? "  " : "", before ? before : "", before && after ? ".." : "",
		after ? after : "");
}

static void print_regression(const struct regression *worse, FILE *out)
{
	const struct comparison *comparison = &worse->comparison;
	const struct metric *metric = worse->before->metric;
	struct buf basis = {0};

	fputs("    ", out);
	text_print_padded(worse->before->name, 16, out);
	fputs(": ", out);
	text_print_level(comparison->level_before, metric ? metric->unit : NULL, out);
	fputs(" --> ", out);
	text_print_level(comparison->level_after, metric ? metric->unit : NULL, out);
	putc(' ', out);
	if (worse->trend)
		report_put_trend(&basis, worse->after, worse->trend);
	else
		text_print_size(comparison->size, comparison->size_low, comparison->size_high, out);
	text_basis(&basis, &worse->item, &text_plain);
	text_flush(&basis, out);
	if (worse->neither)
		fputs(" changed: the metric has no direction", out);
	if (worse->accepted || worse->blocking) {
		fputs(worse->accepted ? " accepted: " : " not accepted: ", out);
		text_print(worse->accepted ? worse->accepted : worse->blocking, out);
	}
	putc('\n', out);
}

static void put_level(
	struct buf *out, const char *key, const struct series *series, const struct level *level)
{
	const int64_t *times = series->axis->times;

	json_key(out, key);
	json_put(out, "{first: %jd time, last: %jd time, count: %zu, mean: %g, stddev: %g}",
		times[level->span.from], times[level->span.to - 1], level->count, level->mean,
		level->stddev);
}

static void put_regression(struct buf *out, const struct regression *worse)
{
	const struct comparison *comparison = &worse->comparison;
	const struct metric *metric = worse->before->metric;
	const char *before, *after;

	announcement_range(&worse->item, &before, &after);
	json_put(out,
		"\n{metric: %s, direction: %d, unit: %s, forward_change_percent: %g, pvalue: %g, "
		"level_before: %g,"
		" level_after: %g, size: %g, size_low: %g, size_high: %g, kind: %s, time: %jd time,"
		" commit_before: %s, commit_after: %s, regression: %d bool, accepted: %s",
		worse->before->name, series_direction(worse->before), metric ? metric->unit : NULL,
		comparison->percent, comparison->pvalue, comparison->level_before,
		comparison->level_after, comparison->size, comparison->size_low,
		comparison->size_high, change_kind_names[worse->trend ? CHANGE_TREND : CHANGE_STEP],
		worse->item.time, before, after, !worse->neither, worse->accepted);
	announcement_put_basis(out, &worse->item);
	put_level(out, "before", worse->before, &comparison->before);
	put_level(out, "after", worse->after, &comparison->after);
	buf_char(out, '}');
}

static void print_json(
	const struct regressions *regressions, const char *test, const struct comparisons *found)
{
	struct buf out = {0};

	buf_text(&out, regressions->tests ? ",\n  " : "\n  ");
	json_put(&out, "{name: %s, compared: %zu, regressions: [", test, found->compared);
	for (int neither = 0; neither < (regressions->ask.otava ? 1 : 2); neither++) {
		buf_text(&out, neither ? "], \"changed\": [" : "");
		for (size_t i = 0; i < found->count; i++)
			if (found->worse[i].neither == neither)
				put_regression(&out, &found->worse[i]);
	}
	buf_text(&out, "]}");
	text_flush(&out, regressions->ask.cli->out);
}

static void print_test(
	const struct regressions *regressions, const char *test, const struct comparisons *found)
{
	FILE *out = regressions->ask.cli->out;
	int output = regressions->flags->output;

	if (output == OUTPUT_JSON) {
		print_json(regressions, test, found);
		return;
	}
	if (output == OUTPUT_TEXT) {
		text_line(out, "%s:%s", test, found->count > 0 ? "" : " OK");
	}
	for (size_t i = 0; i < found->count; i++) {
		struct buf row = {0};

		if (output == OUTPUT_CSV) {
			put_regression(&row, &found->worse[i]);
			document_csv_row(test, row.data, csv_columns, out);
			buf_free(&row);
		} else {
			print_regression(&found->worse[i], out);
			if (!regressions->ask.otava)
				print_place(&found->worse[i].item, out);
		}
	}
}

static void add_test(
	struct regressions *regressions, const char *test, const struct comparisons *found)
{
	size_t accepted = 0, changed = 0;

	print_test(regressions, test, found);
	for (size_t i = 0; i < found->count; i++) {
		accepted += found->worse[i].accepted && !found->worse[i].neither;
		changed += found->worse[i].neither;
	}
	regressions->tests++;
	regressions->accepted += accepted;
	regressions->changed += changed;
	regressions->regressed += found->count > accepted + changed;
}

static void print_text_end(const struct regressions *regressions)
{
	FILE *out = regressions->ask.cli->out;
	size_t regressed = regressions->regressed;
	bool failed = regressions->failed.length > 0;

	if (regressed == 0 && failed && !regressions->ask.otava)
		fputs(regressions->tests ? "No regression in the tests that could be compared\n"
					 : "",
			out);
	else if (regressed == 0 && (regressions->tests > 0 || !failed))
		fputs("No regressions found!\n", out);
	else if (regressed > 0)
		fprintf(out, "Regressions in %zu test%s found\n", regressed, cli_plural(regressed));
	if (regressions->changed > 0)
		fprintf(out,
			"%zu change%s of metrics without a direction (counted with "
			"--ignore-direction)\n",
			regressions->changed, cli_plural(regressions->changed));
	gate_print(regressions->accepted, out);
}

static void finish(struct regressions *regressions)
{
	FILE *out = regressions->ask.cli->out;

	if (regressions->flags->output == OUTPUT_JSON) {
		fprintf(out, "%s], \"regressed\": %zu", regressions->tests ? "\n" : "",
			regressions->regressed);
		if (!regressions->ask.otava)
			fprintf(out, ", \"accepted\": %zu", regressions->accepted);
		fprintf(out, ", \"failed\": [%s]}\n",
			regressions->failed.length ? regressions->failed.data : "");
	} else if (regressions->flags->output == OUTPUT_TEXT) {
		print_text_end(regressions);
	}
	buf_free(&regressions->failed);
}

/* ---- a test, on a worker ---- */

/* The result of one task. */
struct half {
	const struct regressions *regressions;
	bool compared;          /* compares a branch with the main one, each in a task of its own */
	bool is_branch;         /* the branch's task of the two */
	struct analysis base;   /* of the main branch's task, or the only one */
	struct analysis target; /* compared with `base`; in the branch's task, if there is one */
	const size_t *points; /* for each series of the base: the index of the baseline; the series'
				 length means the end */
};

static bool analyze(struct task *task, const struct half *half, const struct dataset *data,
	struct scratch *scratch, struct analysis *out, struct error *error)
{
	const struct command_context *ask = &half->regressions->ask;
	size_t points = 0;

	for (size_t s = 0; s < data->count; s++)
		points += data->series[s].axis->n;
	if (points == 0)
		return command_lacks_data(task, error);
	return analysis_run(task->query.arena, ask->schema, task->test, data, task->companions,
		ask->settings, ask->setting_count, scratch, out, error);
}

/* Finds the baseline of each series: an index, or the length for the level at the end. */
static bool find_baseline(struct task *task, const struct half *half, const struct dataset *data,
	const size_t **out, struct error *error)
{
	const struct selection *selection = &half->regressions->ask.selection;
	struct select_mark resolved;
	const struct select_mark *mark = &resolved;
	if (!mark_resolve(&selection->from, task->test->name, data, &resolved, error))
		return false;
	size_t *points = arena_array(task->query.arena, data->count, sizeof *points);
	int64_t since =
		task->query.since == WHEN_ALWAYS ? WHEN_ALWAYS : task->query.since + EARLIER;
	if (mark->attribute && !mark_time(mark, data, true, &since))
		return mark_missing(mark, task->test->name, data, error);
	for (size_t s = 0; s < data->count; s++) {
		const struct axis *axis = data->series[s].axis;
		if (!mark->attribute && selection->since == WHEN_ALWAYS && half->compared)
			points[s] = axis->n;
		else if (!mark->attribute || !mark_find(mark, axis, true, &points[s]))
			points[s] = axis_lower_bound(axis, since);
	}
	*out = points;
	return true;
}

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	struct half *half = task->result;
	struct query *query = &task->query;
	const struct selection *asked = &half->regressions->ask.selection;
	struct selection selection = *asked;
	selection.from = (struct select_mark){0};
	selection.last = 0;
	if (half->compared && !half->is_branch)
		selection.to = (struct select_mark){0};
	if (!selection_apply(&selection, task->test->name, query->arena, &query->data, error))
		return false;
	if (half->is_branch)
		return analyze(task, half, &query->data, scratch, &half->target, error);

	if (!analyze(task, half, &query->data, scratch, &half->base, error) ||
		!find_baseline(task, half, &query->data, &half->points, error))
		return false;
	half->target = half->base;
	return true;
}

/* A source with the option base_branch holds all branches, and needs the main one's name, "main"
 * by default. NULL: the test's data without a branch. */
static const char *main_branch(const struct regressions *regressions, const struct test *test)
{
	const char *configured = test_option(test, "base_branch");
	if (regressions->flags->base_branch)
		return regressions->flags->base_branch;
	if (configured)
		return configured;
	return test->options && field_find(test->source->fields, "base_branch") ? "main" : NULL;
}

/* Two for a branch that is compared with the main one. The main branch is not compared with itself:
 * the request is handled as for a test without branches. With a branch_prefix, "main" is at another
 * place than the test's own data. */
static size_t count_parts(const void *context, const struct test *test)
{
	const struct regressions *regressions = context;
	const char *branch = regressions->ask.selection.branch;
	const char *main = main_branch(regressions, test);

	if (!main && !test_option(test, "branch_prefix"))
		main = "main";
	return branch && (!main || strcmp(branch, main) != 0) ? 2 : 1;
}

static void prepare(void *context, struct task *task)
{
	struct regressions *regressions = context;
	struct query *query = &task->query;
	struct half *half = arena_alloc(query->arena, sizeof *half);

	*half = (struct half){.regressions = regressions,
		.compared = count_parts(regressions, task->test) > 1,
		.is_branch = regressions->gather->part == 1};
	selection_query(&regressions->ask.selection, task->test, query);
	if (!half->is_branch) {
		if (half->compared)
			query->branch = main_branch(regressions, task->test);
		if (query->since != WHEN_ALWAYS)
			query->since -= EARLIER;
	}
	task->result = half;
	task->work = work;
}

/* ---- the comparison ---- */

static struct findings *find_series(const struct analysis *analysis, const char *name)
{
	for (size_t s = 0; s < analysis->data->count; s++)
		if (strcmp(analysis->data->series[s].name, name) == 0)
			return &analysis->findings[s];
	return NULL;
}

static double threshold_of(const struct command_context *ask, const struct test *test,
	const struct metric *metric, struct arena *arena)
{
	struct detection detection;
	struct error error;
	if (!analysis_detection(arena, ask->schema, test, metric, ask->settings, ask->setting_count,
		    &detection, &error))
		return REGRESSION_P_VALUE; /* impossible: the same settings were applied before */
	const struct field *field = field_find(detection.detector->fields, "p_value");
	if (!field || field->type != FIELD_DOUBLE)
		return REGRESSION_P_VALUE;
	return *(const double *)(const void *)((const char *)detection.options + field->offset);
}

/* The reason why the series cannot be compared, or NULL; `since`: the index of the baseline in the
 * series that is compared with it. */
static const char *missing_of(struct arena *arena, const struct comparison *comparison,
	const struct series *series, size_t since, double threshold)
{
	size_t before = comparison->before.count, after = comparison->after.count;
	const char *more = cli_plural(before);

	while (since < series->axis->n && !isfinite(series->values[since]))
		since++;
	if (before == 0)
		return "no values at the baseline";
	if (after == 0 || since == series->axis->n)
		return "no values since the baseline";
	if (comparison->pvalue < threshold || comparison->df >= COMPARE_LEAST)
		return NULL;
	if (comparison->one)
		return arena_printf(arena, "%zu point%s", before, more);
	return arena_printf(
		arena, "%zu point%s at the baseline and %zu to compare", before, more, after);
}

/* The change that the span starts with, or NULL. */
static const struct change *change_to(const struct findings *found, struct compare_span span)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->changes[i].index == span.from)
			return &found->changes[i];
	return NULL;
}

/* Whether a change worsened the second level: it lies between the two, and its effect lasts. */
static bool is_cause(struct arena *arena, struct findings *found,
	const struct comparison *comparison, size_t which)
{
	const struct change *change = &found->changes[which];
	struct recovery recovery;

	if (change->index < comparison->before.span.to ||
		change_sign(change) * comparison->size < 0)
		return false;
	recovery = recovery_by_changes(findings_values(arena, found), found->series->axis->n,
		found->changes, found->count, which);
	return recovery.verdict != RECOVERY_OVER;
}

/* "2026-02-18 00:00 0abc0030 +26.1%" */
static void put_change(struct buf *out, const struct series *series, const struct change *change)
{
	const char *commit = change_attribute(series, change, "commit");
	char time[WHEN_TEXT];

	buf_printf(out, "%s%.16s", out->length > 0 ? ", " : "",
		when_format(series->axis->times[change->index], time));
	if (commit)
		buf_printf(out, " %s", commit);
	if (isfinite(change->size))
		buf_printf(out, " %+.1f%%", change->size);
}

/* The largest change that made it worse, or NULL: none that was found. If all of them are accepted,
 * sets the reason of the last one; if only some are, names the others. */
static const struct change *judge_causes(
	struct arena *arena, struct findings *found, struct regression *worse)
{
	const struct change *largest = NULL;
	const char *accepted = NULL;
	struct buf blocking = {0};

	for (size_t i = 0; i < found->count; i++) {
		const struct change *change = &found->changes[i];
		const char *reason = change_accepted(found, change);

		if (!is_cause(arena, found, &worse->comparison, i))
			continue;
		if (!largest || fabs(change->level_after - change->level_before) >
					fabs(largest->level_after - largest->level_before))
			largest = change;
		if (reason)
			accepted = reason;
		else
			put_change(&blocking, found->series, change);
	}
	if (accepted && blocking.length > 0)
		worse->blocking = arena_strdup(arena, blocking.data);
	else
		worse->accepted = accepted;
	buf_free(&blocking);
	return largest;
}

static bool is_neither(const struct regressions *regressions, const struct series *series)
{
	return series_direction(series) == 0 && !regressions->flags->ignore_direction;
}

static void add_regression(const struct regressions *regressions, const struct task *task,
	struct findings *base, struct findings *other, const struct comparison *comparison,
	struct comparisons *out)
{
	const struct half *half = task->result;
	const struct test *test = task->test;
	struct arena *arena = task->query.arena;
	struct regression *worse = &out->worse[out->count++];
	const struct change *last = change_to(other, comparison->after.span), *cause = NULL;
	size_t from = comparison->after.span.from, to = comparison->after.span.to - 1;
	/* The difference of the levels as a change, which lies anywhere in the compared level. */
	const struct change whole = {.index = from,
		.level_before = comparison->level_before,
		.level_after = comparison->level_after,
		.size = comparison->size,
		.size_low = comparison->size_low,
		.size_high = comparison->size_high,
		.place_from = from,
		.place_to = to,
		.cause_from = from,
		.cause_to = to};

	*worse = (struct regression){.before = base->series,
		.after = other->series,
		.comparison = *comparison,
		.trend = last && last->kind == CHANGE_TREND ? last : NULL,
		.neither = is_neither(regressions, base->series)};
	if (!half->compared)
		cause = judge_causes(arena, base, worse);
	worse->item = announce_change(
		arena, test->name, test->environment, other->series, cause ? cause : &whole);
	findings_basis(arena, other, last, &worse->item);
	if (half->compared) { /* the last good commit is that of the baseline's last run */
		const struct column *commits = axis_column(base->series->axis, "commit");
		size_t end = comparison->before.span.to;

		worse->item.suspects.known &= worse->item.suspects.timed;
		worse->item.commit_before = worse->item.place_commit_before =
			commits && end > 0 ? arena_strdup(arena, commits->values[end - 1]) : NULL;
	}
	if (!cause)
		worse->accepted = gate_judge_span(regressions->gate, arena, test, other, &whole);
}

/*
 * The level at the baseline and the one at the end, of which --last takes the last points. Within
 * one level of one series nothing differs; the points that are compared are no baseline.
 */
static struct comparison compare_levels(const struct regressions *regressions, struct arena *arena,
	struct findings *base, size_t point, struct findings *other)
{
	size_t n = other->series->axis->n, last = regressions->ask.selection.last;
	struct compare_span before = stable_span(base, point), after = stable_span(other, n);
	struct comparison out;

	if (last > 0 && n - after.from > last)
		after.from = n - last;
	if (other == base && before.from < after.from && before.to > after.from)
		before.to = after.from;
	out = compare_spans(findings_values(arena, base), before,
		findings_values_as(arena, other, base), after);
	out.one = other == base && before.from >= after.from;
	if (out.one)
		out.df = (double)out.before.count - 2;
	return out;
}

static void compare_series(const struct regressions *regressions, const struct task *task,
	struct findings *base, size_t point, struct findings *other, struct comparisons *out)
{
	struct arena *arena = task->query.arena;
	const struct metric *metric = base->series->metric;
	double threshold = threshold_of(&regressions->ask, task->test, metric, arena);
	struct comparison comparison = compare_levels(regressions, arena, base, point, other);
	int direction = regressions->flags->ignore_direction ? 0 : series_direction(base->series);
	bool neither = is_neither(regressions, base->series), after = comparison.after.count == 1;
	const char *missing =
		missing_of(arena, &comparison, other->series, other == base ? point : 0, threshold);
	struct comparison plain = comparison;
	struct buf text = {0};

	plain.pvalue = comparison.plain_pvalue;
	if (!missing && !(regressions->ask.otava && neither) &&
		comparison_is_regression(neither ? &comparison : &plain, direction, threshold)) {
		struct regression *worse = &out->worse[out->count];

		add_regression(regressions, task, base, other, &comparison, out);
		if (!regressions->ask.otava && !worse->accepted && comparison.pvalue >= threshold) {
			buf_printf(&text, "1 point%s, ", after ? "" : " at the baseline");
			text_level(&text, after ? comparison.level_after : comparison.level_before);
			buf_printf(&text, "%s%s, possibly an outlier: one more point is needed",
				metric && metric->unit ? " " : "",
				metric && metric->unit ? metric->unit : "");
			missing = buf_keep(&text, arena);
			out->count--;
		}
	}
	gate_lack(&out->lacks, base->series, missing);
	if (missing)
		log_event(LEVEL_WARN, "cannot compare metric", LOG_TEXT("test", task->test->name),
			LOG_TEXT("metric", base->series->name), LOG_TEXT("missing", missing));
	out->compared += !missing;
}

static struct comparisons compare(const struct regressions *regressions, const struct task *task,
	const struct half *main, const struct analysis *target)
{
	struct arena *arena = task->query.arena;
	const struct dataset *data = main->base.data;
	struct comparisons out = {.worse = arena_array(arena, data->count, sizeof *out.worse),
		.lacks = {.arena = arena}};

	for (size_t s = 0; s < data->count; s++) {
		struct findings *base = &main->base.findings[s];
		struct findings *other = find_series(target, base->series->name);

		if (other)
			compare_series(regressions, task, base, main->points[s], other, &out);
		else
			gate_lack(&out.lacks, base->series, "no values on the branch");
	}
	return out;
}

/* Whether all points are among those of the base: a source without branches gives the same data for
 * each, which would always be "OK". */
static bool is_same_data(const struct analysis *target, const struct analysis *base)
{
	for (size_t s = 0; s < target->data->count; s++) {
		const struct series *series = &target->data->series[s], *whole;
		const struct axis *axis = series->axis;
		struct findings *found = find_series(base, series->name);
		size_t from = 0;

		if (!found)
			return false;
		whole = found->series;
		if (axis->n > 0)
			from = axis_lower_bound(whole->axis, axis->times[0]);
		if (axis->n > whole->axis->n - from ||
			memcmp(axis->times, whole->axis->times + from,
				axis->n * sizeof *axis->times) != 0 ||
			memcmp(series->values, whole->values + from,
				axis->n * sizeof *series->values) != 0)
			return false;
	}
	return true;
}

static void ready(void *context, struct task *const *tasks)
{
	struct regressions *regressions = context;
	struct task *last = tasks[1] ? tasks[1] : tasks[0];
	const struct half *main = tasks[0]->result, *other = last->result;
	struct comparisons found = {0};

	if (tasks[1] && !tasks[0]->failed && !last->failed &&
		is_same_data(&other->target, &main->base))
		last->failed = !error_set(&last->error, ERROR_DATA,
			"branch \"%s\" has the same data as the main branch: the configuration "
			"does not use the branch, or it is the main branch; name the main branch "
			"with --base-branch",
			regressions->ask.selection.branch);
	if (tasks[1] && tasks[0]->failed && !regressions->flags->base_branch &&
		!test_option(last->test, "base_branch"))
		error_prefix(&tasks[0]->error,
			"main branch (base_branch of the test, or --base-branch): ");
	if (!tasks[0]->failed && !last->failed) {
		gate_judge(regressions->gate, tasks[0]->query.arena, tasks[0]->query.branch,
			&main->base);
		found = compare(regressions, tasks[0], main, &other->target);
		last->failed = (!regressions->ask.otava || found.compared == 0) &&
			       !gate_has_enough(&found.lacks, last->test, &last->error);
	}
	for (size_t part = 0; part < GATHER_PARTS && tasks[part]; part++)
		if (!gather_log(tasks[part])) {
			report_put_failure(
				&regressions->failed, last->test->name, tasks[part]->error.text);
			if (found.count == 0)
				return;
		}
	add_test(regressions, last->test->name, &found);
}

static int run(struct cli *cli)
{
	const struct regressions_options *options = cli->options;
	struct regressions regressions = {.flags = &options->flags};
	struct error error;
	int code;

	if (!command_context_prepare(&regressions.ask, cli, &options->selection,
		    &options->detection, &options->gate.known_changes, &code))
		return code;
	struct gather gather = {.tests = regressions.ask.tests,
		.count = regressions.ask.count,
		.parts = count_parts,
		.config = regressions.ask.config,
		.prepare = prepare,
		.judges = true,
		.ready = ready,
		.context = &regressions};
	regressions.gather = &gather;
	regressions.gate = gate_new(&options->gate, &regressions.ask, &error);
	if (!regressions.gate)
		return cli_fail(&error);
	if (options->flags.output == OUTPUT_JSON)
		fputs("{\"tests\": [", cli->out);
	else if (options->flags.output == OUTPUT_CSV)
		document_csv_header(csv_columns, cli->out);
	gather_run(&gather, cli);
	finish(&regressions);
	if (regressions.regressed > 0)
		gather.code = exit_stronger(gather.code, EXIT_REGRESSIONS);
	return gather.code;
}

const struct command regressions_command = {
	.name = "regressions",
	.arguments = "[TEST|GROUP...]",
	.summary = "Compare current performance with a baseline",
	.details = "Compares the level at the end of each series with a baseline: the level at the "
		   "first point at or after --since, or at the last point of --since-commit or "
		   "--since-version; by default the first level. A level is all points between two "
		   "change points; a level of few points uses the variance of the other.\n"
		   "\n"
		   "--last N compares only the last N points. --branch compares the end of that "
		   "branch with the main branch: with its end, or with the baseline of --since. "
		   "The main branch is compared with its own baseline.\n"
		   "\n"
		   "Accepted changes do not count: those of known_changes in the configuration or "
		   "of --known-changes, and those triaged in the state of --state or the agent of "
		   "--agent. The last line is their number.\n"
		   "\n"
		   "Exits with 4 if that state or agent is unavailable, else with 1 on a "
		   "regression, else with 3 if a test cannot be read or has too few points.",
	.parts = regressions_parts,
	.options_size = sizeof(struct regressions_options),
	.run = run,
};
