/*
 * A value is the product of the level with its steps, the cycle, drift, outages and noise; then it
 * is counted, cut off, rounded or lost. Cycles follow UTC.
 */
#include "tests/bench/generate_service.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/bench/generate.h"

#define DAY 86400
#define EARLIEST INT64_C(1735689600) /* 2025-01-01 */

enum { HOUR = 3600, HOLIDAYS = 3, KINDS = 8 };

enum cycle {
	CYCLE_NONE,
	CYCLE_SINE,
	CYCLE_PEAKS,    /* before noon and in the evening */
	CYCLE_NIGHT,    /* a job from 2 to 4 */
	CYCLE_OFFICE,   /* from 8 to 18 on weekdays */
	CYCLE_WEEKDAYS, /* each day of the week has its own */
	CYCLE_SAWTOOTH, /* of 12 to 30 points, which no calendar tells */
};

struct service_class {
	const char *name;
	enum service_family family;
	enum cycle cycle;
	int step, days; /* seconds between points; how long */
	double depth;   /* of the cycle, as a share of the level */
	double weekend; /* level at weekends, as a share; 0: as ever */
	double sd;      /* of the noise, likewise */
	double memory;  /* AR(1) coefficient; of modes, the probability of staying */
	double mode;    /* distance of a second mode, likewise */
	double drift;   /* standard deviation of a slow movement */
	double outages; /* share of points at which one begins ... */
	int outage;     /* ... of up to so many points, at least 2 or that */
	double worse;   /* its size, half as much or that */
	double mean;    /* of Poisson counts; 0: they are none */
	double most;    /* what it saturates at, as a share; 0: not */
	double unit;    /* values around 20 are rounded to multiples of it; 0: not */
	double missing; /* share of points */
	bool heavy;     /* noise of Student's t with 3 degrees of freedom */
	bool holidays;  /* weekdays that are like Sundays */
};

const char *const service_families[FAMILIES] = {
	[FAMILY_SEASONAL] = "seas",
	[FAMILY_LEVEL] = "flat",
	[FAMILY_CI] = "ci",
};

static const struct service_class classes[] = {
	{"sine30", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .3, .sd = .05},
	{"sine10", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .1, .sd = .04},
	{"peaks", FAMILY_SEASONAL, CYCLE_PEAKS, HOUR, 30, .depth = .5, .sd = .05},
	{"night_job", FAMILY_SEASONAL, CYCLE_NIGHT, HOUR, 30, .depth = .8, .sd = .05},
	{"office", FAMILY_SEASONAL, CYCLE_OFFICE, HOUR, 35, .depth = 1, .sd = .05},
	{"office_holidays", FAMILY_SEASONAL, CYCLE_OFFICE, HOUR, 35, .depth = 1, .sd = .05,
		.holidays = true},
	{"weekends", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 35, .depth = .3, .weekend = .7, .sd = .05},
	{"weekdays", FAMILY_SEASONAL, CYCLE_WEEKDAYS, HOUR, 35, .depth = .3, .sd = .05},
	{"sine_ar", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .3, .sd = .05, .memory = .5},
	{"sine_outages", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .3, .sd = .05,
		.outages = .008, .outage = 4, .worse = 2},
	{"sine_drift", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .3, .sd = .05, .drift = .02},
	{"sine_gaps", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .3, .sd = .05, .missing = .1},
	{"sine_heavy", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .25, .sd = .05,
		.heavy = true},
	{"saturating", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .5, .sd = .04, .most = 1.3},
	{"quantised", FAMILY_SEASONAL, CYCLE_PEAKS, HOUR, 30, .depth = .5, .sd = .05, .unit = 1},
	{"counts", FAMILY_SEASONAL, CYCLE_SINE, HOUR, 30, .depth = .5, .mean = 60},
	{"minutes5", FAMILY_SEASONAL, CYCLE_SINE, 300, 10, .depth = .3, .sd = .05},
	{"minutes10", FAMILY_SEASONAL, CYCLE_SINE, 600, 28, .depth = .08, .sd = .03},
	{"days", FAMILY_SEASONAL, CYCLE_NONE, DAY, 365, .weekend = .75, .sd = .04},

	{"lognormal", FAMILY_LEVEL, CYCLE_NONE, HOUR, 30, .sd = .15},
	{"level_ar", FAMILY_LEVEL, CYCLE_NONE, HOUR, 30, .sd = .05, .memory = .5},
	{"sawtooth", FAMILY_LEVEL, CYCLE_SAWTOOTH, HOUR, 30, .depth = .2, .sd = .03},
	{"counts_low", FAMILY_LEVEL, CYCLE_NONE, HOUR, 30, .mean = 5},
	{"level_drift", FAMILY_LEVEL, CYCLE_NONE, HOUR, 30, .sd = .03, .drift = .03},

	{"ci_modes", FAMILY_CI, CYCLE_NONE, DAY, 300, .sd = .015, .mode = .08},
	{"ci_sticky", FAMILY_CI, CYCLE_NONE, DAY, 300, .sd = .015, .mode = .08, .memory = .9},
	{"ci_heavy", FAMILY_CI, CYCLE_NONE, DAY, 300, .sd = .03, .heavy = true},
	{"ci_weekend", FAMILY_CI, CYCLE_NONE, DAY, 300, .weekend = .94, .sd = .02},
	{"ci_drift", FAMILY_CI, CYCLE_NONE, DAY, 300, .sd = .02, .drift = .03},
	{"ci_bad_days", FAMILY_CI, CYCLE_NONE, DAY, 300, .sd = .02, .outages = .02, .outage = 3,
		.worse = .4},
};
const size_t service_class_count = sizeof classes / sizeof *classes;

/* What a series remembers from point to point. */
struct replay_data {
	double noise, drift, outage;
	int outage_left;
	bool upper;         /* mode */
	size_t tooth, left; /* points that the sawtooth has, and has to come */
	int64_t holidays[HOLIDAYS];
};

static bool is_holiday(const struct replay_data *past, int64_t day)
{
	for (size_t i = 0; i < HOLIDAYS; i++)
		if (past->holidays[i] == day)
			return true;
	return false;
}

static double cycle_at(const struct service_class *c, const struct replay_data *past, int64_t time)
{
	static const double of_day[] = {1.1, 1, 1, 1, .95, .7, .65};
	int64_t day = time / DAY;
	size_t weekday = is_holiday(past, day) ? 6 : (size_t)((day + 3) % 7); /* from Monday */
	double hour = (double)(time % DAY) / HOUR;
	double level = c->weekend > 0 && weekday >= 5 ? c->weekend : 1;
	double wave = 1 + c->depth * sin(2 * M_PI * (hour - 9) / 24);

	switch (c->cycle) {
	case CYCLE_SINE: return level * wave;
	case CYCLE_PEAKS:
		return level * (1 + c->depth * (exp(-pow((hour - 10) / 2.5, 2)) +
						       exp(-pow((hour - 19) / 2, 2))));
	case CYCLE_NIGHT: return level * (hour >= 2 && hour < 4 ? 1 + c->depth : 1);
	case CYCLE_OFFICE:
		return level * (weekday < 5 && hour >= 8 && hour < 18 ? 1 + c->depth : 1);
	case CYCLE_WEEKDAYS: return of_day[weekday] * (1 + of_day[weekday] * (wave - 1));
	case CYCLE_SAWTOOTH: return 1 + c->depth * (1 - (double)past->left / (double)past->tooth);
	case CYCLE_NONE: break;
	}
	return level;
}

static double noise_at(const struct service_class *c, struct replay_data *past, uint64_t *state)
{
	double z = c->heavy ? draw_t3(state) : draw_normal(state);

	if (c->mode > 0) {
		if (c->memory == 0)
			past->upper = draw_unit(state) < 0.5;
		else if (draw_unit(state) >= c->memory)
			past->upper = !past->upper;
		return exp(c->sd * z) * (past->upper ? 1 + c->mode : 1);
	}
	past->noise = c->memory * past->noise + sqrt(1 - c->memory * c->memory) * z;
	return exp(c->sd * past->noise);
}

/* What comes slowly, and what comes over it. */
static double weather_at(const struct service_class *c, struct replay_data *past, uint64_t *state)
{
	static const double slow = .99;

	if (past->left == 0)
		past->left = past->tooth = draw_between(state, 12, 30);
	past->left--;
	past->drift = slow * past->drift + sqrt(1 - slow * slow) * draw_normal(state);
	if (past->outage_left == 0 && draw_unit(state) < c->outages) {
		past->outage_left = (int)draw_between(state, 2, (size_t)c->outage);
		past->outage = c->worse * (.5 + .5 * draw_unit(state));
	}
	double worse = past->outage_left > 0 ? 1 + past->outage : 1;
	past->outage_left -= past->outage_left > 0;
	return worse * exp(c->drift * past->drift);
}

static double finished(const struct service_class *c, double value, uint64_t *state)
{
	if (c->mean > 0)
		value = draw_count(state, c->mean * value);
	else if (c->unit > 0)
		value = rint(20 * value / c->unit) * c->unit;
	else
		value = 100 * (c->most > 0 ? fmin(value, c->most) : value);
	return draw_unit(state) < c->missing ? nan("") : value;
}

/* Steps lie at least a tenth of the series from one another, and an eighth from its ends. */
static void place_steps(struct service_series *out, uint64_t *state, size_t count)
{
	size_t apart = out->n / 10, margin = out->n / 8;
	size_t slack = out->n - 2 * margin - apart * (count - (count > 0)), at[SERVICE_STEPS];

	for (size_t k = 0; k < count; k++) {
		size_t place = draw_between(state, 0, slack), j = k;
		for (; j > 0 && at[j - 1] > place; j--)
			at[j] = at[j - 1];
		at[j] = place;
	}
	for (size_t k = 0; k < count; k++)
		out->truth[k] = margin + at[k] + k * apart;
	out->truth_count = count;
}

static void draw_steps(
	struct service_series *out, uint64_t seed, uint64_t *state, double factors[SERVICE_STEPS])
{
	static const double sizes[KINDS] = {0, .05, 0, .1, 0, .2, 0, 0};
	size_t kind = (size_t)(seed % KINDS);

	out->size = sizes[kind];
	place_steps(out, state, kind == KINDS - 1 ? SERVICE_STEPS : out->size > 0);
	for (size_t k = 0; k < out->truth_count; k++) {
		double size = out->size > 0 ? out->size : .1 + .1 * draw_unit(state);
		factors[k] = draw_bits(state) & 1 ? 1 + size : 1 - size;
	}
}

void service_generate(size_t number, uint64_t seed, size_t days, struct service_series *out)
{
	const struct service_class *c = &classes[number];
	uint64_t state = seed * 0xd1342543de82ef95 + 1000 + number;
	double factors[SERVICE_STEPS];
	struct replay_data past = {0};

	*out = (struct service_series){.name = c->name, .family = c->family, .step = c->step};
	days = days > 0 ? days : (size_t)c->days;
	out->n = days * DAY / (size_t)c->step;
	out->n = out->n < SERVICE_MOST ? out->n : SERVICE_MOST;
	out->start = EARLIEST + (int64_t)(draw_bits(&state) % (700 * 24)) * HOUR;
	for (size_t i = 0; c->holidays && i < HOLIDAYS; i++)
		past.holidays[i] = out->start / DAY + (int64_t)draw_between(&state, 1, days);
	draw_steps(out, seed, &state, factors);
	past.drift = draw_normal(&state);
	for (size_t i = 0; i < out->n; i++) {
		double value = weather_at(c, &past, &state) * noise_at(c, &past, &state) *
			       cycle_at(c, &past, out->start + (int64_t)i * c->step);
		for (size_t k = 0; k < out->truth_count && i >= out->truth[k]; k++)
			value *= factors[k];
		out->values[i] = finished(c, value, &state);
	}
}
