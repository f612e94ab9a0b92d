/*
 * Lists of changes with their history, and the points around them. They are read to their end or to
 * their limit.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/sql/read.h"

_Static_assert(CHANGE_TOLERANCE == 5, "ENDS in words.h has it, too");

enum { MOST_LISTED = 1000000, PAGE_MOST = 50000 };

/* Of more tests than this that match a pattern, a scan of all changes finds enough soon. */
enum { NAMES_MOST = 100 };

/* The tests as a JSON array; NULL: all, or those of a pattern that many match. */
static struct value names_of(struct tx *tx, const struct change_filter *filter, const char *pattern)
{
	const char *names[NAMES_MOST];
	struct sql_query query;
	size_t count = 0;

	if (filter->names.count > 0)
		return v_names(tx, &filter->names);
	if (!pattern)
		return v_text(NULL);
	if (pattern != filter->test || !strpbrk(pattern, "*?[\\"))
		return v_names(tx, &(struct strings){&filter->test, 1});
	query = QUERY(tx,
		TESTS_OF_CHANGES " SELECT name FROM tests WHERE @matches{?1,name} LIMIT ?2",
		v_text(pattern), v_int(NAMES_MOST + 1));
	for (; query_next(&query); count++)
		if (count < NAMES_MOST)
			names[count] = read_name(&query);
	return count > NAMES_MOST ? v_text(NULL) : v_names(tx, &(struct strings){names, count});
}

/* A list in its order. Where an answer is held whole it comes in pages, small ones first: as much
 * of it as is wanted may be found soon. */
struct pages {
	struct tx *tx;
	const struct store_list *call;
	unsigned states, triage;
	const char *test;     /* a pattern, or NULL */
	struct value names;   /* of the only tests, as a JSON array; or NULL */
	int64_t left;         /* rows that may still be read */
	int64_t size, unread; /* rows of the page, and the remaining ones */
	int64_t before;       /* the next rows are after it: the reader of rows sets it */
	struct sql_query query;
};

/* ?1 value for the index, ?2 since, ?3 until, ?4 states, ?5 before_id, ?6 limit, ?7 pattern, ?8
 * updated, ?9 triage, ?10 now, ?11 incident or 0. `time` and `id` are +time and +id where another
 * index is to find the rows: a sign keeps a database from it. */
/* clang-format off */
#define LISTED(time, triage)                                                                       \
	" AND " time " >= ?2 AND " time " < ?3"                                                    \
	" AND ((?4 >> CAST(state AS INTEGER)) & 1 != 0 OR state NOT BETWEEN 1 AND 5)"              \
	" AND (?7 IS NULL OR @matches{?7,test}) AND updated >= ?8"                                 \
	" AND (?11 = 0 OR incident = ?11)"                                                         \
	" AND (?9 = 0 OR (?9 >> CAST(coalesce(" triage ", @triage{open}) AS INTEGER)) & 1 != 0)"
#define TRIAGE_NOW "CASE WHEN until <= ?10 THEN @triage{open} ELSE triage END"

/* In the order of an index. */
#define LIST(changes, condition, time)                                                             \
	"SELECT " RECORD_COLUMNS " FROM changes" changes WITH_TRIAGE " WHERE " condition           \
	LISTED(time, TRIAGE_NOW) " AND id < ?5 ORDER BY id DESC LIMIT ?6 @in_order"

/* Of the many only their ids are sorted. */
#define TRIAGE_OF "(SELECT " TRIAGE_NOW " FROM triage WHERE change = changes.id)"
#define LIST_SORTED(changes, condition, time)                                                      \
	"SELECT " RECORD_COLUMNS " FROM changes" WITH_TRIAGE " WHERE id IN (SELECT id FROM"        \
	changes " WHERE " condition LISTED(time, TRIAGE_OF)                                        \
	" AND +id < ?5 ORDER BY +id DESC LIMIT ?6) ORDER BY id DESC"

/* Changes that need attention, the worst first: neither improvements nor changes that only end
 * another one. */
#define BADNESS "direction * sign, -coalesce(abs(size), 1e308), -id"
#define LIST_OPEN(open, condition)                                                                 \
	"SELECT " RECORD_COLUMNS " FROM changes" WITH_TRIAGE " WHERE id IN (SELECT id FROM"        \
	open " WHERE " condition " AND direction * sign <= 0"                                      \
	LISTED("+time", TRIAGE_OF)                                                                 \
	" AND coalesce(" ENDS ", 0) < 1 AND ((" BADNESS ") > (SELECT " BADNESS                     \
	" FROM changes WHERE id = ?5)) IS NOT FALSE ORDER BY " BADNESS " LIMIT ?6) ORDER BY "      \
	BADNESS
/* clang-format on */

/* By the index that is likely to leave the fewest rows to scan. */
static const char *statement_of_page(const struct pages *pages)
{
	const struct change_filter *filter = &pages->call->filter;
	unsigned states = pages->states;
	bool triaged = pages->triage != 0 && !(pages->triage & 1U << TRIAGE_OPEN);

	if (filter->open && !pages->call->take)
		return pages->names.text ? LIST_OPEN(" @changes_of_tests", "true")
					 : LIST_OPEN(" changes @indexed{changes_open}",
						   "state @standing") " @in_order";
	if (pages->names.text)
		return LIST_SORTED(" @changes_of_tests", "true", "+time");
	if (filter->incident != 0)
		return LIST_SORTED(
			" changes @indexed{changes_of_incident}", "incident = ?11", "+time");
	if (triaged) /* changes with triage */
		return LIST_SORTED(
			" (SELECT changes.* FROM triage @ordered_join changes ON changes.id ="
			" triage.change) AS changes",
			"true", "+time");
	if (filter->since != 0 || filter->until != 0)
		return LIST_SORTED(" changes @indexed{changes_of_time}", "true", "time");
	if ((states & (states - 1)) == 0)
		return LIST(" @indexed{changes_of_state}", "state = ?1", "+time");
	return LIST(" @unindexed", "true", "+time");
}

static void open_page(struct pages *pages)
{
	const struct change_filter *filter = &pages->call->filter;
	unsigned states = pages->states;

	pages->unread = pages->size < pages->left ? pages->size : pages->left;
	pages->query = QUERY(pages->tx, statement_of_page(pages),
		pages->names.text ? pages->names : v_int(states ? __builtin_ctz(states) : 0),
		v_int(filter->since != 0 ? filter->since : INT64_MIN),
		v_int(filter->until != 0 ? filter->until : INT64_MAX), v_int(states),
		v_int(pages->before), v_int(pages->unread),
		v_text(pages->names.text && filter->names.count == 0 ? NULL : pages->test),
		v_int(filter->updated != 0 ? filter->updated : INT64_MIN), v_int(pages->triage),
		v_int(filter->now), v_int(filter->incident));
}

/* `expected` rows are likely to do. */
static struct pages open_pages(struct tx *tx, const struct store_list *call, unsigned states,
	unsigned triage, int64_t most, int64_t expected)
{
	const char *test = rows_pattern(tx, call->filter.test);
	int64_t before = call->filter.before_id;
	struct pages pages = {.tx = tx,
		.call = call,
		.states = states,
		.triage = triage,
		.test = test,
		.names = names_of(tx, &call->filter, test),
		.left = most,
		.size = tx->backend->answers_whole ? expected : most,
		.before = before > 0 ? before : INT64_MAX};

	open_page(&pages);
	return pages;
}

static bool pages_next(struct pages *pages)
{
	while (!query_next(&pages->query)) {
		if (pages->tx->failed || pages->unread > 0 || pages->left == 0)
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

/* Each record has an arena of its own. */
static void show_state(struct tx *tx, struct store_list *call, unsigned states, unsigned triage)
{
	const struct change_filter *filter = &call->filter;
	int64_t count = 0, looked = 0, most = call->looks > 0 ? call->looks : INT64_MAX - 1;
	struct pages pages = open_pages(tx, call, states, triage, most + 1, limit_of(filter) + 1);
	struct arena *arena = tx->arena;
	bool more = false;

	while (!more && pages_next(&pages)) {
		struct change_record record = {0};
		bool shown;

		more = looked++ == most;
		if (more)
			break;
		tx->arena = arena_new();
		read_record(&pages.query, &record);
		pages.before = record.item.id;
		record_by_clock(&record, filter->now);
		/* What is open as LIST_OPEN has it. */
		shown = !pages.query.damaged &&
			(!filter->open ||
				(record.ends == 0 && announcement_verdict(&record.item) >= 0));
		more = shown && count == limit_of(filter);
		if (shown && !more)
			count += call->take(call, &record);
		arena_free(tx->arena);
		tx->arena = arena;
	}
	call->more |= more;
}

STORE_DEFINE(list, .lane = STORE_LISTS, .is_long = true)
{
	const struct change_filter *filter = &call->filter;
	unsigned states = filter->states ? filter->states : (1U << CHANGE_STATES) - 1;
	unsigned triage = filter->triage, waiting = 1U << TRIAGE_OPEN | 1U << TRIAGE_ACKNOWLEDGED;
	struct record_rows *out = &call->records;
	int64_t limit = limit_of(filter);
	struct growing growing = {0};
	struct pages pages;

	if (filter->incident != 0 &&
		query_ask(QUERY(tx,
			"SELECT EXISTS (SELECT 1 FROM changes @indexed{changes_of_incident}"
			" WHERE incident = ?1)",
			v_int(filter->incident))) == 0)
		tx_fail(tx, ERROR_USAGE, "there is no incident i%" PRId64, filter->incident);
	if (filter->open) {
		states &= 1U << CHANGE_CONFIRMED | 1U << CHANGE_MOVED;
		triage = triage ? triage & waiting : waiting;
		triage = triage ? triage : 1U << TRIAGE_STATES; /* none */
	}
	if (call->take) {
		(void)call->take(call, NULL);
		for (unsigned state = 1; state < CHANGE_STATES; state++) /* each has its index */
			if (states >> state & 1)
				show_state(tx, call, 1U << state, triage);
		if (call->taken && !tx->failed)
			call->taken(call);
		return;
	}
	pages = open_pages(tx, call, states, triage, limit + 1, limit + 1);
	while (pages_next(&pages)) {
		struct change_record *record = growing_next(&growing, out->count++);

		read_record(&pages.query, record);
		record_by_clock(record, filter->now);
		pages.before = record->item.id;
	}
	call->more = out->count > (size_t)limit;
	out->count -= call->more;
	growing_keep(&growing, tx, out);
	events_load(tx, call->records.items, call->records.count);
	store_load_environments(tx, &call->environments);
	if (call->about) {
		store_load_checkpoints(tx, call->about, &call->checkpoints);
		store_load_health(tx, &call->health);
		silences_load(tx, &call->silences);
	}
}

/* One that cannot be read is no reason not to show the change. */
void store_load_excerpts(struct tx *tx, struct owners *owners, struct excerpt *out)
{
	struct packed_excerpt *packed = arena_array(tx->arena, owners->count, sizeof *packed);

	store_load_packed(tx, owners, packed);
	for (size_t i = 0; i < owners->count; i++) {
		out[i] = (struct excerpt){0};
		(void)excerpt_unpack(tx->arena, packed[i], &out[i]);
	}
}

STORE_DEFINE(excerpts, .lane = STORE_LISTS, .is_long = true)
{
	size_t most =
		call->change_count < STORE_EXCERPTS_MOST ? call->change_count : STORE_EXCERPTS_MOST;
	struct change_record *records[STORE_EXCERPTS_MOST];
	struct excerpt excerpts[STORE_EXCERPTS_MOST];
	struct owners owners = {0};

	call->items = arena_array(tx->arena, most, sizeof *call->items);
	for (size_t i = 0; i < most; i++)
		owners_add(&owners, tx, call->changes[i], i);
	store_load_records_of(tx, &owners, records);
	store_load_excerpts(tx, &owners, excerpts);
	for (size_t i = 0; i < most; i++)
		if (records[i]) {
			record_by_clock(records[i], call->now);
			call->items[call->count++] = (struct excerpted){*records[i], excerpts[i]};
		}
}

static int compare_weight(const void *a, const void *b)
{
	const struct change_record *const *left = a, *const *right = b;

	return announcement_compare_weight(&(*left)->item, &(*right)->item);
}

void store_worst(
	struct tx *tx, const struct change_record *records, size_t count, struct excerpted **out)
{
	enum { TRIED = 5 };
	const struct change_record **order = memory_new(count, sizeof *order);
	struct excerpt excerpts[TRIED];
	struct owners owners = {0};

	*out = NULL;
	for (size_t i = 0; i < count; i++)
		order[i] = &records[i];
	qsort(order, count, sizeof(struct change_record *), compare_weight);
	for (size_t i = 0; i < count && i < TRIED; i++)
		owners_add(&owners, tx, order[i]->item.id, i);
	store_load_excerpts(tx, &owners, excerpts);
	for (size_t i = 0; i < owners.count && !*out; i++) {
		if (excerpts[i].n == 0)
			continue;
		*out = arena_alloc(tx->arena, sizeof **out);
		**out = (struct excerpted){*order[i], excerpts[i]};
	}
	free(order);
}
