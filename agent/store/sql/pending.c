/*
 * Pending announcements: the state that an agent resumes from, and the input of a round of the
 * dispatcher.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/store/sql/read.h"

static struct packed_excerpt read_packed(struct owned_query *rows, int64_t change)
{
	struct packed_excerpt packed = {0};

	while (owned_next(rows, change)) {
		const void *bytes = read_bytes(&rows->query, &packed.length);

		if (bytes)
			packed.bytes = memcpy(arena_alloc(rows->query.tx->arena, packed.length),
				bytes, packed.length);
	}
	return packed;
}

/* The packed values of each change, by position. */
void store_load_packed(struct tx *tx, struct owners *changes, struct packed_excerpt *out)
{
	struct owned_query rows = {0};
	const struct owner *owner;

	if (changes->count == 0)
		return;
	owners_sort(changes, false);
	owner = changes->items;
	rows.query = QUERY(tx,
		"SELECT change, points FROM excerpts WHERE change IN @ids{?1} ORDER BY change",
		v_owners(tx, changes));
	for (size_t i = 0; i < changes->count; i++)
		out[owner[i].place] = i > 0 && owner[i].id == owner[i - 1].id
					      ? out[owner[i - 1].place]
					      : read_packed(&rows, owner[i].id);
}

static void load_changes(struct tx *tx, struct store_pending *call)
{
	struct sql_query changes =
		sql_query_of(tx, "SELECT " RECORD_COLUMNS " FROM changes" WITH_TRIAGE
				 " WHERE" AWAITS " ORDER BY changes.id");
	struct sql_query told = sql_query_of(tx,
		"SELECT DISTINCT changes.id, receiver FROM changes JOIN announced ON"
		" announced.change = changes.id JOIN deliveries ON delivery = "
		"deliveries.id" WITH_TRIAGE
		" WHERE news = @news{pending} AND deliveries.state != @delivery{abandoned} AND"
		" deliveries.id > coalesce(told_after, 0) ORDER BY changes.id, receiver");
	struct owned_query pictured = {
		.query = QUERY(tx,
			/* Of so many, a message shows the largest. */
			"SELECT change, points FROM excerpts WHERE change "
			"IN (SELECT id FROM changes WHERE" AWAITS " ORDER BY abs(size) DESC"
			" NULLS FIRST LIMIT ?1) ORDER BY change",
			v_int(STORE_PICTURED))};
	size_t i = 0;

	read_records(&changes, &call->records);
	while (query_next(&told)) { /* in the same order */
		int64_t id = read_id(&told);
		struct change_record *records = call->records.items;

		while (i < call->records.count && records[i].item.id < id)
			i++;
		if (i < call->records.count && records[i].item.id == id)
			record_told(tx->arena, &records[i], read_name(&told));
	}
	for (i = 0; i < call->records.count; i++)
		call->records.items[i].item.excerpt =
			read_packed(&pictured, call->records.items[i].item.id);
}

static void read_delivery(struct sql_query *query, struct delivery *delivery)
{
	delivery->id = read_id(query);
	delivery->key = read_name(query);
	delivery->receiver = read_name(query);
	delivery->destination = read_name(query);
	delivery->thread = read_text(query);
	delivery->state = (enum delivery_state)read_choice(query, 1, DELIVERY_ABANDONED);
	delivery->receipt = read_text(query);
	delivery->attempts = read_count(query);
	delivery->now = read_time(query);
	delivery->begun = read_flag(query);
	delivery->not_before = read_time(query);
	delivery->kind = read_text(query);
}

static void read_deliveries(struct sql_query *query, struct delivery_rows *out)
{
	*out = (struct delivery_rows){0};
	while (query_next(query)) {
		read_delivery(query, ADD_ROW(query->tx, out->items, out->count));
	}
}

void store_members(struct tx *tx, struct delivery *deliveries, size_t count)
{
	struct owned_query rows = {0};
	struct owners owners = {0};

	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		owners_add(&owners, tx, deliveries[i].id, i);
	owners_sort(&owners, false);
	rows.query = QUERY(tx,
		"SELECT delivery, " RECORD_COLUMNS
		" FROM announced @indexed{announced_by} JOIN changes ON announced.change ="
		" changes.id" WITH_TRIAGE
		" WHERE delivery IN @ids{?1} ORDER BY delivery, announced.change",
		v_owners(tx, &owners));
	for (size_t i = 0; i < count; i++) {
		struct delivery *delivery = &deliveries[owners.items[i].place];
		struct growing growing = {0};
		struct record_rows records = {0};

		while (owned_next(&rows, delivery->id))
			read_record(&rows.query, growing_next(&growing, records.count++));
		growing_keep(&growing, tx, &records);
		delivery->records = records.items;
		delivery->record_count = records.count;
	}
}

/* The messages about the changes, each owner's at its place of `out`. */
static void load_messages(
	struct tx *tx, const char *statement, struct owners *changes, struct delivery_rows *out)
{
	struct owned_query rows = {0};

	if (changes->count == 0)
		return;
	owners_sort(changes, false);
	rows.query = QUERY(tx, statement, v_owners(tx, changes));
	for (size_t i = 0; i < changes->count; i++) {
		struct delivery_rows *messages = &out[changes->items[i].place];

		if (i > 0 && changes->items[i - 1].id == changes->items[i].id)
			*messages = out[changes->items[i - 1].place];
		while (owned_next(&rows, changes->items[i].id)) {
			(void)read_flag(&rows.query); /* pruned */
			read_delivery(&rows.query, ADD_ROW(tx, messages->items, messages->count));
		}
	}
}

static void load_events(struct tx *tx, struct store_pending *call)
{
	struct sql_query query = QUERY(tx,
		"SELECT @events FROM events @indexed{events_due} WHERE due IS NOT NULL ORDER BY id"
		" LIMIT ?1",
		v_int(STORE_DUE));
	struct delivery_rows messages[STORE_DUE] = {0};
	struct change_record *records[STORE_DUE];
	struct owners changes = {0}, ended = {0}, others = {0};

	while (query_next(&query)) {
		size_t at = call->events.count;
		struct event *event = &ADD_ROW(tx, call->events.items, call->events.count)->event;

		read_struct(&query, event_columns, event);
		owners_add(&changes, tx, event->change, at);
		owners_add(
			event->kind == EVENT_RECOVERED ? &ended : &others, tx, event->change, at);
	}
	store_load_records_of(tx, &changes, records);
	load_messages(tx,
		/* The first message to each destination; and recipients whose message was pruned.
		 * ?1 ids of changes */
		"SELECT first.change, 0, @message{updated} FROM (SELECT change, min(id) AS id"
		" FROM announced JOIN deliveries ON id = delivery WHERE change IN @ids{?1} AND"
		" state != @delivery{abandoned} AND NOT" POINTLESS
		" GROUP BY change, receiver, destination) AS first"
		" JOIN deliveries USING (id) UNION ALL SELECT DISTINCT change, 1, 1, '',"
		" person, origin, NULL, @delivery{sent}, NULL, 0, (SELECT updated FROM"
		" changes WHERE id = change), 0, 0, NULL FROM events WHERE change IN @ids{?1} AND"
		" kind = @event{announced} AND NOT EXISTS (SELECT 1 FROM announced JOIN deliveries"
		" ON deliveries.id = delivery WHERE announced.change = events.change AND state !="
		" @delivery{abandoned} AND receiver = person AND destination = origin) ORDER BY 1,"
		" 2, 3",
		&ended, messages);
	load_messages(tx,
		"SELECT change, 0, @message{updated} FROM announced JOIN deliveries ON id ="
		" delivery WHERE change IN @ids{?1} AND state != @delivery{abandoned} AND"
		" NOT" POINTLESS " ORDER BY change, id",
		&others, messages);
	for (size_t i = 0; i < call->events.count; i++) {
		struct due_event *due = &call->events.items[i];

		due->record = records[i];
		due->messages = messages[i];
	}
}

void store_load_environments(struct tx *tx, struct environment_rows *out)
{
	struct sql_query query = sql_query_of(tx,
		"SELECT @environments, (SELECT count(*) FROM changes WHERE environment_event ="
		" environments.id AND state = @state{confirmed} AND recovered IS NULL), (SELECT"
		" count(*) FROM changes WHERE environment_event = environments.id AND state ="
		" @state{recovered} AND news = @news{queued} AND NOT EXISTS (SELECT 1 FROM events"
		" WHERE change = changes.id AND kind = @event{recovered} AND due IS NOT NULL)) "
		"FROM environments ORDER BY id");

	while (query_next(&query)) {
		struct environment_event *event = ADD_ROW(tx, out->items, out->count);

		read_struct(&query, environment_columns, event);
		event->standing = (size_t)read_count(&query);
		event->back = (size_t)read_count(&query);
	}
}

void store_load_records(struct tx *tx, struct value ids, struct record_rows *out)
{
	struct sql_query query = QUERY(tx,
		"SELECT " RECORD_COLUMNS " FROM changes" WITH_TRIAGE
		" WHERE changes.id IN @ids{?1} ORDER BY changes.id",
		ids);

	read_records(&query, out);
}

/* The records of the owners, by their places; NULL: there is none. */
void store_load_records_of(struct tx *tx, struct owners *owners, struct change_record **out)
{
	struct record_rows records;
	size_t at = 0;

	if (owners->count == 0)
		return;
	owners_sort(owners, false);
	store_load_records(tx, v_owners(tx, owners), &records);
	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *owner = &owners->items[i];

		while (at < records.count && records.items[at].item.id < owner->id)
			at++;
		out[owner->place] = at < records.count && records.items[at].item.id == owner->id
					    ? &records.items[at]
					    : NULL;
	}
}

static void load_incident_messages(
	struct tx *tx, const struct owners *incidents, struct incident_messages *out)
{
	struct sql_query query = QUERY(tx,
		"SELECT @message{updated}, incident, first, regression, other FROM (SELECT"
		" incident, delivery, min(change) AS first, max(CASE WHEN changes.state !="
		" @state{withdrawn} AND direction * sign < 0 THEN coalesce(abs(told_size), 1e308)"
		" ELSE 0 END) AS regression, max(CASE WHEN changes.state = @state{withdrawn} OR"
		" direction * sign < 0 THEN 0 ELSE coalesce(abs(told_size), 1e308) END) AS other"
		" FROM changes @indexed{changes_of_incident} JOIN announced ON change = changes.id"
		" WHERE incident IN @ids{?1} GROUP BY incident, delivery) AS told JOIN deliveries"
		" ON deliveries.id = told.delivery WHERE state != @delivery{abandoned} ORDER BY"
		" deliveries.id, first",
		v_owners(tx, incidents));
	struct owners firsts = {0};
	struct change_record **records;

	while (query_next(&query)) {
		struct incident_message *at = ADD_ROW(tx, out->items, out->count);

		read_delivery(&query, &at->message);
		at->incident = read_id(&query);
		owners_add(&firsts, tx, read_id(&query), firsts.count);
		at->worst.regression = read_number(&query);
		at->worst.other = read_number(&query);
	}
	records = arena_array(tx->arena, out->count, sizeof *records);
	store_load_records_of(tx, &firsts, records);
	for (size_t i = 0; i < out->count; i++) {
		out->items[i].message.records = records[i];
		out->items[i].message.record_count = 1;
	}
}

static void load_early(struct tx *tx, struct event_told *event)
{
	struct sql_query query = QUERY(tx,
		"SELECT receiver, destination, count(DISTINCT changes.id) FROM changes"
		" @indexed{changes_of_time} JOIN announced ON change = changes.id JOIN deliveries"
		" ON deliveries.id = delivery WHERE changes.time BETWEEN ?2 AND ?3 AND environment"
		" = ?1 AND environment_event IS NULL AND deliveries.state != @delivery{abandoned}"
		" AND NOT EXISTS (SELECT 1 FROM changes AS other @indexed{changes_of_incident}"
		" WHERE other.incident = changes.incident AND other.environment IS DISTINCT FROM"
		" changes.environment) GROUP BY receiver, destination",
		v_text(event->environment), v_int(event->from), v_int(event->to));

	event->early = NULL;
	event->early_count = 0;
	while (query_next(&query)) {
		struct early_changes *at = ADD_ROW(tx, event->early, event->early_count);

		at->receiver = read_name(&query);
		at->destination = read_name(&query);
		at->count = read_count(&query);
	}
}

static void load_accepted(
	struct tx *tx, const struct owners *incidents, struct record_rows *members)
{
	struct sql_query query = QUERY(tx,
		"SELECT " RECORD_COLUMNS " FROM changes @indexed{changes_of_incident}" WITH_TRIAGE
		" WHERE incident IN (SELECT incident FROM changes @indexed{changes_of_incident}"
		" JOIN triage ON triage.change = changes.id WHERE incident IN @ids{?1} AND" ACCEPTED
		") ORDER BY incident, changes.id",
		v_owners(tx, incidents));

	read_records(&query, members);
}

STORE_DEFINE(incidents)
{
	struct sql_query open = QUERY(tx,
		/* Incidents open to further changes. ?1 ms: the time */
		"SELECT @incidents FROM incidents WHERE (until >= ?1 OR EXISTS (SELECT 1 FROM"
		" environments WHERE environments.id = incidents.id)) AND EXISTS (SELECT 1 FROM"
		" changes WHERE changes.id = incidents.id) ORDER BY joined DESC, id DESC LIMIT ?2",
		v_int(call->now), v_int(STORE_INCIDENTS));
	struct change_record *records[STORE_INCIDENTS];
	struct owners firsts = {0}, told = {0}, joinable = {0};
	struct sql_query sample;

	while (query_next(&open)) {
		struct opened_incident *at =
			ADD_ROW(tx, call->incidents.items, call->incidents.count);

		read_struct(&open, incident_columns, &at->incident);
		owners_add(&firsts, tx, at->incident.id, firsts.count);
		owners_add(&told, tx, at->incident.id, told.count);
		if (at->incident.until >= call->now)
			owners_add(&joinable, tx, at->incident.id, joinable.count);
	}
	for (size_t i = 0; i < call->joined_count; i++) {
		owners_add(&told, tx, call->joined[i], told.count);
		owners_add(&joinable, tx, call->joined[i], joinable.count);
	}
	store_load_records_of(tx, &firsts, records);
	for (size_t i = 0; i < call->incidents.count; i++)
		call->incidents.items[i].first = records[i];
	if (told.count > 0)
		load_incident_messages(tx, &told, &call->messages);
	if (call->sampled && joinable.count > 0)
		load_accepted(tx, &joinable, &call->members);
	for (size_t i = 0; i < call->event_count; i++)
		load_early(tx, &call->events[i]);
	if (!call->sampled)
		return;
	sample = QUERY(tx,
		/* Of so many series one, by their names; none that the incidents have. */
		"SELECT test, series FROM (SELECT test, series, row_number() OVER (ORDER"
		" BY test, series, branch) AS number FROM series) AS numbered WHERE"
		" number % ?1 = 0 AND (test, series) NOT IN (SELECT test, series FROM changes"
		" @indexed{changes_of_incident} WHERE incident IN @ids{?2})",
		v_int(1 +
			query_ask(sql_query_of(tx, "SELECT count(*) FROM series")) / STORE_SAMPLE),
		v_owners(tx, &firsts));
	while (query_next(&sample)) {
		struct series_name *name = ADD_ROW(tx, call->series, call->series_count);

		name->test = read_name(&sample);
		name->series = read_name(&sample);
	}
}

STORE_DEFINE(pending)
{
	struct store_due due = {0};
	bool environments = false;

	store_due(tx, &due); /* mostly nothing */
	if (due.changes > 0)
		load_changes(tx, call);
	if (due.events + due.held > 0)
		load_events(tx, call);
	for (size_t i = 0; i < call->records.count && !environments; i++)
		environments = call->records.items[i].item.environment != NULL;
	if (environments || call->events.count > 0)
		store_load_environments(tx, &call->environments);
	if (environments) {
		struct sql_query seen = sql_query_of(tx, "SELECT @seen FROM seen ORDER BY test");

		call->seen.items = read_structs(
			&seen, seen_columns, sizeof *call->seen.items, &call->seen.count);
	}
}

STORE_DEFINE(reminders)
{
	struct sql_query query = QUERY(tx,
		"SELECT @message{updated} FROM deliveries @indexed{deliveries_settled} WHERE"
		" state != @delivery{queued} AND updated <= ?2 AND state = @delivery{sent} AND"
		" receiver = ?1 AND id > ?4 AND coalesce(reminded, updated) <= ?2 AND EXISTS"
		" (SELECT 1 FROM announced JOIN changes ON changes.id ="
		" announced.change" WITH_TRIAGE
		" WHERE delivery = deliveries.id AND changes.state @standing AND direction * sign"
		" < 0 AND coalesce(triage, @triage{open}) = @triage{open} AND NOT EXISTS (SELECT 1"
		" FROM announced AS again JOIN deliveries AS later ON later.id = again.delivery"
		" WHERE again.change = changes.id AND later.id > deliveries.id AND later.state ="
		" @delivery{sent} AND later.receiver = deliveries.receiver AND later.destination ="
		" deliveries.destination)) ORDER BY id LIMIT ?3",
		v_text(call->receiver), v_int(call->before), v_int(STORE_REMINDERS_MOST),
		v_int(call->after));

	read_deliveries(&query, &call->messages);
	store_members(tx, call->messages.items, call->messages.count);
}

void store_due(struct tx *tx, struct store_due *due)
{
	struct sql_query query = sql_query_of(tx, DUE);

	while (query_next(&query)) {
		due->changes = read_count(&query);
		due->events = read_count(&query);
		due->held = read_count(&query);
	}
}

void store_counts(struct tx *tx)
{
	tx->call->counts = arena_alloc(tx->arena, sizeof *tx->call->counts);
	store_due(tx, &tx->call->counts->due);
}

void sql_count(struct tx *tx, int64_t states[CHANGE_STATES])
{
	struct sql_query query = sql_query_of(tx, "@counts");

	while (query_next(&query)) {
		int64_t state = read_choice(&query, 1, CHANGE_STATES - 1);

		states[state] = read_count(&query);
	}
}

void store_load_health(struct tx *tx, struct health_rows *health)
{
	struct sql_query conditions =
		sql_query_of(tx, "SELECT @conditions FROM conditions ORDER BY subject");
	struct sql_query moments = sql_query_of(tx, "SELECT @moments FROM moments ORDER BY name");
	struct sql_query vanished =
		sql_query_of(tx, "SELECT @vanished FROM vanished ORDER BY test, series");

	health->conditions = read_structs(&conditions, condition_columns,
		sizeof *health->conditions, &health->condition_count);
	health->moments = read_structs(
		&moments, moment_columns, sizeof *health->moments, &health->moment_count);
	health->vanished = read_structs(
		&vanished, vanished_columns, sizeof *health->vanished, &health->vanished_count);
}

STORE_DEFINE(restore, .is_long = true)
{
	struct sql_query query = sql_query_of(tx,
		"SELECT @message{created} FROM deliveries WHERE state = @delivery{queued} ORDER BY"
		" id");
	struct delivery_rows *found = &call->deliveries;
	size_t known = 0;

	read_deliveries(&query, found);
	while (known < found->count && found->items[known].id <= call->known)
		known++;
	if (known < found->count)
		store_members(tx, &found->items[known], found->count - known);
	if (call->queued)
		return;
	store_load_health(tx, &call->health);
	silences_load(tx, &call->silences);
	if (call->counted)
		call->messages = (size_t)query_ask(sql_query_of(tx,
			"SELECT count(*) FROM deliveries WHERE state = @delivery{sent} AND EXISTS"
			" (SELECT 1 FROM announced WHERE delivery = deliveries.id)"));
	store_counts(tx);
}

static void probe(struct tx *tx, void *context)
{
	(void)context;
	RUN(tx, "@probe");
}

const struct store_work store_probe_work = {.run = probe, .writes = true};
