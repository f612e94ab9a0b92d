/*
 * Flags are kept as text until the clock is known, and then resolved to a struct selection, which
 * no longer depends on it.
 *
 * Bounds by commit or version are found in the data: --since-commit starts at the first point of
 * that commit, --until-commit ends after its last. Series on an axis without the commit are cut at
 * the time of the axes that have it.
 */
#include "agent/analysis/select.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/analysis/timeline.h"
#include "agent/base/when.h"

const struct field range_fields[] = {
	OPTION_STRING(struct selection_flags, since, NULL,
		"use points since this time: '6 weeks', yesterday, 2026-01-02, ISO 8601",
		.metavar = "DATE"),
	OPTION_STRING(struct selection_flags, until, NULL, "use points before this time",
		.metavar = "DATE"),
	OPTION_STRING(struct selection_flags, branch, NULL,
		"use results of this branch; default: $BRANCH", .variable = "BRANCH",
		.metavar = "NAME"),
	{0},
};

const struct field selection_fields[] = {
	OPTION_STRING(struct selection_flags, since_commit, NULL, "use points since this commit",
		.metavar = "COMMIT"),
	OPTION_STRING(struct selection_flags, since_version, NULL, "use points since this version",
		.metavar = "VERSION"),
	OPTION_STRING(struct selection_flags, until_commit, NULL,
		"use points up to and including this commit", .metavar = "COMMIT"),
	OPTION_STRING(struct selection_flags, until_version, NULL,
		"use points up to and including this version", .metavar = "VERSION"),
	OPTION_INT(struct selection_flags, last, NULL, 1, 1e9,
		"use only the last N of these points", .metavar = "N"),
	OPTION_LIST(struct selection_flags, metrics, "use only these metrics, in this order",
		.metavar = "LIST"),
	OPTION_LIST(struct selection_flags, attrs,
		"show these attributes of the points, in this order", .alias = "attributes",
		.metavar = "LIST"),
	{0},
};

/* One end of the range: a date, or else a commit or version. */
static bool read_end(const char *flag, const char *date, const char *commit, const char *version,
	int64_t now, int64_t *time, struct select_mark *mark, struct error *error)
{
	if ((date != NULL) + (commit != NULL) + (version != NULL) > 1)
		return error_set(error, ERROR_USAGE,
			"only one of --%s, --%s-commit and --%s-version can be given", flag, flag,
			flag);
	if (commit)
		*mark = (struct select_mark){"commit", commit};
	else if (version)
		*mark = (struct select_mark){"version", version};
	if (!date || when_parse(date, now, time, error))
		return true;
	error->kind = ERROR_USAGE;
	return error_prefix(error, "--%s: ", flag);
}

bool selection_resolve(const struct selection_flags *flags, int64_t now, struct selection *out,
	struct error *error)
{
	*out = (struct selection){
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER,
		.last = (size_t)flags->last,
		.branch = flags->branch && *flags->branch ? flags->branch : NULL,
		.metrics = flags->metrics,
		.attributes = flags->attrs,
	};
	if (!read_end("since", flags->since, flags->since_commit, flags->since_version, now,
		    &out->since, &out->from, error) ||
		!read_end("until", flags->until, flags->until_commit, flags->until_version, now,
			&out->until, &out->to, error))
		return false;
	if (out->since <= out->until)
		return true;
	char since[WHEN_TEXT], until[WHEN_TEXT];
	return error_set(error, ERROR_USAGE, "invalid time range: --since %s is after --until %s",
		when_format(out->since, since), when_format(out->until, until));
}

/* Whether the configuration names all metrics that the test can have. */
static bool knows_metrics(const struct test *test)
{
	return test->metric_count > 0 && !(test->source && test->source->endpoint);
}

/* Reports an unknown metric, with the most similar existing name. */
static bool unknown_metric(const char *test, const char *name, const char *const *names,
	size_t count, struct error *error)
{
	error_set(error, ERROR_USAGE, "no metric \"%s\"", name);
	if (test)
		error_prefix(error, "test \"%s\": ", test);
	return field_hint(error, name, names, count);
}

bool selection_check(const struct selection *selection, const struct test *const *tests,
	size_t count, struct error *error)
{
	for (size_t i = 0; i < selection->metrics.count; i++) {
		const char *name = selection->metrics.items[i];
		bool found = count == 0;
		size_t known = 0;
		for (size_t t = 0; t < count; t++) {
			known += tests[t]->metric_count;
			found = found || !knows_metrics(tests[t]) || test_metric(tests[t], name);
		}
		if (found)
			continue;
		const char **names = memory_new(known, sizeof *names);
		known = 0;
		for (size_t t = 0; t < count; t++)
			for (size_t m = 0; m < tests[t]->metric_count; m++)
				names[known++] = tests[t]->metrics[m].name;
		unknown_metric(count == 1 ? tests[0]->name : NULL, name, names, known, error);
		free(names);
		return false;
	}
	return true;
}

bool selection_matches(const struct selection *selection, const struct test *test)
{
	if (selection->metrics.count == 0 || !knows_metrics(test))
		return true;
	for (size_t i = 0; i < selection->metrics.count; i++)
		if (test_metric(test, selection->metrics.items[i]))
			return true;
	return false;
}

void selection_query(
	const struct selection *selection, const struct test *test, struct query *query)
{
	const struct plugin *source = test->source;
	query->since = selection->since;
	query->until = selection->until;
	/* A server (0: a source that is not supported) whose range has no default of its own */
	if (query->since == WHEN_ALWAYS && source && source->server_size > 0 &&
		!(source->fields && field_find(source->fields, "range")))
		query->since = query->now - SELECTION_SERVER_RANGE;
	query->branch = selection->branch;

	struct metric *metrics =
		arena_array(query->arena, selection->metrics.count, sizeof *metrics);
	size_t count = 0;
	for (size_t i = 0; i < selection->metrics.count; i++) {
		const struct metric *metric = test_metric(test, selection->metrics.items[i]);
		if (metric)
			metrics[count++] = *metric;
		else if (!knows_metrics(test))
			return; /* the source may find a metric of that name: all are read */
	}
	if (count > 0) {
		query->metrics = metrics;
		query->metric_count = count;
	}
}

int64_t selection_standing_since(int64_t now, int64_t range)
{
	int64_t grid = range / 2 > 0 ? range / 2 : 1, since = now - range;
	int64_t beyond = since % grid;

	return since - (beyond < 0 ? beyond + grid : beyond);
}

bool mark_resolve(const struct select_mark *mark, const char *test, const struct dataset *data,
	struct select_mark *out, struct error *error)
{
	enum { LEAST_DIGITS = 4 };
	size_t length = mark->attribute ? strlen(mark->value) : 0;
	const char *one = NULL, *other = NULL;
	const struct axis *seen = NULL;
	*out = *mark;
	if (length < LEAST_DIGITS || strcmp(mark->attribute, "commit") != 0 ||
		strspn(mark->value, "0123456789abcdefABCDEF") != length)
		return true; /* not abbreviated */
	for (size_t s = 0; s < data->count; s++) {
		const struct axis *axis = data->series[s].axis;
		const struct column *column = axis_column(axis, mark->attribute);
		for (size_t i = 0; column && axis != seen && i < axis->n; i++) {
			const char *commit = column->values[i];
			if (!commit || strncasecmp(commit, mark->value, length) != 0)
				continue;
			if (strcmp(commit, mark->value) == 0)
				return true;
			if (one && strcmp(commit, one) != 0)
				other = commit;
			else
				one = commit;
		}
		seen = axis;
	}
	if (other)
		return error_set(error, ERROR_DATA,
			"test \"%s\": commit \"%.80s\" is ambiguous: \"%.80s\" and \"%.80s\" "
			"begin with it; give more digits",
			test, mark->value, one, other);
	out->value = one ? one : mark->value;
	return true;
}

bool mark_find(const struct select_mark *mark, const struct axis *axis, bool last, size_t *index)
{
	const struct column *column = axis_column(axis, mark->attribute);
	if (!column)
		return false;
	for (size_t i = 0; i < axis->n; i++) {
		size_t at = last ? axis->n - 1 - i : i;
		if (column->values[at] && strcmp(column->values[at], mark->value) == 0) {
			*index = at;
			return true;
		}
	}
	return false;
}

bool mark_missing(const struct select_mark *mark, const char *test, const struct dataset *data,
	struct error *error)
{
	const char *names[1000];
	size_t count = 0;
	bool known = false;
	for (size_t s = 0; s < data->count; s++) {
		const struct axis *axis = data->series[s].axis;
		const struct column *column = axis_column(axis, mark->attribute);
		known = known || column;
		for (size_t i = axis->n; column && i > 0 && count < 1000; i--)
			if (column->values[i - 1])
				names[count++] = column->values[i - 1];
	}
	if (!known)
		return error_set(error, ERROR_DATA,
			"test \"%s\": the points have no attribute \"%s\" (\"%s\" requested)", test,
			mark->attribute, mark->value);
	error_set(error, ERROR_DATA, "test \"%s\": no point in the selected range has %s \"%s\"",
		test, mark->attribute, mark->value);
	return field_hint(error, mark->value, names, count);
}

bool mark_time(const struct select_mark *mark, const struct dataset *data, bool last, int64_t *time)
{
	const struct axis *seen = NULL;
	bool found = false;
	for (size_t s = 0; s < data->count; s++) {
		const struct axis *axis = data->series[s].axis;
		size_t index;
		if (axis == seen || !mark_find(mark, axis, last, &index))
			continue;
		seen = axis;
		int64_t at = axis->times[index];
		if (!found || (last ? at > *time : at < *time))
			*time = at;
		found = true;
	}
	return found;
}

/* Cuts every axis at the mark: before its first point, or after its last. */
static bool cut_at_mark(const struct select_mark *asked, bool last, const char *test,
	struct dataset *data, struct axis *const *axes, size_t count, struct error *error)
{
	int64_t time = 0;
	struct select_mark resolved;
	const struct select_mark *mark = &resolved;
	if (!asked->attribute)
		return true;
	if (!mark_resolve(asked, test, data, &resolved, error))
		return false;
	if (!mark_time(mark, data, last, &time))
		return mark_missing(mark, test, data, error);
	for (size_t a = 0; a < count; a++) {
		struct axis *axis = axes[a];
		size_t index;
		if (!mark_find(mark, axis, last, &index))
			index = axis_lower_bound(axis, last ? time + 1 : time);
		else if (last)
			index++;
		if (last)
			dataset_keep(data, axis, 0, index);
		else
			dataset_keep(data, axis, index, axis->n);
	}
	return true;
}

/* Keeps the selected series, in the requested order. */
static bool keep_metrics(const struct selection *selection, const char *test, struct arena *arena,
	struct dataset *data, struct error *error)
{
	struct series *kept = arena_array(arena, data->count, sizeof *kept);
	bool *taken = arena_array(arena, data->count, sizeof *taken);
	size_t count = 0;
	for (size_t i = 0; i < selection->metrics.count; i++)
		for (size_t s = 0; s < data->count; s++) {
			const struct series *series = &data->series[s];
			const char *name = selection->metrics.items[i];
			if (taken[s] || (strcmp(series->name, name) != 0 &&
						!(series->metric &&
							strcmp(series->metric->name, name) == 0)))
				continue;
			kept[count++] = *series;
			taken[s] = true;
		}
	if (count == 0 && data->count > 0) {
		const char **names = arena_array(arena, data->count, sizeof *names);
		for (size_t s = 0; s < data->count; s++)
			names[s] = data->series[s].name;
		return unknown_metric(test, selection->metrics.items[0], names, data->count, error);
	}
	*data = (struct dataset){kept, count};
	return true;
}

bool selection_apply(const struct selection *selection, const char *test, struct arena *arena,
	struct dataset *data, struct error *error)
{
	if (selection->metrics.count > 0 && !keep_metrics(selection, test, arena, data, error))
		return false;
	size_t count;
	struct axis **axes = dataset_axes(data, arena, &count);
	if (!cut_at_mark(&selection->from, false, test, data, axes, count, error) ||
		!cut_at_mark(&selection->to, true, test, data, axes, count, error))
		return false;
	for (size_t a = 0; a < count; a++)
		if (selection->last > 0 && axes[a]->n > selection->last)
			dataset_keep(data, axes[a], axes[a]->n - selection->last, axes[a]->n);
	return true;
}
