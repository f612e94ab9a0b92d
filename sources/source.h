/*
 * Sources of series, and the registry that finds them by name.
 *
 * A source turns one test's options into a dataset. An HTTP source is a state machine: `step` is
 * called with NULL, then with the reply to each transfer that it requested, until it is done; it
 * runs on a worker and does no I/O. A file or SQL source has `read` instead, which may block and
 * runs as a blocking call. To add a source, add its file and a line in the registry.
 */
#ifndef SOURCES_SOURCE_H
#define SOURCES_SOURCE_H

#include "agent/base/arena.h"
#include "agent/base/plugin.h"
#include "agent/base/transfer.h"
#include "agent/model/series.h"

/* One query to one source. The caller fills the first part, the source the second; everything lives
 * in `arena`. */
struct query {
	struct arena *arena;
	const char *test;    /* for messages */
	const void *options; /* of the plugin's options_size, parsed by its fields */
	const void *server;  /* of the plugin's server_size, or NULL for sources without servers */
	const struct metric
		*metrics; /* as configured; none: all that the source finds, if it can */
	size_t metric_count;
	struct strings tags;  /* of the test, for events that belong to it */
	int64_t window;       /* ms that a point covers; -1: as the source knows */
	const char *branch;   /* or NULL */
	int64_t since, until; /* ms, [since, until); WHEN_ALWAYS and WHEN_NEVER are open ends */
	int64_t now;          /* ms; the time of the query */
	_Atomic int *server_flavor; /* knowledge about this server, shared between queries while any
				       runs, initially 0; or NULL */
	int64_t timeout;            /* ms that reading a file may take; 0: no limit */
	bool listing; /* only the names of the series are needed; points may be omitted */

	struct dataset data;
	struct strings
		notices; /* messages for the user about a query that succeeded; see query_notice */
	bool incomplete; /* a part of the data was left out: see query_leave_out */
	size_t notices_dropped; /* beyond those kept */
	char *notices_more;     /* the last notice, with their number */
	void *state;            /* the source's own state between steps */
};

/*
 * A pattern of data that a test reads, to find the tests that read a written file or series.
 */
enum reading_kind {
	READING_PATH,   /* a path of Graphite: `name`, perhaps with wildcards */
	READING_BELOW,  /* every path of Graphite below `name` */
	READING_TAGGED, /* series of Graphite with tags: `matchers`; the tag "name" is the name */
	READING_SERIES, /* series of Prometheus: `name`, or NULL for any, and `matchers` */
	READING_FILE,   /* the file `name` */
};

struct source_reading {
	enum reading_kind kind;
	const char *name;
	const char *matchers; /* as matchers_parse reads them (agent/base/matcher.h), or NULL */
};

struct source_readings {
	struct source_reading *items;
	size_t count;
};

struct source {
	struct plugin plugin; /* with `step`, a server's struct begins with a struct endpoint */
	enum step (*step)(struct query *query, const struct reply *last, struct transfer *next,
		struct error *error);
	bool (*read)(struct query *query, struct error *error);
	/* Optional: ms that `read` may take, if that is an option of the server and not
	 * query->timeout. */
	int64_t (*timeout)(const struct query *query);
	/* Only the server knows the names of series. */
	bool asks;
	/* Optional: adds what the query reads, for its metrics only. May name more than it reads if
	 * its language is not fully understood. Needs the caller's part of the query. */
	bool (*reads)(struct query *query, struct source_readings *out, struct error *error);
};

extern const struct plugin *const sources[]; /* each begins a struct source */

const struct source *source_find(const char *name);

/* How far back the source looks by default, ms: its option `range`. 0: it has none and returns
 * everything. */
int64_t source_range(const struct source *source, const void *options);

/* Spacing of the requested grid, ms: its option `step`. 0: points are at their measured times. */
int64_t source_step(const struct source *source, const void *options);

/*
 * The attributes of points: where each is found (a column, a label) and its name. `commit` gives
 * "commit", `version` gives "version" (both may be NULL), all others keep their name. Duplicate
 * places and names are omitted.
 */
struct pairs attribute_names(
	struct arena *arena, const char *commit, const char *version, struct strings others);

/* For messages: the option that selects one of these attributes. */
const char *attribute_option(const struct pair *attribute);

/* For the error of a missing column: ` (did you mean "p99"?)`, or if none is similar " (there are:
 * time, p50, p90)", limited to the first ones; "" if there are none. */
const char *column_hint(struct arena *arena, const char *word, const struct strings *columns);

/* Adds one to those in the query's arena. */
void query_reads(struct query *query, struct source_readings *out, struct source_reading reading);

/* Applies query->window to the series if it is set. */
void query_set_windows(struct query *query);

/* Adds a notice to query->notices. At most 100 are kept; the last then counts the dropped ones. */
void query_notice(struct query *query, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same, once: an equal notice is not repeated. */
void query_notice_once(struct query *query, const char *text);

/* A part of an answer that cannot be read and is left out, so that the rest can be read: its text,
 * which is cut and made printable, its kind ("series"), and the reason. Makes the data
 * incomplete. */
void query_leave_out(
	struct query *query, const char *what, const char *text, size_t length, const char *why);

#endif
