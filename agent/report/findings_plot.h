/* The findings of an analysis in a series, as a plot. */
#ifndef AGENT_REPORT_FINDINGS_PLOT_H
#define AGENT_REPORT_FINDINGS_PLOT_H

#include "agent/analysis/analysis.h"
#include "agent/report/plot.h"

/* Borrows from the findings; the rest lives in the arena. */
const struct plot *findings_plot(
	struct arena *arena, const char *test, const struct findings *findings);

#endif
