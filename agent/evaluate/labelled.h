/*
 * Labelled series, one JSON object per line.
 *
 *     {"id": "a", "series": [1, 2.5, null], "change_points": [2]}
 *     {"id": "b", "series": [..], "change_points": {"ann": [2], "ben": []}, "class": "disk",
 *      "unsure": [[10, 14]]}
 *     {"id": "c", "series": [..], "true": [40], "maybe": [7], "kind": "flat"}
 *
 * A change point is the index, from 0, of the first value of a new level. `class` groups series in
 * the output. In `unsure` spans, the end not included, and within SCORE_NEAR points of a `maybe`,
 * an unlabelled found point does not count. Series, runs, hashes, times and id are those of
 * agent/analysis/series_lines.h; "name" may stand for "id", "annotations" and "true" for
 * "change_points", and "kind" for "class". Other members are skipped.
 */
#ifndef AGENT_EVALUATE_LABELLED_H
#define AGENT_EVALUATE_LABELLED_H

#include "agent/analysis/series_lines.h"
#include "agent/base/arena.h"
#include "agent/base/field.h"
#include "detectors/score.h"

struct judgement; /* agent/evaluate/evaluate.h */

struct labelled_series {
	const char *id, *group; /* the class, "" where there is none */
	const double *values;
	const size_t *runs;     /* as in struct samples, or NULL */
	const uint64_t *hashes; /* likewise */
	const int64_t *times;   /* ms, ascending; NULL where they are not known */
	struct labels labels;
	/* Triage of its single changes, in the order of their places; or none. */
	const struct judgement *judgements;
	size_t judgement_count;
	const char *line; /* as it was read, if the set keeps lines; else NULL */
};

struct labelled_set {
	struct labelled_series *series;
	size_t count;
	size_t unlabelled; /* left out: their map of annotators is empty */
	/* For series that are still to be labelled: keep lines as they are, and series without
	 * labels; those without id get FILE:LINE. */
	bool lines;
};

/* Reads one line, whose copies go to the arena. Without labels annotators is NULL. */
bool labelled_read(struct line_reader *reader, const char *text, size_t length, struct arena *arena,
	struct labelled_series *out, struct error *error) MUST_USE;

/*
 * Reads the files ("-" is the standard input), whose lines have up to `max_line` bytes. Fails on
 * the first bad line: `FILE:LINE: ...`.
 */
bool labelled_load(const struct strings *files, size_t max_line, struct arena *arena,
	struct labelled_set *set, struct error *error) MUST_USE;

/* Sorts places and removes duplicates. */
void labelled_arrange(size_t *at, size_t *count);

#endif
