/* `bisect plan`, and the plan of a bisection that begins. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "agent/bisect/plan.h"
#include "agent/commands/bisect.h"
#include "agent/core/when.h"

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

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
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
		plural(candidates), workers, plural(workers), rounds, plural(rounds));
	if (!is_known(strength))
		return;
	estimate = plan_estimate(strength, confidence, candidates, workers);
	buf_printf(out,
		", %zu run%s a probe (step %.1f%%, spread %.1f%%), both ends in each round: %zu "
		"runs if fixed beforehand; about %zu are expected",
		estimate.runs_a_probe, plural(estimate.runs_a_probe), fabs(100 * step),
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

/* "measure commits 4, 8 and 12; at most 4 are left" for each round, if no run were noisy. */
static void print_rounds(struct cli *cli, size_t candidates, size_t workers)
{
	size_t probes[BISECT_WORKERS_MOST];

	for (size_t round = 1; candidates > 1; round++) {
		size_t count = plan_probes(candidates, workers, probes);

		fprintf(cli->out, "round %zu: of %zu candidates measure", round, candidates);
		for (size_t i = 0; i < count; i++)
			fprintf(cli->out, "%s%zu", i ? ", " : " ", probes[i]);
		candidates = plan_left(candidates, workers);
		fprintf(cli->out, "; at most %zu %s left\n", candidates,
			candidates == 1 ? "is" : "are");
	}
}

static int plan_range(struct cli *cli, const struct bisect_flags *flags)
{
	size_t candidates = (size_t)flags->candidates;
	size_t workers = flags->workers > 0 ? (size_t)flags->workers : 1;
	struct buf line = {0};

	put_plan(&line, candidates, workers, flags->confidence, flags->step / 100,
		flags->spread / 100, (int64_t)(flags->run_minutes * 60000));
	fprintf(cli->out, "%s\n", line.data);
	buf_free(&line);
	print_rounds(cli, candidates, workers);
	return EXIT_NOTHING;
}

static int plan_devices(struct cli *cli, const struct bisect_flags *flags)
{
	const struct plan_lab lab = {.every = (size_t)flags->every,
		.commits_per_hour = flags->commits_per_hour,
		.run_minutes = flags->run_minutes,
		.workers = flags->workers > 0 ? (size_t)flags->workers : 1};
	struct plan_lab_needs needs = plan_lab_needs(&lab);
	char time[WHEN_TEXT], device[WHEN_TEXT], wait[WHEN_TEXT];

	fprintf(cli->out,
		"each commit tested once: %.2f devices busy\n"
		"one commit in %zu: %.2f devices busy; %zu device%s, with the %zu that bisect\n"
		"a bisection of the %zu commits between two tests: %zu round%s, %s, %s of devices\n"
		"from a commit to the end of the first test that has it: %s on average\n",
		needs.each, lab.every, needs.sparse, needs.devices, plural(needs.devices),
		lab.workers, lab.every, needs.rounds, plural(needs.rounds),
		bisect_duration((int64_t)(60000 * needs.bisect_minutes), time),
		bisect_duration((int64_t)(60000 * needs.device_minutes), device),
		bisect_duration((int64_t)(60000 * needs.wait_minutes), wait));
	if (isfinite(needs.a_day))
		fprintf(cli->out, "bisections a day: at most %.0f, if one run is enough to tell\n",
			floor(needs.a_day));
	return EXIT_NOTHING;
}

int bisect_plan(struct cli *cli)
{
	const struct bisect_flags *flags = cli->options;
	struct error error;

	if (flags->candidates > 0)
		return plan_range(cli, flags);
	if (flags->every > 0 && flags->commits_per_hour > 0 && flags->run_minutes > 0)
		return plan_devices(cli, flags);
	error_set(&error, ERROR_USAGE,
		"bisect plan needs --candidates N, or --every N --commits-per-hour X --run-minutes "
		"X; and --workers K");
	return cli_fail(&error);
}
