/*
 * Bisections by the thousand, as the tables of docs/design/bisection.md: how often sets hold the
 * culprit, runs and rounds beside git bisect with a majority of 5, beside the k-ary plan and beside
 * what information theory demands, flat ranges, a week of a lab.
 *
 *     bench_bisect                     speed, a row of tests/bench/run
 *     bench_bisect coverage|flat|bounds|week CASES
 *
 * What is needed at least. A round of k workers is k answers whether level or level + d (in
 * spreads) plus normal noise was measured: k + 1 inputs, of which the best probabilities (Arimoto
 * 1972; Blahut 1972) give the capacity C(k, d), here with fixed draws. The search has to bring
 * log2 N - h(.95) - .05 log2(N - 1) bits (Fano), so it takes that over C rounds at least, whatever
 * the method. Ends and verification are tests at P values of .003 and .01. Their strict bound is
 * Wald's: ln-odds over d^2 / 4 a pair, for who knows the spread and has a power of .95; a worker's
 * first run shows nothing without a second, so 2 rounds at least for the ends. What a test needs
 * that has to find the spread and the levels of the workers is the number of pairs for which
 * Student's t of the step itself is at its limit; the verification knows the spread.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "detectors/stats.h"
#include "tests/bench/generate.h"
#include "tests/bench/simulate_bisect.h"

enum { DRAWS = 1500, SWEEPS = 120, WORKERS_MOST = 8 };

/* Log densities of what codeword `a` gives, under each b: by the sums of its first draws. */
static void densities(
	size_t k, double d, const double *z, size_t a, double out[static WORKERS_MOST + 1])
{
	for (size_t b = 0; b <= k; b++) {
		double product = 0, size = a > b ? (double)(a - b) : (double)(b - a);
		for (size_t j = a < b ? a : b; j < (a < b ? b : a); j++)
			product += b > a ? z[j] : -z[j];
		out[b] = exp(d * product - 0.5 * size * d * d);
	}
}

/* Bits that the inputs give at the probabilities p; each input's share is left in `gain`, nats. */
static double information(size_t k, double d, const double *p, double *gain)
{
	double sum = 0;
	for (size_t a = 0; a <= k; a++) {
		uint64_t draws = 4711;
		gain[a] = 0;
		for (size_t i = 0; i < DRAWS; i++) {
			double z[WORKERS_MOST], under[WORKERS_MOST + 1];
			for (size_t j = 0; j < k; j++)
				z[j] = i % 2 == 0 ? draw_normal(&draws) : -draw_normal(&draws);
			densities(k, d, z, a, under);
			double mix = 0;
			for (size_t b = 0; b <= k; b++)
				mix += p[b] * under[b];
			gain[a] -= log(mix) / DRAWS;
		}
		sum += p[a] * gain[a];
	}
	return sum / M_LN2;
}

static double capacity(size_t k, double d)
{
	double p[WORKERS_MOST + 1], gain[WORKERS_MOST + 1], bits = 0;
	for (size_t a = 0; a <= k; a++)
		p[a] = 1 / ((double)k + 1);
	for (int i = 0; i < SWEEPS; i++) {
		double sum = 0;
		bits = information(k, d, p, gain);
		for (size_t a = 0; a <= k; a++)
			sum += p[a] *= exp(gain[a]);
		for (size_t a = 0; a <= k; a++)
			p[a] /= sum;
	}
	return bits;
}

static double demanded_bits(double n)
{
	const double miss = .05;
	return log2(n) + miss * log2(miss) + (1 - miss) * log2(1 - miss) - miss * log2(n - 1);
}

/* Pairs that Wald's inequality demands. */
static double demanded_pairs(double d, double level)
{
	return (.95 * log(.95 / level) + .05 * log(.05 / (1 - level))) / (d * d / 4);
}

/* Rounds in which k workers, a pair each in two of them, see the step at that level: the t of the
 * step is at its limit, with the spread from the same runs or known. */
static double needed_rounds(size_t k, double d, double level, bool known)
{
	for (size_t pairs = 1;; pairs++) {
		double df = known ? 1e9 : 2 * (double)pairs - fmin((double)pairs, (double)k) - 1;
		if (df >= 1 && student_two_sided(d * sqrt((double)pairs / 2), df) <= level)
			return 2 * ceil((double)pairs / (double)k);
	}
}

struct demand {
	double search, strict, needed; /* in rounds of a run for each worker */
};

static struct demand demand_of(size_t n, size_t k, double d, double bits_a_round)
{
	double search = demanded_bits((double)n) / bits_a_round, workers = (double)k;
	return (struct demand){.search = search,
		.strict = search + fmax(2, 2 * demanded_pairs(d, .003) / workers) +
			  2 * demanded_pairs(d, .01) / workers,
		.needed =
			search + needed_rounds(k, d, .003, false) + needed_rounds(k, d, .01, true)};
}

/* git bisect run with a script that takes the majority of 5 runs against the middle of levels that
 * it was told without error, on one worker. */
struct plain {
	size_t runs;
	bool hit;
};

static struct plain bisect_plainly(const struct simulated_lab *lab)
{
	uint64_t draws = lab->seed + 99;
	size_t good = 0, bad = lab->candidates, runs = 0;
	while (bad - good > 1) {
		size_t middle = good + (bad - good) / 2, votes = 0;
		double level = middle >= lab->culprit ? fabs(lab->step) : 0;
		for (int i = 0; i < 5; i++) {
			double value = level + draw_normal(&draws);
			if (draw_unit(&draws) < lab->outliers)
				value += (.3 + .7 * draw_unit(&draws)) / lab->noise *
					 (lab->step > 0 ? 1 : -1);
			votes += value > fabs(lab->step) / 2;
		}
		runs += 5;
		if (votes >= 3)
			bad = middle;
		else
			good = middle;
	}
	return (struct plain){.runs = runs, .hit = bad == lab->culprit};
}

static struct bisect_options options_of(const struct simulated_lab *lab)
{
	return (struct bisect_options){.workers = lab->workers,
		.confidence = .95,
		.step = (double)NAN,
		.spread = (double)NAN,
		.attempts = 2};
}

/* Everything at once: ranges, steps, workers, broken builds, drift, outliers. */
static struct simulated_lab mixed(size_t i, double step)
{
	uint64_t draws = 1000 * i + 7;
	struct simulated_lab lab = {.candidates = (size_t)16 << draw_between(&draws, 0, 6),
		.workers = draw_between(&draws, 1, WORKERS_MOST),
		.step = i % 2 == 0 ? step : -step,
		.noise = .02,
		.uneven = .05,
		.broken = .2 * draw_unit(&draws),
		.drift = .03 * draw_unit(&draws),
		.outliers = .02,
		.seed = i};
	lab.culprit = draw_between(&draws, 1, lab.candidates);
	return lab;
}

struct totals {
	size_t cases, not_reproduced, found, sets, held, hit, other, more;
	double runs, rounds, ends, search, verification, claimed, builds;
};

static void add(struct totals *totals, const struct simulated_end *end)
{
	totals->cases++;
	totals->not_reproduced += end->end == BISECT_NOT_REPRODUCED;
	if (end->end == BISECT_NOT_REPRODUCED)
		return;
	totals->found += end->end == BISECT_FOUND;
	totals->sets += end->end == BISECT_SET;
	totals->other += end->end != BISECT_FOUND && end->end != BISECT_SET;
	totals->held += end->holds;
	totals->hit += end->hit;
	totals->more += end->more_steps;
	totals->runs += (double)end->runs;
	totals->rounds += (double)end->rounds;
	totals->search += (double)end->search_rounds;
	totals->builds += (double)end->builds;
	totals->claimed += end->claimed;
}

static void coverage_table(size_t cases)
{
	static const double steps[] = {1, 1.5, 2, 3, 4, 5, 7, 10};
	enum { STEPS = sizeof steps / sizeof *steps };
	struct totals totals[STEPS] = {0};
	struct simulated_coverage coverage = {0};
	for (size_t i = 0; i < cases * STEPS; i++) {
		struct simulated_lab lab = mixed(i, steps[i % STEPS]);
		struct bisect_options options = options_of(&lab);
		struct simulated_end end;
		simulate_bisect(&lab, &options, &end, &coverage);
		add(&totals[i % STEPS], &end);
	}
	printf("| step, sd | cases | not reproduced | found | sets | culprit in the set | claimed "
	       "| "
	       "wrongly \"more steps\" | runs | rounds |\n"
	       "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t s = 0; s < STEPS; s++) {
		const struct totals *t = &totals[s];
		double n = (double)(t->cases - t->not_reproduced);
		printf("| %g | %zu | %zu | %zu | %zu | %.1f%% | %.1f%% | %zu | %.0f | %.0f |\n",
			steps[s], t->cases, t->not_reproduced, t->found, t->sets,
			100 * (double)t->held / n, 100 * t->claimed / n, t->more, t->runs / n,
			t->rounds / n);
	}
	printf("\n| set at | claimed | held |\n|--:|--:|--:|\n");
	for (size_t l = 0; l < SIMULATED_LEVELS; l++)
		printf("| %g%% | %.1f%% | %.1f%% |\n", 100 * simulated_levels[l],
			100 * coverage.claimed[l] / (double)coverage.asked[l],
			100 * (double)coverage.held[l] / (double)coverage.asked[l]);
	printf("\n%zu sets\n\n", coverage.asked[0]);
}

static void flat_table(size_t cases)
{
	size_t wrong = 0, runs = 0;
	for (size_t i = 0; i < cases; i++) {
		struct simulated_lab lab = mixed(i, 0);
		struct bisect_options options = options_of(&lab);
		struct simulated_end end;
		lab.culprit = 0;
		simulate_bisect(&lab, &options, &end, NULL);
		wrong += end.end != BISECT_NOT_REPRODUCED;
		runs += end.runs;
	}
	printf("flat ranges: %zu cases, %.1f%% not reproduced, %.0f runs\n\n", cases,
		100 * (double)(cases - wrong) / (double)cases, (double)runs / (double)cases);
}

/* One row: a range of 256, no broken commits, so that the bounds are what they say. */
static void compare(size_t cases, double step, size_t workers)
{
	enum { RANGE = 256 };
	struct totals totals = {0};
	size_t plain_runs = 0, plain_hits = 0;
	for (size_t i = 0; i < cases; i++) {
		uint64_t draws = 31 * i + 5;
		struct simulated_lab lab = {.candidates = RANGE,
			.workers = workers,
			.step = i % 2 == 0 ? step : -step,
			.noise = .02,
			.uneven = .05,
			.drift = .02,
			.outliers = .02,
			.culprit = draw_between(&draws, 1, RANGE),
			.seed = i + 100000 * workers};
		struct bisect_options options = options_of(&lab);
		struct simulated_end end;
		simulate_bisect(&lab, &options, &end, NULL);
		add(&totals, &end);
		struct plain plain = bisect_plainly(&lab);
		plain_runs += plain.runs;
		plain_hits += plain.hit;
	}
	double n = (double)(totals.cases - totals.not_reproduced), all = (double)cases;
	struct demand demand = demand_of(RANGE, workers, step, capacity(workers, step));
	printf("| %g | %zu | %.1f%% | %.1f | %.1f | %.1f | %.1f | **%.2f** | %.1f | %.1f | "
	       "**%.2f** | "
	       "%.2f | %zu × %zu | %.0f, %.0f%% |\n",
		step, workers, 100 * (double)totals.held / n, totals.runs / n, totals.builds / n,
		totals.search / n, demand.search, totals.search / n / demand.search,
		totals.rounds / n, demand.needed, totals.rounds / n / demand.needed,
		totals.rounds / n / demand.strict, plan_rounds(RANGE, workers),
		plan_runs_a_probe(step, .95, RANGE, workers), (double)plain_runs / all,
		100 * (double)plain_hits / all);
	fflush(stdout);
}

static void comparison_table(size_t cases)
{
	static const double steps[] = {1, 2, 3, 4, 6, 10};
	static const size_t workers[] = {1, 3, 8};
	printf("| step, sd | workers | in the set | runs | builds | search rounds | bound | ratio "
	       "| "
	       "all rounds | needed | ratio | over the strict bound | "
	       "k-ary rounds × runs a probe | git bisect, majority of 5: runs, right |\n"
	       "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
		for (size_t k = 0; k < sizeof workers / sizeof *workers; k++)
			compare(cases, steps[s], workers[k]);
	printf("\n");
}

/* A week of a lab: commits by the hour, every n-th is tested, a found step is bisected. */
struct week {
	double commits, regressions, found, wait, bisect, runs, right;
	double busy_testing, busy_bisecting;
};

static void lab_week(struct week *week, uint64_t seed, size_t every, double regressions)
{
	const double per_hour = 15, run_hours = 20. / 60, hours = 7 * 24, step = 4;
	const size_t workers = 3;
	uint64_t draws = seed;
	size_t commits = (size_t)(hours * per_hour);
	double free_at = 0;
	week->commits += (double)commits;
	week->busy_testing += (double)commits / (double)every * run_hours / hours;
	for (size_t at = 1; at <= commits; at++) {
		if (draw_unit(&draws) >= regressions / per_hour / 24)
			continue;
		size_t test = (at + every - 1) / every * every;
		double pushed = (double)at / per_hour, known = (double)test / per_hour + run_hours;
		struct simulated_lab lab = {.candidates = every,
			.culprit = at - (test - every),
			.workers = workers,
			.step = step,
			.noise = .01,
			.uneven = .03,
			.drift = .02,
			.outliers = .02,
			.broken = .05,
			.seed = draw_bits(&draws)};
		struct bisect_options options = options_of(&lab);
		struct simulated_end end;
		simulate_bisect(&lab, &options, &end, NULL);
		double begins = fmax(known, free_at), took = (double)end.rounds * run_hours;
		free_at = begins + took;
		week->regressions++;
		week->found += end.end == BISECT_FOUND || end.end == BISECT_SET;
		week->right += end.holds;
		week->wait += known - pushed;
		week->bisect += free_at - known;
		week->runs += (double)end.runs;
		week->busy_bisecting += took / hours;
	}
}

static void week_table(size_t weeks)
{
	static const double regressions[] = {1, 3, 6};
	printf("| every | regressions a day | weeks | devices busy testing | of 3 busy bisecting | "
	       "until a test has it | until the culprit, behind that | runs | named rightly |\n"
	       "|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t every = 4; every <= 64; every *= 4)
		for (size_t r = 0; r < sizeof regressions / sizeof *regressions; r++) {
			struct week week = {0};
			for (size_t i = 0; i < weeks; i++)
				lab_week(&week, 100 * every + i, every, regressions[r]);
			double n = week.regressions, w = (double)weeks;
			printf("| %zu | %g | %zu | %.2f | %.0f%% | %.0f min | %.1f h | %.0f | "
			       "%.1f%% |\n",
				every, regressions[r], weeks, week.busy_testing / w,
				100 * week.busy_bisecting / w, 60 * week.wait / n, week.bisect / n,
				week.runs / n, 100 * week.right / n);
		}
	printf("\n");
}

static void speed(void)
{
	struct simulated_lab lab = {.candidates = 1024,
		.culprit = 700,
		.workers = 1,
		.step = 1.5,
		.noise = .02,
		.drift = .02,
		.outliers = .02};
	struct bisect_options options = options_of(&lab);
	size_t runs = 0;
	clock_t begin = clock();
	for (lab.seed = 0; lab.seed < 20; lab.seed++) {
		struct simulated_end end;
		simulate_bisect(&lab, &options, &end, NULL);
		runs += end.runs;
	}
	printf("bisect\t1,024 candidates, step of 1.5 spreads: a run asked for and told\t%.2f "
	       "ms\t\t\n",
		1000 * (double)(clock() - begin) / CLOCKS_PER_SEC / (double)runs);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(size_t cases);
	} parts[] = {{"coverage", coverage_table}, {"flat", flat_table},
		{"bounds", comparison_table}, {"week", week_table}};
	size_t cases = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	if (argc < 2)
		speed();
	for (size_t i = 0; argc > 1 && i < sizeof parts / sizeof *parts; i++)
		if (strcmp(argv[1], parts[i].name) == 0)
			parts[i].print(cases);
	return 0;
}
