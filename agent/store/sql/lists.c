/*
 * Lists of changes with their history, and the points around them. They are read to their end or to
 * their limit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/sql/audit.h"
#include "agent/store/sql/read.h"
#include "agent/store/sql/silences.h"
#include "notifiers/message.h"

_Static_assert(CHANGE_TOLERANCE == 5, "ENDS in statements.inc has it, too");

enum { MOST_LISTED = 1000000, TAKEN_AT_ONCE = 500, PAGE_MOST = 50000 };

/* The first event is in the record itself. */
static void read_history(
	struct owned_reader *rows, struct change_record *record, struct error *error)
{
	struct event *events = memory_new(1, sizeof *events);
	struct event found = {.kind = EVENT_FOUND, .time = record->first_seen};
	size_t count = 1, room = 1;

	while (owned_next(rows, record->item.id, error)) {
		struct event *event;

		events = memory_grow(events, &room, count + 1, sizeof *events);
		event = &events[count++];
		*event = (struct event){0};
		event->kind = (enum event_kind)read_choice(&rows->reader, 1, EVENT_STORED - 1);
		event->time = read_time(&rows->reader);
		event->point = read_time(&rows->reader);
		event->receiver = read_text(&rows->reader);
		event->destination = read_text(&rows->reader);
	}
	found.point = count > 1 ? events[1].point : record->item.time;
	events[0] = found;
	record->events = rows_keep(rows->reader.arena, events, count, sizeof *events);
	record->event_count = count;
}

bool store_events(struct store_file *file, struct arena *arena, struct change_record *records,
	size_t count, struct error *error)
{
	struct owned_reader rows = {.reader = open_reader(file, arena, STATEMENT_EVENTS)};
	struct owners owners = {0};

	if (count == 0)
		return true;
	for (size_t i = 0; i < count; i++)
		owners_add(&owners, arena, records[i].item.id, i);
	owners_sort(&owners, false);
	bind_owners(&rows.reader.binder, arena, &owners);
	for (size_t i = 0; i < count; i++)
		read_history(&rows, &records[owners.items[i].place], error);
	return !rows.reader.failed && audit_load_events(file, arena, records, &owners, error);
}

static bool is_pattern(const char *text)
{
	return text && strpbrk(text, "*?[\\") != NULL;
}

/* The tests as a JSON array; NULL: all, or a pattern. */
static const char *json_of_names(struct arena *arena, const struct change_filter *filter)
{
	bool one = filter->names.count == 0 && filter->test && !is_pattern(filter->test);
	const char *const *names = one ? &filter->test : filter->names.items;
	size_t count = one ? 1 : filter->names.count;

	return count > 0 ? rows_names(arena, &(struct strings){names, count}) : NULL;
}

/* Chooses the index that is likely to leave the fewest rows to scan. */
static struct reader list_reader(
	struct store_file *file, const struct store_list *call, unsigned states)
{
	const struct change_filter *filter = &call->filter;
	bool one_state = (states & (states - 1)) == 0;
	const char *names = json_of_names(call->call.arena, filter);
	bool timed = filter->since != 0 || filter->until != 0;
	struct reader reader = open_reader(file, call->call.arena,
		names       ? STATEMENT_LIST_TEST
		: timed     ? STATEMENT_LIST_TIME
		: one_state ? STATEMENT_LIST_STATE
			    : STATEMENT_LIST);

	if (names)
		bind_text(&reader.binder, names);
	else
		bind_integer(&reader.binder, states ? __builtin_ctz(states) : 0);
	return reader;
}

/* An improvement waits for nobody, and neither does what only ends another change. */
static bool is_open(const struct change_record *record)
{
	return record->ends == 0 && announcement_verdict(&record->item) >= 0;
}

/* What a list is restricted to, with what the filter's `open` says. */
static void restrict_states(const struct change_filter *filter, unsigned *states, unsigned *triage)
{
	unsigned waiting = 1U << TRIAGE_OPEN | 1U << TRIAGE_ACKNOWLEDGED;

	*states = filter->states ? filter->states : (1U << CHANGE_STATES) - 1;
	*triage = filter->triage;
	if (!filter->open)
		return;
	*states &= 1U << CHANGE_CONFIRMED | 1U << CHANGE_MOVED;
	*triage = *triage ? *triage & waiting : waiting;
	if (*triage == 0)
		*triage = 1U << TRIAGE_STATES; /* none */
}

/* A list, the last recorded first. Where an answer is held whole it comes in pages, small ones
 * first: as much of it as is wanted may be found soon. */
struct pages {
	struct store_file *file;
	const struct store_list *call;
	unsigned states, triage;
	int64_t left;         /* rows that may still be read */
	int64_t size, unread; /* rows of the page, and what is left of them */
	int64_t before;       /* the next ids are below it: the reader of rows sets it */
	struct reader reader;
};

static void open_page(struct pages *pages)
{
	const struct change_filter *filter = &pages->call->filter;
	struct reader reader = list_reader(pages->file, pages->call, pages->states);

	pages->unread = pages->size < pages->left ? pages->size : pages->left;
	bind_integer(&reader.binder, filter->since != 0 ? filter->since : INT64_MIN);
	bind_integer(&reader.binder, filter->until != 0 ? filter->until : INT64_MAX);
	bind_integer(&reader.binder, pages->states);
	bind_integer(&reader.binder, pages->before);
	bind_integer(&reader.binder, pages->unread);
	bind_text(&reader.binder, filter->test);
	bind_integer(&reader.binder, filter->updated != 0 ? filter->updated : INT64_MIN);
	bind_integer(&reader.binder, pages->triage);
	bind_integer(&reader.binder, filter->now);
	pages->reader = reader;
}

/* `expected` rows are likely to do. */
static struct pages open_pages(struct store_file *file, const struct store_list *call,
	unsigned states, unsigned triage, int64_t most, int64_t expected)
{
	int64_t before = call->filter.before_id;
	struct pages pages = {.file = file,
		.call = call,
		.states = states,
		.triage = triage,
		.left = most,
		.size = file->driver->answers_whole ? expected : most,
		.before = before > 0 ? before : INT64_MAX};

	open_page(&pages);
	return pages;
}

static bool pages_next(struct pages *pages, struct error *error)
{
	while (!reader_next(&pages->reader, error)) {
		if (pages->reader.failed || pages->unread > 0 || pages->left == 0)
			return false;
		if (pages->size < PAGE_MOST)
			pages->size *= 4;
		open_page(pages);
	}
	pages->unread--;
	pages->left--;
	return true;
}

static int64_t limit_of(const struct change_filter *filter)
{
	return filter->limit > 0 && filter->limit < MOST_LISTED ? filter->limit : MOST_LISTED;
}

/* Changes that were taken, and where their first messages go. */
struct taken {
	struct arena *arena;
	struct owners changes;
	int64_t *places[TAKEN_AT_ONCE];
};

static bool load_first_messages(struct store_file *file, struct taken *taken, struct error *error)
{
	struct owned_reader rows = {
		.reader = open_reader(file, taken->arena, STATEMENT_FIRST_MESSAGES)};

	owners_sort(&taken->changes, false);
	bind_owners(&rows.reader.binder, taken->arena, &taken->changes);
	for (size_t i = 0; i < taken->changes.count; i++) {
		const struct owner *change = &taken->changes.items[i];

		while (owned_next(&rows, change->id, error))
			*taken->places[change->place] = read_count(&rows.reader);
	}
	return !rows.reader.failed;
}

static bool settle_taken(struct store_file *file, struct taken *taken, struct error *error)
{
	bool done = taken->changes.count == 0 || load_first_messages(file, taken, error);

	arena_free(taken->arena);
	*taken = (struct taken){.arena = arena_new()};
	return done;
}

/* The arena holds one record only. */
static bool show_next(struct store_file *file, struct store_list *call, struct pages *pages,
	struct taken *taken, int64_t *count, struct error *error)
{
	struct change_record record = {0};
	int64_t *message;

	read_record(&pages->reader, &record);
	pages->before = record.item.id;
	record_by_clock(&record, call->filter.now);
	if (pages->reader.strange || (call->filter.open && !is_open(&record)))
		return true;
	if (*count == limit_of(&call->filter)) {
		call->more = true;
		return true;
	}
	message = call->take(call, &record);
	if (!message)
		return true;
	++*count;
	*message = 0;
	taken->places[taken->changes.count] = message;
	owners_add(&taken->changes, taken->arena, record.item.id, taken->changes.count);
	return taken->changes.count < TAKEN_AT_ONCE || settle_taken(file, taken, error);
}

static bool show_state(struct store_file *file, struct store_list *call, unsigned states,
	unsigned triage, struct error *error)
{
	int64_t count = 0, looked = 0, most = call->looks > 0 ? call->looks : INT64_MAX - 1;
	struct pages pages =
		open_pages(file, call, states, triage, most + 1, limit_of(&call->filter) + 1);
	struct taken taken = {.arena = arena_new()};
	bool done = true, more = false;

	while (done && !more && pages_next(&pages, error)) {
		if (looked++ == most) {
			more = true;
			break;
		}
		pages.reader.arena = arena_new();
		call->more = false;
		done = show_next(file, call, &pages, &taken, &count, error);
		more = call->more;
		arena_free(pages.reader.arena);
	}
	call->more = more;
	done = done && !pages.reader.failed && settle_taken(file, &taken, error);
	arena_free(taken.arena);
	return done;
}

/* State by state, as each has its index. */
static bool show_all(struct store_file *file, struct store_list *call, struct error *error)
{
	unsigned states, triage;
	bool more = false;

	restrict_states(&call->filter, &states, &triage);
	for (unsigned state = 1; state < CHANGE_STATES; state++) {
		if (!(states >> state & 1))
			continue;
		if (!show_state(file, call, 1U << state, triage, error))
			return false;
		more |= call->more;
	}
	call->more = more;
	if (call->taken)
		call->taken(call);
	return true;
}

/* Those that the filter's `open` leaves, up to one more than are wanted. */
static bool read_list(struct store_file *file, struct store_list *call, struct error *error)
{
	const struct change_filter *filter = &call->filter;
	struct record_rows *out = &call->records;
	size_t most = (size_t)limit_of(filter) + 1;
	unsigned states, triage;
	struct growing growing = {0};
	struct pages pages;

	restrict_states(filter, &states, &triage);
	pages = open_pages(file, call, states, triage, filter->open ? INT64_MAX : (int64_t)most,
		(int64_t)most);
	*out = (struct record_rows){0};
	while (out->count < most && pages_next(&pages, error)) {
		struct change_record *record = growing_next(&growing, out->count);

		read_record(&pages.reader, record);
		pages.before = record->item.id;
		out->count += !filter->open || is_open(record);
	}
	growing_keep(&growing, call->call.arena, out);
	return !pages.reader.failed;
}

static bool list(struct store_file *file, void *context, struct error *error)
{
	struct store_list *call = context;
	const struct change_filter *filter = &call->filter;
	struct arena *arena = call->call.arena;
	int64_t limit = limit_of(filter);

	if (call->take)
		return show_all(file, call, error);
	if (!read_list(file, call, error))
		return false;
	call->more = call->records.count > (size_t)limit;
	if (call->more)
		call->records.count = (size_t)limit;
	for (size_t i = 0; i < call->records.count; i++)
		record_by_clock(&call->records.items[i], filter->now);
	return store_events(file, arena, call->records.items, call->records.count, error) &&
	       store_load_environments(file, arena, &call->environments, error) &&
	       (!call->about || (store_load_checkpoints(
					 file, arena, call->about, &call->checkpoints, error) &&
					store_load_health(file, arena, &call->health, error) &&
					silences_load(file, arena, &call->silences, error)));
}

const struct store_work store_list_work = {.run = list, .lane = STORE_LISTS, .is_long = true};

/* One that cannot be read is no reason not to show the change. */
bool store_load_excerpts(struct store_file *file, struct arena *arena, struct owners *owners,
	struct excerpt *out, struct error *error)
{
	struct packed_excerpt *packed = arena_array(arena, owners->count, sizeof *packed);

	if (!store_load_packed(file, arena, owners, packed, error))
		return false;
	for (size_t i = 0; i < owners->count; i++) {
		out[i] = (struct excerpt){0};
		(void)excerpt_unpack(arena, packed[i], &out[i]);
	}
	return true;
}

static bool excerpts(struct store_file *file, void *context, struct error *error)
{
	struct store_excerpts *call = context;
	struct arena *arena = call->call.arena;
	size_t most =
		call->change_count < STORE_EXCERPTS_MOST ? call->change_count : STORE_EXCERPTS_MOST;
	struct change_record *records[STORE_EXCERPTS_MOST];
	struct excerpt excerpts[STORE_EXCERPTS_MOST];
	struct owners owners = {0};

	call->items = arena_array(arena, most, sizeof *call->items);
	call->count = 0;
	for (size_t i = 0; i < most; i++)
		owners_add(&owners, arena, call->changes[i], i);
	if (!store_load_records_of(file, arena, &owners, records, error) ||
		!store_load_excerpts(file, arena, &owners, excerpts, error))
		return false;
	for (size_t i = 0; i < most; i++)
		if (records[i]) {
			record_by_clock(records[i], call->now);
			call->items[call->count++] = (struct excerpted){*records[i], excerpts[i]};
		}
	return true;
}

const struct store_work store_excerpts_work = {
	.run = excerpts, .lane = STORE_LISTS, .is_long = true};

static int compare_weight(const void *a, const void *b)
{
	const struct change_record *const *left = a, *const *right = b;

	return announcement_compare_weight(&(*left)->item, &(*right)->item);
}

bool store_worst(struct store_file *file, struct arena *arena, const struct change_record *records,
	size_t count, struct excerpted **out, struct error *error)
{
	enum { TRIED = 5 };
	const struct change_record **order = memory_new(count, sizeof *order);
	struct excerpt excerpts[TRIED];
	struct owners owners = {0};
	bool done;

	*out = NULL;
	for (size_t i = 0; i < count; i++)
		order[i] = &records[i];
	qsort(order, count, sizeof(struct change_record *), compare_weight);
	for (size_t i = 0; i < count && i < TRIED; i++)
		owners_add(&owners, arena, order[i]->item.id, i);
	done = store_load_excerpts(file, arena, &owners, excerpts, error);
	for (size_t i = 0; i < owners.count && !*out && done; i++) {
		if (excerpts[i].n == 0)
			continue;
		*out = arena_alloc(arena, sizeof **out);
		**out = (struct excerpted){*order[i], excerpts[i]};
	}
	free(order);
	return done;
}
