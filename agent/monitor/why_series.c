/*
 * Which series a name means: the name of a series, of a metric that has only one, or a name with
 * some of the labels if only one series has these. A series that is missing at the source may be
 * known to the state.
 */
#include "agent/monitor/why.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/label.h"
#include "agent/base/when.h"
#include "agent/monitor/condition.h"
#include "sources/source.h"

enum { NAMES_SHOWN = 5 };

/* Whether the identity belongs to the metric named before the requested labels, and has these
 * labels. */
static bool has_labels(const char *identity, const char *metric, const char *asked)
{
	size_t length = strcspn(asked, "{"), own = strcspn(identity, "{");

	while (length > 0 && asked[length - 1] == ' ')
		length--;
	return (length == 0 || (own == length && memcmp(identity, asked, own) == 0) ||
		       (metric && strlen(metric) == length &&
			       memcmp(metric, asked, length) == 0)) &&
	       label_has_asked(identity, asked);
}

bool why_means(const struct series *series, const char *name)
{
	const char *metric = series->metric ? series->metric->name : NULL;

	return (metric && strcmp(metric, name) == 0) || has_labels(series->identity, metric, name);
}

/* The series that match, or all. */
static const char *list_names(
	const struct dataset *data, const char *name, bool all, struct arena *arena)
{
	struct buf text = {0};
	const char *list;

	for (size_t i = 0, shown = 0; i < data->count; i++) {
		if (!all && !why_means(&data->series[i], name))
			continue;
		if (shown == NAMES_SHOWN) {
			buf_text(&text, ", ...");
			break;
		}
		buf_printf(&text, "%s%.120s", shown++ ? ", " : "", data->series[i].name);
	}
	list = arena_strndup(arena, text.data ? text.data : "", text.length);
	buf_free(&text);
	return list;
}

const char *why_hint(
	const struct test *test, const struct dataset *data, const char *name, struct arena *arena)
{
	const char **names = arena_array(arena, data->count + test->metric_count, sizeof *names),
		   *near;
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++)
		names[count++] = data->series[i].name;
	for (size_t i = 0; i < test->metric_count; i++)
		names[count++] = test->metrics[i].name;
	near = field_suggest(name, names, count);
	return near ? arena_printf(arena, " (did you mean \"%.120s\"?)", near) : "";
}

static bool has_points(const struct series *series)
{
	for (size_t i = 0; i < series->axis->n; i++)
		if (!isnan(series->values[i]))
			return true;
	return false;
}

/* The text of a source option; NULL if not set. */
static const char *option_of(const struct test *test, const char *name)
{
	const struct field *field = field_find(test->source->fields, name);

	return field && field->type == FIELD_STRING
		       ? *(const char *const *)((const char *)test->options + field->offset)
		       : NULL;
}

/* The query as configured. */
static const char *question_of(const struct test *test, const char *name)
{
	static const char *const options[] = {"query", "target", "prefix", "file"};

	for (size_t i = 0; i < test->metric_count; i++)
		if (test->metrics[i].query &&
			(strcmp(test->metrics[i].name, name) == 0 || test->metric_count == 1))
			return test->metrics[i].query;
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (option_of(test, options[i]))
			return option_of(test, options[i]);
	return test->metric_count > 0 ? test->metrics[0].query : NULL;
}

static void find_health(const struct why_request *request, const char *identity, struct why *why)
{
	for (size_t i = 0; i < request->health.condition_count && !why->condition; i++) {
		const struct condition *condition = &request->health.conditions[i];

		if ((condition->kind == CONDITION_TEST || condition->kind == CONDITION_STALE) &&
			strcmp(condition_name(condition), why->test->name) == 0)
			why->condition = condition;
	}
	for (size_t i = 0; identity && i < request->health.vanished_count; i++)
		if (strcmp(request->health.vanished[i].test, why->test->name) == 0 &&
			strcmp(request->health.vanished[i].series, identity) == 0)
			why->vanished = &request->health.vanished[i];
}

/* Ends without data to examine. `identity`: of the series known to the state, or NULL. */
static bool end_absent(const struct query *query, const struct why_request *request,
	const char *identity, enum why_end end, struct why *why)
{
	int64_t range = source_range(source_find(why->test->source->name), why->test->options);

	why->series = NULL;
	why->end = end;
	why->absent = identity ? identity : request->metric;
	why->question = question_of(why->test, request->metric);
	why->since = query->since != WHEN_ALWAYS ? query->since
		     : range > 0                 ? request->now - range
						 : WHEN_ALWAYS;
	why->until = query->until != WHEN_NEVER ? query->until : request->now;
	why->notice = query->notices.count > 0 ? query->notices.items[0] : NULL;
	why->last = WHEN_ALWAYS;
	for (size_t i = 0; i < request->checkpoints.count; i++)
		if ((!identity || strcmp(request->checkpoints.items[i].series, identity) == 0) &&
			request->checkpoints.items[i].last_point > why->last)
			why->last = request->checkpoints.items[i].last_point;
	find_health(request, identity, why);
	return true;
}

/* A series that the state knows but the answer lacks; NULL if none or several match. */
static const char *known_series(const struct why_request *request, const struct why *why)
{
	const char *one = NULL;

	for (size_t i = 0; i < request->checkpoints.count; i++) {
		const char *identity = request->checkpoints.items[i].series;

		if (strcmp(identity, request->metric) != 0 &&
			!has_labels(identity, NULL, request->metric))
			continue;
		if (one && strcmp(one, identity) != 0)
			return NULL;
		one = identity;
	}
	for (size_t i = 0; !one && i < request->health.vanished_count; i++)
		if (strcmp(request->health.vanished[i].test, why->test->name) == 0 &&
			(strcmp(request->health.vanished[i].series, request->metric) == 0 ||
				has_labels(
					request->health.vanished[i].series, NULL, request->metric)))
			one = request->health.vanished[i].series;
	return one;
}

static bool refuse(struct arena *arena, const struct dataset *data, const char *name, size_t count,
	const struct test *test, struct error *error)
{
	if (count > 0)
		return error_set(error, ERROR_USAGE,
			"metric \"%.100s\" of test \"%s\" has %zu series; name one, or a label "
			"that only it has: %s",
			name, test->name, count, list_names(data, name, false, arena));
	return error_set(error, ERROR_USAGE,
		"test \"%s\" has no metric \"%.100s\"; it has %zu: %s%s", test->name, name,
		data->count, list_names(data, name, true, arena),
		why_hint(test, data, name, arena));
}

bool why_find(struct arena *arena, const struct query *query, const struct why_request *request,
	struct why *why, struct error *error)
{
	const struct dataset *data = &query->data;
	const struct series *one = NULL;
	const char *known;
	bool any = false, configured = false;
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];

		any |= has_points(series);
		if (strcmp(series->name, request->metric) == 0 ||
			strcmp(series->identity, request->metric) == 0) {
			one = series;
			count = 1;
			break;
		}
		if (!why_means(series, request->metric))
			continue;
		one = series;
		count++;
	}
	known = count == 0 ? known_series(request, why) : NULL;
	if (count == 0 && known)
		return end_absent(query, request, known, any ? WHY_ENDED : WHY_NO_DATA, why);
	for (size_t i = 0; i < why->test->metric_count; i++)
		configured |= strcmp(why->test->metrics[i].name, request->metric) == 0;
	if (count == 0 && (data->count == 0 || configured))
		return end_absent(query, request, NULL, WHY_NO_DATA, why);
	if (count != 1)
		return refuse(arena, data, request->metric, count, why->test, error);
	if (!has_points(one))
		return end_absent(query, request, one->identity, WHY_NO_DATA, why);
	why->series = one;
	find_health(request, one->identity, why);
	return true;
}
