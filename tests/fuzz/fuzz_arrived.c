/*
 * Bodies of POST /api/v1/arrived: whatever they name, each test is found at most once, and what is
 * read as one name is not read as more.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/web/arrived.h"
#include "sources/graphite/graphite.h"
#include "sources/prometheus/prometheus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TESTS = 6 };

static struct readers *make_readers(void)
{
	static const struct prometheus_options series[] = {
		{.query = "up{job=\"a\"}", .base_branch = "main"},
		{.query = "{__name__=~\"a.*\",x!=\"1\"}", .base_branch = "main"},
		{.query = "sum(rate(up[5m])) / b{c=~\"d|e\"}", .base_branch = "main"}};
	static const struct graphite_options paths[] = {{.target = "a.*.{b,c?}"}, {.prefix = "a.b"},
		{.target = "seriesByTag('name=a','t=~b','u!=c')"}};
	static struct test tests[TESTS];
	static const struct test *list[TESTS];
	static const char *const names[TESTS] = {"a", "b", "c", "d", "e", "f"};

	for (size_t i = 0; i < TESTS; i++) {
		bool prometheus = i < 3;

		tests[i] = (struct test){.name = names[i],
			.source = prometheus ? &prometheus_source.plugin : &graphite_source.plugin,
			.options = prometheus ? (const void *)&series[i] : &paths[i - 3]};
		list[i] = &tests[i];
	}
	return readers_new(list, TESTS);
}

/* The first byte is the kind. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct readers *readers;
	struct arena *arena = arena_new();
	struct arrived arrived;
	struct error error;
	char *body;

	if (!readers)
		readers = make_readers();
	if (size > 0) {
		body = arena_strndup(arena, (const char *)data + 1, size - 1);
		arrived = (struct arrived){.readers = found_readers_new(readers, arena)};
		if (!arrived_read(
			    &arrived, body, size - 1, (enum arrived_kind)(data[0] % 5), &error) &&
			!*error.text)
			abort();
		if (arrived.readers.count > TESTS || arrived.unread > arrived.names)
			abort();
		if (arrived.names == arrived.unread && arrived.readers.count > 0)
			abort();
	}
	arena_free(arena);
	return 0;
}
