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

/* The larger, the more important; else in the order of finding. */
struct report_rank {
	double weight;
	size_t ordinal;
};

/* A series with changes. */
struct report_plot {
	struct report_rank rank; /* of its most important change */
	const char *test, *series;
	char *json, *svg;   /* NULL: it was left out */
	const char *number; /* from 1, in the order of the document */
};

struct report_row {
	struct report_rank rank;
	struct announcement item; /* with links */
	const char *word;         /* its triage or state; or NULL */
	const char *person;       /* or NULL */
	struct report_plot *plot;
};

struct report_document {
	const char *title;
	int64_t now, since, until; /* ms; WHEN_ALWAYS, WHEN_NEVER */
	const char *branch;        /* or NULL */
	struct strings asked;      /* the requested tests and groups; none: all */
	size_t tests;
	struct strings failed;
	bool has_state;
	struct report_row *rows;                     /* in order */
	size_t count;                                /* of all; at most REPORT_ROWS are shown */
	struct report_plot *plots[REPORT_PLOTS + 1]; /* one more than fit: it is dropped */
	size_t plot_count;                           /* 0: none are shown */
	const char
		*base; /* of Markdown: the pictures are BASE-1.svg and so on; NULL: it has none */
};

void report_html(struct buf *out, const struct report_document *document);

void report_markdown(struct buf *out, const struct report_document *document);

#endif
