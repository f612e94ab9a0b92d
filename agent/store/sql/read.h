/* What several calls read. */
#ifndef AGENT_STORE_SQL_READ_H
#define AGENT_STORE_SQL_READ_H

#include "agent/store/sql/rows.h"

/* Loads the deliveries' changes into their `records`. */
bool store_members(struct store_file *file, struct arena *arena, struct delivery *deliveries,
	size_t count, struct error *error) MUST_USE;

/* The points around the changes, by their places; empty if there are none. */
bool store_load_excerpts(struct store_file *file, struct arena *arena, struct owners *changes,
	struct excerpt *out, struct error *error) MUST_USE;

/* The same packed, as they are stored. */
bool store_load_packed(struct store_file *file, struct arena *arena, struct owners *changes,
	struct packed_excerpt *out, struct error *error) MUST_USE;

/* The records of the owners, by their places; NULL: there is none. */
bool store_load_records_of(struct store_file *file, struct arena *arena, struct owners *owners,
	struct change_record **out, struct error *error) MUST_USE;

bool store_load_health(struct store_file *file, struct arena *arena, struct health_rows *health,
	struct error *error) MUST_USE;
bool store_load_environments(struct store_file *file, struct arena *arena,
	struct environment_rows *out, struct error *error) MUST_USE;
bool store_load_checkpoints(struct store_file *file, struct arena *arena, const char *test,
	struct checkpoint_rows *out, struct error *error) MUST_USE;

/* Loads the records' histories. */
bool store_events(struct store_file *file, struct arena *arena, struct change_record *records,
	size_t count, struct error *error) MUST_USE;

/* The worst of the records around which points are stored; NULL: none of the worst has any. */
bool store_worst(struct store_file *file, struct arena *arena, const struct change_record *records,
	size_t count, struct excerpted **out, struct error *error) MUST_USE;

/* Counts what is to be announced. */
bool store_due(struct store_file *file, struct store_due *due, struct error *error) MUST_USE;

bool store_counts(
	struct store_file *file, struct store_counts *counts, struct error *error) MUST_USE;

#endif
