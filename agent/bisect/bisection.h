/*
 * A bisection: which commit of a range made a metric change its level, from runs that are noisy.
 *
 * Positions are 0, the good end, to `count`, the bad end; positions 1 to `count` are candidates:
 * one of them is the first bad one. It is a state machine without clock, files or processes: a
 * driver (the command, the agent, a simulation) asks for the next run of a free worker and tells
 * what came of it. What it says depends on nothing but its options and what it was told, in that
 * order: told again after a restart, it goes on where it was.
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
	size_t attempts;     /* of a run that fails, before its commit counts as broken: 2 */
};

enum bisect_phase {
	BISECT_ENDS, /* is the step there at all? */
	BISECT_SEARCH,
	BISECT_VERIFY, /* the culprit against its parent */
	BISECT_OVER,
};

enum bisect_end {
	BISECT_FOUND,          /* verified against its parent */
	BISECT_SET,            /* the set is what is left: nothing testable tells them apart */
	BISECT_OUT_OF_BUDGET,  /* the set is what is left */
	BISECT_NOT_REPRODUCED, /* the ends do not differ */
	BISECT_ENDS_BROKEN,    /* an end cannot be measured */
	BISECT_CANCELLED,
};

enum bisect_outcome {
	BISECT_MEASURED,
	BISECT_UNTESTABLE, /* exit status 125: the commit cannot be tested */
	BISECT_FAILED,     /* anything else: tried again, then the commit is broken */
	BISECT_LOST, /* its worker is gone, the program was killed: it says nothing of its commit,
			and is made again however often that happens */
};

/* One run that is to be made. */
struct bisect_run {
	uint64_t id; /* from 1, in the order in which they were asked for */
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

/* What is known by now; valid until the bisection is asked or told again. */
struct bisect_status {
	enum bisect_phase phase;
	enum bisect_end end; /* if over */
	size_t runs, rounds, running;
	size_t broken;                /* candidates that could not be tested */
	struct bisect_candidate *set; /* the credible set at `confidence`, most probable first */
	size_t set_count;
	const double *probability;       /* of each position, [count + 1]; [0] is 0 */
	struct bisect_estimate ends;     /* bad end against good end */
	struct bisect_estimate verified; /* the culprit against its parent, if phase was VERIFY */
	double spread;                   /* of single runs, relative */
	bool more_steps;  /* the range seems to have more than one; it is the largest */
	size_t runs_left; /* about so many more runs, 0: not known */
	size_t runs_a_probe;
};

struct bisection;

/* Candidates: 1 to BISECT_CANDIDATES_MOST. Options are checked by the caller. */
struct bisection *bisection_new(const struct bisect_options *options, size_t count);
/* Accepts NULL. */
void bisection_free(struct bisection *bisection);

/* The next run of a worker who is free, now (ms, wall clock); false: nothing until another run
 * ends, or it is over. */
bool bisection_next(
	struct bisection *bisection, size_t worker, int64_t now, struct bisect_run *run);
/* What came of a run. One that is not known is ignored (false). */
bool bisection_tell(struct bisection *bisection, const struct bisect_result *result);
/* Puts a run that was begun before a restart back in hand, with its id: before what is told of it.
 */
void bisection_resume(struct bisection *bisection, const struct bisect_run *run);
void bisection_cancel(struct bisection *bisection);
const struct bisect_status *bisection_status(struct bisection *bisection);

#endif
