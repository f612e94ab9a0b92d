/*
 * The level is 100 (20 where values are rounded to whole numbers). Noise is drawn as a deviation
 * relative to the level, of standard deviation 1 where that is defined, and scaled; the shape moves
 * the level; outliers, rounding and gaps come last.
 */
#include "tests/bench/generate.h"

#include <math.h>
#include <string.h>

enum { USUAL_LENGTH = 200, APART = 12 };

const struct series_class series_classes[] = {
	{"step_5in1", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .01, .size = .05},
	{"step_5in2", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .02, .size = .05},
	{"step_5in5", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .05, .size = .05},
	{"step_10in5", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .05, .size = .1},
	{"step_20in5", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .05, .size = .2},
	{"step_2in1", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .01, .size = .02},
	{"step_5in2_t3", GROUP_STEP, NOISE_T3, SHAPE_STEP, .sd = .02, .size = .05},
	{"step_10in5_lognormal", GROUP_STEP, NOISE_LOGNORMAL, SHAPE_STEP, .sd = .05, .size = .1},
	{"step_5in2_ar05", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .02, .size = .05,
		.memory = .5},
	{"step_5in2_outliers", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .02, .size = .05,
		.outliers = .02},
	{"step_bimodal", GROUP_STEP, NOISE_MODES, SHAPE_STEP, .sd = .01, .size = .1, .modes = 2,
		.mode = .1},
	{"step_mode_mix", GROUP_STEP, NOISE_MODES, SHAPE_SHARE, .sd = .01, .modes = 2, .mode = .1},
	{"multi_4x5in2", GROUP_MULTI, NOISE_NORMAL, SHAPE_STEPS, .sd = .02, .size = .05,
		.count = 4},
	{"multi_updown_10in2", GROUP_MULTI, NOISE_NORMAL, SHAPE_UP_DOWN, .sd = .02, .size = .1},
	{"ramp_20pct_over_60", GROUP_RAMP, NOISE_NORMAL, SHAPE_RAMP, .sd = .02, .size = .2,
		.count = 60},
	{"ramp_whole_10pct", GROUP_RAMP, NOISE_NORMAL, SHAPE_LONG_RAMP, .sd = .02, .size = .1},
	{"excursion_3pts", GROUP_EXCURSION, NOISE_NORMAL, SHAPE_EXCURSION, .sd = .02, .size = .3,
		.count = 3},
	{"excursion_1pt", GROUP_EXCURSION, NOISE_NORMAL, SHAPE_EXCURSION, .sd = .02, .size = 1,
		.count = 1},
	{"flat_gauss1", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .01},
	{"flat_gauss5", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .05},
	{"flat_uniform5", GROUP_FLAT, NOISE_UNIFORM, SHAPE_FLAT, .sd = .05},
	{"flat_t3", GROUP_FLAT, NOISE_T3, SHAPE_FLAT, .sd = .02},
	{"flat_lognormal", GROUP_FLAT, NOISE_LOGNORMAL, SHAPE_FLAT, .sd = .15},
	{"flat_exponential_tail", GROUP_FLAT, NOISE_EXPONENTIAL, SHAPE_FLAT, .sd = .05},
	{"flat_bimodal", GROUP_FLAT, NOISE_MODES, SHAPE_FLAT, .sd = .01, .modes = 2, .mode = .1},
	{"flat_bimodal_rare", GROUP_FLAT, NOISE_MODES, SHAPE_FLAT, .sd = .01, .modes = 2,
		.mode = .2, .share = .1},
	{"flat_bimodal_sticky", GROUP_FLAT, NOISE_MODES, SHAPE_FLAT, .sd = .01, .modes = 2,
		.mode = .1, .memory = .85, .dependent = true},
	{"flat_ar05", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .02, .memory = .5,
		.dependent = true},
	{"flat_ar08", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .02, .memory = .8,
		.dependent = true},
	{"flat_outliers3pct", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .02, .outliers = .03},
	{"flat_quantised", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .05, .unit = 1},
	{"flat_constant", GROUP_FLAT, NOISE_NONE, SHAPE_FLAT, .dependent = true},
	{"flat_weekly", GROUP_FLAT, NOISE_PERIODIC, SHAPE_FLAT, .sd = .05, .modes = 7,
		.dependent = true},
	{"flat_variance_only", GROUP_FLAT, NOISE_NORMAL, SHAPE_SPREAD, .sd = .01,
		.dependent = true},

	{"step_5in2_garch", GROUP_STEP, NOISE_GARCH, SHAPE_STEP, .sd = .02, .size = .05,
		.hard = true},
	{"step_10in5_gamma", GROUP_STEP, NOISE_GAMMA, SHAPE_STEP, .sd = .05, .size = .1,
		.hard = true},
	{"step_10in2_ar_outliers", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .02, .size = .1,
		.memory = .5, .outliers = .02, .hard = true},
	{"step_5in2_missing", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .02, .size = .05,
		.missing = .15, .hard = true},
	{"step_trimodal", GROUP_STEP, NOISE_MODES, SHAPE_STEP, .sd = .01, .size = .1, .modes = 3,
		.mode = .05, .hard = true},
	{"step_5_weekly", GROUP_STEP, NOISE_PERIODIC, SHAPE_STEP, .sd = .03, .size = .05,
		.modes = 7, .hard = true},
	{"step_10in3_late", GROUP_STEP, NOISE_NORMAL, SHAPE_LATE_STEP, .sd = .03, .size = .1,
		.hard = true},
	{"step_5in2_both", GROUP_STEP, NOISE_NORMAL, SHAPE_BOTH, .sd = .02, .size = .05,
		.hard = true},
	{"step_counts", GROUP_STEP, NOISE_COUNTS, SHAPE_STEP, .size = .5, .count = 10,
		.hard = true},
	{"step_short", GROUP_STEP, NOISE_NORMAL, SHAPE_STEP, .sd = .02, .size = .05, .shortest = 15,
		.longest = 40, .hard = true},
	{"multi_5x5in2_long", GROUP_MULTI, NOISE_NORMAL, SHAPE_STEPS, .sd = .02, .size = .05,
		.count = 5, .shortest = 800, .longest = 1200, .hard = true},
	{"ramp_10pct_over_30", GROUP_RAMP, NOISE_NORMAL, SHAPE_RAMP, .sd = .01, .size = .1,
		.count = 30, .hard = true},
	{"flat_gamma", GROUP_FLAT, NOISE_GAMMA, SHAPE_FLAT, .sd = .1, .hard = true},
	{"flat_garch", GROUP_FLAT, NOISE_GARCH, SHAPE_FLAT, .sd = .02, .dependent = true,
		.hard = true},
	{"flat_ar_outliers", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .02, .memory = .5,
		.outliers = .03, .dependent = true, .hard = true},
	{"flat_trimodal", GROUP_FLAT, NOISE_MODES, SHAPE_FLAT, .sd = .01, .modes = 3, .mode = .05,
		.hard = true},
	{"flat_daily", GROUP_FLAT, NOISE_PERIODIC, SHAPE_FLAT, .sd = .02, .modes = 24,
		.dependent = true, .hard = true},
	{"flat_counts", GROUP_FLAT, NOISE_COUNTS, SHAPE_FLAT, .count = 3, .hard = true},
	{"flat_short", GROUP_FLAT, NOISE_NORMAL, SHAPE_FLAT, .sd = .02, .shortest = 15,
		.longest = 40, .hard = true},
	{"flat_long_t3", GROUP_FLAT, NOISE_T3, SHAPE_FLAT, .sd = .02, .shortest = 1000,
		.longest = 2000, .hard = true},
};
const size_t series_class_count = sizeof series_classes / sizeof *series_classes;

const struct series_class *series_class_find(const char *name)
{
	for (size_t i = 0; i < series_class_count; i++)
		if (strcmp(series_classes[i].name, name) == 0)
			return &series_classes[i];
	return NULL;
}

uint64_t draw_bits(uint64_t *state)
{
	uint64_t bits = *state += 0x9e3779b97f4a7c15;
	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
	return bits ^ bits >> 31;
}

double draw_unit(uint64_t *state)
{
	return (double)(draw_bits(state) >> 11) * 0x1p-53;
}

size_t draw_between(uint64_t *state, size_t least, size_t most)
{
	return least + (size_t)(draw_bits(state) % (most - least + 1));
}

double draw_normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(1 - draw_unit(state)));
	return radius * cos(2 * M_PI * draw_unit(state));
}

static double draw_exponential(uint64_t *state)
{
	return -log(1 - draw_unit(state));
}

double draw_t3(uint64_t *state)
{
	double z = draw_normal(state), squares = 0;
	for (int i = 0; i < 3; i++) {
		double part = draw_normal(state);
		squares += part * part;
	}
	return z / sqrt(squares);
}

/* Of shape 4. */
static double draw_gamma(uint64_t *state)
{
	double sum = 0;
	for (int i = 0; i < 4; i++)
		sum += draw_exponential(state);
	return (sum - 4) / 2;
}

double draw_count(uint64_t *state, double mean)
{
	double limit = exp(-mean), product = draw_unit(state);
	int count = 0;
	for (; product > limit; count++)
		product *= draw_unit(state);
	return count;
}

/* What a series remembers from point to point. */
struct weather {
	double last, variance;
	int mode;
};

static int draw_mode(const struct series_class *c, uint64_t *state, double share)
{
	if (share > 0)
		return draw_unit(state) < share ? 1 : 0;
	return (int)draw_between(state, 0, (size_t)c->modes - 1);
}

static double draw_modes(
	const struct series_class *c, struct weather *weather, uint64_t *state, double share)
{
	if (weather->mode < 0 || c->memory == 0)
		weather->mode = draw_mode(c, state, share);
	else if (draw_unit(state) >= c->memory)
		weather->mode = (weather->mode + 1) % c->modes;
	return c->mode / c->sd * weather->mode + draw_normal(state);
}

static double draw_garch(struct weather *weather, uint64_t *state)
{
	double value = sqrt(weather->variance) * draw_normal(state);
	weather->variance = 0.05 + 0.25 * value * value + 0.7 * weather->variance;
	return value;
}

static double draw_ar(double memory, struct weather *weather, uint64_t *state)
{
	weather->last = memory * weather->last + sqrt(1 - memory * memory) * draw_normal(state);
	return weather->last;
}

/* The deviation of point i, in units of the class's sd. */
static double draw_noise(const struct series_class *c, struct weather *weather, uint64_t *state,
	size_t i, double share)
{
	switch (c->noise) {
	case NOISE_NORMAL: return draw_ar(c->memory, weather, state);
	case NOISE_UNIFORM: return sqrt(12) * (draw_unit(state) - 0.5);
	case NOISE_T3: return draw_t3(state);
	case NOISE_LOGNORMAL: return (exp(c->sd * draw_normal(state)) - 1) / c->sd;
	case NOISE_EXPONENTIAL: return 0.2 * draw_normal(state) + draw_exponential(state);
	case NOISE_GAMMA: return draw_gamma(state);
	case NOISE_MODES: return draw_modes(c, weather, state, share);
	case NOISE_GARCH: return draw_garch(weather, state);
	case NOISE_PERIODIC: return sin(2 * M_PI * (double)i / c->modes) + 0.2 * draw_normal(state);
	case NOISE_NONE:
	case NOISE_COUNTS: break;
	}
	return 0;
}

static void add_truth(struct labelled *out, size_t at)
{
	out->truth[out->truth_count++] = at;
}

/* `count` places at least APART points from one another and from the ends, in order. */
static void place_steps(struct labelled *out, uint64_t *state, size_t count)
{
	size_t slack = out->n - APART * (count + 1), places[TRUTH_MOST];
	for (size_t k = 0; k < count; k++) {
		size_t at = draw_between(state, 0, slack), j = k;
		for (; j > 0 && places[j - 1] > at; j--)
			places[j] = places[j - 1];
		places[j] = at;
	}
	for (size_t k = 0; k < count; k++)
		add_truth(out, places[k] + APART * (k + 1));
}

/* Fills truth and span. */
static void place_shape(const struct series_class *c, struct labelled *out, uint64_t *state)
{
	size_t n = out->n, count = (size_t)c->count, middle = draw_between(state, n / 4, 3 * n / 4);
	switch (c->shape) {
	case SHAPE_FLAT: break;
	case SHAPE_LONG_RAMP: out->span_end = n; break;
	case SHAPE_STEP:
	case SHAPE_SHARE:
	case SHAPE_BOTH: add_truth(out, middle); break;
	case SHAPE_LATE_STEP: add_truth(out, n - draw_between(state, 8, 20)); break;
	case SHAPE_STEPS: place_steps(out, state, count); break;
	case SHAPE_UP_DOWN:
		middle = draw_between(state, n / 4, n / 2);
		add_truth(out, middle);
		add_truth(out, middle + draw_between(state, 15, 30));
		break;
	case SHAPE_RAMP:
		add_truth(out, middle);
		out->span_start = middle - count / 2;
		out->span_end = out->span_start + count;
		break;
	case SHAPE_EXCURSION:
	case SHAPE_SPREAD:
		out->span_start = middle;
		out->span_end = c->shape == SHAPE_SPREAD ? n : middle + count;
		break;
	}
}

/* How far the shape has moved the level at point i, as a share of the first level. */
static double moved(
	const struct series_class *c, const struct labelled *out, const double *sizes, size_t i)
{
	double at = (double)i, start = (double)out->span_start, end = (double)out->span_end,
	       sum = 0;
	if (c->shape == SHAPE_EXCURSION)
		return at >= start && at < end ? sizes[0] : 0;
	if (c->group == GROUP_RAMP)
		return sizes[0] * fmin(fmax((at - start) / (end - start), 0), 1);
	for (size_t k = 0; k < out->truth_count; k++)
		if (i >= out->truth[k])
			sum += sizes[k];
	return sum;
}

/* Steps go up or down, those of a series that goes up and down back to where it was. */
static void draw_sizes(
	const struct series_class *c, uint64_t *state, double sizes[static TRUTH_MOST])
{
	for (size_t k = 0; k < TRUTH_MOST; k++)
		sizes[k] = draw_bits(state) & 1 ? c->size : -c->size;
	if (c->shape == SHAPE_EXCURSION)
		sizes[0] = c->size;
	if (c->shape == SHAPE_UP_DOWN)
		sizes[1] = -sizes[0];
}

static double finished(const struct series_class *c, double value, uint64_t *state)
{
	if (draw_unit(state) < c->outliers)
		value *= 1.3 + 0.7 * draw_unit(state);
	if (c->unit > 0)
		value = rint(value / c->unit) * c->unit;
	return draw_unit(state) < c->missing ? nan("") : value;
}

void series_generate(const struct series_class *c, uint64_t seed, struct labelled *out)
{
	uint64_t state = seed * 0xd1342543de82ef95 + (uint64_t)(c - series_classes);
	double sizes[TRUTH_MOST], base = c->unit > 0 ? 20 : 100;
	struct weather weather = {.variance = 1, .mode = -1};
	out->truth_count = out->span_start = out->span_end = 0;
	out->n = c->shortest == 0 ? USUAL_LENGTH
				  : draw_between(&state, (size_t)c->shortest, (size_t)c->longest);
	place_shape(c, out, &state);
	draw_sizes(c, &state, sizes);
	for (size_t i = 0; i < out->n; i++) {
		bool after = out->truth_count > 0 && i >= out->truth[0];
		double share = c->shape == SHAPE_SHARE ? (after ? 0.9 : 0.1) : c->share;
		double level = c->shape == SHAPE_SHARE ? 1 : 1 + moved(c, out, sizes, i),
		       sd = c->sd;
		if (c->shape == SHAPE_SPREAD && i >= out->span_start)
			sd *= 5;
		if (c->shape == SHAPE_BOTH && after)
			sd *= 2;
		double value = base * (level + sd * draw_noise(c, &weather, &state, i, share));
		if (c->noise == NOISE_COUNTS)
			value = draw_count(&state, c->count * level);
		out->values[i] = finished(c, value, &state);
	}
	if (c->shape == SHAPE_SPREAD)
		out->span_start = out->span_end = 0;
}
