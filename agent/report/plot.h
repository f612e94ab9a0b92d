/*
 * A plot: series with their changes and context. One structure for all forms: the page gets it as
 * JSON, and it is drawn as SVG, PNG or on a terminal, so that they cannot contradict one another.
 * Strings and arrays are borrowed.
 */
#ifndef AGENT_REPORT_PLOT_H
#define AGENT_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/model/change_record.h"
#include "agent/model/series.h"

/* The meaning of a change to the reader. */
enum plot_source {
	PLOT_KNOWN,     /* confirmed: as recorded and announced */
	PLOT_CANDIDATE, /* found, and not yet confirmed */
	PLOT_FRESH,     /* only a detection on these very points finds it */
	PLOT_LOST,      /* as the store has it; a detection on these points does not find it */
	PLOT_SOURCES,
};

/* "known", "candidate" ... */
extern const char *const plot_source_names[PLOT_SOURCES];

/* The levels are horizontal lines to the change before and after, or the ends of the view; but no
 * farther than where they are known to hold. */
struct plot_change {
	int64_t id; /* the store's; 0: it has none */
	enum plot_source source;
	int64_t time;     /* ms, first point of the new level */
	int64_t from, to; /* ms: with 95%, the new level began at one of these or between them */
	double before, after;
	int64_t level_from, level_to; /* ms, where `before` begins and `after` ends; 0: unknown */
	double size;                  /* percent of the old level; NaN: unknown */
	bool trend;     /* the level moved from `before` to `after` between `from` and `to` */
	int verdict;    /* as announcement_verdict: 1 worse, -1 better, 0 neither */
	int64_t ended;  /* ms, the first point back at the old level; 0: it stands */
	bool withdrawn; /* it was announced, and withdrawn since */
	enum triage_state triage;
	const char *commit; /* of the first point of the new level, or NULL */
	/* On a terminal: the text above a mark that is only a place, and not listed. NULL: a
	 * change. */
	const char *mark;
	const struct change_record *record; /* as it is known, or as it was found; or NULL */
};

/* Its triage or its state, if that is not just confirmed: "expected", "not confirmed", "over"; or
 * "". */
const char *plot_state_text(const struct plot_change *change);

struct plot_line {
	const char *name; /* the series, or NULL if it is the plot's title */
	const char *branch;
	const char *test, *metric, *identity; /* or NULL */
	const char *unit;                     /* or NULL */
	int direction;                        /* as of the plot */
	/* Templates of links, see agent/base/url_template.h; or NULL. */
	const char *commit_url, *compare_url;
	size_t n;
	const int64_t *times;         /* ms, ascending */
	const double *values;         /* NaN: no value, the line is interrupted */
	const struct column *columns; /* all that is known of the points, commits among it */
	size_t column_count;
	size_t total;                      /* points before plot_reduce */
	const struct plot_change *changes; /* in order of time */
	size_t change_count;
};

enum plot_span_kind { PLOT_SILENCE, PLOT_OUTAGE, PLOT_SPAN_KINDS };

/* Something that held for a while. */
struct plot_span {
	enum plot_span_kind kind;
	int64_t from, to; /* ms */
	const char *text; /* reason and owner */
};

/* Its text, or that of the kind: "no data", "silenced". */
const char *plot_span_text(const struct plot_span *span);

enum plot_scale { PLOT_AUTO, PLOT_FROM_ZERO, PLOT_LOGARITHMIC, PLOT_RELATIVE, PLOT_SCALES };

/* "auto", "zero", "log", "relative": relative to the first level, in percent. */
extern const char *const plot_scale_names[PLOT_SCALES + 1];

struct plot {
	const char *title; /* "db.read p99", or NULL */
	const char *unit;  /* of all lines, or NULL */
	int direction;     /* of all lines: 1 higher is better, -1 lower is better, 0 either way */
	const struct plot_line *lines;
	size_t line_count;
	const struct plot_span *spans;
	size_t span_count;
	int64_t from, to; /* ms, the shown range; both 0: all points */
	int64_t mark;     /* the id of the change that it is about, 0: none */
	enum plot_scale scale;
	bool numbered; /* on a terminal: times are indices */
};

/* A change as a plot has it; and as a plot: its levels, and the points around it. Both borrow from
 * the record. Without points only the levels are shown. */
struct plot_change record_plot_change(const struct change_record *record);
const struct plot *record_plot(struct arena *arena, const struct excerpted *found);

/* As JSON, for the page and for reports (docs/reference/api.md); times are ms since 1970. */
struct buf;
void plot_put_json(struct buf *out, const struct plot *plot);

#endif
