/*
 * The result of a bisection as text, as JSON, and as bars on a terminal: one renderer for the
 * command and the agent.
 *
 * first bad: 4f2c91a (97%), 77aa012 (2%); verified against its parent: +6.3% [5.1, 7.4], 12 pairs
 */
#ifndef AGENT_BISECT_VERDICT_TEXT_H
#define AGENT_BISECT_VERDICT_TEXT_H

#include "agent/base/buf.h"
#include "agent/bisect/journal.h"

enum { VERDICT_ID = 65 };

/* The shortest beginning of a position's id that no other one has, at least 7 digits. */
const char *verdict_short(const struct journal_setup *setup, size_t position, char out[VERDICT_ID]);

/* One line without a newline: the verdict, or the progress of a bisection that is not over. */
void verdict_text(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup);

/* The word of an end: "found", "set", "out_of_budget", "not_reproduced", "ends_broken",
 * "cancelled". */
const char *verdict_end_name(enum bisect_end end);

/* Members of a JSON object, beginning with "phase": phase, end (null until it is over), culprit
 * with its id, subject and probability (null unless found), the credible set, the estimates, runs
 * and rounds. */
void verdict_json(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup);

/* A line for each commit that matters, from the oldest, with its level and a bar for its
 * probability; the others between them in one line. `columns`: of the terminal. */
void verdict_plot(struct buf *out, const struct bisect_status *status,
	const struct journal *journal, int columns);

#endif
