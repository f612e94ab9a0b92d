/*
 * The documents of `report`: the changes of tests with their plots, as a self-contained page and as
 * Markdown. Names come from data and are escaped in both.
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
	const char *test, *series;
	char *json, *svg;
	double weight;  /* of its most important change */
	size_t number;  /* of the plot, from 1, in the order of the rows; 0: it was left out */
	size_t ordinal; /* matches report_row.plot */
};

struct report_row {
	struct announcement item; /* with links */
	const char *series;
	const char *word;   /* its triage, or why it is not a recorded change; or NULL */
	double weight;      /* the larger, the more important */
	size_t ordinal;     /* order of finding; */
	size_t plot;        /* the ordinal of its plot */
	const char *person; /* or NULL */
};

struct report_document {
	const char *title;
	int64_t now, since, until; /* ms; WHEN_ALWAYS, WHEN_NEVER */
	const char *branch;        /* or NULL */
	struct strings asked;      /* the requested tests and groups; none: all */
	size_t tests;
	struct strings failed;
	bool has_state;
	const struct report_row *rows; /* in order */
	size_t count;                  /* of all; at most REPORT_ROWS are shown */
	const struct report_plot *plots;
	size_t plot_count;
	const char *base; /* of Markdown: the pictures are BASE-1.svg and so on; NULL: none are */
};

struct report_around {
	const char *before, *after;
};

/* The functions of an output format. */
struct report_markup {
	struct report_around title, problem, paragraph, facts, fact, table, heading, headings, row;
	const char *tally, *fact_end, *rule, *cell_end, *line;
	void (*text)(struct buf *out, const char *text); /* nothing in it is markup */
	void (*name)(struct buf *out, const char *name); /* the same, set apart */
	void (*link)(struct buf *out, const char *url, const char *name);
	void (*time)(struct buf *out, int64_t time);
	void (*verdict)(struct buf *out, const char *shape, const char *size, const char *verdict);
	void (*cell)(struct buf *out, const char *column);
	/* Begins or ends a reference to a plot. */
	void (*refer)(struct buf *out, const struct report_document *document,
		const struct report_plot *plot, bool begins);
	void (*plot)(struct buf *out, const struct report_document *document,
		const struct report_plot *plot);
};

/* The content by that markup. */
void report_put(struct buf *out, const struct report_document *document,
	const struct report_markup *markup);

void report_html(struct buf *out, const struct report_document *document);

void report_markdown(struct buf *out, const struct report_document *document);

#endif
