/* Counts, last ids and excerpts: each query is the same for both databases. */
#include "agent/store/sql/check.h"

#include <inttypes.h>

#include "agent/store/sql/read.h"

enum { PROBLEMS_MOST = 100, PAGE = 1000 };

void check_found(struct check *check, const char *format, ...)
{
	struct strings *problems = &check->report->problems;
	va_list arguments;

	if (problems->count == PROBLEMS_MOST)
		return;
	check->problems =
		arena_grow(check->arena, check->problems, problems->count, sizeof *check->problems);
	va_start(arguments, format);
	check->problems[problems->count++] = arena_vprintf(check->arena, format, arguments);
	va_end(arguments);
	problems->items = check->problems;
}

/* In steps, so that a large state need not be in memory at once. */
static void check_excerpts(struct check *check, struct tx *tx)
{
	int64_t last = 0;

	for (int64_t rows = PAGE; rows == PAGE;) {
		struct sql_query query = QUERY(tx,
			"SELECT change, points FROM excerpts WHERE change > ?1 ORDER BY change"
			" LIMIT ?2",
			v_int(last), v_int(PAGE));

		for (rows = 0; query_next(&query); rows++) {
			struct arena *scratch = arena_new();
			struct packed_excerpt packed;
			struct excerpt excerpt;

			last = read_id(&query);
			packed.bytes = read_bytes(&query, &packed.length);
			if (!excerpt_unpack(scratch, packed, &excerpt))
				check_found(check,
					"cannot decode the points around change %" PRId64, last);
			arena_free(scratch);
		}
	}
}

void check_content(struct check *check, struct tx *tx)
{
	struct store_report *report = check->report;
	int64_t last[SCHEMA_SEQUENCES] = {0};
	struct sql_query counts = sql_query_of(tx,
		"SELECT (SELECT count(*) FROM changes), (SELECT count(*) FROM deliveries),"
		" (SELECT count(*) FROM deliveries WHERE state = @delivery{queued}), (SELECT"
		" count(*) FROM series)");
	struct sql_query ids = sql_query_of(tx,
		"SELECT (SELECT max(id) FROM changes), (SELECT max(id) FROM deliveries), (SELECT"
		" max(id) FROM silences), (SELECT max(id) FROM events), (SELECT max(id) FROM"
		" bisections)");

	tx->arena = check->arena;
	while (query_next(&counts)) {
		report->changes = read_count(&counts);
		report->deliveries = read_count(&counts);
		report->queued = read_count(&counts);
		report->series = read_count(&counts);
	}
	store_last_ids(tx, last);
	while (query_next(&ids))
		for (size_t i = 0; i < SCHEMA_SEQUENCES; i++)
			if (read_time_or(&ids, 0) > last[i])
				check_found(check, "table %s: the next id is already in use",
					schema_sequences[i]);
	check_excerpts(check, tx);
}
