/*
 * A change as a plot, from the store alone: its levels, and the points around it.
 */
#ifndef AGENT_REPORT_RECORD_PLOT_H
#define AGENT_REPORT_RECORD_PLOT_H

#include "agent/model/change_record.h"
#include "agent/report/plot.h"

/* Borrows from the record. Without points only the levels are shown. */
const struct plot *record_plot(struct arena *arena, const struct excerpted *found);

/* The change as a plot has it. */
struct plot_change record_plot_change(const struct change_record *record);

#endif
