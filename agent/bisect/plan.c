#include "agent/bisect/plan.h"

#include <math.h>

#include "agent/bisect/search.h"

static const double runs_most = 1e6;

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
