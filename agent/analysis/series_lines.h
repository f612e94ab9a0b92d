/*
 * The lines that `detect --input jsonl` reads, in place and without a tree:
 *
 *     {"id": "a", "series": [1, 2.5, null], "options": {"window": 30, "profile": "otava"}}
 * and, where points were measured together or with binaries that are known,
 *
 *     {"series": [1, 2.5, 2.6], "runs": [7, 8, 8], "hashes": ["c0ffee", null, null]}
 *
 * and with the times of the points, or the first one and the seconds between them,
 *
 *     {"series": [1, 2.5, 2.6], "times": ["2026-01-02T03:00Z", "2026-01-02T04:00Z", 1767326400]}
 *     {"series": [1, 2.5, 2.6], "start": "2026-01-02T03:00Z", "step": 3600}
 *
 * A line is one JSON object. Of keys that come twice the last one counts, keys it does not know are
 * skipped, both as in jansson, with which the reader is fuzzed. In `series` null is a missing
 * point; beyond JSON, "NaN" is one too, and "Infinity", "-Infinity" and numbers too big for a
 * double are infinities, since Python and others write them.
 */
#ifndef AGENT_ANALYSIS_SERIES_LINES_H
#define AGENT_ANALYSIS_SERIES_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/error.h"

enum { LINE_OPTIONS_MAX = 64 };

struct line_option {
	const char *name,
		*value; /* a number as it was written; "true", "false"; text without its quotes */
};

/* Everything points into the line's text or the reader's memory, until the next line is read. */
struct line {
	const char *id; /* the JSON string or number as written; NULL if missing or null */
	size_t id_length;
	const double *values; /* NaN where missing */
	size_t n;
	const size_t *runs;     /* of each point, as in struct samples; NULL without "runs" */
	const uint64_t *hashes; /* of each point, as in struct samples; NULL without "hashes" */
	const int64_t *times;   /* of each point, in ms, ascending; NULL where they are not known */
	const struct line_option *options; /* without those that are null */
	size_t option_count;
	const char *options_text; /* all of them as written, to see whether they are those of the
				     line before */
	size_t options_length;
};

/* A member that the reader does not know but its caller wants: where the last of that name stands
 * as it was written, all NULL without one. Several names may have one place. */
struct line_part {
	const char *from, *to;
};

struct line_wanted {
	const char *name;
	struct line_part *part;
};

/* Its memory is reused from line to line. */
struct line_reader;
struct line_reader *line_reader_new(void);
void line_reader_free(struct line_reader *reader);

/* From now on each line fills the parts; the array and they are borrowed. */
void line_reader_want(struct line_reader *reader, const struct line_wanted *wanted, size_t count);

/*
 * Reads one line. On failure out->id is still set where the line has one that can be read.
 */
bool line_read(struct line_reader *reader, const char *text, size_t length, struct line *out,
	struct error *error) MUST_USE;

#endif
