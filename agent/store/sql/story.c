/*
 * Nothing in a row says of which cluster a change is part: it is one of the same direction, at
 * about the same time, in a group that has the test (agent/monitor/cluster_news.h).
 */

#include "agent/base/when.h"
#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/silences.h"

/* Changes of one commit are looked for at most that far from one another, and among so many before
 * and after it: in a storm a look takes no longer. */
enum { COMMIT_POINTS = 20, COMMIT_DAYS = 7, NEAREST = 10000 };

static const int64_t day = 86400000;

/* The cluster's change that is read, or that it is part of. */
struct cluster_row {
	int64_t id; /* 0: none */
	const char *name;
	int64_t time, spacing;
};

/* [["frames", "web"], ...]: group and test. NULL without clusters. */
static const char *json_of_clusters(const struct store_story *call)
{
	struct buf text = {0};
	const char *json;

	if (call->cluster_count == 0)
		return NULL;
	for (size_t i = 0; i < call->cluster_count; i++)
		for (size_t j = 0; j < call->clusters[i].tests.count; j++) {
			buf_text(&text, text.length > 0 ? ",[" : "[[");
			buf_json_text(&text, call->clusters[i].name);
			buf_char(&text, ',');
			buf_json_text(&text, call->clusters[i].tests.items[j]);
			buf_char(&text, ']');
		}
	buf_text(&text, text.length > 0 ? "]" : "[]");
	json = arena_strndup(call->call.arena, text.data, text.length);
	buf_free(&text);
	return json;
}

static struct reader reader_of(
	struct store_file *file, const struct store_story *call, enum statement statement)
{
	return (struct reader){.binder = bind_to(file, statement), .arena = call->call.arena};
}

static bool load_change(struct store_file *file, struct store_story *call, struct error *error)
{
	struct reader reader = reader_of(file, call, STATEMENT_RECORDS_OF);
	struct owners change = {0};

	owners_add(&change, reader.arena, call->change, 0);
	bind_owners(&reader.binder, reader.arena, &change);
	if (!read_records(&reader, &call->records, error))
		return false;
	for (size_t i = 0; i < call->records.count; i++)
		record_by_clock(&call->records.items[i], call->now);
	return store_events(file, reader.arena, call->records.items, call->records.count, error) &&
	       (call->records.count == 0 ||
		       store_load_excerpts(file, reader.arena, &change, &call->excerpt, error));
}

/* Ids are never used again. */
static bool load_pruned(struct store_file *file, struct store_story *call, struct error *error)
{
	struct reader reader = reader_of(file, call, STATEMENT_LAST_CHANGE);

	while (reader_next(&reader, error))
		call->pruned = call->change <= read_count(&reader);
	return !reader.failed;
}

static bool load_series(struct store_file *file, struct store_story *call, struct error *error)
{
	const struct change_record *record = &call->records.items[0];
	struct reader reader = reader_of(file, call, STATEMENT_SERIES_OF);

	bind_text(&reader.binder, record->item.test);
	bind_text(&reader.binder, record->series);
	bind_text(&reader.binder, record->branch);
	while (reader_next(&reader, error)) {
		call->last_point = read_time_or(&reader, WHEN_NEVER);
		call->ended = read_time_or(&reader, WHEN_NEVER);
	}
	return !reader.failed;
}

static bool load_cluster(struct store_file *file, const struct store_story *call,
	const char *clusters, struct cluster_row *out, struct error *error)
{
	const struct change_record *record = &call->records.items[0];
	struct reader reader;

	*out = (struct cluster_row){0};
	if (record->item.members > 0) {
		*out = (struct cluster_row){
			record->item.id, record->item.test, record->item.time, record->spacing};
		return true;
	}
	reader = reader_of(file, call, STATEMENT_CLUSTER_OF);
	bind_text(&reader.binder, clusters);
	bind_text(&reader.binder, record->item.test);
	bind_integer(&reader.binder, record->sign);
	bind_time(&reader.binder, record->item.time);
	bind_count(&reader.binder, record->spacing);
	bind_count(&reader.binder, CHANGE_TOLERANCE);
	while (reader_next(&reader, error)) {
		out->id = read_id(&reader);
		out->name = read_name(&reader);
		out->time = read_time(&reader);
		out->spacing = read_count(&reader);
	}
	return !reader.failed;
}

static void bind_related(struct binder *binder, const struct store_story *call,
	const char *clusters, const struct cluster_row *cluster)
{
	const struct change_record *record = &call->records.items[0];
	const struct announcement *item = &record->item;
	int64_t reach = COMMIT_DAYS * day > COMMIT_POINTS * record->spacing
				? COMMIT_DAYS * day
				: COMMIT_POINTS * record->spacing;

	bind_integer(binder, item->id);
	bind_integer(binder, item->time - reach);
	bind_integer(binder, item->time + reach);
	bind_text(binder, item->commit_after ? item->commit_after : item->version_after);
	bind_integer(binder, record->environment_event);
	bind_text(binder, clusters);
	bind_text(binder, cluster->name);
	bind_integer(binder, cluster->id);
	bind_integer(binder, cluster->id != 0 ? cluster->time : item->time);
	bind_integer(binder, cluster->id != 0 ? cluster->spacing : record->spacing);
	bind_integer(binder, CHANGE_TOLERANCE);
	bind_integer(binder, record->sign);
	bind_integer(binder, (int64_t)call->limit);
	bind_integer(binder, NEAREST);
}

static bool load_related(struct store_file *file, struct store_story *call, const char *clusters,
	const struct cluster_row *cluster, struct error *error)
{
	struct reader reader = reader_of(file, call, STATEMENT_RELATED);
	struct owners changes = {0};
	struct excerpt *excerpts;

	bind_related(&reader.binder, call, clusters, cluster);
	while (reader_next(&reader, error)) {
		struct related_change *related;

		call->related = rows_grow(
			reader.arena, call->related, &call->related_count, sizeof *call->related);
		related = &call->related[call->related_count - 1];
		*related = (struct related_change){0};
		related->relations = (unsigned)read_choice(&reader, 1, (1 << RELATIONS) - 1);
		call->related_total = (size_t)read_count(&reader);
		read_record(&reader, &related->record);
		record_by_clock(&related->record, call->now);
		owners_add(&changes, reader.arena, related->record.item.id, changes.count);
	}
	excerpts = arena_array(reader.arena, changes.count, sizeof *excerpts);
	if (reader.failed || !store_load_excerpts(file, reader.arena, &changes, excerpts, error))
		return false;
	for (size_t i = 0; i < call->related_count; i++)
		call->related[i].excerpt = excerpts[i];
	return true;
}

static bool story_load(struct store_file *file, void *context, struct error *error)
{
	struct store_story *call = context;
	struct cluster_row cluster;
	const char *clusters;

	call->pruned = false;
	call->cluster = 0;
	call->last_point = call->ended = WHEN_NEVER;
	call->related_count = call->related_total = 0;
	if (!load_change(file, call, error))
		return false;
	if (call->records.count == 0)
		return load_pruned(file, call, error);
	clusters = json_of_clusters(call);
	if (!load_series(file, call, error) || !load_cluster(file, call, clusters, &cluster, error))
		return false;
	call->cluster = cluster.id != call->change ? cluster.id : 0;
	return load_related(file, call, clusters, &cluster, error) &&
	       silences_load(file, call->call.arena, &call->silences, error);
}

const struct store_work store_story_work = {
	.run = story_load, .lane = STORE_LISTS, .is_long = true};
