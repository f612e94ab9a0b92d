/*
 * What is understood of a PromQL query must survive whatever text it is, and stay within its
 * bounds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sources/prometheus/promql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	const char *query = arena_strndup(arena, (const char *)data, size), *filled;
	int64_t reach = promql_reach(query, 60000);
	struct error error;
	if (reach < -1 || reach > INT64_C(315360000000)) {
		fprintf(stderr, "it reaches back too far\n");
		abort();
	}
	if (promql_is_selector(query) && reach != -1) {
		fprintf(stderr, "a selector has no range\n");
		abort();
	}
	/* Without a place for the branch only blanks at the end go. */
	if (promql_fill_branch(arena, query, "b", &filled, &error) && !promql_has_branch(query) &&
		strncmp(filled, query, strlen(filled)) != 0) {
		fprintf(stderr, "the query is another\n");
		abort();
	}
	arena_free(arena);
	return 0;
}
