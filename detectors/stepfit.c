/*
 * The arithmetic of Skia's six algorithms, with its quirks: all but `original` leave out the last
 * of an odd number of values; sums and means skip missing values, but counts in `original` include
 * them, and there equal means give a huge error, so that nothing is found; the Mann-Whitney test
 * treats a missing value as a very large one.
 */
#include "detectors/stepfit.h"

#include <float.h>
#include <math.h>

#include "detectors/mannwhitney.h"
#include "detectors/scratch.h"
#include "detectors/segments.h"
#include "detectors/stats.h"

static const char *const algorithms[] = {
	"original", "absolute", "const", "percent", "cohen", "mannwhitneyu", NULL};

static const double MIN_STDDEV = 0.001; /* the default */

static const struct field stepfit_fields[] = {
	OPTION_CHOICE(struct stepfit_options, algorithm, "cohen", algorithms,
		"how a step between the two sides of a point is measured"),
	OPTION_DOUBLE(struct stepfit_options, threshold, "0", 0, 1e300,
		"minimum step, for mannwhitneyu the maximum p-value; 0: the algorithm's default "
		"(original 50, percent 0.05, cohen 2, mannwhitneyu 0.001; absolute and const have "
		"none)",
		.metavar = "X"),
	OPTION_INT(struct stepfit_options, radius, "10", 2, 1000,
		"window length on each side, in points", .metavar = "POINTS"),
	OPTION_DOUBLE(struct stepfit_options, min_stddev, "0.001", 0, 1e300,
		"original, cohen: lower bound of the standard deviation",
		.alias = "stddev_threshold", .flags = FIELD_MIN_OPEN, .metavar = "X"),
	{0},
};

/* The moments of the existing values; the mean is 0 if there are none. */
static struct moments existing_moments(const double *values, size_t n)
{
	double first = 0, sum = 0;
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		if (isnan(values[i]))
			continue;
		first = count == 0 ? values[i] : first;
		sum += values[i] - first;
		count++;
	}
	struct moments moments = {.n = count, .mean = count ? first + sum / (double)count : 0};
	for (size_t i = 0; i < n; i++)
		if (!isnan(values[i]))
			moments.squares += (values[i] - moments.mean) * (values[i] - moments.mean);
	return moments;
}

static enum stepfit_status status_of(double regression, double threshold)
{
	return regression >= threshold    ? STEPFIT_LOW
	       : regression <= -threshold ? STEPFIT_HIGH
					  : STEPFIT_UNINTERESTING;
}

static struct stepfit fit_original(const double *values, size_t n,
	const struct stepfit_options *options, struct scratch *scratch)
{
	scratch_reset(scratch);
	double *normal = scratch_take(scratch, n, sizeof(double));
	struct moments all = existing_moments(values, n);
	double deviation = moments_stddev(all, 0);
	double unit = deviation > options->min_stddev ? deviation : 1;
	for (size_t i = 0; i < n; i++)
		normal[i] = (values[i] - all.mean) / unit;
	size_t middle = n / 2;
	struct moments left = existing_moments(normal, middle);
	struct moments right = existing_moments(normal + middle, n - middle);
	bool level = left.mean == right.mean;
	double step = level ? -1 : left.mean - right.mean;
	double squares = level ? (double)FLT_MAX : left.squares + right.squares;
	double error = sqrt(squares) / (double)n;
	double regression = step / fmax(error, options->min_stddev);
	return (struct stepfit){step, regression, status_of(regression, options->threshold)};
}

/* Here the regression is the p-value, for a hit with the sign of the step. */
static struct stepfit fit_mannwhitney(const double *values, size_t n,
	const struct stepfit_options *options, struct stepfit fit, struct scratch *scratch)
{
	size_t middle = n / 2;
	struct mannwhitney test =
		mannwhitney_test(values, middle, values + middle, n - middle, true, scratch);
	if (test.flat)
		return (struct stepfit){0};
	fit.regression = test.p;
	if (test.p > options->threshold)
		return fit;
	fit.status = fit.step < 0 ? STEPFIT_HIGH : STEPFIT_LOW;
	fit.regression = fit.step < 0 ? -test.p : test.p;
	return fit;
}

struct stepfit stepfit_fit(const double *values, size_t n, const struct stepfit_options *options,
	struct scratch *scratch)
{
	int algorithm = options->algorithm;
	if (n < (algorithm == STEPFIT_ORIGINAL ? 3 : algorithm == STEPFIT_COHEN ? 4 : 2))
		return (struct stepfit){0};
	if (algorithm == STEPFIT_ORIGINAL)
		return fit_original(values, n, options, scratch);
	size_t middle = n / 2;
	struct moments left = existing_moments(values, middle);
	struct moments right = existing_moments(values + middle, middle);
	double step = left.mean - right.mean;
	double deviation = 0.5 * (moments_stddev(left, 1) + moments_stddev(right, 1));
	struct stepfit fit = {step, step, 0};
	switch ((enum stepfit_algorithm)algorithm) {
	case STEPFIT_CONST:
		fit.step = -1;
		fit.regression = isnan(values[middle]) ? HUGE_VAL : fabs(values[middle]);
		break;
	case STEPFIT_PERCENT: fit.step = fit.regression = step == 0 ? 0 : step / left.mean; break;
	case STEPFIT_COHEN:
		fit.step = fit.regression = step / fmax(deviation, options->min_stddev);
		break;
	case STEPFIT_MANNWHITNEYU:
		return fit_mannwhitney(values, 2 * middle, options, fit, scratch);
	case STEPFIT_ORIGINAL:
	case STEPFIT_ABSOLUTE: break;
	}
	fit.status = status_of(fit.regression, options->threshold);
	return fit;
}

/* Skia's default; 0 where the user must choose. */
static double default_threshold(int algorithm)
{
	switch ((enum stepfit_algorithm)algorithm) {
	case STEPFIT_ORIGINAL: return 50;
	case STEPFIT_PERCENT: return 0.05;
	case STEPFIT_COHEN: return 2;
	case STEPFIT_MANNWHITNEYU: return 0.001;
	case STEPFIT_ABSOLUTE:
	case STEPFIT_CONST: break;
	}
	return 0;
}

/* A place whose fit is beyond the threshold. */
struct hit {
	size_t cut;
	struct stepfit fit;
	double p;
};

struct sliding {
	const struct segments *segments;
	struct stepfit_options options;
	size_t radius;
	struct scratch *tests;
	const struct scratch *trace; /* whose list is filled */
};

static bool fit_at(const struct sliding *sliding, size_t cut, struct hit *hit)
{
	size_t r = sliding->radius, from = cut - r, rest = sliding->segments->n - from;
	const double *values = sliding->segments->values + from;
	const size_t roughly_normal = 8;
	*hit = (struct hit){.cut = cut};
	/* The exact test need not be made if the normal approximation is clearly above. */
	if (sliding->options.algorithm == STEPFIT_MANNWHITNEYU && r >= roughly_normal) {
		double p = mannwhitney_test(values, r, values + r, r, false, sliding->tests).p;
		hit->fit.regression = p;
		if (p > 2 * sliding->options.threshold + 1 / (double)r)
			return false;
	}
	size_t n = rest < 2 * r + 1 ? rest : 2 * r + 1;
	*hit = (struct hit){cut, stepfit_fit(values, n, &sliding->options, sliding->tests), 0};
	if (hit->fit.status == STEPFIT_UNINTERESTING)
		return false;
	hit->p = sliding->options.algorithm == STEPFIT_MANNWHITNEYU
			 ? fabs(hit->fit.regression)
			 : ttest_any(moments_of(values, r), moments_of(values + r, r));
	return true;
}

/* Whether `one` is farther beyond the threshold; a smaller p-value is. */
static bool is_better(const struct sliding *sliding, const struct hit *one, const struct hit *other)
{
	double a = fabs(one->fit.regression), b = fabs(other->fit.regression);
	if (sliding->options.algorithm != STEPFIT_MANNWHITNEYU)
		return a > b;
	return a < b || (a == b && fabs(one->fit.step) > fabs(other->fit.step));
}

/* Notes a place that is not a hit. */
static void note_miss(
	const struct sliding *sliding, const struct hit *miss, struct tried_best *best)
{
	struct tried_list *tried = scratch_tried(sliding->trace);
	size_t r = sliding->radius, cut = miss->cut;
	bool tests = sliding->options.algorithm == STEPFIT_MANNWHITNEYU;
	struct tried one;

	if (!tried)
		return;
	one = segments_tried(sliding->segments, cut - r, cut, cut + r, TRIED_THRESHOLD);
	one.pvalue = tests ? fabs(miss->fit.regression) : (double)NAN;
	tried_limit(&one, tests ? "p" : algorithms[sliding->options.algorithm],
		fabs(miss->fit.regression), sliding->options.threshold);
	if (sliding->options.algorithm == STEPFIT_ABSOLUTE ||
		sliding->options.algorithm == STEPFIT_CONST) {
		one.measured = ldexp(one.measured, -sliding->segments->unit);
		one.limit = ldexp(one.limit, -sliding->segments->unit);
	}
	tried_offer(tried, best, cut, &one);
}

/* Fits every place and writes the best hit of each change: hits of one direction less than a radius
 * apart are one. Returns their number. */
static size_t slide(const struct sliding *sliding, struct hit *best)
{
	size_t count = 0, last = 0, r = sliding->radius;
	struct tried_best miss = {0};
	struct hit hit;
	for (size_t cut = r; cut + r <= sliding->segments->n; cut++) {
		if (!scratch_spend(sliding->tests, 30 * r))
			break;
		if (!fit_at(sliding, cut, &hit)) {
			note_miss(sliding, &hit, &miss);
			continue;
		}
		bool same =
			count > 0 && cut - last < r && best[count - 1].fit.status == hit.fit.status;
		last = cut;
		if (!same)
			best[count++] = hit;
		else if (is_better(sliding, &hit, &best[count - 1]))
			best[count - 1] = hit;
	}
	if (scratch_tried(sliding->trace))
		tried_flush(scratch_tried(sliding->trace), &miss);
	return count;
}

static size_t stepfit_detect(const struct samples *samples, const void *options,
	struct scratch *scratch, struct change *out)
{
	const struct stepfit_options *given = options;
	scratch_reset(scratch);
	struct segments segments = segments_of(samples, scratch);
	struct sliding sliding = {.segments = &segments,
		.options = *given,
		.radius = (size_t)given->radius,
		.trace = scratch};
	int algorithm = given->algorithm;
	if (segments.n < 2 * sliding.radius)
		return 0;
	/* The options for values times 2^unit, with the default threshold filled in */
	if (given->threshold == 0)
		sliding.options.threshold = default_threshold(algorithm);
	if (algorithm == STEPFIT_ABSOLUTE || algorithm == STEPFIT_CONST)
		sliding.options.threshold = ldexp(sliding.options.threshold, segments.unit);
	sliding.options.min_stddev = ldexp(given->min_stddev, segments.unit);
	struct hit *hits = scratch_take(scratch, segments.n, sizeof(*hits));
	sliding.tests = scratch_child(scratch);
	size_t count = slide(&sliding, hits);
	scratch_free(sliding.tests);
	size_t *cuts = scratch_take(scratch, count, sizeof(*cuts));
	double *pvalues = scratch_take(scratch, count, sizeof(*pvalues));
	for (size_t i = 0; i < count; i++) {
		cuts[i] = hits[i].cut;
		pvalues[i] = hits[i].p;
	}
	segments_changes(&segments, cuts, pvalues, count, out);
	return count;
}

/* A p-value is at most 1, and with few points on each side it cannot be small: at least two of all
 * orders. */
static bool check_test(const struct stepfit_options *given, struct error *error)
{
	double threshold =
		given->threshold > 0 ? given->threshold : default_threshold(given->algorithm);
	double least = 2;
	int64_t radius = 0;
	while (least > threshold) {
		radius++;
		least *= (double)radius / (double)(4 * radius - 2);
	}
	if (threshold >= 1)
		return error_set(error, ERROR_USAGE,
			"threshold: \"%g\": expected a p-value below 1", threshold);
	return given->radius >= radius ||
	       error_set(error, ERROR_USAGE,
		       "radius: \"%lld\" is below %lld: fewer points cannot reach a p-value of %g",
		       (long long)given->radius, (long long)radius, threshold);
}

static bool stepfit_check(const void *options, struct error *error)
{
	const struct stepfit_options *given = options;
	bool deviates = given->algorithm == STEPFIT_ORIGINAL || given->algorithm == STEPFIT_COHEN;
	if (!deviates && given->min_stddev != MIN_STDDEV)
		return error_set(error, ERROR_USAGE,
			"min_stddev: the algorithm %s uses no deviation, only original and cohen "
			"do",
			algorithms[given->algorithm]);
	if (given->algorithm == STEPFIT_MANNWHITNEYU)
		return check_test(given, error);
	if (given->threshold > 0 || default_threshold(given->algorithm) > 0)
		return true;
	return error_set(error, ERROR_USAGE,
		"threshold: the algorithm %s needs one, in the unit of the values",
		algorithms[given->algorithm]);
}

const struct detector stepfit_detector = {
	.plugin = {.name = "stepfit",
		.summary =
			"a step in the middle of a sliding window, by six algorithms (Skia Perf)",
		.fields = stepfit_fields,
		.options_size = sizeof(struct stepfit_options),
		.check = stepfit_check},
	.thrift = "choose a smaller radius or threshold",
	.detect = stepfit_detect,
};
