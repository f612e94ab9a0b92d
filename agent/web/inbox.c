/*
 * /api/v1/inbox: the changes that people go through, in groups of one cause, the worst first.
 *
 * All work is done on the store's thread while the changes are read, with little memory for each:
 * short rows of those that the filter passes. The loop only starts it and hands over the answer.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/dict.h"
#include "agent/model/announcement.h"
#include "agent/model/record_json.h"
#include "agent/runtime/silence.h"
#include "agent/web/api.h"

enum {
	MOST = 10000,   /* changes, the last recorded of each state ... */
	LOOKS = 100000, /* ... among so many */
	GROUPS = 50,    /* in an answer, ... */
	GROUPS_MOST = 500,
	ROWS = 5, /* ... with so many of their changes; of one group alone: */
	ROWS_OF_ONE = 1000,
	OWNERS_MOST = 50,
};

enum by { BY_INCIDENT, BY_COMMIT, BY_TEST, BY_NONE, BYS };

static const char *const by_names[BYS + 1] = {"incident", "commit", "test", "none", NULL};

enum { RANK_KEYS = 3 };

/* The place of a row or a group: by the keys, the greatest first, then by the id. By time, or those
 * that wait first, then the worse before the changed before the better, the largest first. */
struct rank {
	double keys[RANK_KEYS];
	int64_t id;
};

/* A change, with the fields that a list shows. Texts are in the inbox's arena. */
struct row {
	struct rank rank;
	int64_t id, time, first_seen, event, incident;
	const char *test, *metric, *branch, *unit, *commit, *commit_before, *shared, *environment,
		*owner;
	double before, after, size;
	size_t suspects, members;
	enum change_state state;
	bool suspects_known, trend;
	int direction, verdict; /* verdict: see announcement_verdict */
	struct triage triage;
};

struct group_row {
	struct rank rank;
	const char *key, *name;
	enum by kind; /* what its changes share; BY_NONE: it is one change */
	struct row **rows;
	size_t count, waiting, worse, better;
	double size; /* the worst one's, HUGE_VAL: from nothing */
	int64_t latest, version;
};

struct inbox {
	struct http_request *request;
	struct config_ref *config_ref;
	struct arena *arena;

	/* The request */
	struct matchers matchers;
	bool matched; /* there are matchers */
	struct strings words;
	const char *owner, *in;
	const int *verdict; /* the requested one, or NULL */
	enum by by;
	bool by_time;
	int64_t limit, after, per_group, now;

	/* The result */
	struct dict texts;
	struct row **rows;
	size_t count, waiting, worse, room;
	bool more;
	struct matcher_effort effort;
	const char *problem; /* why the matchers select nothing, or NULL */
	struct group_row **groups;
	size_t group_count;
	struct buf answer;
};

/* Taking changes, on the store's thread */

/* The text as the inbox keeps it: once. */
static const char *keep(struct inbox *inbox, const char *text)
{
	const char *copy;

	if (!text || !*text)
		return NULL;
	copy = dict_get(&inbox->texts, text);
	if (copy)
		return copy;
	copy = arena_strdup(inbox->arena, text);
	*dict_place(&inbox->texts, copy) = copy;
	return copy;
}

static bool passes_matchers(struct inbox *inbox, const struct change_record *record)
{
	struct silence_target subject = silence_target_of(record);
	struct silence_asked asked = {.subject = &subject,
		.groups = config_groups(inbox->config_ref->config, subject.test)};
	bool found;

	if (!inbox->matched || silence_is_costly(&inbox->effort))
		return !inbox->matched;
	found = silence_matches(&inbox->matchers, &asked, &inbox->effort);
	silence_asked_free(&asked);
	return found;
}

static bool has_word(const char *text, const char *word)
{
	return text && strcasestr(text, word);
}

/* Each word is somewhere in its names. */
static bool passes_words(
	const struct inbox *inbox, const struct change_record *record, const char *commit)
{
	for (size_t i = 0; i < inbox->words.count; i++) {
		const char *word = inbox->words.items[i];

		if (!has_word(record->item.test, word) && !has_word(record->item.metric, word) &&
			!has_word(record->series, word) && !has_word(record->branch, word) &&
			!has_word(commit, word))
			return false;
	}
	return true;
}

static struct row *keep_row(struct inbox *inbox, const struct change_record *record,
	const char *commit, const char *owner)
{
	const struct announcement *item = &record->item;
	struct row *row = arena_alloc(inbox->arena, sizeof *row);
	struct triage triage = record->triage;
	const char *before, *after;

	announcement_range(item, &before, &after);
	triage.owner = keep(inbox, triage.owner);
	triage.person = keep(inbox, triage.person);
	triage.note = keep(inbox, triage.note);
	triage.link = keep(inbox, triage.link);
	*row = (struct row){.id = item->id,
		.time = item->time,
		.first_seen = record->first_seen,
		.event = record->environment_event,
		.incident = record->item.incident,
		.test = keep(inbox, item->test),
		.metric = keep(inbox, item->metric),
		.branch = keep(inbox, record->branch),
		.unit = keep(inbox, item->unit),
		.commit = keep(inbox, commit),
		.commit_before = keep(inbox, before),
		.shared = keep(inbox, item->shared),
		.environment = keep(inbox, item->environment),
		.owner = keep(inbox, owner),
		.before = item->change.level_before,
		.after = item->change.level_after,
		.size = item->change.size,
		.suspects = item->suspects.count,
		.suspects_known = item->suspects.known,
		.members = item->members,
		.state = record->state,
		.trend = item->change.kind == CHANGE_TREND,
		.direction = item->direction,
		.verdict = announcement_verdict(item),
		.triage = triage};
	return row;
}

static bool take_record(struct inbox *inbox, struct change_record record)
{
	struct arena *scratch;
	const char *commit, *owner;
	struct row *row;

	if (record.ends != 0 ||
		(inbox->verdict && announcement_verdict(&record.item) != *inbox->verdict))
		return false;
	commit = announcement_bad(&record.item);
	if (!passes_words(inbox, &record, commit) || !passes_matchers(inbox, &record))
		return false;
	scratch = arena_new();
	announce_links(scratch, inbox->config_ref->config, &record);
	owner = record.triage.owner ? record.triage.owner : record.item.owner;
	row = !inbox->owner || strcasecmp(owner ? owner : "", inbox->owner) == 0
		      ? keep_row(inbox, &record, commit, owner)
		      : NULL;
	arena_free(scratch);
	if (!row)
		return false;
	inbox->rows =
		memory_grow(inbox->rows, &inbox->room, inbox->count + 1, sizeof(struct row *));
	inbox->rows[inbox->count++] = row;
	return true;
}

static bool take(struct store_list *list, const struct change_record *record)
{
	struct inbox *inbox = list->taker;

	if (record)
		return take_record(inbox, *record);
	inbox->count = inbox->waiting = inbox->worse = 0;
	inbox->effort = (struct matcher_effort){0};
	inbox->problem = NULL;
	buf_clear(&inbox->answer);
	return false;
}

/* Groups */

static bool waits(const struct row *row)
{
	return change_stands(row->state) &&
	       (row->triage.state == TRIAGE_OPEN || row->triage.state == TRIAGE_ACKNOWLEDGED);
}

static double weight(const struct row *row)
{
	return isnan(row->size) ? HUGE_VAL : fabs(row->size);
}

static int compare_ids(const void *a, const void *b)
{
	const struct row *left = *(struct row *const *)a, *right = *(struct row *const *)b;

	return (left->id < right->id) - (left->id > right->id);
}

/* Of pointers to rows, or to groups. */
static int compare_ranks(const void *a, const void *b)
{
	const struct rank *left = *(struct rank *const *)a, *right = *(struct rank *const *)b;

	for (size_t i = 0; i < RANK_KEYS; i++)
		if (left->keys[i] < right->keys[i] || left->keys[i] > right->keys[i])
			return left->keys[i] < right->keys[i] ? 1 : -1;
	return (left->id < right->id) - (left->id > right->id);
}

/* The last recorded of all states. */
static void trim(struct inbox *inbox, bool more)
{
	inbox->more = more || inbox->count > MOST;
	if (inbox->count > 0)
		qsort(inbox->rows, inbox->count, sizeof(struct row *), compare_ids);
	if (inbox->count > MOST)
		inbox->count = MOST;
	for (size_t i = 0; i < inbox->count; i++) {
		inbox->waiting += waits(inbox->rows[i]);
		inbox->worse += inbox->rows[i]->verdict > 0;
	}
}

/* The best name of an incident's cause; NULL: this change has none. */
static const char *cause_of(const struct row *row)
{
	if (row->members > 0)
		return row->test;
	return row->event != 0 ? row->environment : row->commit;
}

/* The key of its group; for a change in no incident, its commit. The key goes to `out`. */
static enum by kind_of(
	const struct inbox *inbox, const struct row *row, const char **name, struct buf *out)
{
	*name = NULL;
	if (inbox->by == BY_INCIDENT && row->incident != 0) {
		*name = cause_of(row);
		buf_printf(out, "i%" PRId64, row->incident);
		return BY_INCIDENT;
	}
	if (inbox->by <= BY_COMMIT && row->commit) {
		*name = row->commit;
		buf_printf(out, "commit:%s", row->commit);
		return BY_COMMIT;
	}
	if (inbox->by == BY_TEST) {
		*name = row->test;
		buf_printf(out, "test:%s", row->test);
		return BY_TEST;
	}
	buf_printf(out, "change:%" PRId64, row->id);
	return BY_NONE;
}

/* Makes the groups, numbers those of the rows, and counts their rows. */
static size_t *number_groups(struct inbox *inbox)
{
	struct name_index keys = {.dict.arena = inbox->arena};
	size_t *numbers = arena_array(inbox->arena, inbox->count, sizeof *numbers);
	struct buf key = {0};

	inbox->groups = arena_array(inbox->arena, inbox->count, sizeof(struct group_row *));
	for (size_t i = 0; i < inbox->count; i++) {
		const char *name;
		enum by kind;
		struct group_row *group;

		buf_clear(&key);
		kind = kind_of(inbox, inbox->rows[i], &name, &key);
		numbers[i] = name_index_add(&keys, key.data, key.length);
		if (!inbox->groups[numbers[i]])
			inbox->groups[numbers[i]] = arena_alloc(inbox->arena, sizeof *group);
		group = inbox->groups[numbers[i]];
		group->kind = kind;
		if (!group->name || inbox->rows[i]->members > 0)
			group->name = name;
		group->count++;
	}
	buf_free(&key);
	inbox->group_count = keys.count;
	for (size_t i = 0; i < keys.count; i++)
		inbox->groups[i]->key = keys.items[i];
	return numbers;
}

static void finish_group(const struct inbox *inbox, struct group_row *group)
{

	for (size_t i = 0; i < group->count; i++) {
		struct row *row = group->rows[i];

		row->rank = (struct rank){{waits(row), row->verdict, weight(row)}, row->id};
		if (inbox->by_time)
			row->rank = (struct rank){{(double)row->first_seen}, row->id};
		group->waiting += waits(row);
		group->worse += row->verdict > 0;
		group->better += row->verdict < 0;
		group->version += row->triage.version;
		if (row->first_seen > group->latest)
			group->latest = row->first_seen;
	}
	for (size_t i = 0; i < group->count; i++)
		if ((group->rows[i]->verdict > 0) == (group->worse > 0) &&
			waits(group->rows[i]) == (group->waiting > 0))
			group->size = fmax(group->size, weight(group->rows[i]));
	qsort(group->rows, group->count, sizeof(struct row *), compare_ranks);
	group->rank = (struct rank){
		{group->waiting > 0, group->worse > 0, group->size}, group->rows[0]->id};
	if (inbox->by_time)
		group->rank = (struct rank){{(double)group->latest}, group->rows[0]->id};
}

static void make_groups(struct inbox *inbox)
{
	const size_t *numbers = number_groups(inbox);

	for (size_t i = 0; i < inbox->group_count; i++) {
		struct group_row *group = inbox->groups[i];

		group->rows = arena_array(inbox->arena, group->count, sizeof(struct row *));
		group->count = 0;
		group->latest = INT64_MIN;
	}
	for (size_t i = 0; i < inbox->count; i++) {
		struct group_row *group = inbox->groups[numbers[i]];

		group->rows[group->count++] = inbox->rows[i];
	}
	for (size_t i = 0; i < inbox->group_count; i++)
		finish_group(inbox, inbox->groups[i]);
	if (inbox->group_count > 0)
		qsort(inbox->groups, inbox->group_count, sizeof(struct group_row *), compare_ranks);
}

/* The answer */

static void put_row(struct buf *out, const struct row *row)
{
	json_put(out, "{id: %jd, incident:", row->id);
	buf_printf(out, row->incident ? "\"i%" PRId64 "\"" : "null", row->incident);
	json_put(out,
		"test: %s, metric: %s, branch: %s, unit: %s, time: %jd time, "
		"first_seen: %jd time, kind: %s, size: %g, level_before: %g, "
		"level_after: %g, direction: %d, regression: %d bool, state: %s, "
		"commit: %s, commit_before: %s, suspects:",
		row->test, row->metric, row->branch, row->unit, row->time, row->first_seen,
		row->trend ? "trend" : "step", row->size, row->before, row->after, row->direction,
		row->verdict > 0, change_state_names[row->state], row->commit, row->commit_before);
	buf_printf(out, row->suspects_known ? "%zu" : "null", row->suspects);
	json_put(out, "members: %zu, shared: %s, environment: %s, owner: %s", row->members,
		row->shared, row->environment, row->owner);
	triage_put_json(out, &row->triage);
	buf_char(out, '}');
}

static void put_group(struct buf *out, const struct group_row *group, int64_t first, int64_t most)
{
	int64_t end = first + most;

	json_put(out,
		"\n{key: %s, kind: %s, name: %s, count: %zu, waiting: %zu, worse: %zu, "
		"better: %zu, size: %g, latest: %jd time, version: %jd, changes: [",
		group->key, group->kind == BY_NONE ? "change" : by_names[group->kind], group->name,
		group->count, group->waiting, group->worse, group->better, group->size,
		group->latest, group->version);
	for (int64_t i = first; i < end && i < (int64_t)group->count; i++) {
		json_line(out);
		put_row(out, group->rows[i]);
	}
	json_put(out, "], next:");
	buf_printf(out, end < (int64_t)group->count ? "%" PRId64 "}" : "null}", end);
}

static void put_groups(struct inbox *inbox)
{
	struct buf *out = &inbox->answer;
	int64_t end = inbox->after + inbox->limit, count = (int64_t)inbox->group_count;

	if (inbox->in) {
		for (size_t i = 0; i < inbox->group_count; i++)
			if (strcmp(inbox->groups[i]->key, inbox->in) == 0)
				put_group(out, inbox->groups[i], inbox->after, inbox->limit);
		json_put(out, "], next: null");
		return;
	}
	for (int64_t i = inbox->after; i < end && i < count; i++)
		put_group(out, inbox->groups[i], 0, inbox->per_group);
	json_put(out, "], next: %jd id", end < count ? end : 0);
}

static int compare_texts(const void *a, const void *b)
{
	return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* Owners of the changes, for choosing one. */
static void put_owners(struct inbox *inbox)
{
	struct dict seen = {.arena = inbox->arena};
	const char *owners[OWNERS_MOST];
	size_t count = 0;

	for (size_t i = 0; i < inbox->count && count < OWNERS_MOST; i++) {
		const char *owner = inbox->rows[i]->owner;

		if (!owner || dict_get(&seen, owner))
			continue;
		*dict_place(&seen, owner) = owner;
		owners[count++] = owner;
	}
	qsort(owners, count, sizeof *owners, compare_texts);
	json_put(&inbox->answer, "owners: %p", &(const struct strings){owners, count});
}

static void put_answer(struct inbox *inbox)
{
	struct buf *out = &inbox->answer;

	json_put(out,
		"{total: %zu, waiting: %zu, worse: %zu, group_count: %zu, "
		"more: %d bool, problem: %s, now: %jd time",
		inbox->count, inbox->waiting, inbox->worse, inbox->group_count, inbox->more,
		inbox->problem, inbox->now);
	put_owners(inbox);
	json_put(out, "groups: [");
	put_groups(inbox);
	buf_text(out, "}\n");
}

static void taken(struct store_list *list)
{
	struct inbox *inbox = list->taker;

	if (silence_is_costly(&inbox->effort)) {
		inbox->problem = silence_costs(&inbox->effort, inbox->arena);
		inbox->count = 0;
	}
	trim(inbox, list->more);
	make_groups(inbox);
	put_answer(inbox);
}

static void answer(struct inbox *inbox)
{
	struct http_answer answer = {.body = inbox->answer};

	inbox->answer = (struct buf){0};
	http_answer(inbox->request, &answer);
}

static void answered(struct store_list *list)
{
	struct inbox *inbox = list->taker;

	if (list->call.failed)
		http_fail(inbox->request, http_status_of(list->call.error), "%s",
			list->call.error->text);
	else
		answer(inbox);
	buf_free(&inbox->answer);
	free(inbox->rows);
	matchers_free(&inbox->matchers);
	config_ref_release(inbox->config_ref);
	store_call_free(&list->call);
}

/* The request */

static void read_request(struct form *form, struct inbox *inbox, struct change_filter *filter)
{
	static const char *const verdicts[] = {"any", "worse", "better", "changed", NULL};
	static const int signs[] = {0, 1, -1, 0};
	static const char *const sorts[] = {"worst", "latest", NULL};
	const char *matchers = form_get(form, "matchers");
	int verdict = form_choice(form, "verdict", verdicts, 0, 0);
	struct error error;

	inbox->owner = form_get(form, "owner");
	inbox->in = form_get(form, "in");
	(void)change_form_read(form, filter);
	inbox->by = (enum by)form_choice(form, "by", by_names, 0, BY_INCIDENT);
	inbox->verdict = verdict > 0 ? &signs[verdict] : NULL;
	inbox->by_time = form_choice(form, "sort", sorts, 0, 0) == 1;
	inbox->after = form_number(form, "after", 0, MOST, 0);
	inbox->per_group = form_number(form, "rows", 0, 100, ROWS);
	inbox->limit = form_number(
		form, "limit", 1, inbox->in ? ROWS_OF_ONE : GROUPS_MOST, inbox->in ? 100 : GROUPS);
	inbox->words = form_words(form, "text");
	filter->limit = MOST;
	/* Those that cannot be read are no error: people are still typing them. */
	inbox->matched = matchers && matchers[strspn(matchers, " \t\n")];
	if (inbox->matched &&
		!silence_compile_any(matchers, inbox->arena, &inbox->matchers, &error))
		inbox->problem = arena_strdup(inbox->arena, error.text);
}

void api_get_inbox(struct http_request *request)
{
	struct agent *agent = api_of(request)->agent;
	struct store_list *list = store_list_new(answered, NULL);
	struct arena *arena = list->call.arena;
	struct inbox *inbox = arena_alloc(arena, sizeof *inbox);
	struct form form = api_form(request, arena);

	*inbox = (struct inbox){
		.request = request, .arena = arena, .now = form.now, .texts.arena = arena};
	list->take = take;
	list->looks = LOOKS;
	list->taken = taken;
	list->taker = inbox;
	read_request(&form, inbox, &list->filter);
	if (api_wrong(request, &form))
		;
	else if (inbox->problem) {
		put_answer(inbox);
		answer(inbox);
	} else {
		inbox->config_ref = config_ref_hold(agent->config_ref);
		store_client_call(agent, &list->call);
		return;
	}
	matchers_free(&inbox->matchers);
	store_call_free(&list->call);
}
