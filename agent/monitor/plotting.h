/*
 * Makes a plot (agent/report/plot.h) from a test's points and its records in the state.
 *
 * Changes are drawn as recorded and announced. The points are examined as the agent does after a
 * start, and further changes found then are marked as such.
 */
#ifndef AGENT_MONITOR_PLOTTING_H
#define AGENT_MONITOR_PLOTTING_H

#include "agent/analysis/analysis.h"
#include "agent/report/plot.h"
#include "agent/store/store.h"

/* The changes in a series of a dataset from a time on; kept for the next plot of the same data. */
struct plotting_found {
	bool done, failed; /* failed: it cannot be examined */
	int64_t anchor;
	struct findings findings;
};

/* The request, and the state's records of the test. */
struct plotting {
	const char *metric;   /* name of a metric or series, or an identity; NULL: all */
	const char *branch;   /* or NULL */
	int64_t change;       /* the id of the change that it is about; 0: none */
	int64_t since, until; /* ms, only these points; WHEN_ALWAYS, WHEN_NEVER */
	size_t columns;       /* of pixels, see plot_reduce; 0: all points, unless they are many */
	size_t most;          /* lines; 0: PLOTTING_LINES */
	bool cleaned;         /* without cycles and without the effect of the control */
	int64_t now;          /* ms */
	const struct config *config;
	/* Set by plotting_state; without a state all that is found is PLOT_FRESH. */
	bool has_state;
	struct record_rows records;
	struct checkpoint_rows checkpoints;
	struct health_rows health;
	struct silence_rows silences;
	/* By series of the dataset, with an arena that lives as long; or NULL. */
	struct plotting_found *found;
	struct arena *found_arena;
};

enum {
	PLOTTING_LINES = 20,
	PLOTTING_LINES_MOST = 100,
	PLOTTING_POINTS = 60000, /* of all lines; of more, columns of pixels are shown */
};

/* For `columns`: all points, however many. */
#define PLOTTING_WHOLE SIZE_MAX

/* Sets the query for the store, and takes the answer, which must outlive the plot. */
void plotting_ask(struct store_list *list, const struct test *test, int64_t now);
void plotting_state(struct plotting *plotting, const struct store_list *list);

/* Sets the time range of the query: that of the agent's runs, or a wider one if `since` needs it
 * (true), which begins at the same time for a while. */
bool plotting_query(const struct plotting *plotting, struct task *task);

/*
 * Everything lives in `arena`, or belongs to the data and the state. ERROR_USAGE if there is no
 * such series. Runs on a worker.
 */
bool plotting_make(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct plotting *plotting,
	struct scratch *scratch, struct plot *out, struct error *error) MUST_USE;

#endif
