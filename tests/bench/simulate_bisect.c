/*
 * All workers start a run at once and end it at once, so a round takes as long as one run.
 */
#include "tests/bench/simulate_bisect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "tests/bench/generate.h"

enum { RUN_MS = 60000 };

const double simulated_levels[SIMULATED_LEVELS] = {.5, .6, .7, .8, .9, .95, .99};

struct world {
	const struct simulated_lab *lab;
	uint64_t draws;
	bool broken[BISECT_CANDIDATES_MOST + 1];
	struct {
		double level, drift, slope;
		size_t last;
	} workers[BISECT_WORKERS_MOST];
};

static void begin_world(struct world *world, const struct simulated_lab *lab)
{
	memset(world, 0, sizeof *world);
	world->lab = lab;
	world->draws = lab->seed * 0xd1342543de82ef95 + 17;
	for (size_t i = 1; i < lab->candidates; i++)
		world->broken[i] = draw_unit(&world->draws) < lab->broken;
	for (size_t i = 0; i < lab->workers; i++) {
		world->workers[i].level = 100 * exp(lab->uneven * draw_normal(&world->draws));
		world->workers[i].slope = lab->drift * (2 * draw_unit(&world->draws) - 1);
		world->workers[i].last = SIZE_MAX;
	}
}

static double measure(struct world *world, const struct bisect_run *run)
{
	const struct simulated_lab *lab = world->lab;
	uint64_t *draws = &world->draws;
	double shift = 0;
	if (lab->culprit > 0 && run->position >= lab->culprit)
		shift += lab->step;
	if (lab->second != 0 && run->position >= lab->second_at)
		shift += lab->second;
	world->workers[run->worker].drift +=
		world->workers[run->worker].slope + lab->drift * draw_normal(draws);
	shift += world->workers[run->worker].drift + (lab->still ? 0 : draw_normal(draws));
	double value = world->workers[run->worker].level * (1 + lab->noise * shift);
	if (draw_unit(draws) < lab->outliers)
		value *= 1.3 + 0.7 * draw_unit(draws);
	return value;
}

static struct bisect_result answer(struct world *world, const struct bisect_run *run, int64_t now)
{
	struct bisect_result result = {.id = run->id,
		.worker = run->worker,
		.position = run->position,
		.outcome = BISECT_MEASURED,
		.begun = now,
		.lasted = RUN_MS};
	if (world->broken[run->position])
		result.outcome = BISECT_UNTESTABLE;
	else if (draw_unit(&world->draws) < world->lab->failures)
		result.outcome = BISECT_FAILED;
	else
		result.value = measure(world, run);
	return result;
}

static void count_run(struct world *world, const struct bisect_run *run, struct simulated_end *out)
{
	out->runs++;
	out->searching += run->phase == BISECT_SEARCH;
	out->verifying += run->phase == BISECT_VERIFY;
	out->builds += world->workers[run->worker].last != run->position;
	world->workers[run->worker].last = run->position;
}

/* One run of each worker that gets one; false: it is over. */
static bool run_round(
	struct bisection *bisection, struct world *world, int64_t now, struct simulated_end *out)
{
	struct bisect_run runs[BISECT_WORKERS_MOST];
	size_t n = 0;
	for (size_t worker = 0; worker < world->lab->workers; worker++)
		n += bisection_next(bisection, worker, now, &runs[n]);
	for (size_t i = 0; i < n; i++) {
		count_run(world, &runs[i], out);
		struct bisect_result result = answer(world, &runs[i], now);
		bisection_tell(bisection, &result);
	}
	out->rounds += n > 0;
	out->search_rounds += n > 0 && runs[0].phase == BISECT_SEARCH;
	return n > 0;
}

static int compare_down(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? 1 : x > y ? -1 : 0;
}

/* Whether the sets of each level hold the culprit. */
static void cover(const struct simulated_lab *lab, const struct bisect_status *status,
	struct simulated_coverage *coverage)
{
	static double sorted[BISECT_CANDIDATES_MOST];
	size_t n = lab->candidates;
	memcpy(sorted, status->probability + 1, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_down);
	double own = status->probability[lab->culprit];
	for (size_t l = 0; l < SIMULATED_LEVELS; l++) {
		size_t count = 0;
		double sum = 0;
		while (count < n && (sum < simulated_levels[l] ||
					    sorted[count] >= sorted[count - 1] * (1 - 1e-9)))
			sum += sorted[count++];
		coverage->asked[l]++;
		coverage->claimed[l] += sum;
		coverage->held[l] += own >= sorted[count - 1] * (1 - 1e-9);
	}
}

static void judge(const struct simulated_lab *lab, const struct bisect_status *status,
	struct simulated_end *out)
{
	out->end = status->end;
	out->set_count = status->set_count;
	out->ends = status->ends;
	out->verified = status->verified;
	out->more_steps = status->more_steps;
	for (size_t i = 0; i < status->set_count; i++) {
		out->claimed += status->set[i].probability;
		out->holds = out->holds || status->set[i].position == lab->culprit;
	}
	out->best = status->set[0].probability;
	out->hit = lab->culprit > 0 && status->probability[lab->culprit] >= out->best * (1 - 1e-9);
}

void simulate_bisect(const struct simulated_lab *lab, const struct bisect_options *options,
	struct simulated_end *out, struct simulated_coverage *coverage)
{
	struct bisection *bisection = bisection_new(options, lab->candidates);
	struct world *world = memory_new(1, sizeof *world);
	begin_world(world, lab);
	*out = (struct simulated_end){0};
	for (int64_t now = 0; run_round(bisection, world, now, out); now += RUN_MS)
		if (coverage && lab->culprit > 0) {
			const struct bisect_status *status = bisection_status(bisection);
			if (status->phase == BISECT_SEARCH)
				cover(lab, status, coverage);
		}
	judge(lab, bisection_status(bisection), out);
	free(world);
	bisection_free(bisection);
}
