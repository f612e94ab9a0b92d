/*
 * A bisection finds the commit of a range that changed a metric's level, from noisy runs.
 *
 * Positions are 0, the good end, to `count`, the bad end; positions 1 to `count` are candidates:
 * one of them is the first bad one. It is a state machine without clock, files or processes: a
 * driver (the command, the agent, a simulation) asks for the next run of a free worker and reports
 * its result. Its answers depend only on its options and the sequence of runs and results:
 * replaying these after a restart restores it.
 */
#ifndef AGENT_BISECT_BISECTION_H
#define AGENT_BISECT_BISECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BISECT_CANDIDATES_MOST = 4096, BISECT_WORKERS_MOST = 64 };

struct bisect_options {
	size_t workers;
	double confidence;   /* it stops when one candidate is that probable: .95 */
	double step, spread; /* expected, relative to the good level; NAN: not known */
	int direction;       /* of the step that is looked for: 1 up, -1 down, 0 either */
	int64_t budget;      /* ms since the first run; 0: no limit */
	size_t most_runs;    /* 0: no limit but the driver's */
	size_t attempts;     /* failed runs before a commit counts as broken: 2 */
};

enum bisect_phase {
	BISECT_ENDS, /* does the step exist? */
	BISECT_SEARCH,
	BISECT_VERIFY, /* the culprit against its parent */
	BISECT_OVER,
};

enum bisect_end {
	BISECT_FOUND,          /* verified against its parent */
	BISECT_SET,            /* the remaining set: no testable commit separates them */
	BISECT_OUT_OF_BUDGET,  /* the remaining set */
	BISECT_NOT_REPRODUCED, /* the ends do not differ */
	BISECT_ENDS_BROKEN,    /* an end cannot be measured */
	BISECT_CANCELLED,
};

enum bisect_outcome {
	BISECT_MEASURED,
	BISECT_UNTESTABLE, /* exit status 125: the commit cannot be tested */
	BISECT_FAILED,     /* anything else: retried, then the commit is broken */
	BISECT_LOST,       /* worker lost, or program killed: no evidence about the commit, retried
			      without limit */
};

/* A run to make. */
struct bisect_run {
	uint64_t id; /* from 1, in the order of requests */
	size_t worker, position;
	enum bisect_phase phase;
	size_t round; /* from 1 */
};

struct bisect_result {
	uint64_t id;
	size_t worker, position; /* of its run */
	enum bisect_outcome outcome;
	double value;          /* if measured; finite */
	int64_t begun, lasted; /* ms; wall clock, duration */
};

struct bisect_candidate {
	size_t position;
	double probability; /* of being the first bad one */
	bool broken;        /* could not be tested */
};

struct bisect_estimate {
	double percent, low,
		high; /* a step, relative to the level before it, and its 95% interval */
	size_t pairs;
};

/* The current knowledge; valid until the next call. */
struct bisect_status {
	enum bisect_phase phase;
	enum bisect_end end; /* if over */
	size_t runs, rounds;
	size_t broken;                /* candidates that could not be tested */
	struct bisect_candidate *set; /* the credible set at `confidence`, most probable first */
	size_t set_count;
	const double *probability;       /* of each position, [count + 1]; [0] is 0 */
	struct bisect_estimate ends;     /* bad end against good end */
	struct bisect_estimate verified; /* the culprit against its parent, if phase was VERIFY */
	double spread;                   /* of single runs, relative */
	bool more_steps;  /* the range seems to have more than one; it is the largest */
	size_t runs_left; /* about so many more runs, 0: not known */
};

struct bisection;

/* Candidates: 1 to BISECT_CANDIDATES_MOST. Options are checked by the caller. */
struct bisection *bisection_new(const struct bisect_options *options, size_t count);
/* Accepts NULL. */
void bisection_free(struct bisection *bisection);

/* The next run for a free worker at `now` (ms, wall clock); false: nothing until another run ends,
 * or it is over. */
bool bisection_next(
	struct bisection *bisection, size_t worker, int64_t now, struct bisect_run *run);
/* Takes the result of a run, with its worker. Unknown runs are ignored (false). */
bool bisection_tell(struct bisection *bisection, const struct bisect_result *result);
/* Restores a run that was in progress before a restart, with its id: before its result. */
void bisection_resume(struct bisection *bisection, const struct bisect_run *run);
void bisection_cancel(struct bisection *bisection);
const struct bisect_status *bisection_status(struct bisection *bisection);

/* Rounds that k workers take without noise for a culprit among `candidates`: the least r with
 * (k + 1)^r at least that. */
size_t plan_rounds(size_t candidates, size_t workers);

/*
 * Runs a probe so that all answers of the rounds hold at `confidence`, if each is whether a mean is
 * above the middle of two levels `strength` spreads apart: ceil((2 z / strength)^2).
 */
size_t plan_runs_a_probe(double strength, double confidence, size_t candidates, size_t workers);

#endif
