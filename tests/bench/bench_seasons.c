/*
 * How many series without a daily or weekly cycle are believed to have one, and how many with one
 * are seen to: a table in Markdown, in percent. The promise is at most 0.5 of those without.
 *
 * Looked at once a day, sawtooths of 7 and 28 hours and levels of 42 do repeat themselves each
 * week.
 *
 *     bench_seasons [SERIES [FIRST_SEED]]      (default 500 of each, from 1)
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "detectors/detector.h"
#include "detectors/season.h"
#include "tests/bench/generate.h"

#define HOUR INT64_C(3600000)
#define START INT64_C(1735689600000) /* 2025-01-01 */

enum { MOST = 20000, SPANS = 8 };

enum made_of {
	INDEPENDENT,
	HEAVY,
	AR,
	MODES,
	DRIFT,
	WALK,
	SAWTOOTH,
	SQUARE,
	COUNTS,
	BINARY,
	STICKY
};

struct kind {
	const char *name;
	enum made_of noise;
	double hours;   /* that a mode stays, or a period lasts; of AR the coefficient */
	size_t modes;   /* that there are */
	double weekend; /* level of two days, as a share */
	bool cyclic;
};

static const struct kind kinds[] = {
	{.name = "normal", .noise = INDEPENDENT},
	{.name = "t, 3 df", .noise = HEAVY},
	{.name = "AR .5", .noise = AR, .hours = 0.5},
	{.name = "AR .8", .noise = AR, .hours = 0.8},
	{.name = "modes, at random", .noise = MODES, .hours = 0, .modes = 2},
	{.name = "modes of 10 h", .noise = MODES, .hours = 10, .modes = 2},
	{.name = "modes of a day", .noise = MODES, .hours = 24, .modes = 2},
	{.name = "modes of two days", .noise = MODES, .hours = 48, .modes = 2},
	{.name = "three modes of a day", .noise = MODES, .hours = 24, .modes = 3},
	{.name = "drift", .noise = DRIFT},
	{.name = "random walk", .noise = WALK},
	{.name = "sawtooth of 7 h", .noise = SAWTOOTH, .hours = 7},
	{.name = "sawtooth of 28 h", .noise = SAWTOOTH, .hours = 28},
	{.name = "two levels of 40 h", .noise = SQUARE, .hours = 80},
	{.name = "two levels of 42 h", .noise = SQUARE, .hours = 84},
	{.name = "counts of 3", .noise = COUNTS, .hours = 3},
	{.name = "counts of .3", .noise = COUNTS, .hours = 0.3},
	{.name = "0 and 1", .noise = BINARY},
	{.name = "0 and 1, sticky", .noise = STICKY},
	{.name = "weekends at 70%, normal", .noise = INDEPENDENT, .weekend = 0.7, .cyclic = true},
	{.name = "weekends at 70%, AR .5",
		.noise = AR,
		.hours = 0.5,
		.weekend = 0.7,
		.cyclic = true},
	{.name = "weekends at 95%, normal", .noise = INDEPENDENT, .weekend = 0.95, .cyclic = true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct span {
	int a_day, days;
};
static const struct span spans[SPANS] = {
	{24, 3}, {24, 7}, {24, 14}, {24, 21}, {24, 30}, {4, 30}, {1, 60}, {1, 365}};

struct replay_data {
	double last, walk, phase;
	size_t mode;
};

static double value_of(
	const struct kind *kind, struct replay_data *past, uint64_t *state, size_t i, double hours)
{
	double z = draw_normal(state),
	       phase = fmod((double)i * hours / kind->hours + past->phase, 1);

	switch (kind->noise) {
	case INDEPENDENT: return exp(0.05 * z);
	case HEAVY: return exp(0.05 * draw_t3(state));
	case AR:
		past->last = kind->hours * past->last + sqrt(1 - kind->hours * kind->hours) * z;
		return exp(0.05 * past->last);
	case MODES:
		if (kind->hours <= hours || draw_unit(state) < hours / kind->hours)
			past->mode = draw_between(state, 0, kind->modes - 1);
		return exp(0.1 * (double)past->mode + 0.02 * z);
	case DRIFT:
		past->last = 0.99 * past->last + sqrt(1 - 0.99 * 0.99) * draw_normal(state);
		return exp(0.03 * past->last + 0.03 * z);
	case WALK: return exp((past->walk += 0.01 * draw_normal(state)) + 0.02 * z);
	case SAWTOOTH: return exp(0.2 * phase + 0.03 * z);
	case SQUARE: return exp(0.2 * (phase < 0.5) + 0.03 * z);
	case COUNTS: return draw_count(state, kind->hours) / 100;
	case BINARY: return draw_unit(state) < 0.3 ? 0.01 : 0;
	case STICKY:
		past->mode = draw_unit(state) < 0.1 ? draw_bits(state) & 1 : past->mode;
		return past->mode ? 0.01 : 0;
	}
	return 1;
}

static void make(const struct kind *kind, const struct span *span, uint64_t seed, double *values,
	int64_t *times)
{
	uint64_t state = seed * 0xd1342543de82ef95 + 77;
	int64_t first = START + (int64_t)(draw_bits(&state) % 8000) * HOUR;
	struct replay_data past = {.phase = draw_unit(&state), .last = draw_normal(&state)};

	for (size_t i = 0; i < (size_t)(span->a_day * span->days); i++) {
		times[i] = first + (int64_t)i * 24 * HOUR / span->a_day;
		bool off = (times[i] / (24 * HOUR) + 3) % 7 >= 5;
		values[i] = 100 * value_of(kind, &past, &state, i, 24.0 / span->a_day) *
			    (off && kind->weekend > 0 ? kind->weekend : 1);
	}
}

/* The share that is accepted, in percent; of a kind with a cycle, that whose week is. */
static double accepted(const struct kind *kind, const struct span *span, size_t series,
	uint64_t first, struct scratch *scratch)
{
	static double values[MOST];
	static int64_t times[MOST];
	size_t count = 0;

	for (size_t s = 0; s < series; s++) {
		make(kind, span, first + s, values, times);
		struct season season = season_fit(SEASON_AUTO, (struct season_clock){0}, 0, values,
			times, (size_t)(span->a_day * span->days), scratch);
		count += kind->cyclic ? (season.cycles & SEASON_WEEKLY) != 0 : season.cycles != 0;
		season_free(&season);
	}
	return 100 * (double)count / (double)series;
}

int main(int argc, char **argv)
{
	size_t series = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
	uint64_t first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	struct scratch *scratch = scratch_new();

	printf("| series |");
	for (size_t i = 0; i < SPANS; i++)
		printf(" %d days of %d |", spans[i].days, spans[i].a_day);
	printf("\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t k = 0; k < KINDS; k++) {
		printf("| %s |", kinds[k].name);
		for (size_t i = 0; i < SPANS; i++)
			printf(" %.1f |", accepted(&kinds[k], &spans[i], series, first, scratch));
		printf("\n");
		fflush(stdout);
	}
	scratch_free(scratch);
	return 0;
}
