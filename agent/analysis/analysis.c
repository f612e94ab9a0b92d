/*
 * Series of one metric are adjacent in a dataset, and so are those of one axis, so the last
 * resolved one is tried first.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/analysis.h"
#include "agent/analysis/hourly.h"
#include "agent/analysis/sampling.h"
#include "agent/base/when.h"
#include "agent/base/zone.h"
#include "detectors/describe.h"
#include "detectors/edivisive/edivisive.h"

const struct detection *analysis_configured(const struct test *test, const struct metric *metric)
{
	for (size_t i = 0; metric && i < test->metric_count; i++)
		if (strcmp(test->metrics[i].name, metric->name) == 0)
			return &test->detections[i];
	return &test->detection;
}

bool analysis_detection(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct metric *metric, const struct setting *settings, size_t setting_count,
	struct detection *out, struct error *error)
{
	const struct detection *base = analysis_configured(test, metric);
	if (detection_overlay(schema, base, settings, setting_count, arena, out, error))
		return true;
	return error_prefix(error, "test \"%s\": ", test->name);
}

bool analysis_is_own(const struct detection *detection)
{
	const struct edivisive_options *options = detection->options;

	return strcmp(detection->detector->name, edivisive_detector.plugin.name) == 0 &&
	       options->profile == EDIVISIVE_DEFAULT;
}

enum season_mode analysis_season(const struct detection *detection)
{
	if (detection->season != SEASON_UNSET)
		return detection->season;
	return analysis_is_own(detection) ? SEASON_AUTO : SEASON_NONE;
}

/* Whether more than half of the points bring another commit or version than the one before. */
static bool is_built_anew(const struct axis *axis)
{
	static const char *const names[] = {"commit", "version"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct column *column = axis_column(axis, names[i]);
		const char *before = NULL;
		size_t builds = 0;

		for (size_t at = 0; column && at < axis->n; at++) {
			const char *value = column->values[at];

			builds += value && (!before || strcmp(value, before) != 0);
			before = value ? value : before;
		}
		if (2 * builds > axis->n)
			return true;
	}
	return false;
}

bool analysis_is_service(const struct detection *detection, const struct findings *findings)
{
	if (detection->kind != KIND_AUTO)
		return detection->kind == KIND_SERVICE;
	return season_is_frequent(&findings->season) && !is_built_anew(findings->series->axis);
}

struct season_clock analysis_clock(const struct detection *detection)
{
	return (struct season_clock){zone_local, detection->zone, detection->holidays};
}

const double *findings_points(const struct findings *findings)
{
	return findings->rest ? findings->rest : findings->series->values;
}

const double *findings_values(struct arena *arena, struct findings *findings)
{
	const struct series *series = findings->series;
	if (!findings->values && findings->season.cycles) {
		double *values = arena_array(arena, series->axis->n, sizeof *values);
		season_remove(&findings->season, series->axis->times, findings_points(findings),
			series->axis->n, values);
		findings->values = values;
	}
	if (!findings->values)
		findings->values = findings_points(findings);
	return findings->values;
}

struct prepared findings_prepared(struct arena *arena, struct findings *findings)
{
	const struct axis *axis = findings->series->axis;
	const double *all = findings_points(findings), *adjusted = findings_values(arena, findings);
	int64_t *times = arena_array(arena, axis->n, sizeof *times);
	double *points = arena_array(arena, axis->n, sizeof *points);
	double *values = arena_array(arena, axis->n, sizeof *values);
	size_t *positions = arena_array(arena, axis->n, sizeof *positions), n = 0;
	for (size_t i = 0; i < axis->n; i++) {
		positions[i] = n;
		if (isnan(all[i]))
			continue;
		times[n] = axis->times[i];
		points[n] = all[i];
		values[n++] = adjusted[i];
	}
	return (struct prepared){times, points, values, positions, n};
}

const double *findings_values_as(
	struct arena *arena, struct findings *findings, struct findings *model)
{
	const struct series *series = findings->series;
	size_t n = series->axis->n;
	double *values;
	if (findings == model)
		return findings_values(arena, findings);
	values = arena_copy(arena, series->values, n, sizeof *values);
	if (model->rule) {
		double *joined = arena_array(arena, n, sizeof *joined);
		control_join(model->control.tolerance, analysis_points(series),
			analysis_points(findings->other), joined);
		control_remove(&model->control, values, joined, n, values);
	}
	if (model->season.cycles)
		season_remove(&model->season, series->axis->times, values, n, values);
	return values;
}

/* How the other series changed at the same place: the step from before the change's place to after
 * it. */
static bool change_of_other(const struct findings *findings, const struct change *change,
	struct arena *arena, struct change *out)
{
	size_t from = 0, to = findings->series->axis->n, n = 0, cut;
	for (size_t i = 0; i < findings->count; i++) { /* between the changes on either side */
		size_t index = findings->changes[i].index;
		if (index < change->index && index > from)
			from = index;
		if (index > change->index && index < to)
			to = index;
	}
	double *values = arena_array(arena, to - from, sizeof *values);
	for (size_t i = from; i < change->place_from; i++)
		if (isfinite(findings->joined[i]))
			values[n++] = findings->joined[i];
	cut = n;
	for (size_t i = change->place_to > from ? change->place_to : from; i < to; i++)
		if (isfinite(findings->joined[i]))
			values[n++] = findings->joined[i];
	if (cut == 0 || cut == n)
		return false;
	describe_step(out, values, NULL, 0, cut, n, 0);
	return out->size_low > 0 || out->size_high < 0;
}

void findings_basis(struct arena *arena, const struct findings *findings,
	const struct change *change, struct announcement *item)
{
	const struct control_rule *rule = findings->rule;
	struct change beside;
	if (!rule)
		return;
	item->basis = !findings->control.used      ? BASIS_UNUSED
		      : rule->mode == CONTROL_LOAD ? BASIS_LOAD
						   : BASIS_RATIO;
	item->other = arena_strdup(arena, rule->name);
	item->other_changed = change && change_of_other(findings, change, arena, &beside);
	item->other_size = item->other_changed ? beside.size : 0;
}

struct points analysis_points(const struct series *series)
{
	return (struct points){series->values, series->axis->times, series->axis->n};
}

void analysis_control(struct arena *arena, const struct control_rule *rule,
	const struct control *control, const struct series *other, struct findings *findings)
{
	const struct series *series = findings->series;
	size_t n = series->axis->n;
	double *joined = arena_array(arena, n, sizeof *joined);
	double *rest = arena_array(arena, n, sizeof *rest);
	control_join(control->tolerance, analysis_points(series), analysis_points(other), joined);
	control_remove(control, series->values, joined, n, rest);
	findings->rule = rule;
	findings->other = other;
	findings->control = *control;
	findings->joined = joined;
	findings->rest = rest;
}

bool analysis_other(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct series *series,
	const struct detection *detection, const struct control_rule **rule,
	const struct series **other, struct error *error)
{
	const char *metric = series->metric ? series->metric->name : series->name;
	*other = NULL;
	*rule = control_of(test, detection, metric);
	if (!*rule)
		return true;
	*other = companions_find(companions, test, *rule, data, series, error);
	if (!*other)
		return error_prefix(error, "series \"%.200s\": ", series->name);
	*other = hourly_other(arena, series, *other);
	return true;
}

struct findings analysis_adjust(struct arena *arena, const struct series *series,
	const struct detection *detection, const struct control_rule *rule,
	const struct series *other, struct scratch *scratch)
{
	struct findings out = {.series = series};
	if (rule) {
		struct control control = control_fit(rule->mode, analysis_points(series),
			analysis_points(other), false, scratch);
		analysis_control(arena, rule, &control, other, &out);
	}
	struct season season = season_fit(analysis_season(detection), analysis_clock(detection), 0,
		findings_points(&out), series->axis->times, series->axis->n, scratch);
	out.season = season;
	out.season.profile =
		arena_copy(arena, season.profile, season.cells, sizeof *season.profile);
	out.season.sundays =
		arena_copy(arena, season.sundays, season.sunday_count, sizeof *season.sundays);
	out.season.swings =
		arena_copy(arena, season.swings, season.swing_count, sizeof *season.swings);
	season_free(&season);
	return out;
}

bool analysis_detect(struct arena *arena, const struct sampling *sampling,
	const struct detection *detection, size_t from, size_t to, struct scratch *scratch,
	struct findings *out, struct error *error)
{
	const struct detector *detector = detector_find(detection->detector->name);
	assert(detector);
	size_t n = to - from, count;
	struct samples samples = sampling_of(sampling, out->series);
	samples.values = findings_values(arena, out) + from;
	samples.n = n;
	samples.excursion = out->season.excursion;
	if (samples.runs)
		samples.runs += from;
	if (samples.hashes)
		samples.hashes += from;
	struct change *found = memory_new(n, sizeof *found);
	bool good =
		detector_run(detector, &samples, detection->options, scratch, found, &count, error);
	count = good ? count : 0;
	struct change *changes = arena_copy(arena, found, count, sizeof *changes);
	for (size_t i = 0; i < count; i++)
		change_shift(&changes[i], (ptrdiff_t)from);
	free(found);
	out->changes = changes;
	out->count = count;
	return good || error_prefix(error, "series \"%.200s\": ", out->series->name);
}

bool analysis_run(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct dataset *data, const struct companions *companions,
	const struct setting *settings, size_t setting_count, struct scratch *scratch,
	struct analysis *out, struct error *error)
{
	struct findings *findings = arena_array(arena, data->count, sizeof *findings);
	struct dataset *judged = arena_alloc(arena, sizeof *judged);
	struct detection detection;
	struct sampling sampling = {0};
	const struct metric *resolved = NULL;
	*judged = (struct dataset){
		arena_array(arena, data->count, sizeof *judged->series), data->count};
	for (size_t s = 0; s < data->count; s++) {
		const struct series *series = &data->series[s];
		if ((s == 0 || series->metric != resolved) &&
			!analysis_detection(arena, schema, test, series->metric, settings,
				setting_count, &detection, error))
			return false;
		resolved = series->metric;
		judged->series[s] = *hourly_series(arena, &detection, series, WHEN_ALWAYS, scratch);
		series = &judged->series[s];
		if (sampling.axis != series->axis &&
			!sampling_read(arena, test, series->axis, &sampling, error))
			return false;
		const struct control_rule *rule;
		const struct series *other;
		if (!analysis_other(arena, test, data, companions, series, &detection, &rule,
			    &other, error))
			return error_prefix(error, "test \"%s\": ", test->name);
		findings[s] = analysis_adjust(arena, series, &detection, rule, other, scratch);
		if (!analysis_detect(arena, &sampling, &detection, 0, series->axis->n, scratch,
			    &findings[s], error))
			return error_prefix(error, "test \"%s\": ", test->name);
	}
	*out = (struct analysis){test, judged, findings};
	return true;
}
