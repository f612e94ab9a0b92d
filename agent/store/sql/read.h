/* What several calls read, and what follows from what they write. */
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

/* The records of the ids (v_owners), in their order. */
void store_load_records(struct tx *tx, struct value ids, struct record_rows *out);

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

/* Counts pending announcements. */
void store_due(struct tx *tx, struct store_due *due);

/* Counts what is to be announced, for the call, and has changes counted once it is committed. */
void store_counts(struct tx *tx);

/* The log of events. Without a subject, an entry of the audit log about a change is about its test
 * and metric. */
void event_add(struct tx *tx, const struct event *event);

/* "; owner: ann": part of a detail; quoted if it could be taken for several. */
void event_put_text(struct buf *detail, const char *name, const char *text);

/* Loads the records' histories. */
void events_load(struct tx *tx, struct change_record *records, size_t count);

/* Those that are not over, or not summed yet. */
void silences_load(struct tx *tx, struct silence_rows *out);

/* Opens a triaged change that has outgrown its size then, and makes it news. Both this and the next
 * add to `pending` how many changes are to be announced again. */
void triage_open_outgrown(struct tx *tx, int64_t id, const struct triage *accepted,
	const struct change *change, int64_t now, size_t *pending);

/* Settles the news of accepted changes, and makes that of those pending that are so no longer.
 * After all that can change either. */
void triage_settle(struct tx *tx, size_t *pending);

/* Gives the change what it inherits from the incident. It is settled, as announced; one that was
 * triaged since it was read is pending again. */
void triage_inherit(
	struct tx *tx, int64_t change, int64_t incident, const struct triage *inherited);

/* What messages say of the changes, ids as above, is to be edited. */
void triage_amend(struct tx *tx, struct value changes);

#endif
