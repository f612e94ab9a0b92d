/*
 * A query to a file source whose file is a text in the test.
 */
#ifndef TESTS_UNIT_FILEQUERY_H
#define TESTS_UNIT_FILEQUERY_H

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "sources/files/files.h"
#include "tests/unit/memory_input.h"

typedef bool parser(struct query *query, struct input *input, struct error *error);

struct filequery {
	parser *parse;
	struct query query;
	struct error error;
	union {
		struct csv_options csv;
		struct json_options json;
		struct histostat_options histostat;
	} options;
	struct metric metrics[8];
};

/* With the defaults of the source's options. */
static inline int filequery_setup(void **state, const struct source *source, parser *parse)
{
	struct filequery *f = memory_new(1, sizeof *f);

	f->parse = parse;
	field_defaults(source->plugin.fields, &f->options);
	f->query = (struct query){.arena = arena_new(),
		.test = "t",
		.options = &f->options,
		.metrics = f->metrics,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER};
	*state = f;
	return 0;
}

static inline int filequery_teardown(void **state)
{
	struct filequery *f = *state;

	arena_free(f->query.arena);
	free(f);
	return 0;
}

static inline void filequery_metric(struct filequery *f, const char *name, double scale)
{
	f->metrics[f->query.metric_count++] = (struct metric){.name = name, .scale = scale};
}

static inline bool filequery_parse(struct filequery *f, const char *text, size_t length)
{
	/* A copy of exactly its size, so that AddressSanitizer sees a read past the end. */
	char *copy = memory_new(length, 1);
	memcpy(copy, text, length);
	struct input input = input_bytes("data", copy, length);
	f->query.data = (struct dataset){0};
	f->query.notices = (struct strings){0};
	bool good = f->parse(&f->query, &input, &f->error);
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

static inline void accept(struct filequery *f, const char *text, const char *points)
{
	if (!filequery_parse(f, text, strlen(text)))
		fail_msg("%s", f->error.text);
	assert_string_equal(filequery_points(f), points);
}

static inline void refuse(struct filequery *f, const char *text, const char *words)
{
	f->error = (struct error){0};
	if (filequery_parse(f, text, strlen(text)))
		fail_msg("accepted, but expected: %s", words);
	assert_string_equal(f->error.text, words);
	assert_int_equal(f->error.kind, ERROR_DATA);
}

#endif
