/* Text from users is shown to other users, in terminals and messages, so it has no control
 * characters but line breaks in notes. */
#include "agent/web/forms.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/matcher.h"
#include "agent/base/order.h"
#include "agent/base/transfer.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "agent/model/incident.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"

enum {
	LONGEST_NAME = 200,
	LONGEST_NOTE = 4000,
	LONGEST_LINK = 2000,
	LONGEST_DIGITS = 18,
	MOST_RANGES = 20000,
	MOST_WORDS = 16,
};

#define LONGEST INT64_C(3155760000000) /* ms of a silence: a century */

void form_fail(struct form *form, const char *format, ...)
{
	va_list arguments;

	if (form->failed)
		return;
	va_start(arguments, format);
	form->failed = true;
	(void)error_set(
		&form->error, ERROR_USAGE, "%s", arena_vprintf(form->arena, format, arguments));
	va_end(arguments);
}

const char *form_get(const struct form *form, const char *name)
{
	return form->failed ? NULL : form->get(form->context, name);
}

/* A function that has set the error if it failed; then the parameter is named. */
static bool check(struct form *form, const char *name, bool good)
{
	if (good)
		return true;
	form->failed = true;
	form->error.kind = ERROR_USAGE;
	return error_prefix(&form->error, "%s: ", name);
}

bool form_bool(struct form *form, const char *name)
{
	const char *text = form_get(form, name);
	bool yes = text && strcmp(text, "true") == 0;

	if (text && !yes && strcmp(text, "false") != 0)
		form_fail(form, "%s: true or false is needed", name);
	return yes;
}

/* The index of the name that the first bytes of the text are; else an error. */
static int find_name(struct form *form, const char *name, const char *const *names, int first,
	const char *text, size_t length)
{
	struct buf all = {0};
	int found = first;

	for (; names[found]; found++) {
		if (strlen(names[found]) == length && strncmp(names[found], text, length) == 0) {
			buf_free(&all);
			return found;
		}
		buf_text(&all, found == first ? "" : names[found + 1] ? ", " : " or ");
		buf_text(&all, names[found]);
	}
	form_fail(form, "%s: \"%.*s\" is none of %s", name, length < 100 ? (int)length : 100, text,
		all.data);
	buf_free(&all);
	(void)field_hint(&form->error, text, names + first, (size_t)(found - first));
	return first;
}

int form_choice(struct form *form, const char *name, const char *const *names, int first, int usual)
{
	const char *text = form_get(form, name);

	return text ? find_name(form, name, names, first, text, strlen(text)) : usual;
}

unsigned form_choices(struct form *form, const char *name, const char *const *names, int first)
{
	const char *text = form_get(form, name);
	unsigned bits = 0;

	while (text && *text && !form->failed) {
		size_t length = strcspn(text, ",");

		bits |= 1U << find_name(form, name, names, first, text, length);
		text += length;
		text += *text == ',';
	}
	return bits;
}

int64_t form_date(struct form *form, const char *name, int64_t open)
{
	const char *text = form_get(form, name);
	int64_t out = open;

	if (text)
		(void)check(form, name, when_parse(text, form->now, &out, &form->error));
	return out;
}

/* -1: it is none, or too long. */
static int64_t number_of(const char *text, size_t most)
{
	size_t length = strlen(text);

	return length > 0 && length <= most && strspn(text, "0123456789") == length
		       ? strtoll(text, NULL, 10)
		       : -1;
}

int64_t form_number(struct form *form, const char *name, int64_t least, int64_t most, int64_t usual)
{
	const char *text = form_get(form, name);
	int64_t out = text ? number_of(text, 9) : usual;

	if (text && (out < least || out > most))
		form_fail(form, "%s: a number from %lld to %lld is needed", name, (long long)least,
			(long long)most);
	return out;
}

int64_t form_id(struct form *form, const char *name, const char *of)
{
	const char *text = form_get(form, name);
	int64_t out = text ? number_of(text, LONGEST_DIGITS) : 0;

	if (text && out <= 0)
		form_fail(form, "%s: the id of %s is needed", name, of);
	return out;
}

struct strings form_words(struct form *form, const char *name)
{
	const char *text = form_get(form, name);
	const char **words = arena_array(form->arena, MOST_WORDS, sizeof *words);
	size_t count = 0;

	for (text = text ? text : ""; *(text += strspn(text, " ")); text += strcspn(text, " "))
		if (count < MOST_WORDS)
			words[count++] = arena_strndup(form->arena, text, strcspn(text, " "));
		else
			form_fail(form, "%s: more than %d words", name, MOST_WORDS);
	return (struct strings){words, count};
}

static int64_t read_incident(struct form *form)
{
	const char *text = form_get(form, "incident");
	int64_t out = 0;

	if (text && !incident_parse(text, &out))
		form_fail(form,
			"incident: \"%.100s\": expected the number of an incident, like i12", text);
	return out;
}

bool change_form_read(struct form *form, struct change_filter *filter)
{
	filter->now = form->now;
	filter->test = arena_strdup(form->arena, form_get(form, "test"));
	filter->states = form_choices(form, "state", change_state_names, 1);
	filter->since = form_date(form, "since", 0);
	filter->until = form_date(form, "until", 0);
	filter->triage = form_choices(form, "triage", triage_state_names, TRIAGE_OPEN);
	filter->incident = read_incident(form);
	filter->open = form_bool(form, "open");
	return !form->failed;
}

/* A text of people; NULL if it is not given. */
static const char *read_text(struct form *form, const char *name, size_t most)
{
	const char *text = form_get(form, name);

	if (text && strlen(text) > most)
		form_fail(form, "%s: more than %zu bytes", name, most);
	else if (text && !utf8_is_shown(text, most == LONGEST_NOTE ? "\n" : ""))
		form_fail(form, "%s: it is not UTF-8 or has control characters", name);
	return arena_strdup(form->arena, text);
}

/* `open` if it is not given, `never` if it is empty or "never", else a time ahead. */
static int64_t read_ahead(struct form *form, const char *name, int64_t open, int64_t never)
{
	const char *text = form_get(form, name);
	int64_t out = text ? never : open;

	if (text && *text &&
		check(form, name, when_parse_ahead(text, form->now, &out, &form->error)) &&
		out == WHEN_NEVER)
		out = never;
	return out;
}

static int64_t take_id(const char **at)
{
	size_t digits = strspn(*at, "0123456789");
	int64_t id = digits > 0 && digits <= LONGEST_DIGITS ? strtoll(*at, NULL, 10) : 0;

	*at += digits;
	return id;
}

/* Sorts them by their first ids and merges those that overlap, as each is a search; returns their
 * number. */
static size_t merge_ranges(struct id_range *ranges, size_t count)
{
	size_t kept = 0;

	qsort(ranges, count, sizeof *ranges, order_times);
	for (size_t i = 1; i < count; i++) {
		if (ranges[i].from > ranges[kept].to)
			ranges[++kept] = ranges[i];
		else if (ranges[i].to > ranges[kept].to)
			ranges[kept].to = ranges[i].to;
	}
	return kept + 1;
}

/* "812,815..830", with blanks around the commas. */
static void read_ids(struct form *form, struct store_triage *call)
{
	const char *text = form_get(form, "ids"), *at = text;
	size_t most = 1;
	struct id_range *ranges;

	if (!text)
		return;
	for (const char *comma = text; (comma = strchr(comma, ',')); comma++)
		most++;
	if (most > MOST_RANGES) {
		form_fail(form, "ids: more than %d", MOST_RANGES);
		return;
	}
	ranges = arena_array(form->arena, most, sizeof *ranges);
	for (size_t i = 0; i < most; i++) {
		struct id_range *range = &ranges[i];

		at += strspn(at, " ");
		range->from = range->to = take_id(&at);
		if (strncmp(at, "..", 2) == 0) {
			at += 2;
			range->to = take_id(&at);
		}
		at += strspn(at, " ");
		if (range->from <= 0 || range->to < range->from || (*at != ',' && *at)) {
			form_fail(form,
				"ids: \"%.100s\": expected ids and ranges, like 812,815..830",
				text);
			return;
		}
		at += *at == ',';
	}
	call->ranges = ranges;
	call->range_count = merge_ranges(ranges, most);
	call->each = !form_get(form, "incident") && !form_get(form, "test") &&
		     !form_get(form, "commit") && !form_get(form, "message");
}

/* A criterion of a selection, besides ids; an empty one selects nothing. */
static const char *read_selector(struct form *form, const char *name)
{
	const char *text = read_text(form, name, LONGEST_NOTE);

	if (text && !*text)
		form_fail(form, "%s: it is empty", name);
	return text;
}

bool triage_form_read(struct form *form, struct store_triage *call)
{
	struct triage *triage = &call->triage;
	const char *version = form_get(form, "version"), *problem;

	triage->state =
		(enum triage_state)form_choice(form, "state", triage_state_names, TRIAGE_OPEN, 0);
	triage->owner = read_text(form, "owner", LONGEST_NAME);
	triage->note = read_text(form, "note", LONGEST_NOTE);
	triage->link = read_text(form, "link", LONGEST_LINK);
	problem = triage->link && *triage->link ? transfer_url_problem(triage->link) : NULL;
	if (problem) /* links are clicked on */
		form_fail(form, "link: %s", problem);
	triage->until = read_ahead(form, "until", -1, 0);
	call->version = version ? number_of(version, LONGEST_DIGITS) : -1;
	if (version && call->version < 0)
		form_fail(form, "version: expected the triage version of the change, or the sum of "
				"several");
	read_ids(form, call);
	call->test = read_selector(form, "test");
	call->commit = read_selector(form, "commit");
	call->message = read_selector(form, "message");
	call->incident = read_incident(form);
	if (call->message && call->incident)
		form_fail(form, "incident: not together with message");
	if (triage->state == TRIAGE_OPEN && triage->until > 0)
		form_fail(form, "until: an open change is open already, and stays so");
	call->dry_run = form_bool(form, "dry_run");
	return !form->failed;
}

bool triage_form_says(const struct store_triage *call)
{
	const struct triage *triage = &call->triage;

	return triage->state || triage->owner || triage->note || triage->link ||
	       triage->until != -1;
}

/* "change 812 is expected now, as ann said at 2026-11-23T02:20:00Z (version 4)" */
static void put_conflict(struct buf *out, const struct change_record *record)
{
	const struct triage *triage = &record->triage;
	struct buf text = {0};
	char time[WHEN_TEXT];

	buf_printf(&text, "change %" PRId64 " is %s now", record->item.id,
		triage_state_names[triage->state ? triage->state : TRIAGE_OPEN]);
	if (triage->person)
		buf_printf(&text, ", as %s said at %s", triage->person,
			when_format_iso(triage->time, time));
	buf_printf(&text, " (version %" PRId64 "): nothing was changed", triage->version);
	json_put(out, "error: %s", text.data);
	buf_free(&text);
}

static int compare_id(const void *key, const void *element)
{
	int64_t id = *(const int64_t *)key;
	const struct change_record *record = element;

	return (id > record->item.id) - (id < record->item.id);
}

enum { NAMED = 10 };

static bool name_missing(const struct store_triage *call, struct error *error)
{
	const struct record_rows *records = &call->records;
	struct buf text = {0};
	size_t count = 0;

	for (size_t i = 0; i < call->range_count; i++) {
		const struct id_range *range = &call->ranges[i];

		if (range->from != range->to ||
			(records->count > 0 && bsearch(&range->from, records->items, records->count,
						       sizeof *records->items, compare_id)))
			continue;
		if (count++ < NAMED)
			buf_printf(&text, "%s%" PRId64, count > 1 ? ", " : "", range->from);
	}
	(void)error_set(error, ERROR_USAGE, "there is no change %s%s: nothing was changed",
		text.data, count > NAMED ? ", ..." : "");
	buf_free(&text);
	return false;
}

bool triage_form_nothing(const struct store_triage *call, struct error *error)
{
	const char *const values[] = {call->test, call->commit, call->message};
	static const char *const names[] = {"the test", "the commit", "the message"};
	const struct id_range *first = call->ranges;
	struct buf text = {0};

	if (call->range_count == 1 && first->from == first->to && call->each)
		return error_set(error, ERROR_USAGE, "there is no change %" PRId64, first->from);
	if (call->missing && call->records.count > 0)
		return name_missing(call, error);
	for (size_t i = 0; i < call->range_count; i++) {
		const struct id_range *range = &call->ranges[i];

		buf_printf(&text, "%s%" PRId64, i ? "," : " the ids ", range->from);
		if (range->to != range->from)
			buf_printf(&text, "..%" PRId64, range->to);
	}
	if (call->incident)
		buf_printf(&text, "%s the incident i%" PRId64, text.length ? " and" : "",
			call->incident);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (values[i])
			buf_printf(&text, "%s %s \"%s\"", text.length ? " and" : "", names[i],
				values[i]);
	(void)error_set(error, ERROR_USAGE, "no change is selected by%s", text.data);
	buf_free(&text);
	return false;
}

void records_put_changes(struct buf *out, const struct config *config, struct arena *arena,
	struct record_rows *records, size_t most)
{
	json_put(out, "changes: [");
	for (size_t i = 0; i < records->count && i < most; i++) {
		json_line(out);
		if (config)
			announce_links(arena, config, &records->items[i]);
		record_put_json(out, &records->items[i]);
	}
	buf_char(out, ']');
}

void triage_form_answer(struct buf *out, const struct config *config, struct store_triage *call)
{
	size_t count = call->records.count;

	json_put(out, "{changed: %zu, count: %zu", call->changed, count);
	if (call->conflict && count > 0) {
		const struct change_record *last = call->records.items;

		for (size_t i = 1; i < count; i++)
			if (call->records.items[i].triage.time > last->triage.time)
				last = &call->records.items[i];
		put_conflict(out, last);
	}
	records_put_changes(out, config, call->call.arena, &call->records, FORM_CHANGES);
	buf_char(out, '}');
}

const char *form_matchers(const char *text, struct arena *arena, struct error *error)
{
	struct matchers matchers;
	struct buf normal = {0};

	if (!matchers_parse(text, arena, true, &matchers, error))
		return NULL;
	matchers_print(&matchers, &normal);
	matchers_free(&matchers);
	return buf_keep(&normal, arena);
}

static int64_t read_end(struct form *form, int64_t from, int64_t most)
{
	const char *duration = form_get(form, "for");
	char text[WHEN_TEXT];
	int64_t until = read_ahead(form, "until", 0, WHEN_NEVER), length = 0;

	if (duration && until)
		form_fail(form, "\"for\" and \"until\" are mutually exclusive");
	else if (!duration && !until)
		form_fail(form, "one of \"for\" (a duration, like 2h) and \"until\" is needed");
	else if (duration)
		(void)check(form, "for", when_parse_duration(duration, &length, &form->error));
	else
		length = until == WHEN_NEVER ? WHEN_NEVER : until - from;
	if (length <= 0)
		form_fail(form, "it ends before it begins");
	else if (length > most)
		form_fail(form,
			"a silence lasts at most %s (agent.max_silence); use mute_times or "
			"known_changes for recurring or permanent ones",
			when_format_duration(most, text));
	else if (length > LONGEST)
		form_fail(form, "a silence needs an end: use known_changes for permanent entries");
	else if (when_to_date(from + length).year > 9999)
		form_fail(form, "it ends after the year 9999");
	return form->failed ? 0 : from + length;
}

bool silence_form_read(struct form *form, int64_t most, struct store_silence *call)
{
	struct silence *silence = &call->silence;
	const char *matchers = form_get(form, "matchers"), *from = form_get(form, "from");

	silence->created = call->now;
	silence->person = call->actor.person;
	if (!matchers || !*matchers)
		form_fail(
			form, "matchers: expected matchers such as test=~\"db.*\", region=\"eu\"");
	else if (!(silence->matchers = form_matchers(matchers, form->arena, &form->error)))
		(void)check(form, "matchers", false);
	silence->from = from && strcmp(from, "now") == 0
				? form->now
				: read_ahead(form, "from", form->now, WHEN_NEVER);
	if (silence->from == WHEN_NEVER)
		form_fail(form, "from: a silence has a beginning");
	silence->until = read_end(form, silence->from, most);
	silence->owner = read_text(form, "owner", LONGEST_NAME);
	silence->reason = read_text(form, "reason", LONGEST_NOTE);
	if (!silence->owner || !*silence->owner)
		silence->owner = call->actor.person;
	return !form->failed;
}

const char *form_person(struct form *form, const char *usual)
{
	const char *person = form_get(form, "person");

	if (person && !(*person && strlen(person) <= LONGEST_NAME && utf8_is_shown(person, "")))
		form_fail(form,
			"person: expected a name of at most %d bytes, without control characters",
			LONGEST_NAME);
	return person ? person : usual;
}

static const char *state_of(const struct silence *silence, int64_t now)
{
	if (silence->ended != 0 || silence->until <= now)
		return "over";
	return silence->from > now ? "pending" : "active";
}

void silences_put_json(struct buf *out, const struct silence_rows *silences, int64_t now)
{
	json_put(out, "{silences: [");
	for (size_t i = 0; i < silences->count; i++) {
		json_line(out);
		silence_put_json(out, &silences->items[i], now);
	}
	json_put(out, "]}");
}

/* Without its end. */
static void put_silence(struct buf *out, const struct silence *silence, int64_t now)
{
	json_put(out,
		"{id: %jd, state: %s, matchers: %s, from: %jd moment, "
		"until: %jd moment, owner: %s, reason: %s, person: %s, "
		"created: %jd moment, ended: %jd moment, ended_by: %s",
		silence->id, state_of(silence, now), silence->matchers, silence->from,
		silence->until, silence->owner, silence->reason, silence->person, silence->created,
		silence->ended, silence->ended_by);
}

void silence_put_json(struct buf *out, const struct silence *silence, int64_t now)
{
	put_silence(out, silence, now);
	buf_char(out, '}');
}

void silence_put_added(struct buf *out, const struct silence *silence, int64_t now,
	const struct silence_reach *reach)
{
	put_silence(out, silence, now);
	json_put(out, "tests: %zu, open_changes: %zu", reach->tests, reach->changes);
	silence_put_warning(out, reach);
	buf_char(out, '}');
}

void silence_put_warning(struct buf *out, const struct silence_reach *reach)
{
	struct buf warning = {0};

	if (reach->unknown)
		buf_printf(&warning,
			"no configured test and no recorded change or series has \"%s\"",
			reach->unknown);
	else if (reach->tests + reach->changes == 0 && !reach->problem)
		buf_text(&warning, "no configured test and no open change matches");
	if (reach->suggestion)
		buf_printf(&warning, " (did you mean \"%s\"?)", reach->suggestion);
	json_put(out, "warning: %s", warning.data);
	buf_free(&warning);
}

void audit_list_put_json(struct buf *out, const struct store_audit *list)
{
	size_t count = list->entry_count;

	json_put(out, "{audit: [");
	for (size_t i = 0; i < count; i++) {
		const struct event *entry = &list->entries[i];

		json_put(out,
			"\n{id: %jd, time: %jd moment, person: %s, origin: %s, action: %s, "
			"change: %jd id, subject: %s, detail: %s}",
			entry->id, entry->time, entry->actor.person, entry->actor.origin,
			event_names[entry->kind], entry->change, entry->subject, entry->detail);
	}
	json_put(
		out, "], next: %jd id}", list->more && count > 0 ? list->entries[count - 1].id : 0);
}

/* Appends one, and returns how many shards it holds. */
static size_t put_agent(
	struct buf *out, const struct store_turn *seen, const struct store_agent *agent, bool self)
{
	bool late = agent->until <= seen->now;
	int64_t instance = agent->gone ? -1 : agent->instance;
	size_t count = 0;

	json_put(out, "\n{name: %s, instance: %jd, state: %s, self: %d bool, held: [", agent->name,
		agent->instance,
		agent->gone ? "gone"
		: late      ? "late"
			    : "alive",
		self);
	for (int i = 0; i < STORE_SHARDS; i++)
		if (seen->shards[i].holder == instance) {
			json_put(out, "%d", i);
			count++;
		}
	json_put(out, "], shards: %zu, leader: %d bool, tests: %jd", count,
		seen->shards[0].holder == instance, agent->tests);
	buf_printf(out, ", \"configuration\": \"%016" PRIx64 "\"", (uint64_t)agent->configuration);
	json_put(out,
		"version: %s, address: %s optional, joined: %jd time, "
		"renewed: %jd time, renewed_seconds_ago: %jd seconds, "
		"lease_until: %jd time, late_renewals: %jd, gone: %jd moment}",
		agent->version, agent->address, agent->joined, agent->renewed,
		seen->now - agent->renewed, agent->until, agent->late, agent->gone);
	return count;
}

void agents_put_json(struct buf *out, const struct store_turn *seen, int64_t self)
{
	size_t held = 0;

	json_put(out, "{shared: true, time: %jd time, agents: [", seen->now);
	for (size_t i = 0; i < seen->agent_count; i++)
		held += put_agent(out, seen, &seen->agents[i], seen->agents[i].instance == self);
	json_put(out, "], shards: %d, held: %zu}", STORE_SHARDS, held);
}
