/*
 * Slack's chart of the points around a change: a line of the measured values and one of the levels.
 */
#ifndef NOTIFIERS_SLACK_CHART_H
#define NOTIFIERS_SLACK_CHART_H

#include "notifiers/notifier.h"

/* Per message, which Slack limits, too. */
enum { SLACK_CHARTS = 2 };

/* Appends the block, a JSON object, and returns the bytes of its words; 0 without a block: too few
 * points are known. */
size_t slack_chart(struct buf *out, const struct announcement *item);

#endif
