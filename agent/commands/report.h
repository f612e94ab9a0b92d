/*
 * The documents of `report`: the changes of tests with their plots, as a page that stands alone
 * and as Markdown. Names come from data, and are text in both, whatever they contain.
 */
#ifndef AGENT_COMMANDS_REPORT_H
#define AGENT_COMMANDS_REPORT_H

#include "agent/base/buf.h"
#include "agent/report/plot.h"
#include "notifiers/notifier.h"

enum {
	REPORT_NAME = 200, /* characters of a name that are shown */
	REPORT_ROWS = 1000,
	REPORT_PLOTS = 50,
	REPORT_COLUMNS = 400, /* of pixels, to which a plot's points are reduced */
};

/* A series with changes. */
struct report_plot {
	const char *test, *series, *branch; /* branch: or NULL */
	char *json, *svg;
	double weight;  /* of its most important change */
	size_t row;     /* which that is, from 1 */
	size_t number;  /* of the plot, from 1, in the order of the rows; 0: it was left out */
	size_t ordinal; /* the plot's, as its rows have it */
};

struct report_row {
	struct announcement item; /* with links */
	const char *series, *branch;
	const char *word;   /* what people said, or why it is not a known change; or NULL */
	double weight;      /* the larger, the more important */
	size_t ordinal;     /* order of finding; */
	size_t plot;        /* the ordinal of its plot */
	const char *person; /* or NULL */
};

struct report_document {
	const char *title;
	int64_t now, since, until; /* ms; WHEN_ALWAYS, WHEN_NEVER */
	const char *branch;        /* or NULL */
	struct strings asked;      /* tests and groups, as asked for; none: all */
	size_t tests;
	struct strings failed;
	bool has_state;
	const struct report_row *rows; /* in order */
	size_t count;                  /* of all; at most REPORT_ROWS are shown */
	const struct report_plot *plots;
	size_t plot_count;
};

/* The plot of the row; NULL if it was left out. */
const struct report_plot *report_plot_of(
	const struct report_document *document, const struct report_row *row);

/* "3 changes in 20 tests: 2 worse, 1 better", and what is not shown. */
void report_put_tally(struct buf *out, const struct report_document *document);
void report_put_omitted(struct buf *out, const struct report_document *document);

/* "a, b and 3 more": the first `most` names, each by `put`. */
void report_put_names(struct buf *out, const struct strings *names, size_t most,
	void (*put)(struct buf *out, const char *name));

/* "since 2026-03-01 06:00 UTC", "all", ... */
void report_put_range(struct buf *out, const struct report_document *document);

/* "604 ns → 684 ns" */
void report_put_levels(struct buf *out, const struct announcement *item);

/* "worse", "better" or "changed", and the sign of which way the values went. */
const char *report_verdict(const struct announcement *item);
const char *report_shape(const struct announcement *item);

void report_html(struct buf *out, const struct report_document *document);

/* The pictures are BASE-1.svg and so on; NULL: there are none. */
void report_markdown(struct buf *out, const struct report_document *document, const char *base);

#endif
