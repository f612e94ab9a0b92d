/*
 * The cost of a bisection with early stopping was fitted to simulations: the search needs the bits
 * of log2(candidates) at the cutoff rate of a round (bisection.c), ends and verification a few
 * pairs and some that fall with the square of the strength. bench_bisect prints how well that
 * holds.
 */
#include "agent/bisect/plan.h"

#include <math.h>

#include "agent/bisect/search.h"

static const double runs_most = 1e6, runs_worthwhile = 1000;

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
	return (size_t)fmin(fmax(runs, 1), runs_most);
}

/* Bits that a round of one run a worker gives: the cutoff rate of the best probes. */
static double rate(double strength, double workers)
{
	double rho = exp(-strength * strength / 8);
	return log2((2 + (workers - 1) * (1 - rho)) / (1 + rho));
}

struct plan_estimate plan_estimate(
	double strength, double confidence, size_t candidates, size_t workers)
{
	double k = (double)workers, weak = 1 / (strength * strength);
	double turns = ceil(log2((double)candidates) / rate(strength, k));
	double ends = ceil(fmin(ceil(3 + 11 * weak), runs_most) / k);
	double verification = fmin(ceil(fmax(3, 2 + 12 * weak)), runs_most);
	size_t rounds = plan_rounds(candidates, workers),
	       probe = plan_runs_a_probe(strength, confidence, candidates, workers);
	struct plan_estimate out = {.rounds = rounds,
		.runs_a_probe = probe,
		.fixed_runs = rounds * (workers + 2) * probe,
		.ends = (size_t)(2 * ends * k),
		.search = (size_t)fmin(turns * k, runs_most)};
	if (candidates > 1)
		out.verification = (size_t)(2 * verification);
	out.runs = out.ends + out.search + out.verification;
	out.turns = 2 * ends + turns + (candidates > 1 ? 2 * ceil(verification / k) : 0);
	out.worthwhile = (double)out.runs <= runs_worthwhile;
	return out;
}
