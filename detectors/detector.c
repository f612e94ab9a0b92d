/*
 * The registry of detectors, and their work limit. A new detector is one file and one line here.
 */
#include "detectors/detector.h"

#include "detectors/combine.h"
#include "detectors/edivisive/edivisive.h"
#include "detectors/edivisive/permutation.h"
#include "detectors/kernel.h"
#include "detectors/lookback.h"
#include "detectors/modes.h"
#include "detectors/scratch.h"
#include "detectors/stepfit.h"
#include "detectors/tried.h"

const struct plugin *const detectors[] = {
	&edivisive_detector.plugin,
	&edivisive_permutation_detector.plugin,
	&kernel_detector.plugin,
	&stepfit_detector.plugin,
	&modes_detector.plugin,
	&lookback_detector.plugin,
	&combine_detector.plugin,
	NULL,
};

const struct detector *detector_find(const char *name)
{
	return (const struct detector *)plugin_find(detectors, name);
}

static uint64_t steps_for(size_t n)
{
	return DETECTOR_STEPS + DETECTOR_STEPS_VALUE * n;
}

/* Whether the call stayed within its work limit. */
static bool is_within_limit(const struct detector *detector, size_t n,
	const struct scratch *scratch, struct error *error)
{
	if (!scratch_is_spent(scratch))
		return true;
	return error_set(error, ERROR_DATA,
		"the detector %s would take more than %.1f billion steps for %zu points, the limit "
		"for one series: %s, or take fewer points",
		detector->plugin.name, (double)steps_for(n) / 1e9, n, detector->thrift);
}

bool detector_run(const struct detector *detector, const struct samples *samples,
	const void *options, struct scratch *scratch, struct change *out, size_t *count,
	struct error *error)
{
	struct tried_list *tried = scratch_tried(scratch);
	scratch_allow(scratch, steps_for(samples->n));
	*count = detector->detect(samples, options, scratch, out);
	for (size_t i = 0; tried && i < *count; i++)
		tried_note(tried, &(struct tried){.index = out[i].index,
					  .fate = TRIED_STANDS,
					  .pvalue = out[i].pvalue,
					  .mean_before = out[i].mean_before,
					  .mean_after = out[i].mean_after});
	return is_within_limit(detector, samples->n, scratch, error);
}

const struct change *detector_append(const struct detector *detector, struct stream *stream,
	const double *values, size_t n, struct scratch *scratch, size_t *count, struct error *error)
{
	static const struct change none;
	scratch_allow(scratch, steps_for(n));
	const struct change *changes = detector->stream_append(stream, values, n, scratch, count);
	if (!is_within_limit(detector, n, scratch, error))
		return NULL;
	return changes ? changes : &none;
}
