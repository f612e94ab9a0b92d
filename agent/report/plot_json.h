/* A plot as JSON, for the page and for reports (docs/reference/api.md), and with fewer points. */
#ifndef AGENT_REPORT_PLOT_JSON_H
#define AGENT_REPORT_PLOT_JSON_H

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/report/plot.h"

/* Times are ms since 1970. */
void plot_put_json(struct buf *out, const struct plot *plot);

/*
 * Keeps of each line what a picture of so many columns of pixels shows: the first, the least, the
 * greatest and the last point of each, so that no spike is hidden. The columns divide the view,
 * else all points; points without a value stay. The lines are copied.
 */
void plot_reduce(struct arena *arena, struct plot *plot, size_t columns);

#endif
