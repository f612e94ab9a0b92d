/*
 * The parts of `hunter-c detect`: one reads plain numbers and CSV, one reads JSON lines on many
 * threads, and both share the output.
 */
#ifndef AGENT_COMMANDS_DETECT_H
#define AGENT_COMMANDS_DETECT_H

#include <stdint.h>
#include <stdio.h>

#include "agent/base/buf.h"
#include "agent/cli/cli.h"
#include "agent/model/change.h"

struct batch_reader;

enum detect_form { DETECT_AUTO, DETECT_TEXT, DETECT_CSV, DETECT_JSONL };

/* The input, the detection, and where the results go. */
struct detect_task {
	const struct schema *schema;
	struct detection detection;     /* from the flags */
	enum detect_form input, output; /* resolved: never AUTO; the output never CSV */
	const char *file;               /* "-" is the standard input */
	bool show_file;     /* text output is prefixed by the file's name: there are several */
	const char *column; /* of a CSV file; or NULL */
	char delimiter;
	size_t max_line;             /* bytes */
	size_t jobs;                 /* threads in all, at least 1 */
	bool progress;               /* show a progress line on stderr after a second */
	struct batch_reader *reader; /* of the file, except CSV */
	FILE *out;
};

/* Whether a cycle is requested by name: without times that is an error, while `auto` finds none. */
static inline bool detect_wants_times(const struct detection *detection)
{
	return detection->season == SEASON_DAY || detection->season == SEASON_WEEK;
}

/* Each processes one file, prints problems on stderr and returns an exit code. */
int detect_values(const struct detect_task *task);
int detect_lines(const struct detect_task *task);

/* Appends a line for each point: index, p, before, after, percent; after "prefix:", if there is
 * one. */
void detect_put_text(struct buf *out, const char *prefix, size_t prefix_length,
	const struct change *changes, size_t count);

/* Appends {"id": ..., "change_points": [...]} and {"id": ..., "error": "..."}; `id` is JSON, NULL
 * for null. */
void detect_put_json(struct buf *out, const char *id, size_t id_length,
	const struct change *changes, size_t count);
void detect_put_problem(struct buf *out, const char *id, size_t id_length, const char *problem);

#endif
