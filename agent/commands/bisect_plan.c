/* The plan of a bisection, printed before it begins. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "agent/base/when.h"
#include "agent/bisect/plan.h"
#include "agent/commands/bisect.h"

char *bisect_duration(int64_t ms, char out[WHEN_TEXT])
{
	int64_t minutes = (ms + 30000) / 60000;

	if (ms < 10000)
		snprintf(out, WHEN_TEXT, "%.1f s", (double)ms / 1000);
	else if (ms < 600000)
		snprintf(out, WHEN_TEXT, "%.0f s", (double)ms / 1000);
	else if (minutes < 60)
		snprintf(out, WHEN_TEXT, "%" PRId64 " min", minutes);
	else
		snprintf(out, WHEN_TEXT, "%" PRId64 " h %" PRId64 " min", minutes / 60,
			minutes % 60);
	return out;
}

static bool is_known(double strength)
{
	return isfinite(strength) && strength > 0;
}

/* What the rounds would take if their runs were fixed beforehand, and what it takes as it goes. */
static void put_plan(struct buf *out, size_t candidates, size_t workers, double confidence,
	double step, double spread, int64_t lasted)
{
	size_t rounds = plan_rounds(candidates, workers);
	double strength = fabs(step / spread);
	struct plan_estimate estimate;
	char time[WHEN_TEXT];

	buf_printf(out, "plan: %zu candidate%s, %zu worker%s: %zu round%s", candidates,
		cli_plural(candidates), workers, cli_plural(workers), rounds, cli_plural(rounds));
	if (!is_known(strength))
		return;
	estimate = plan_estimate(strength, confidence, candidates, workers);
	buf_printf(out,
		", %zu run%s a probe (step %.1f%%, spread %.1f%%), both ends in each round: %zu "
		"runs if fixed beforehand; about %zu are expected",
		estimate.runs_a_probe, cli_plural(estimate.runs_a_probe), fabs(100 * step),
		100 * spread, estimate.fixed_runs, estimate.runs);
	if (lasted > 0)
		buf_printf(out, ", %s",
			bisect_duration((int64_t)(estimate.turns * (double)lasted), time));
}

void bisect_put_plan(struct buf *out, const struct journal_setup *setup, double step, double spread,
	int64_t lasted)
{
	put_plan(out, setup->candidates.count, setup->options.workers, setup->options.confidence,
		step, spread, lasted);
}

bool bisect_worthwhile(const struct journal_setup *setup)
{
	const struct bisect_options *options = &setup->options;
	double strength = fabs(options->step / options->spread);

	return !is_known(strength) || plan_estimate(strength, options->confidence,
					      setup->candidates.count, options->workers)
					      .worthwhile;
}
