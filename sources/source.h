/*
 * Sources: where series come from, and the registry that knows them by name.
 *
 * A source turns one test's options into a dataset. An HTTP source is a state machine: `step` is
 * called with NULL, then with the reply to each transfer it yielded, until it is done; it runs on a
 * worker and does no I/O. A file or SQL source has `read` instead, which may block and runs in a
 * lane of its own. Adding a source is one file and one registry line.
 */
#ifndef SOURCES_SOURCE_H
#define SOURCES_SOURCE_H

#include "agent/core/arena.h"
#include "agent/core/series.h"
#include "agent/core/transfer.h"

/* One question to one source. The caller fills the first part, the source the second; all lives in
 * `arena`. */
struct query {
	struct arena *arena;
	const char *test;    /* for messages */
	const void *options; /* of source->options_size, parsed by source->fields */
	const void *server;  /* of source->server_size, or NULL for sources without servers */
	const struct metric *metrics; /* as configured; none: all the source finds, where it can */
	size_t metric_count;
	struct strings tags;  /* the test's, of the events that belong to it */
	int64_t window;       /* ms; how far back a point tells of, -1: as the source knows */
	const char *branch;   /* or NULL */
	int64_t since, until; /* ms, [since, until); WHEN_ALWAYS and WHEN_NEVER are open ends */
	int64_t now;          /* ms; the time of asking */
	_Atomic int *server_flavor; /* what queries of this server learn of it and tell each other,
				at first 0, while there are any; or NULL */
	int64_t timeout;            /* ms that a file may take to be read; 0: no limit */
	bool listing; /* only the names of the series are wanted, points may be left out */

	struct dataset data;
	struct strings
		notices; /* what the user should know though nothing failed; see query_notice */
	size_t notices_dropped; /* beyond those that are kept */
	char *notices_more;     /* the last notice, that says how many */
	void *state;            /* the source's own, between steps */
};

struct source {
	const char *name; /* as in `type:` */
	const char *summary;
	const struct field *fields; /* the test's options */
	size_t options_size;
	const struct field
		*server_fields; /* the server's options besides endpoint_fields, or NULL */
	size_t server_size; /* 0: no server. With `step` the struct begins with a struct endpoint */
	enum step (*step)(struct query *query, const struct reply *last, struct transfer *next,
		struct error *error);
	bool (*read)(struct query *query, struct error *error);
	/* Optional: ms that `read` may take where that is not query->timeout but an option of the
	 * server's. */
	int64_t (*timeout)(const struct query *query);
	/* Optional: the names of the metrics a test of this kind has, without reading data. */
	bool (*list)(struct query *query, struct strings *names, struct error *error);
	/* The server alone knows the names, whatever the test says: `step` heeds query->listing. */
	bool asks;
	/*
	 * Optional: what the table of fields cannot say about the options, alone and together with
	 * the metrics of the configuration. A text that begins with "OPTION: " is told at that
	 * option. ERROR_USAGE is an error, ERROR_DATA a warning: the test may fail when it is read.
	 */
	bool (*check)(const void *options, struct error *error);
	bool (*check_metrics)(const void *options, const struct metric *metrics, size_t count,
		struct error *error);
};

extern const struct source *const sources[]; /* ends with NULL */

const struct source *source_find(const char *name);

/* How far back the source looks where it is asked for all, ms: its option `range`. 0: it has none
 * and gives all there is. */
int64_t source_range(const struct source *source, const void *options);

/* From point to point of the grid that the source is asked for, ms: its option `step`. 0: the
 * points lie where they were measured. */
int64_t source_step(const struct source *source, const void *options);

/*
 * The attributes of points: where each is found (a column, a label) and its name. That of `commit`
 * is "commit", that of `version` "version" (both may be NULL), all others have the name of their
 * place. A place or a name that comes again is left out.
 */
struct pairs attribute_names(
	struct arena *arena, const char *commit, const char *version, struct strings others);

/* For messages: the option that asks for an attribute of these. */
const char *attribute_option(const struct pair *attribute);

/* For a message that a column is missing: ` (did you mean "p99"?)`, or where none is near
 * " (there are: time, p50, p90)", the first ones if they are many; "" where there are none. */
const char *column_hint(struct arena *arena, const char *word, const struct strings *columns);

/* Lets query->window hold where it says something. */
void query_set_windows(struct query *query);

/* Appends a sentence to query->notices. At most 100 are kept; the last says how many were left out.
 */
void query_notice(struct query *query, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
