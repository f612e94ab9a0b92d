/*
 * What is kept of one series: what earlier runs saw and found in it, and how the next answer is
 * examined. Part of the series cache; see series_cache.h.
 */
#ifndef AGENT_MONITOR_SERIES_STATE_H
#define AGENT_MONITOR_SERIES_STATE_H

#include "agent/analysis/hourly.h"
#include "agent/monitor/news.h"
#include "agent/monitor/point_hashes.h"
#include "detectors/refit.h"

struct series_state {
	char *series;
	uint64_t run;   /* the last run that it was part of */
	int64_t anchor; /* its points count from then on */
	int64_t since;  /* the start of the points that it needs: those from the anchor, and those
			   that the stream reads again */
	int64_t last;   /* time of its last point */

	struct pace pace;
	bool repaced; /* ... has changed what is judged, since the last look */

	struct point_hashes hashes; /* numbered from where the stream began */
	const struct detector *detector;
	struct stream *stream;
	size_t need, fixed; /* from stream_rest; without a stream 0 */
	struct change *changes;
	size_t count;
	struct realignment realignment;

	struct refit refit; /* the cycles removed from the stream's values */

	/* What another series explains, removed from the values before the cycles; frozen like
	 * these. */
	struct control control;
	bool controlled;
	int64_t controlled_at; /* time of the last point when it was fitted */

	bool seen;             /* recorded in an earlier run or by an earlier process, ... */
	int64_t recorded_last; /* ... with this last point */
	bool stored, due, offered;
	int64_t stored_anchor, stored_last;
	int64_t revision, stored_revision; /* DETECTOR_REVISION, now and as stored */
};

/* The examination of one answer. */
struct look {
	int64_t range, front; /* ms; range 0: none */
	struct arena *arena;
	struct scratch *scratch;
	const struct sampling *sampling;
	const struct detection *detection;
	const struct series *series;
	const struct control_rule *rule; /* with the series that it names; or NULL */
	const struct series *other;
	struct series_state *state;
	struct findings
		judged; /* the series without what its control explains; set by series_state_look */
	bool refitted;  /* the control was fitted again */
	ptrdiff_t shift; /* number = index on the axis + shift; set by series_state_look */
};

struct series_state *series_state_new(const char *series);
void series_state_free(struct series_state *state);

/* Drops everything except the position of the series. */
void series_state_shed(struct series_state *state);

/* Takes in an answer with at least one point, and detects in what is new. If that exceeds the work
 * limit it fails and starts over the next time; the error names the series. */
bool series_state_look(struct look *look, struct error *error) MUST_USE;

/* The changes that lie within the answer, with its indices, in the arena. */
struct findings series_state_findings(const struct look *look);

#endif
