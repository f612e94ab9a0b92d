/*
 * Series of one metric follow each other in a dataset, and those of one axis, so what was resolved
 * last is tried first.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analyze.h"
#include "agent/sampling.h"
#include "detectors/edivisive.h"

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

enum season_mode analysis_season(const struct detection *detection)
{
	if (detection->season != SEASON_UNSET)
		return detection->season;
	if (strcmp(detection->detector->name, edivisive_detector.name) != 0)
		return SEASON_NONE;
	const struct edivisive_options *options = detection->options;
	return options->profile == EDIVISIVE_DEFAULT ? SEASON_AUTO : SEASON_NONE;
}

const double *findings_values(struct arena *arena, struct findings *findings)
{
	const struct series *series = findings->series;
	if (!findings->values && findings->season.cycles) {
		double *values = arena_array(arena, series->axis->n, sizeof *values);
		season_remove(&findings->season, series->axis->times, series->values,
			series->axis->n, values);
		findings->values = values;
	}
	if (!findings->values)
		findings->values = series->values;
	return findings->values;
}

struct findings analysis_adjust(struct arena *arena, const struct series *series,
	const struct detection *detection, struct scratch *scratch)
{
	struct season season = season_fit(analysis_season(detection), detection->zone, 0,
		series->values, series->axis->times, series->axis->n, scratch);
	struct findings out = {.series = series, .season = season};
	out.season.profile = arena_array(arena, season.cells, sizeof *season.profile);
	if (season.cells > 0)
		memcpy(out.season.profile, season.profile, season.cells * sizeof *season.profile);
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
	struct change *changes = arena_array(arena, count, sizeof *changes);
	memcpy(changes, found, count * sizeof *changes);
	for (size_t i = 0; i < count; i++)
		change_shift(&changes[i], (ptrdiff_t)from);
	free(found);
	out->changes = changes;
	out->count = count;
	return good || error_prefix(error, "series \"%.200s\": ", out->series->name);
}

bool analysis_run(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct dataset *data, const struct setting *settings, size_t setting_count,
	struct scratch *scratch, struct analysis *out, struct error *error)
{
	struct findings *findings = arena_array(arena, data->count, sizeof *findings);
	struct detection detection;
	struct sampling sampling = {0};
	const struct metric *resolved = NULL;
	for (size_t s = 0; s < data->count; s++) {
		const struct series *series = &data->series[s];
		if ((s == 0 || series->metric != resolved) &&
			!analysis_detection(arena, schema, test, series->metric, settings,
				setting_count, &detection, error))
			return false;
		resolved = series->metric;
		if (sampling.axis != series->axis &&
			!sampling_read(arena, test, series->axis, &sampling, error))
			return false;
		findings[s] = analysis_adjust(arena, series, &detection, scratch);
		if (!analysis_detect(arena, &sampling, &detection, 0, series->axis->n, scratch,
			    &findings[s], error))
			return error_prefix(error, "test \"%s\": ", test->name);
	}
	*out = (struct analysis){test, data, findings};
	return true;
}
