/*
 * For each place of the step, the runs are a linear model with a random walk for the level of each
 * worker. A Kalman filter with a diffuse start whitens the values and the step's indicator alike;
 * the step is then a regression of the ones on the others. Whether a run is an outlier is a latent
 * variable of the EM algorithm: its weight is the probability that it is none, from the residual of
 * the smoothed level. The spread is integrated out, so that few runs give the tails of Student's t.
 *
 * Candidates between two positions that were measured have the same likelihood, so there are as
 * many places to try as positions measured.
 */
#include "agent/bisect/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/sort.h"
#include "detectors/stats.h"

/* A run is an outlier with this probability, and is then anywhere in a range that is so many times
 * the step or so many times four spreads. */
static const double outliers = 0.02, outlier_range = 10;
/* Prior variance of the step, in squared spreads; prior degrees of freedom of a known and of an
 * unknown spread. */
static const double step_variance = 1e4, known_df = 2, unknown_df = 0.5;
static const double weight_least = 1e-6;
/* Drifts whose log likelihood is lower than the best by more than this are ignored. */
static const double drifts_apart = 6;
/* The first outlier weights are generous: they use this times the spread that medians give. */
static const double begin_width = 1.5;
/* Standard deviation of the drift between consecutive runs of a worker, in spreads, and its prior
 * cost. */
static const struct {
	double size, cost;
} drifts[] = {{0.02, 0}, {0.07, 0.5}, {0.2, 1.5}, {0.6, 3}};
enum { DRIFTS = sizeof drifts / sizeof *drifts, ROUNDS = 4 };

/* A run in a fit. */
struct point {
	double x;
	size_t position;
	bool after; /* at or behind the place of the step */
	double weight, residual, level, variance, predicted;
};

struct bisect_search {
	size_t count, workers;
	double spread; /* as it was given */
	struct search_run *runs;
	size_t run_count, run_capacity;
	bool positive;
	double base; /* of the good level, where values are not logarithms */

	bool fresh;                       /* the following is of all runs */
	double *probability, *likelihood; /* likelihood: room */
	struct search_step fitted;

	/* Room for one fit, [run_capacity] */
	struct point *points;
	double *scratch;
	size_t *first; /* of each worker's points, [workers + 1] */
	size_t n;
};

/* Options common to the fits of one query. */
struct fit_options {
	double drift;         /* variance a run, in squared spreads */
	double step;          /* about, to begin with */
	double outlier_level; /* density of outliers */
	double prior_df, prior_squares;
};

/* The result of a fit. */
struct fit {
	struct search_step step;
	double likelihood; /* logarithm, up to a constant common to all places */
};

struct bisect_search *bisect_search_new(size_t count, size_t workers, double spread)
{
	struct bisect_search *search = memory_new(1, sizeof *search);
	*search = (struct bisect_search){
		.count = count, .workers = workers, .spread = spread, .positive = true};
	search->probability = memory_new(count + 1, sizeof *search->probability);
	search->likelihood = memory_new(count + 1, sizeof *search->likelihood);
	search->first = memory_new(workers + 1, sizeof *search->first);
	return search;
}

void bisect_search_free(struct bisect_search *search)
{
	if (!search)
		return;
	void *const parts[] = {search->runs, search->probability, search->likelihood,
		search->points, search->scratch, search->first, search};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		free(parts[i]);
}

void bisect_search_add(struct bisect_search *search, const struct search_run *run)
{
	size_t before = search->run_capacity;
	search->runs = memory_grow(
		search->runs, &search->run_capacity, search->run_count + 1, sizeof *search->runs);
	search->runs[search->run_count++] = *run;
	search->positive = search->positive && run->value > 0;
	search->fresh = false;
	if (search->run_capacity == before)
		return;
	search->points =
		memory_resize(search->points, search->run_capacity, sizeof *search->points);
	search->scratch =
		memory_resize(search->scratch, search->run_capacity, sizeof *search->scratch);
}

enum choice { CHOOSE_ALL, CHOOSE_ENDS, CHOOSE_VERIFYING };

/* Copies the chosen runs into the work arrays, worker by worker. */
static void choose(struct bisect_search *search, enum choice choice)
{
	search->n = 0;
	for (size_t worker = 0; worker < search->workers; worker++) {
		search->first[worker] = search->n;
		for (size_t i = 0; i < search->run_count; i++) {
			const struct search_run *run = &search->runs[i];
			bool end = run->position == 0 || run->position == search->count;
			if (run->worker != worker || (choice == CHOOSE_ENDS && !end) ||
				(choice == CHOOSE_VERIFYING && !run->verifies))
				continue;
			search->points[search->n++] =
				(struct point){.x = search->positive ? log(run->value) : run->value,
					.position = run->position};
		}
	}
	search->first[search->workers] = search->n;
}

/* The median of one worker's values without the step, or only of those before or behind it. */
static double median_of(struct bisect_search *search, size_t worker, double step, int only)
{
	size_t n = 0;
	for (size_t i = search->first[worker]; i < search->first[worker + 1]; i++) {
		const struct point *point = &search->points[i];
		if (only < 0 || point->after == only)
			search->scratch[n++] = point->x - step * point->after;
	}
	return n == 0 ? nan("") : sort_median(search->scratch, n);
}

/* Workers with runs in the work arrays. */
static size_t levels_of(const struct bisect_search *search)
{
	size_t levels = 0;
	for (size_t worker = 0; worker < search->workers; worker++)
		levels += search->first[worker + 1] > search->first[worker];
	return levels;
}

/*
 * Residuals from the medians of the workers, and a spread from their median size. A median takes
 * one of its values for itself, so the least residual of each worker is left out.
 */
static double begin_residuals(struct bisect_search *search, double step)
{
	for (size_t worker = 0; worker < search->workers; worker++) {
		double level = median_of(search, worker, step, -1);
		for (size_t i = search->first[worker]; i < search->first[worker + 1]; i++) {
			struct point *point = &search->points[i];
			point->residual = point->x - step * point->after - level;
			point->variance = 0;
		}
	}
	size_t levels = levels_of(search);
	for (size_t i = 0; i < search->n; i++)
		search->scratch[i] = fabs(search->points[i].residual);
	sort_sort(search->scratch, search->n);
	return 1.4826 * search->scratch[levels + (search->n - levels) / 2 - (search->n == levels)];
}

/* The probability of each run to be no outlier. */
static void weigh(struct bisect_search *search, double spread, double outlier_level)
{
	double scale = (1 - outliers) / (spread * sqrt(2 * M_PI));
	for (size_t i = 0; i < search->n; i++) {
		struct point *point = &search->points[i];
		double z = point->residual / spread;
		double usual = scale * exp(-0.5 * (z * z + point->variance));
		point->weight = fmax(usual / (usual + outlier_level), weight_least);
	}
}

struct sums {
	double xx, xz, zz, log_variance;
};

/* Whitens values and step, and adds up their products. */
static struct sums filter(struct bisect_search *search, double drift)
{
	struct sums sums = {0};
	for (size_t worker = 0; worker < search->workers; worker++) {
		double x = 0, z = 0, variance = 0;
		size_t from = search->first[worker], to = search->first[worker + 1];
		for (size_t i = from; i < to; i++) {
			const struct point *point = &search->points[i];
			double noise = 1 / point->weight, indicator = point->after;
			if (i == from) {
				x = point->x;
				z = indicator;
				variance = noise;
				continue;
			}
			variance += drift;
			double total = variance + noise, share = variance / total;
			double dx = point->x - x, dz = indicator - z;
			sums.xx += dx * dx / total;
			sums.xz += dx * dz / total;
			sums.zz += dz * dz / total;
			sums.log_variance += log(total);
			x += share * dx;
			z += share * dz;
			variance *= 1 - share;
		}
	}
	return sums;
}

/* Residuals from the smoothed levels, and the variances of those, given the step. */
static void smooth(struct bisect_search *search, double drift, double step)
{
	for (size_t worker = 0; worker < search->workers; worker++) {
		double level = 0, variance = 0;
		size_t from = search->first[worker], to = search->first[worker + 1];
		for (size_t i = from; i < to; i++) {
			struct point *point = &search->points[i];
			double value = point->x - step * point->after;
			double noise = 1 / point->weight;
			point->predicted = variance + drift;
			double share =
				i == from ? 1 : point->predicted / (point->predicted + noise);
			level = i == from ? value : level + share * (value - level);
			variance = share * noise;
			point->level = level;
			point->variance = variance;
		}
		for (size_t i = to; i-- > from;) {
			struct point *point = &search->points[i];
			if (i + 1 < to) {
				const struct point *next = point + 1;
				double back = point->variance / next->predicted;
				point->level += back * (next->level - point->level);
				point->variance += back * back * (next->variance - next->predicted);
			}
			point->residual = point->x - step * point->after - point->level;
		}
	}
}

/* The likelihood of the outliers and of their weights. */
static double outlier_likelihood(const struct bisect_search *search, double outlier_level)
{
	double sum = 0;
	for (size_t i = 0; i < search->n; i++) {
		double weight = search->points[i].weight, rest = 1 - weight;
		sum += weight * log((1 - outliers) / weight) - 0.5 * log(weight);
		if (rest > 1e-12)
			sum += rest * log(outlier_level / rest);
	}
	return sum;
}

static struct fit fit_step(
	struct bisect_search *search, size_t place, const struct fit_options *options)
{
	size_t after = 0;
	for (size_t i = 0; i < search->n; i++)
		after += search->points[i].after = search->points[i].position >= place;
	double squares = 0, df = 0, spread = begin_residuals(search, options->step), step = 0;
	spread = fmax(begin_width * spread, sqrt(options->prior_squares / options->prior_df));
	struct sums sums = {0};
	for (int round = 0; round < ROUNDS; round++) {
		weigh(search, spread, options->outlier_level);
		sums = filter(search, options->drift);
		step = sums.xz / (sums.zz + 1 / step_variance);
		squares = fmax(sums.xx - step * sums.xz, 0) + options->prior_squares;
		df = options->prior_df - (double)levels_of(search);
		for (size_t i = 0; i < search->n; i++)
			df += search->points[i].weight;
		spread = sqrt(squares / fmax(df - 1, options->prior_df));
		if (round + 1 < ROUNDS)
			smooth(search, options->drift, step);
	}
	double n = df - options->prior_df;
	int sign;
	return (struct fit){.step = {.size = step,
				    .error = spread / sqrt(sums.zz + 1 / step_variance),
				    .spread = spread,
				    .df = df - 1,
				    .pairs = after < search->n - after ? after : search->n - after},
		.likelihood = outlier_likelihood(search, options->outlier_level) -
			      0.5 * sums.log_variance - 0.5 * log1p(step_variance * sums.zz) +
			      lgamma_r(fmax(0.5 * df, 0.25), &sign) - 0.5 * df * log(squares) -
			      0.5 * n * log(M_PI)};
}

/* A rough step at a place: between medians of each worker. */
static double rough_step(struct bisect_search *search, size_t place)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = 0; i < search->n; i++)
		search->points[i].after = search->points[i].position >= place;
	for (size_t worker = 0; worker < search->workers; worker++) {
		double step = median_of(search, worker, 0, 1) - median_of(search, worker, 0, 0);
		if (isfinite(step)) {
			sum += step;
			n++;
		}
	}
	return n > 0 ? sum / (double)n : 0;
}

/* Options of the fits, from the runs in the work arrays. */
static struct fit_options options_of(struct bisect_search *search, size_t place)
{
	double step = rough_step(search, place), spread = begin_residuals(search, step);
	double least = fmax(1e-3 * fabs(step), 1e-9 * fabs(search->positive ? 1 : search->base));
	bool known = search->spread > 0;
	double prior = known ? search->spread * (search->positive ? 1 : fabs(search->base)) : least;
	double df = known ? known_df : unknown_df;
	prior = fmax(prior, 1e-300);
	double range = outlier_range * fmax(fabs(step), 4 * fmax(spread, prior));
	return (struct fit_options){.drift = drifts[0].size * drifts[0].size,
		.step = step,
		.outlier_level = outliers / range,
		.prior_df = df,
		.prior_squares = df * prior * prior};
}

static struct search_step fit_chosen(struct bisect_search *search, enum choice choice, size_t place)
{
	choose(search, choice);
	if (search->n == 0)
		return (struct search_step){0};
	struct fit_options options = options_of(search, place);
	struct fit best = {0};
	for (size_t i = 0; i < DRIFTS; i++) {
		options.drift = drifts[i].size * drifts[i].size;
		struct fit fit = fit_step(search, place, &options);
		fit.likelihood -= drifts[i].cost;
		if (i == 0 || fit.likelihood > best.likelihood)
			best = fit;
	}
	return best.step;
}

/* Fits the step at each place; their likelihoods are left at the candidates, in `probability`,
 * which first marks the positions that have runs. */
static double try_places(
	struct bisect_search *search, const struct fit_options *options, size_t *best)
{
	double most = -HUGE_VAL;
	memset(search->probability, 0, search->count * sizeof *search->probability);
	for (size_t i = 0; i < search->n; i++)
		search->probability[search->points[i].position] = 1;
	search->probability[search->count] = 1;
	for (size_t place = search->count, last = place; place > 0; place = last) {
		struct fit fit = fit_step(search, place, options);
		if (fit.likelihood > most) {
			most = fit.likelihood;
			*best = place;
			search->fitted = fit.step;
		}
		for (last = place - 1; last > 0 && search->probability[last] == 0; last--)
			search->probability[last] = fit.likelihood;
		search->probability[place] = fit.likelihood;
	}
	return most;
}

/* Tries all drifts that explain the runs nearly as well as the likeliest; the likelihoods of the
 * places are their sums. */
static double try_drifts(struct bisect_search *search, struct fit_options *options)
{
	double most = -HUGE_VAL;
	size_t best = search->count;
	for (size_t i = 0; i < DRIFTS; i++) {
		struct search_step likeliest = search->fitted;
		options->drift = drifts[i].size * drifts[i].size;
		if (i > 0 && fit_step(search, best, options).likelihood - drifts[i].cost <
				     most - drifts_apart)
			continue;
		double found = try_places(search, options, &best) - drifts[i].cost;
		for (size_t position = 1; position <= search->count; position++) {
			double likelihood = search->probability[position] - drifts[i].cost;
			double *sum = &search->likelihood[position],
			       larger = fmax(*sum, likelihood);
			/* the logarithm of the sum of both */
			*sum = i == 0 ? likelihood
				      : larger + log1p(exp(fmin(*sum, likelihood) - larger));
		}
		if (found < most)
			search->fitted = likeliest;
		most = fmax(most, found);
	}
	memcpy(search->probability, search->likelihood,
		(search->count + 1) * sizeof *search->probability);
	return most;
}

static void update(struct bisect_search *search)
{
	if (search->fresh)
		return;
	search->fresh = true;
	search->fitted = (struct search_step){0};
	double most = 0, sum = 0;
	if (search->run_count == 0) {
		memset(search->probability, 0, (search->count + 1) * sizeof *search->probability);
	} else {
		size_t n = 0;
		for (size_t i = 0; i < search->run_count; i++)
			if (search->runs[i].position == 0)
				search->scratch[n++] = search->runs[i].value;
		search->base = n > 0 ? sort_median(search->scratch, n) : 0;
		choose(search, CHOOSE_ENDS);
		if (search->n == 0)
			choose(search, CHOOSE_ALL);
		struct fit_options options = options_of(search, search->count);
		choose(search, CHOOSE_ALL);
		most = try_drifts(search, &options);
	}
	double *probability = search->probability;
	probability[0] = 0;
	for (size_t position = 1; position <= search->count; position++)
		sum += probability[position] = exp(probability[position] - most);
	for (size_t position = 1; position <= search->count; position++)
		probability[position] /= sum;
}

const double *bisect_search_probability(struct bisect_search *search)
{
	update(search);
	return search->probability;
}

struct search_step bisect_search_fitted(struct bisect_search *search)
{
	update(search);
	return search->fitted;
}

struct search_step bisect_search_ends(struct bisect_search *search)
{
	update(search);
	return fit_chosen(search, CHOOSE_ENDS, search->count);
}

/* Keeps only the runs of two positions in the work arrays. */
static void keep_positions(struct bisect_search *search, size_t one, size_t other)
{
	size_t n = 0;
	for (size_t worker = 0, i = 0; worker < search->workers; worker++) {
		size_t end = search->first[worker + 1];
		search->first[worker] = n;
		for (; i < end; i++)
			if (search->points[i].position == one ||
				search->points[i].position == other)
				search->points[n++] = search->points[i];
	}
	search->first[search->workers] = search->n = n;
}

/* The spread of the ends is known independently of the commits between them. */
struct search_step bisect_search_verified(struct bisect_search *search, size_t before, size_t after)
{
	struct search_step ends = bisect_search_ends(search);
	choose(search, CHOOSE_VERIFYING);
	keep_positions(search, before, after);
	if (search->n == 0)
		return (struct search_step){0};
	struct fit_options options = options_of(search, after);
	if (ends.df > options.prior_df) {
		options.prior_df = ends.df;
		options.prior_squares = ends.df * ends.spread * ends.spread;
	}
	return fit_step(search, after, &options).step;
}

double bisect_search_p_value(struct search_step step)
{
	if (!(step.df >= 1) || step.size == 0)
		return 1;
	return student_two_sided(step.size / step.error, step.df);
}

double bisect_search_strength(struct search_step step)
{
	if (!(step.df >= 1) || step.size == 0)
		return 0;
	return fmin(fabs(step.size) / step.spread, 1e6);
}

double bisect_search_relative(const struct bisect_search *search, double size)
{
	if (search->positive)
		return expm1(size);
	return search->base != 0 ? size / fabs(search->base) : nan("");
}

double bisect_search_quantile(double p, double df)
{
	double low = 0, high = 1;
	while (student_two_sided(high, df) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 100 && high - low > 1e-9 * high; i++) {
		double middle = 0.5 * (low + high);
		if (student_two_sided(middle, df) > p)
			low = middle;
		else
			high = middle;
	}
	return 0.5 * (low + high);
}
