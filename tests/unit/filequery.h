/*
 * A query to a file source whose file is a text in the test.
 */
#ifndef TESTS_UNIT_FILEQUERY_H
#define TESTS_UNIT_FILEQUERY_H

#include <stdlib.h>
#include <string.h>

#include "agent/core/when.h"
#include "sources/files.h"

typedef bool parser(struct query *query, struct input *input, struct error *error);

struct filequery {
	struct query query;
	struct error error;
	union {
		struct csv_options csv;
		struct json_options json;
		struct histostat_options histostat;
	} options;
	struct metric metrics[8];
};

/* With the defaults of the source's options; end with filequery_free. */
static inline void filequery_start(struct filequery *f, const struct source *source)
{
	*f = (struct filequery){0};
	field_defaults(source->fields, &f->options);
	f->query = (struct query){.arena = arena_new(),
		.test = "t",
		.options = &f->options,
		.metrics = f->metrics,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER};
}

static inline void filequery_free(struct filequery *f)
{
	arena_free(f->query.arena);
}

static inline void filequery_metric(struct filequery *f, const char *name, double scale)
{
	f->metrics[f->query.metric_count++] = (struct metric){.name = name, .scale = scale};
}

static inline bool filequery_parse(
	struct filequery *f, parser *parse, const char *text, size_t length)
{
	/* A copy of exactly its size, so that AddressSanitizer sees a read past the end. */
	char *copy = memory_new(length, 1);
	memcpy(copy, text, length);
	struct input input = input_bytes("data", copy, length);
	f->query.data = (struct dataset){0};
	f->query.notices = (struct strings){0};
	bool good = parse(&f->query, &input, &f->error);
	free(copy);
	return good;
}

/* The points of the dataset as text: "0:1,2 60000:nan,4" is two points of two series. */
static inline const char *filequery_points(struct filequery *f)
{
	const struct dataset *data = &f->query.data;
	const char *text = "";

	for (size_t i = 0; data->count && i < data->series[0].axis->n; i++) {
		text = arena_printf(f->query.arena, "%s%s%lld:", text, i ? " " : "",
			(long long)data->series[0].axis->times[i]);
		for (size_t k = 0; k < data->count; k++)
			text = arena_printf(f->query.arena, "%s%s%.10g", text, k ? "," : "",
				data->series[k].values[i]);
	}
	return text;
}

static inline bool filequery_noticed(const struct filequery *f, const char *words)
{
	for (size_t i = 0; i < f->query.notices.count; i++)
		if (strstr(f->query.notices.items[i], words))
			return true;
	return false;
}

#endif
