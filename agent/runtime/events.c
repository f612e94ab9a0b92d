/* A ring of the last events. */
#include "agent/runtime/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/model/json_put.h"

enum {
	SECOND = 1000,
	MOST_BYTES = 8 << 10, /* of one event; longer ones are only counted */
};

struct kept {
	const char *kind;
	char *data;
	size_t length;
};

struct events {
	struct agent *agent;
	void (*news)(void *context);
	void *context;
	int64_t born; /* ms, wall clock: distinguishes its ids from those of other agents */
	struct kept ring[EVENTS_KEPT];
	uint64_t first, last; /* numbers of those kept; first > last: none */
	size_t bytes;
	int64_t second; /* engine_now at the start of the second in which ... */
	size_t told;    /* ... so many were sent, */
	size_t untold;  /* ... and so many not */
	struct alarm alarm;
};

static struct kept *place_of(struct events *events, uint64_t number)
{
	return &events->ring[number % EVENTS_KEPT];
}

static void forget_first(struct events *events)
{
	struct kept *kept = place_of(events, events->first++);

	events->bytes -= kept->length;
	free(kept->data);
	*kept = (struct kept){0};
}

static void keep(struct events *events, const char *kind, struct buf *data)
{
	size_t length = data->length;

	while (events->first <= events->last && (events->last - events->first + 1 == EVENTS_KEPT ||
							events->bytes + length > EVENTS_BYTES))
		forget_first(events);
	events->last++;
	*place_of(events, events->last) =
		(struct kept){.kind = kind, .data = buf_steal(data), .length = length};
	events->bytes += length;
	if (events->news)
		events->news(events->context);
}

static void second_over(void *context)
{
	struct events *events = context;

	struct buf data = {0};

	events->second = engine_now(events->agent->engine);
	events->told = 0;
	if (events->untold == 0)
		return;
	/* One event for those of the last second that were not sent. */
	buf_printf(&data, "{\"count\": %zu}", events->untold);
	events->untold = 0;
	events->told++;
	keep(events, "changes", &data);
}

/* Takes the data. */
static void tell(struct events *events, const char *kind, struct buf *data)
{
	int64_t now = engine_now(events->agent->engine);

	if (now - events->second >= SECOND)
		second_over(events);
	if (events->told < EVENTS_A_SECOND && data->length <= MOST_BYTES) {
		events->told++;
		keep(events, kind, data);
		return;
	}
	buf_free(data);
	if (events->untold++ == 0)
		engine_alarm(events->agent->engine, &events->alarm, events->second + SECOND);
}

void events_untold(struct events *events)
{
	if (events->untold++ == 0)
		engine_alarm(events->agent->engine, &events->alarm, events->second + SECOND);
}

struct events *events_new(struct agent *agent, void (*news)(void *context), void *context)
{
	struct events *events = memory_new(1, sizeof *events);

	*events = (struct events){.agent = agent,
		.news = news,
		.context = context,
		.born = agent_now(agent),
		.first = 1,
		.second = engine_now(agent->engine)};
	events->alarm = (struct alarm){.call = second_over, .context = events};
	return events;
}

void events_free(struct events *events)
{
	while (events && events->first <= events->last)
		forget_first(events);
	free(events);
}

static const char *triage_name(enum triage_state state)
{
	return triage_state_names[state ? state : TRIAGE_OPEN];
}

static struct buf change_of(
	int64_t id, const char *test, const char *metric, enum change_state state)
{
	struct buf data = {0};

	json_put(&data, "{id: %jd, test: %s, metric: %s optional, state: %s", id, test, metric,
		change_state_names[state]);
	return data;
}

/* `triage`, `item`: NULL: unknown. */
static void tell_change(struct events *events, int64_t id, const char *test,
	enum change_state state, const struct announcement *item, const char *triage, bool known)
{
	struct buf data = change_of(id, test, item ? item->metric : "", state);

	json_put(&data, "triage: %s", triage);
	if (item)
		json_put(&data, "regression: %d bool", announcement_verdict(item) > 0);
	else
		json_put(&data, "regression: null");
	json_put(&data, "known: %d bool}", known);
	tell(events, "change", &data);
}

static void tell_triage(struct events *events, const struct record_rows *records)
{
	for (size_t i = 0; i < records->count; i++) {
		const struct change_record *record = &records->items[i];
		const struct triage *triage = &record->triage;
		struct buf data = change_of(
			record->item.id, record->item.test, record->item.metric, record->state);

		json_put(&data, "triage: %s, owner: %s, person: %s, version: %jd}",
			triage_name(triage->state), triage->owner, triage->person, triage->version);
		tell(events, "triage", &data);
	}
}

/* The begin and end of a run are no events for watchers. */
static void tell_bisection(struct events *events, const struct store_call *answered)
{
	const struct store_bisection_ask *ask = (const struct store_bisection_ask *)answered;
	const struct store_bisection_begin *begin = (const struct store_bisection_begin *)answered;
	const struct store_bisection_write *write = (const struct store_bisection_write *)answered;
	const struct store_bisection_say *say = (const struct store_bisection_say *)answered;
	const struct bisection_rows *rows = NULL;
	const struct bisection_row *row;
	struct buf data = {0};

	if (answered->work == &store_bisection_ask_work && ask->added)
		rows = &ask->rows;
	else if (answered->work == &store_bisection_begin_work && begin->begun)
		rows = &begin->rows;
	else if (answered->work == &store_bisection_write_work && !write->gone)
		rows = &write->rows;
	else if (answered->work == &store_bisection_say_work && say->taken && say->cancel)
		rows = &say->rows;
	if (!rows || rows->count == 0)
		return;
	row = rows->items;
	json_put(&data,
		"{id: %jd, change: %jd, test: %s, metric: %s, state: %s, end: %s, "
		"runs: %jd}",
		row->id, row->change, row->test, row->metric, bisection_state_names[row->state],
		row->end, row->runs);
	tell(events, "bisection", &data);
}

void events_store(struct agent *agent, const struct store_call *answered)
{
	const struct store_triage *triage = (const struct store_triage *)answered;
	const struct store_silence *silence = (const struct store_silence *)answered;
	const struct store_record *recorded =
		answered->work == &store_record_work ? (const struct store_record *)answered : NULL;
	const struct silence *written = &silence->written;
	struct buf data = {0};

	if (!agent->events || answered->failed)
		return;
	tell_bisection(agent->events, answered);
	for (size_t i = 0; recorded && i < recorded->records.count; i++) {
		const struct change_record *record = &recorded->records.items[i];

		tell_change(agent->events, record->item.id, record->item.test, record->state,
			&record->item, triage_name(record->triage.state), record->confirmed);
	}
	for (size_t i = 0; recorded && i < recorded->update_count; i++) {
		const struct change_record_update *update = &recorded->updates[i];

		if (update->state != CHANGE_CANDIDATE) /* those from run to run are no events */
			tell_change(agent->events, update->id, recorded->test, update->state,
				update->item, NULL, true);
	}
	if (answered->work == &store_triage_work && triage->changed > 0 && !triage->dry_run)
		tell_triage(agent->events, &triage->records);
	else if (answered->work == &store_reopen_due_work)
		tell_triage(agent->events, &((const struct store_reopen_due *)answered)->records);
	if (answered->work != &store_silence_work || !silence->found)
		return;
	json_put(&data,
		"{id: %jd, matchers: %s, from: %jd time, until: %jd time, "
		"ended: %d bool, owner: %s}",
		written->id, written->matchers, written->from, written->until, written->ended != 0,
		written->owner);
	tell(agent->events, "silence", &data);
}

void events_test(struct agent *agent, const char *test, bool failing, const char *problem)
{
	struct buf data = {0};

	if (!agent->events)
		return;
	buf_text(&data, "{\"name\": ");
	buf_json_text(&data, test);
	json_put(&data, "failing: %d bool, problem: %s}", failing, problem);
	tell(agent->events, "test", &data);
}

void events_reload(struct agent *agent)
{
	struct buf data = {0};

	if (!agent->events)
		return;
	buf_printf(&data, "{\"tests\": %zu}", agent->config_ref->test_count);
	tell(agent->events, "configuration", &data);
}

uint64_t events_last(const struct events *events)
{
	return events->last;
}

bool events_reaches(const struct events *events, uint64_t number)
{
	return number + 1 >= events->first;
}

bool events_next(const struct events *events, uint64_t number, struct event_news *out)
{
	uint64_t next = number + 1 < events->first ? events->first : number + 1;
	const struct kept *kept = &events->ring[next % EVENTS_KEPT];

	if (next > events->last)
		return false;
	*out = (struct event_news){next, kept->kind, kept->data};
	return true;
}

const char *events_id(const struct events *events, uint64_t number, char text[EVENTS_ID])
{
	snprintf(text, EVENTS_ID, "%" PRIx64 "-%" PRIu64, (uint64_t)events->born, number);
	return text;
}

bool events_number(const struct events *events, const char *id, uint64_t *out)
{
	char own[EVENTS_ID];
	const char *dash = strchr(id, '-');

	if (!dash || strlen(dash + 1) > 18)
		return false;
	*out = strtoull(dash + 1, NULL, 10);
	return strcmp(events_id(events, *out, own), id) == 0 && *out <= events->last;
}
