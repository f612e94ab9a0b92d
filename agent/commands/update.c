/*
 * What is wrong with a statement is told before any test is read; what the database says against it
 * costs the test its update, not its report.
 */
#include "agent/commands/update.h"

#include <string.h>

#include "sources/postgres/postgres.h"

bool update_applies(const struct test *test)
{
	return test->source && strcmp(test->source->name, postgres_source.name) == 0;
}

bool update_check(const struct command_context *ask, struct error *error)
{
	size_t count = 0;
	for (size_t i = 0; i < ask->count; i++) {
		const struct test *test = ask->tests[i];
		if (!update_applies(test) || test->unsupported)
			continue;
		count++;
		struct arena *arena = arena_new();
		bool fine = postgres_update_check(
			arena, test->options, test->metrics, test->metric_count, error);
		arena_free(arena);
		if (!fine)
			return error_prefix(error, "--update-postgres: test \"%s\": ", test->name);
	}
	if (count == 0)
		return error_set(error, ERROR_USAGE,
			"--update-postgres: none of the tests is of type postgres");
	for (size_t i = 0; i < ask->count && count < ask->count; i++)
		if (!update_applies(ask->tests[i]))
			log_event(LEVEL_WARN, "not updated: it is not of type postgres",
				LOG_TEXT("test", ask->tests[i]->name));
	return true;
}

void update_run(struct query *query, const struct analysis *analysis, struct update *out)
{
	size_t count = 0;
	for (size_t s = 0; s < analysis->data->count; s++)
		count += analysis->findings[s].count;
	struct postgres_change *changes = arena_array(query->arena, count, sizeof *changes);
	*out = (struct update){.done = true, .changes = count};
	count = 0;
	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *findings = &analysis->findings[s];
		for (size_t i = 0; i < findings->count; i++)
			changes[count++] =
				(struct postgres_change){findings->series, &findings->changes[i]};
	}
	out->failed = !postgres_update(query, changes, count, &out->rows, &out->error);
}

bool update_log(const struct test *test, const struct update *update)
{
	if (!update->done)
		return true;
	if (update->failed) {
		struct error error = update->error;
		(void)error_prefix(&error, "test \"%s\": not updated: ", test->name);
		fprintf(stderr, "hunter-c: %s\n", error.text);
		return false;
	}
	log_event(LEVEL_INFO, "updated", LOG_TEXT("test", test->name),
		LOG_INT("changes", update->changes), LOG_INT("rows", update->rows));
	return true;
}
