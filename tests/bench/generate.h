/*
 * Labelled series by the thousand: the benches of accuracy draw from these classes.
 *
 * A class says what a series is made of (noise, shape, outliers, ties, missing points), a seed
 * which one it is; the same seed gives the same series on every machine whose libm does. The first
 * 34 classes are those that detectors of this field were compared on; the ones marked hard were
 * added to find out where a detector ends.
 */
#ifndef TESTS_BENCH_GENERATE_H
#define TESTS_BENCH_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum series_group { GROUP_STEP, GROUP_MULTI, GROUP_RAMP, GROUP_EXCURSION, GROUP_FLAT };

enum noise {
	NOISE_NONE,
	NOISE_NORMAL,
	NOISE_UNIFORM,
	NOISE_T3,
	NOISE_LOGNORMAL,
	NOISE_EXPONENTIAL, /* a normal one and a tail upwards */
	NOISE_GAMMA,
	NOISE_MODES,    /* normal around one of `modes` levels, drawn anew or kept for a while */
	NOISE_GARCH,    /* calm and stormy stretches */
	NOISE_PERIODIC, /* a sine of the period `modes` with normal noise of a fifth */
	NOISE_COUNTS,   /* Poisson */
};

enum shape {
	SHAPE_FLAT,
	SHAPE_STEP,
	SHAPE_LATE_STEP, /* 8 to 20 points before the end */
	SHAPE_STEPS,     /* `count` of them, up or down, at least 12 points apart */
	SHAPE_UP_DOWN,   /* a step taken back 15 to 30 points later */
	SHAPE_RAMP,      /* over `count` points */
	SHAPE_LONG_RAMP, /* over the whole series */
	SHAPE_EXCURSION, /* `count` points */
	SHAPE_SHARE,     /* the share of the slow mode changes from 10% to 90% */
	SHAPE_SPREAD,    /* the noise grows fivefold, the level stays */
	SHAPE_BOTH,      /* a step, and the noise doubles */
};

struct series_class {
	const char *name;
	enum series_group group;
	enum noise noise;
	enum shape shape;
	double sd;       /* of the noise, as a share of the level */
	double size;     /* of a step, ramp or excursion, likewise */
	double memory;   /* AR(1) coefficient; of modes, the probability of staying */
	double mode;     /* distance between modes, likewise a share */
	double share;    /* of the points in the upper mode(s); 0: all alike */
	double outliers; /* share of points raised by 30 to 100% */
	double missing;  /* share of points */
	double unit;     /* values are rounded to multiples of it; 0: not */
	int modes, count;
	int shortest, longest; /* points a series has; 0: 200 */
	bool dependent;        /* flat, but not independent noise of one distribution */
	bool hard;
};

enum { SERIES_MOST = 2500, TRUTH_MOST = 8 };

struct labelled {
	double values[SERIES_MOST];
	size_t n;
	size_t truth[TRUTH_MOST]; /* first points of new regimes; of a ramp, its middle */
	size_t truth_count;
	size_t span_start, span_end; /* of a ramp or excursion; 0, 0 for others */
};

extern const struct series_class series_classes[];
extern const size_t series_class_count;

/* The class of that name, or NULL. */
const struct series_class *series_class_find(const char *name);

/* Series number `seed` of the class. */
void series_generate(const struct series_class *series_class, uint64_t seed, struct labelled *out);

/* splitmix64 and what is drawn from it; the state is any number. */
uint64_t draw_bits(uint64_t *state);
double draw_unit(uint64_t *state); /* [0, 1) */
double draw_normal(uint64_t *state);
double draw_t3(uint64_t *state); /* Student's t with 3 degrees of freedom, of deviation 1 */
double draw_count(uint64_t *state, double mean); /* Poisson; the mean at most some hundreds */
size_t draw_between(uint64_t *state, size_t least, size_t most);

#endif
