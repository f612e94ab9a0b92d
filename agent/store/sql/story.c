/*
 * Nothing in a row says of which cluster a change is part: it is one of the same direction, at
 * about the same time, in a group that has the test (agent/monitor/cluster.c).
 */

#include "agent/base/when.h"
#include "agent/store/sql/read.h"

const char *const relation_names[RELATIONS] = {"commit", "message", "cluster", "environment"};

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
static const char *json_of_clusters(struct tx *tx, const struct store_story *call)
{
	struct buf text = {0};

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
	return buf_keep(&text, tx->arena);
}

static void load_cluster(struct tx *tx, const struct store_story *call, const char *clusters,
	struct cluster_row *out)
{
	const struct change_record *record = &call->records.items[0];
	struct sql_query query = QUERY(tx,
		"SELECT changes.id, test, time, spacing FROM @pairs{?1,pair} @ordered_join"
		" changes @indexed{changes_of_series} ON test = pair.value ->> 0 WHERE pair.value"
		" ->> 1 = ?2 AND sign = ?3 AND members > 0 AND abs(time - ?4) <= ?6 *"
		" @largest(spacing, ?5) ORDER BY abs(time - ?4), changes.id LIMIT 1",
		v_text(clusters), v_text(record->item.test), v_int(record->sign),
		v_int(record->item.time), v_int(record->item.spacing), v_int(CHANGE_TOLERANCE));

	*out = (struct cluster_row){0};
	if (record->item.members > 0) {
		*out = (struct cluster_row){record->item.id, record->item.test, record->item.time,
			record->item.spacing};
		return;
	}
	while (query_next(&query)) {
		out->id = read_id(&query);
		out->name = read_name(&query);
		out->time = read_time(&query);
		out->spacing = read_count(&query);
	}
}

/* By which changes of about the same time are related. */
#define NEAR                                                                                       \
	"id, test, sign, time, spacing, members, commit_after, place_commit_after, version_after"  \
	" FROM changes @indexed{changes_of_time} WHERE"

/* ?1: the change, ?8: its cluster's, which is before its members; and its members are before
 * others. A common message alone is weak evidence: it may list everything found at once. */
#define WORST_FIRST                                                                                \
	" changes.id = ?8 DESC, ?1 = ?8 AND (relations & 4) != 0 DESC, relations = 2,"             \
	" changes.state @standing DESC, direction * sign, abs(size) DESC NULLS LAST, changes.id"

static void load_related(struct tx *tx, struct store_story *call, const char *clusters,
	const struct cluster_row *cluster)
{
	const struct change_record *record = &call->records.items[0];
	const struct announcement *item = &record->item;
	int64_t reach = COMMIT_DAYS * day > COMMIT_POINTS * record->item.spacing
				? COMMIT_DAYS * day
				: COMMIT_POINTS * record->item.spacing;
	struct sql_query query = QUERY(tx,
		"WITH near AS NOT MATERIALIZED (SELECT * FROM (SELECT " NEAR
		" time >= ?9 AND time <= ?3 ORDER BY time, id LIMIT ?14) AS later UNION ALL"
		" SELECT * FROM (SELECT " NEAR
		" time < ?9 AND time >= ?2 ORDER BY time DESC, id DESC LIMIT ?14) AS earlier),"
		" found (id, relation) AS (SELECT other.change, 2 FROM announced AS own"
		" @ordered_join announced AS other @indexed{announced_by} ON other.delivery ="
		" own.delivery WHERE own.change = ?1 UNION SELECT id, 8 FROM changes"
		" @indexed{changes_of_environment} WHERE environment_event = ?5 UNION SELECT id,"
		" 1 FROM near WHERE ?4 IN (commit_after, place_commit_after, version_after) UNION"
		" SELECT id, 4 FROM changes WHERE id = ?8 UNION SELECT id, 4 FROM near WHERE ?8"
		" != 0 AND sign = ?12 AND members = 0 AND test IN (SELECT pair.value ->> 1 FROM"
		" @pairs{?6,pair} WHERE pair.value ->> 0 = ?7) AND abs(time - ?9) <= ?11 *"
		" @largest(spacing, ?10)), summed AS (SELECT id, CAST(sum(relation) AS BIGINT) AS"
		" relations, count(*) OVER () AS total FROM found WHERE id != ?1 GROUP BY id),"
		" ranked AS (SELECT summed.id, relations, total FROM summed @ordered_join changes"
		" ON changes.id = summed.id ORDER BY" WORST_FIRST
		" LIMIT ?13) SELECT relations, total, " RECORD_COLUMNS
		" FROM ranked @ordered_join changes ON changes.id = ranked.id" WITH_TRIAGE
		" ORDER BY" WORST_FIRST,
		v_int(item->id), v_int(item->time - reach), v_int(item->time + reach),
		v_text(item->commit_after ? item->commit_after : item->version_after),
		v_int(record->environment_event), v_text(clusters), v_text(cluster->name),
		v_int(cluster->id), v_int(cluster->id != 0 ? cluster->time : item->time),
		v_int(cluster->id != 0 ? cluster->spacing : record->item.spacing),
		v_int(CHANGE_TOLERANCE), v_int(record->sign), v_int((int64_t)call->limit),
		v_int(NEAREST));
	struct owners changes = {0};
	struct excerpt *excerpts;

	while (query_next(&query)) {
		struct related_change *related = ADD_ROW(tx, call->related, call->related_count);

		related->relations = (unsigned)read_choice(&query, 1, (1 << RELATIONS) - 1);
		call->related_total = (size_t)read_count(&query);
		read_record(&query, &related->record);
		record_by_clock(&related->record, call->now);
		owners_add(&changes, tx, related->record.item.id, changes.count);
	}
	excerpts = arena_array(tx->arena, changes.count, sizeof *excerpts);
	store_load_excerpts(tx, &changes, excerpts);
	for (size_t i = 0; i < call->related_count; i++)
		call->related[i].excerpt = excerpts[i];
}

STORE_DEFINE(story, .lane = STORE_LISTS, .is_long = true)
{
	struct owners change = {&(struct owner){call->change, 0}, 1};
	struct cluster_row cluster;
	const struct change_record *record;
	struct sql_query query;
	const char *clusters;

	call->last_point = call->ended = WHEN_NEVER;
	store_load_records(tx, v_one(tx, call->change), &call->records);
	if (call->records.count == 0) { /* ids are never used again */
		call->pruned = call->change <= query_ask(QUERY(tx, "SELECT @last_id{changes}"));
		return;
	}
	record_by_clock(&call->records.items[0], call->now);
	events_load(tx, call->records.items, 1);
	store_load_excerpts(tx, &change, &call->excerpt);
	record = &call->records.items[0];
	query = QUERY(tx,
		"SELECT (SELECT last_point FROM series WHERE test = ?1 AND series = ?2 AND branch"
		" = ?3), (SELECT ended FROM vanished WHERE test = ?1 AND series = ?2)",
		v_text(record->item.test), v_text(record->series), v_text(record->branch));
	while (query_next(&query)) {
		call->last_point = read_time_or(&query, WHEN_NEVER);
		call->ended = read_time_or(&query, WHEN_NEVER);
	}
	clusters = json_of_clusters(tx, call);
	load_cluster(tx, call, clusters, &cluster);
	call->cluster = cluster.id != call->change ? cluster.id : 0;
	load_related(tx, call, clusters, &cluster);
	silences_load(tx, &call->silences);
}
