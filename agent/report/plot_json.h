/* A plot as JSON, for the page and for reports (docs/reference/api.md), and with fewer points. */
#ifndef AGENT_REPORT_PLOT_JSON_H
#define AGENT_REPORT_PLOT_JSON_H

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/report/plot.h"

/* Times are ms since 1970. */
void plot_put_json(struct buf *out, const struct plot *plot);

#endif
