/*
 * Rounds: when nothing is planned and nothing runs, the next round is planned from what is known;
 * workers then take their runs from it. A round's plan follows from the results before it, so
 * replaying a journal of runs and results restores the plan as well.
 *
 * Ends: pairs of runs of both ends on each worker, until the step shows or is given up. Search: a
 * position for each worker. If k workers make r runs each of a step of d spreads, the cutoff rate
 * of their answers, -log2 sum p(a) p(b) rho^|a - b| over the k + 1 possible places of the culprit
 * between them with rho = exp(-r d^2 / 8), is largest if the outer places get the probability 1 and
 * the inner ones 1 - rho each, over their sum: the inverse of that matrix is tridiagonal. Without
 * noise these are equal parts, with much of it all workers are at the median. Verification: pairs
 * of runs of the culprit and its parent.
 */
#include "agent/bisect/bisection.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/bisect/search.h"

enum {
	RUNS_MOST = 20000,
	PAIRS_LEAST = 3,
	PAIRS_USUAL = 20, /* without a hint of a step it is given up then */
	PAIRS_MOST = 60,
	ENDS_APART = 6, /* runs of a worker between runs of ends */
	BATCH_MOST = 4, /* runs of a probe between two checks */
};

/* P values at which a step is accepted: at each check of the ends, and against the culprit's
 * parent. */
static const double ends_level = 0.003, verified_level = 0.01;
/* Above it, later runs of the ends contradict the step: the ends are measured again. */
static const double doubtful_level = 0.02;
/* The rest of the ends' step, beyond the culprit's, that counts as another step: as a share of the
 * ends' step, and its P value. */
static const double more_steps_share = 0.1, more_steps_level = 0.01;
/* A step of so many spreads exceeds the drift of levels in a search. */
static const double drift_strength = 20;
/* Runs a probe, at most. */
static const double probe_most = 1e6;
/* A step whose t is at least that may yet show. */
static const double hopeful = 1.7;

struct item {
	size_t position, worker;
};

struct position {
	size_t failures; /* in a row */
	size_t runs;     /* measured */
	bool broken;
};

struct worker {
	struct bisect_run run; /* the latest */
	bool running;
	size_t since_end;      /* runs since its last run of an end */
	size_t ends, verified; /* runs of each kind asked for */
};

struct bisection {
	struct bisect_options options;
	size_t count;
	struct bisect_search *search;
	struct position *positions; /* [count + 1] */
	struct worker *workers;
	size_t run_count, running;
	uint64_t last_id;
	struct item *plan;
	size_t plan_count, plan_capacity;
	enum bisect_phase phase;
	enum bisect_end end;
	size_t round;
	bool begun;
	int64_t first_begun;
	struct bisect_status status;
	bool is_fresh;
	struct bisect_candidate *set;
};

/* The candidates between two positions that can be tested. */
struct block {
	size_t before, last; /* positions; candidates are before + 1 to last */
	double probability;
};

static void decide(struct bisection *bisection);
static void decide_search(struct bisection *bisection);

struct bisection *bisection_new(const struct bisect_options *options, size_t count)
{
	assert(count >= 1 && count <= BISECT_CANDIDATES_MOST);
	assert(options->workers >= 1 && options->workers <= BISECT_WORKERS_MOST);
	struct bisection *bisection = memory_new(1, sizeof *bisection);
	*bisection = (struct bisection){.options = *options, .count = count};
	bisection->search = bisect_search_new(count, options->workers, options->spread);
	bisection->positions = memory_new(count + 1, sizeof *bisection->positions);
	bisection->workers = memory_new(options->workers, sizeof *bisection->workers);
	bisection->set = memory_new(count, sizeof *bisection->set);
	decide(bisection);
	return bisection;
}

void bisection_free(struct bisection *bisection)
{
	if (!bisection)
		return;
	bisect_search_free(bisection->search);
	free(bisection->positions);
	free(bisection->workers);
	free(bisection->plan);
	free(bisection->set);
	free(bisection);
}

static void finish(struct bisection *bisection, enum bisect_end end)
{
	if (bisection->phase == BISECT_OVER)
		return;
	bisection->phase = BISECT_OVER;
	bisection->end = end;
	bisection->plan_count = 0;
	bisection->is_fresh = false;
}

/* Plans. */

static void add_item(struct bisection *bisection, size_t worker, size_t position)
{
	bisection->plan = memory_grow(bisection->plan, &bisection->plan_capacity,
		bisection->plan_count + 1, sizeof *bisection->plan);
	bisection->plan[bisection->plan_count++] = (struct item){position, worker};
}

/* A run of each of two positions; pairs of a worker take turns in which comes first, so that drift
 * cancels. */
static void add_pair(
	struct bisection *bisection, size_t worker, size_t turn, size_t one, size_t other)
{
	bool swap = (turn + worker) % 2 == 1;
	add_item(bisection, worker, swap ? other : one);
	add_item(bisection, worker, swap ? one : other);
}

static double strength(struct bisection *bisection)
{
	double found = bisect_search_strength(bisect_search_fitted(bisection->search));
	if (found > 0)
		return found;
	double expected = fabs(bisection->options.step) / bisection->options.spread;
	return expected > 0 && isfinite(expected) ? expected : 1;
}

static bool is_expected(const struct bisection *bisection, struct search_step step)
{
	int direction = bisection->options.direction;
	return direction == 0 || (direction > 0) == (step.size > 0);
}

static void decide_ends(struct bisection *bisection)
{
	if (bisection->positions[0].broken || bisection->positions[bisection->count].broken) {
		finish(bisection, BISECT_ENDS_BROKEN);
		return;
	}
	struct search_step ends = bisect_search_ends(bisection->search);
	bool expected = is_expected(bisection, ends);
	size_t workers = bisection->options.workers;
	size_t each = ends.pairs > 0 ? 1 : (PAIRS_LEAST + workers - 1) / workers;
	if (ends.pairs >= PAIRS_LEAST && expected && bisect_search_p_value(ends) <= ends_level) {
		decide_search(bisection);
		return;
	}
	/* The ends do not differ, as far as it is worth measuring. */
	if (ends.pairs >= PAIRS_MOST ||
		(ends.pairs >= PAIRS_USUAL &&
			(fabs(ends.size / ends.error) < hopeful || !expected))) {
		finish(bisection, BISECT_NOT_REPRODUCED);
		return;
	}
	for (size_t worker = 0; worker < workers; worker++)
		for (size_t i = 0; i < each; i++)
			add_pair(bisection, worker, bisection->workers[worker].ends / 2 + i, 0,
				bisection->count);
}

static struct block best_block(struct bisection *bisection)
{
	const double *probability = bisect_search_probability(bisection->search);
	struct block best = {0};
	for (size_t before = 0; before < bisection->count;) {
		struct block block = {before, before, 0};
		do
			block.probability += probability[++block.last];
		while (block.last < bisection->count && bisection->positions[block.last].broken);
		if (block.probability > best.probability)
			best = block;
		before = block.last;
	}
	return best;
}

static bool is_whole_range(const struct bisection *bisection, struct block block)
{
	return block.before == 0 && block.last == bisection->count;
}

static struct search_step verified(struct bisection *bisection, struct block block)
{
	return is_whole_range(bisection, block)
		       ? bisect_search_ends(bisection->search)
		       : bisect_search_verified(bisection->search, block.before, block.last);
}

/* The culprit is probable enough: compares it with its parent until the step is confirmed or
 * refuted. */
static void decide_verification(struct bisection *bisection, struct block block)
{
	struct search_step step = verified(bisection, block);
	bool shows = step.pairs >= PAIRS_LEAST && bisect_search_p_value(step) <= verified_level;
	bisection->phase = BISECT_VERIFY;
	if (shows) {
		finish(bisection, block.last - block.before == 1 ? BISECT_FOUND : BISECT_SET);
	} else if (step.pairs >= PAIRS_MOST) {
		finish(bisection, BISECT_SET);
	} else {
		size_t workers = bisection->options.workers,
		       lacking = step.pairs < PAIRS_LEAST ? PAIRS_LEAST - step.pairs : 1;
		for (size_t i = 0; i < lacking; i++)
			add_pair(bisection, i % workers,
				bisection->workers[i % workers].verified / 2, block.before,
				block.last);
	}
}

/* The end whose level is less well known: it has fewer runs. */
static size_t lacking_end(const struct bisection *bisection)
{
	const double *probability = bisect_search_probability(bisection->search);
	size_t good = 0, bad = 0;
	double sum = 0;
	for (size_t position = 0; position <= bisection->count; position++) {
		sum += probability[position];
		good += sum < 0.5 ? bisection->positions[position].runs : 0;
		bad += sum < 0.5 ? 0 : bisection->positions[position].runs;
	}
	return good <= bad ? 0 : bisection->count;
}

/* The testable position where the probability of being bad is nearest to a target; of equal ones
 * that with fewer runs. */
static size_t nearest(struct bisection *bisection, double target)
{
	const double *probability = bisect_search_probability(bisection->search);
	double bad = 0, least = HUGE_VAL;
	size_t best = bisection->count;
	for (size_t position = 1; position < bisection->count; position++) {
		bad += probability[position];
		if (bisection->positions[position].broken)
			continue;
		double distance = fabs(bad - target);
		bool equal = fabs(distance - least) < 1e-9;
		if (equal ? bisection->positions[position].runs < bisection->positions[best].runs
			  : distance < least) {
			least = distance;
			best = position;
		}
	}
	return best;
}

/* The plan on paper: rounds without noise, and the runs that noise takes. */

size_t plan_rounds(size_t candidates, size_t workers)
{
	size_t rounds = 0;
	for (size_t reach = 1; reach < candidates; reach *= workers + 1)
		rounds++;
	return rounds;
}

size_t plan_runs_a_probe(double strength, double confidence, size_t candidates, size_t workers)
{
	double probes = (double)(plan_rounds(candidates, workers) * workers);
	double z = bisect_search_quantile((1 - confidence) / fmax(probes, 1), 1e9);
	double runs = ceil(4 * z * z / (strength * strength));
	return (size_t)fmin(fmax(runs, 1), probe_most);
}

static void plan_search(struct bisection *bisection)
{
	size_t workers = bisection->options.workers;
	double d = strength(bisection);
	size_t batch =
		plan_runs_a_probe(d, bisection->options.confidence, bisection->count, workers) /
		(6 * workers);
	batch = batch < 1 ? 1 : batch > BATCH_MOST ? BATCH_MOST : batch;
	double rho = exp(-(double)batch * d * d / 8);
	for (size_t i = 0; i < workers; i++) {
		double target =
			(1 + (double)i * (1 - rho)) / (2 + ((double)workers - 1) * (1 - rho));
		size_t position = nearest(bisection, target);
		struct worker *worker = &bisection->workers[i];
		if (worker->since_end >= ENDS_APART && d < drift_strength)
			add_item(bisection, i, lacking_end(bisection));
		for (size_t k = 0; k < batch; k++)
			add_item(bisection, i, position);
	}
}

static void decide_search(struct bisection *bisection)
{
	struct search_step ends = bisect_search_ends(bisection->search);
	if (bisect_search_p_value(ends) > doubtful_level) {
		bisection->phase = BISECT_ENDS;
		decide_ends(bisection);
		return;
	}
	struct block block = best_block(bisection);
	if (block.probability >= bisection->options.confidence ||
		is_whole_range(bisection, block)) {
		decide_verification(bisection, block);
	} else {
		bisection->phase = BISECT_SEARCH;
		plan_search(bisection);
	}
}

static bool is_spent(const struct bisection *bisection)
{
	size_t most = bisection->options.most_runs;
	return bisection->run_count >= (most > 0 && most < RUNS_MOST ? most : RUNS_MOST);
}

static void decide(struct bisection *bisection)
{
	if (bisection->plan_count > 0 || bisection->running > 0)
		return;
	if (is_spent(bisection))
		finish(bisection, BISECT_OUT_OF_BUDGET);
	if (bisection->phase == BISECT_ENDS)
		decide_ends(bisection);
	else if (bisection->phase != BISECT_OVER)
		decide_search(bisection);
	bisection->round++;
}

/* Runs. */

/* The index of the item that a worker takes: its own, else that of an absent worker. */
static size_t item_for(const struct bisection *bisection, size_t worker)
{
	size_t other = bisection->plan_count;
	for (size_t i = 0; i < bisection->plan_count; i++) {
		size_t owner = bisection->plan[i].worker;
		if (owner == worker)
			return i;
		if (other == bisection->plan_count && !bisection->workers[owner].running)
			other = i;
	}
	return other;
}

static void remove_item(struct bisection *bisection, size_t index)
{
	bisection->plan_count--;
	memmove(&bisection->plan[index], &bisection->plan[index + 1],
		(bisection->plan_count - index) * sizeof *bisection->plan);
}

static bool is_end(const struct bisection *bisection, size_t position)
{
	return position == 0 || position == bisection->count;
}

/* Starts a run. */
static void start_run(struct bisection *bisection, const struct bisect_run *run)
{
	struct worker *worker = &bisection->workers[run->worker];
	bisection->run_count++;
	bisection->last_id = run->id > bisection->last_id ? run->id : bisection->last_id;
	bisection->running++;
	worker->run = *run;
	worker->running = true;
	worker->since_end = is_end(bisection, run->position) ? 0 : worker->since_end + 1;
	worker->ends += is_end(bisection, run->position);
	worker->verified += run->phase == BISECT_VERIFY;
	bisection->is_fresh = false;
}

static void check_time(struct bisection *bisection, int64_t now)
{
	if (bisection->options.budget > 0 && bisection->begun &&
		now - bisection->first_begun >= bisection->options.budget)
		finish(bisection, BISECT_OUT_OF_BUDGET);
}

bool bisection_next(struct bisection *bisection, size_t worker, int64_t now, struct bisect_run *run)
{
	check_time(bisection, now);
	if (bisection->phase == BISECT_OVER || worker >= bisection->options.workers ||
		bisection->workers[worker].running)
		return false;
	if (is_spent(bisection)) {
		if (bisection->running == 0)
			finish(bisection, BISECT_OUT_OF_BUDGET);
		return false;
	}
	size_t index = item_for(bisection, worker);
	if (index == bisection->plan_count)
		return false;
	*run = (struct bisect_run){.id = bisection->last_id + 1,
		.worker = worker,
		.position = bisection->plan[index].position,
		.phase = bisection->phase,
		.round = bisection->round};
	remove_item(bisection, index);
	start_run(bisection, run);
	return true;
}

void bisection_resume(struct bisection *bisection, const struct bisect_run *run)
{
	if (run->worker >= bisection->options.workers || run->position > bisection->count ||
		bisection->workers[run->worker].running)
		return;
	size_t index = 0;
	while (index < bisection->plan_count &&
		(bisection->plan[index].worker != run->worker ||
			bisection->plan[index].position != run->position))
		index++;
	for (size_t i = 0; index == bisection->plan_count && i < bisection->plan_count; i++)
		if (bisection->plan[i].position == run->position)
			index = i;
	if (index < bisection->plan_count)
		remove_item(bisection, index);
	start_run(bisection, run);
}

/* A commit that cannot be tested gets no more runs. */
static void set_broken(struct bisection *bisection, size_t position)
{
	bisection->positions[position].broken = true;
	for (size_t i = bisection->plan_count; i-- > 0;)
		if (bisection->plan[i].position == position)
			remove_item(bisection, i);
	if (is_end(bisection, position))
		finish(bisection, BISECT_ENDS_BROKEN);
}

static void fail(struct bisection *bisection, const struct bisect_run *run)
{
	struct position *position = &bisection->positions[run->position];
	if (++position->failures >= bisection->options.attempts)
		set_broken(bisection, run->position);
	else
		add_item(bisection, run->worker, run->position);
}

static void settle(struct bisection *bisection, const struct bisect_run *run,
	const struct bisect_result *result)
{
	struct position *position = &bisection->positions[run->position];
	switch (result->outcome) {
	case BISECT_MEASURED:
		if (!isfinite(result->value)) {
			fail(bisection, run);
			break;
		}
		position->failures = 0;
		position->runs++;
		bisect_search_add(
			bisection->search, &(struct search_run){.value = result->value,
						   .worker = run->worker,
						   .position = run->position,
						   .verifies = run->phase == BISECT_VERIFY});
		break;
	case BISECT_UNTESTABLE: set_broken(bisection, run->position); break;
	case BISECT_FAILED: fail(bisection, run); break;
	case BISECT_LOST: add_item(bisection, run->worker, run->position); break;
	}
}

bool bisection_tell(struct bisection *bisection, const struct bisect_result *result)
{
	struct worker *worker = &bisection->workers[result->worker];
	if (!worker->running || worker->run.id != result->id)
		return false;
	worker->running = false;
	bisection->running--;
	bisection->is_fresh = false;
	if (!bisection->begun || result->begun < bisection->first_begun)
		bisection->first_begun = result->begun;
	bisection->begun = true;
	if (bisection->phase == BISECT_OVER && result->outcome != BISECT_MEASURED)
		return true;
	settle(bisection, &worker->run, result);
	check_time(bisection, result->begun + result->lasted);
	if (bisection->phase != BISECT_OVER)
		decide(bisection);
	return true;
}

void bisection_cancel(struct bisection *bisection)
{
	finish(bisection, BISECT_CANCELLED);
}

/* Status. */

static struct bisect_estimate estimate(struct bisection *bisection, struct search_step step)
{
	struct bisect_estimate out = {.pairs = step.pairs};
	if (!(step.df >= 1)) {
		out.percent = out.low = out.high = nan("");
		return out;
	}
	double width = step.error * bisect_search_quantile(0.05, step.df);
	out.percent = 100 * bisect_search_relative(bisection->search, step.size);
	out.low = 100 * bisect_search_relative(bisection->search, step.size - width);
	out.high = 100 * bisect_search_relative(bisection->search, step.size + width);
	return out;
}

/* Whether its verification shows that the culprit's step is not all of the ends' step. */
static bool has_more_steps(struct search_step ends, struct search_step culprit)
{
	if (!(ends.df >= 1) || !(culprit.df >= 1) || culprit.pairs < PAIRS_LEAST)
		return false;
	double rest = fabs(ends.size - culprit.size);
	double t = bisect_search_quantile(more_steps_level, fmin(ends.df, culprit.df));
	return rest > more_steps_share * fabs(ends.size) &&
	       rest > t * hypot(ends.error, culprit.error);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct bisect_candidate *x = a, *y = b;
	if (fabs(x->probability - y->probability) > 1e-9 * y->probability)
		return x->probability < y->probability ? 1 : -1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* The fewest candidates that hold the culprit at `confidence`, with those as probable as the last.
 */
static size_t credible(struct bisection *bisection, const double *probability)
{
	size_t count = 0;
	double sum = 0;
	for (size_t i = 1; i <= bisection->count; i++)
		bisection->set[i - 1] = (struct bisect_candidate){.position = i,
			.probability = probability[i],
			.broken = bisection->positions[i].broken};
	qsort(bisection->set, bisection->count, sizeof *bisection->set, compare_candidates);
	while (count < bisection->count &&
		(sum < bisection->options.confidence ||
			bisection->set[count].probability >=
				bisection->set[count - 1].probability * (1 - 1e-9)))
		sum += bisection->set[count++].probability;
	return count;
}

/* By the entropy of the candidates. */
static size_t runs_left(struct bisection *bisection, const double *probability)
{
	if (bisection->phase == BISECT_OVER)
		return 0;
	double workers = (double)bisection->options.workers, bits = 0;
	double d = strength(bisection), rho = exp(-d * d / 8);
	double rate = log2((2 + (workers - 1) * (1 - rho)) / (1 + rho));
	for (size_t i = 1; i <= bisection->count; i++)
		if (probability[i] > 0)
			bits -= probability[i] * log2(probability[i]);
	double rounds = ceil(bits / rate);
	return (size_t)fmin(rounds * workers + 2 * PAIRS_LEAST, RUNS_MOST);
}

const struct bisect_status *bisection_status(struct bisection *bisection)
{
	struct bisect_status *status = &bisection->status;
	if (bisection->is_fresh)
		return status;
	bisection->is_fresh = true;
	const double *probability = bisect_search_probability(bisection->search);
	struct block block = best_block(bisection);
	struct search_step ends = bisect_search_ends(bisection->search),
			   culprit = verified(bisection, block);
	*status = (struct bisect_status){.phase = bisection->phase,
		.end = bisection->end,
		.runs = bisection->run_count,
		.rounds = bisection->round,
		.set = bisection->set,
		.set_count = credible(bisection, probability),
		.probability = probability,
		.ends = estimate(bisection, ends),
		.verified = estimate(bisection, culprit),
		.more_steps = has_more_steps(ends, culprit),
		.spread = bisect_search_relative(
			bisection->search, bisect_search_fitted(bisection->search).spread),
		.runs_left = runs_left(bisection, probability)};
	for (size_t i = 1; i <= bisection->count; i++)
		status->broken += bisection->positions[i].broken;
	return status;
}
