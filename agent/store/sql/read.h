/* What several calls read. */
#ifndef AGENT_STORE_SQL_READ_H
#define AGENT_STORE_SQL_READ_H

#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"

/* Loads the deliveries' changes into their `records`. */
void store_members(struct tx *tx, struct delivery *deliveries, size_t count);

/* The points around the changes, by their places; empty if there are none. */
void store_load_excerpts(struct tx *tx, struct owners *changes, struct excerpt *out);

/* The same packed, as they are stored. */
void store_load_packed(struct tx *tx, struct owners *changes, struct packed_excerpt *out);

/* The records of the ids, a JSON array, in their order. */
void store_load_records(struct tx *tx, const char *ids, struct record_rows *out);

/* The records of the owners, by their places; NULL: there is none. */
void store_load_records_of(struct tx *tx, struct owners *owners, struct change_record **out);

/* Of the tables of schema_sequences: the last ids that were given. */
void store_last_ids(struct tx *tx, int64_t ids[SCHEMA_SEQUENCES]);

void store_load_health(struct tx *tx, struct health_rows *health);
void store_load_environments(struct tx *tx, struct environment_rows *out);
void store_load_checkpoints(struct tx *tx, const char *test, struct checkpoint_rows *out);

/* The worst of the records around which points are stored; NULL: none of the worst has any. */
void store_worst(
	struct tx *tx, const struct change_record *records, size_t count, struct excerpted **out);

/* Counts what is to be announced. */
void store_due(struct tx *tx, struct store_due *due);

/* Counts changes and what is to be announced, for the call. */
void store_counts(struct tx *tx);

#endif
