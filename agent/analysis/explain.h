/*
 * Finds series by which others could be judged: the load that explains a latency (`explained_by`),
 * or another region that moves alike (`relative_to`), so that people learn of both where they help.
 *
 * A load is a metric with direction 0, neither better nor worse, with the same labels. A region is
 * the metric of that name of a test whose name comes before, with the same labels and
 * direction. Cycles are removed before, since they are known without any other series.
 */
#ifndef AGENT_ANALYSIS_EXPLAIN_H
#define AGENT_ANALYSIS_EXPLAIN_H

#include "agent/analysis/analysis.h"
#include "agent/base/buf.h"

/* Series that are kept until all are there, copied. */
struct explain;

struct explain *explain_new(void);
void explain_free(struct explain *explain); /* NULL is allowed */

/* Keeps a series as it is judged; `values` are those without cycles. `has_rule`: another
 * one explains it already. */
void explain_keep(struct explain *explain, const struct test *test, const struct series *series,
	const double *values, bool has_rule);

/* Appends, for each metric of a test of which it explains at least a quarter of the series, what
 * does: the items of a JSON list. */
void explain_put(struct explain *explain, struct scratch *scratch, struct buf *out);

#endif
