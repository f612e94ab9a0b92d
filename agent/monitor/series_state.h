/*
 * What is recalled of one series: what was seen and found of it in earlier passes, and what the
 * next answer makes of that. A part of the memory; see there.
 */
#ifndef AGENT_MONITOR_RECALL_H
#define AGENT_MONITOR_RECALL_H

#include "agent/monitor/news.h"
#include "agent/monitor/point_hashes.h"
#include "detectors/refit.h"

struct series_state {
	char *series;
	uint64_t pass;  /* the last that it was in */
	int64_t anchor; /* its points count from then on */
	int64_t since;  /* it needs the points from then on: those of the anchor, those the stream
			   wants again */
	int64_t last;   /* its last point */

	struct point_hashes trace; /* numbers points from where the stream began */
	const struct detector *detector;
	struct stream *stream;
	size_t need, fixed; /* as stream_rest says; without a stream 0 */
	struct change *changes;
	size_t count;
	struct realignment realignment;

	struct refit refit; /* the cycles that the stream's values are without */

	/* What another series explains of it, which the values are without before that: frozen
	 * likewise. */
	struct control control;
	bool controlled;
	int64_t controlled_at; /* the last point by then */

	bool seen;             /* it was recorded in an earlier pass, or process, ... */
	int64_t recorded_last; /* ... with this last point */
	bool marked, due, offered;
	int64_t marked_anchor, marked_last;
	int64_t revision,
		marked_revision; /* of the detectors (DETECTOR_REVISION); marked: stored */
};

/* A look at an answer. */
struct look {
	int64_t range, front; /* ms; range 0: none */
	struct arena *arena;
	struct scratch *scratch;
	const struct sampling *sampling;
	const struct detection *detection;
	const struct series *series;
	const struct control_rule *rule; /* with the series that it names; or NULL */
	const struct series *other;
	struct series_state *past;
	struct findings judged; /* what its control leaves; set by series_state_look */
	bool refitted;          /* that is otherwise than it was */
	ptrdiff_t shift;        /* number = index of the axis + shift; set by series_state_look */
};

struct series_state *series_state_new(const char *series);
void series_state_free(struct series_state *past);

/* Lets go of all but where the series stands. */
void series_state_shed(struct series_state *past);

/* Takes in an answer with at least one point, and detects in what is new. Where that is too much
 * work it fails and begins anew the next time; the error names the series. */
bool series_state_look(struct look *look, struct error *error) MUST_USE;

/* The changes that lie within the answer, with its indices, in the arena. */
struct findings series_state_findings(const struct look *look);

#endif
