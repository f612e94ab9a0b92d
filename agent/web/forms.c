/* Text from users is shown to other users, in terminals and messages, so it has no control
 * characters but line breaks in notes. */
#include "agent/web/forms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/matcher.h"
#include "agent/base/transfer.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "agent/model/incident.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "agent/notify/announce.h"

enum {
	LONGEST_NAME = 200,
	LONGEST_NOTE = 4000,
	LONGEST_LINK = 2000,
	LONGEST_DIGITS = 18,
	MOST_RANGES = 20000,
};

#define LONGEST INT64_C(3155760000000) /* ms of a silence: a century */

struct form {
	form_get *get;
	void *context;
	struct arena *arena;
	int64_t now;
	struct error *error;
};

bool form_bool(const char *text, const char *name, bool *out, struct error *error)
{
	*out = text && strcmp(text, "true") == 0;
	return !text || *out || strcmp(text, "false") == 0 ||
	       error_set(error, ERROR_USAGE, "%s: true or false is needed", name);
}

/* The name that the word is, the whole text if it is the `only` one, else up to a comma: its index;
 * else an error. */
static bool find_name(const char *name, const char *const *names, int first, const char *word,
	bool only, int *out, struct error *error)
{
	int length = (int)(only ? strlen(word) : strcspn(word, ","));
	struct buf all = {0};

	for (*out = first; names[*out]; ++*out) {
		if (strlen(names[*out]) == (size_t)length &&
			strncmp(names[*out], word, (size_t)length) == 0) {
			buf_free(&all);
			return true;
		}
		buf_text(&all, *out == first ? "" : names[*out + 1] ? ", " : " or ");
		buf_text(&all, names[*out]);
	}
	if (only)
		(void)error_set(error, ERROR_USAGE, "%s: %s is needed", name, all.data);
	else
		(void)error_set(error, ERROR_USAGE, "%s: \"%.*s\" is none of %s", name,
			length < 100 ? length : 100, word, all.data);
	buf_free(&all);
	return field_hint(error, word, names + first, (size_t)(*out - first));
}

bool form_choice(
	const char *text, const char *name, const char *const *names, int *out, struct error *error)
{
	return !text || find_name(name, names, 0, text, true, out, error);
}

bool form_choices(const char *text, const char *name, const char *const *names, int first,
	unsigned *out, struct error *error)
{
	int found;

	for (*out = 0; text && *text; text += *text == ',') {
		if (!find_name(name, names, first, text, false, &found, error))
			return false;
		*out |= 1U << found;
		text += strlen(names[found]);
	}
	return true;
}

bool form_date(const char *text, const char *name, int64_t now, int64_t open, int64_t *out,
	struct error *error)
{
	*out = open;
	if (!text || when_parse(text, now, out, error))
		return true;
	error->kind = ERROR_USAGE;
	return error_prefix(error, "%s: ", name);
}

static bool read_incident(const char *text, int64_t *out, struct error *error)
{
	return !text || incident_parse(text, out) ||
	       error_set(error, ERROR_USAGE,
		       "incident: \"%.100s\": expected the number of an incident, like i12", text);
}

bool change_form_read(form_get *getter, void *context, int64_t now, struct arena *arena,
	struct change_filter *filter, struct error *error)
{
	filter->now = now;
	filter->test = arena_strdup(arena, getter(context, "test"));
	return form_choices(getter(context, "state"), "state", change_state_names, 1,
		       &filter->states, error) &&
	       form_date(getter(context, "since"), "since", now, 0, &filter->since, error) &&
	       form_date(getter(context, "until"), "until", now, 0, &filter->until, error) &&
	       form_choices(getter(context, "triage"), "triage", triage_state_names, TRIAGE_OPEN,
		       &filter->triage, error) &&
	       read_incident(getter(context, "incident"), &filter->incident, error) &&
	       form_bool(getter(context, "open"), "open", &filter->open, error);
}

static const char *get(const struct form *form, const char *name)
{
	return form->get(form->context, name);
}

/* A text of people; `*out` stays NULL if it is not given. */
static bool read_text(const struct form *form, const char *name, size_t most, const char **out)
{
	const char *text = get(form, name);

	if (!text)
		return true;
	if (strlen(text) > most)
		return error_set(form->error, ERROR_USAGE, "%s: more than %zu bytes", name, most);
	if (!utf8_is_shown(text, most == LONGEST_NOTE ? "\n" : ""))
		return error_set(form->error, ERROR_USAGE,
			"%s: it is not UTF-8 or has control characters", name);
	*out = arena_strdup(form->arena, text);
	return true;
}

/* Links are clicked on. */
static bool read_link(const struct form *form, const char **out)
{
	const char *problem;

	if (!read_text(form, "link", LONGEST_LINK, out))
		return false;
	problem = *out && **out ? transfer_url_problem(*out) : NULL;
	return !problem || error_set(form->error, ERROR_USAGE, "link: %s", problem);
}

static bool read_state(const struct form *form, enum triage_state *out)
{
	const char *text = get(form, "state");

	if (!text || triage_state_named(text, out))
		return true;
	(void)error_set(form->error, ERROR_USAGE,
		"state: \"%.100s\" is none of open, acknowledged, expected, ignored, infra, false, "
		"fixed",
		text);
	return field_hint(form->error, text, triage_state_names + 1, TRIAGE_STATES - 1);
}

/* `never` if it is empty or "never", else a time ahead. */
static bool read_ahead(const struct form *form, const char *name, int64_t never, int64_t *out)
{
	const char *text = get(form, name);

	if (!text)
		return true;
	if (!*text) {
		*out = never;
		return true;
	}
	if (!when_parse_ahead(text, form->now, out, form->error))
		return error_prefix(form->error, "%s: ", name);
	if (*out == WHEN_NEVER)
		*out = never;
	return true;
}

static bool take_id(const char **at, int64_t *out)
{
	size_t digits = strspn(*at, "0123456789");

	*out = digits > 0 && digits <= LONGEST_DIGITS ? strtoll(*at, NULL, 10) : 0;
	*at += digits;
	return *out > 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct id_range *left = a, *right = b;

	return (left->from > right->from) - (left->from < right->from);
}

/* Sorts them and merges those that overlap, as each is a search; returns their number. */
static size_t merge_ranges(struct id_range *ranges, size_t count)
{
	size_t kept = 0;

	qsort(ranges, count, sizeof *ranges, compare_ranges);
	for (size_t i = 1; i < count; i++) {
		if (ranges[i].from > ranges[kept].to)
			ranges[++kept] = ranges[i];
		else if (ranges[i].to > ranges[kept].to)
			ranges[kept].to = ranges[i].to;
	}
	return kept + 1;
}

/* "812,815..830", with blanks around the commas. */
static bool read_ids(const struct form *form, struct store_triage *call)
{
	const char *text = get(form, "ids"), *at = text;
	size_t most = 1;
	struct id_range *ranges;

	if (!text)
		return true;
	for (const char *comma = text; (comma = strchr(comma, ',')); comma++)
		most++;
	if (most > MOST_RANGES)
		return error_set(form->error, ERROR_USAGE, "ids: more than %d", MOST_RANGES);
	ranges = arena_array(form->arena, most, sizeof *ranges);
	for (size_t i = 0; i < most; i++) {
		struct id_range *range = &ranges[i];
		bool good;

		at += strspn(at, " ");
		good = take_id(&at, &range->from);
		range->to = range->from;
		if (good && strncmp(at, "..", 2) == 0) {
			at += 2;
			good = take_id(&at, &range->to) && range->to >= range->from;
		}
		at += strspn(at, " ");
		if (!good || (*at != ',' && *at))
			return error_set(form->error, ERROR_USAGE,
				"ids: \"%.100s\": expected ids and ranges, like 812,815..830",
				text);
		at += *at == ',';
	}
	call->ranges = ranges;
	call->range_count = merge_ranges(ranges, most);
	call->each = !get(form, "incident") && !get(form, "test") && !get(form, "commit") &&
		     !get(form, "message");
	return true;
}

static bool read_version(const struct form *form, int64_t *out)
{
	const char *text = get(form, "version");
	size_t digits = text ? strspn(text, "0123456789") : 0;

	*out = -1;
	if (!text)
		return true;
	if (digits == 0 || digits > LONGEST_DIGITS || text[digits])
		return error_set(form->error, ERROR_USAGE,
			"version: expected the triage version of the change, or the sum of "
			"several");
	*out = strtoll(text, NULL, 10);
	return true;
}

/* The criteria of a selection, besides ids; an empty one selects nothing. */
static bool read_selector(const struct form *form, const char *name, const char **out)
{
	return read_text(form, name, LONGEST_NOTE, out) &&
	       (!*out || **out || error_set(form->error, ERROR_USAGE, "%s: it is empty", name));
}

static bool check_until(const struct triage *triage, struct error *error)
{
	return triage->state != TRIAGE_OPEN || triage->until <= 0 ||
	       error_set(error, ERROR_USAGE, "until: an open change is open already, and stays so");
}

bool triage_form_read(
	form_get *getter, void *context, struct store_triage *call, struct error *error)
{
	const struct form form = {getter, context, call->call.arena, call->now, error};
	struct triage *triage = &call->triage;

	triage->until = -1;
	return read_state(&form, &triage->state) &&
	       read_text(&form, "owner", LONGEST_NAME, &triage->owner) &&
	       read_text(&form, "note", LONGEST_NOTE, &triage->note) &&
	       read_link(&form, &triage->link) && read_ahead(&form, "until", 0, &triage->until) &&
	       read_version(&form, &call->version) && read_ids(&form, call) &&
	       read_selector(&form, "test", &call->test) &&
	       read_selector(&form, "commit", &call->commit) &&
	       read_selector(&form, "message", &call->message) &&
	       read_incident(get(&form, "incident"), &call->incident, error) &&
	       (!call->message || !call->incident ||
		       error_set(error, ERROR_USAGE, "incident: not together with message")) &&
	       check_until(triage, error) &&
	       form_bool(get(&form, "dry_run"), "dry_run", &call->dry_run, error);
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
	json_put_text(out, "error", text.data);
	buf_free(&text);
}

/* The last triage. */
static const struct change_record *said_last(const struct record_rows *records)
{
	const struct change_record *last = records->items;

	for (size_t i = 1; i < records->count; i++)
		if (records->items[i].triage.time > last->triage.time)
			last = &records->items[i];
	return last;
}

/* Whether something else than ids selects. */
static bool is_narrowed(const struct store_triage *call)
{
	return call->test || call->commit || call->message || call->incident;
}

static void put_ids(struct buf *out, const struct store_triage *call)
{
	for (size_t i = 0; i < call->range_count; i++) {
		const struct id_range *range = &call->ranges[i];

		buf_printf(out, "%s%" PRId64, i ? "," : " the ids ", range->from);
		if (range->to != range->from)
			buf_printf(out, "..%" PRId64, range->to);
	}
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

	if (call->range_count == 1 && first->from == first->to && !is_narrowed(call))
		return error_set(error, ERROR_USAGE, "there is no change %" PRId64, first->from);
	if (call->missing && call->records.count > 0)
		return name_missing(call, error);
	put_ids(&text, call);
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

void triage_form_answer(struct buf *out, const struct config *config, struct store_triage *call)
{
	size_t count = call->records.count;

	buf_printf(out, "{\"changed\": %zu, \"count\": %zu", call->changed, count);
	if (call->conflict && count > 0)
		put_conflict(out, said_last(&call->records));
	buf_text(out, ", \"changes\": [");
	for (size_t i = 0; i < count && i < FORM_CHANGES; i++) {
		json_line(out);
		if (config)
			announce_links(call->call.arena, config, &call->records.items[i]);
		record_put_json(out, &call->records.items[i]);
	}
	buf_text(out, "]}\n");
}

static bool read_matchers(const struct form *form, const char **out)
{
	const char *text = get(form, "matchers");
	struct buf canonical = {0};
	struct matchers matchers;

	if (!text || !*text)
		return error_set(form->error, ERROR_USAGE,
			"matchers: expected matchers such as test=~\"db.*\", region=\"eu\"");
	if (!matchers_parse(text, form->arena, &matchers, form->error))
		return error_prefix(form->error, "matchers: ");
	matchers_print(&matchers, &canonical);
	matchers_free(&matchers);
	*out = buf_keep(&canonical, form->arena);
	return true;
}

static bool read_from(const struct form *form, int64_t *out)
{
	const char *text = get(form, "from");

	*out = form->now;
	if (!text || strcmp(text, "now") == 0)
		return true;
	if (!when_parse_ahead(text, form->now, out, form->error))
		return error_prefix(form->error, "from: ");
	return *out != WHEN_NEVER ||
	       error_set(form->error, ERROR_USAGE, "from: a silence has a beginning");
}

static bool read_end(const struct form *form, int64_t most, struct silence *silence)
{
	const char *duration = get(form, "for");
	char text[WHEN_TEXT];
	int64_t length;

	if (duration && get(form, "until"))
		return error_set(
			form->error, ERROR_USAGE, "\"for\" and \"until\" are mutually exclusive");
	if (!duration && !get(form, "until"))
		return error_set(form->error, ERROR_USAGE,
			"one of \"for\" (a duration, like 2h) and \"until\" is needed");
	silence->until = WHEN_NEVER;
	if (duration && !when_parse_duration(duration, &length, form->error))
		return error_prefix(form->error, "for: ");
	if (!duration && !read_ahead(form, "until", WHEN_NEVER, &silence->until))
		return false;
	if (!duration)
		length = silence->until == WHEN_NEVER ? WHEN_NEVER : silence->until - silence->from;
	if (length <= 0)
		return error_set(form->error, ERROR_USAGE, "it ends before it begins");
	if (length > most)
		return error_set(form->error, ERROR_USAGE,
			"a silence lasts at most %s (agent.max_silence); use mute_times or "
			"known_changes for recurring or permanent ones",
			when_format_duration(most, text));
	if (length > LONGEST)
		return error_set(form->error, ERROR_USAGE,
			"a silence needs an end: use known_changes for permanent entries");
	silence->until = silence->from + length;
	return when_to_date(silence->until).year <= 9999 ||
	       error_set(form->error, ERROR_USAGE, "it ends after the year 9999");
}

bool silence_form_read(form_get *getter, void *context, int64_t most, struct store_silence *call,
	struct error *error)
{
	const struct form form = {getter, context, call->call.arena, call->now, error};
	struct silence *silence = &call->silence;

	silence->created = call->now;
	silence->person = call->actor.person;
	if (!read_matchers(&form, &silence->matchers) || !read_from(&form, &silence->from) ||
		!read_end(&form, most, silence) ||
		!read_text(&form, "owner", LONGEST_NAME, &silence->owner) ||
		!read_text(&form, "reason", LONGEST_NOTE, &silence->reason))
		return false;
	if (!silence->owner || !*silence->owner)
		silence->owner = call->actor.person;
	return true;
}

bool actor_check(const char *person, struct error *error)
{
	return (*person && strlen(person) <= LONGEST_NAME && utf8_is_shown(person, "")) ||
	       error_set(error, ERROR_USAGE,
		       "expected a name of at most %d bytes, without control characters",
		       LONGEST_NAME);
}

static const char *state_of(const struct silence *silence, int64_t now)
{
	if (silence->ended != 0 || silence->until <= now)
		return "over";
	return silence->from > now ? "pending" : "active";
}

void silences_put_json(struct buf *out, const struct silence_rows *silences, int64_t now)
{
	buf_text(out, "{\"silences\": [");
	for (size_t i = 0; i < silences->count; i++) {
		json_line(out);
		silence_put_json(out, &silences->items[i], now);
	}
	buf_text(out, "]}\n");
}

/* Without its end. */
static void put_silence(struct buf *out, const struct silence *silence, int64_t now)
{
	buf_printf(out, "{\"id\": %" PRId64 ", \"state\": \"%s\"", silence->id,
		state_of(silence, now));
	json_put_text(out, "matchers", silence->matchers);
	json_put_moment(out, "from", silence->from);
	json_put_moment(out, "until", silence->until);
	json_put_text(out, "owner", silence->owner);
	json_put_text(out, "reason", silence->reason);
	json_put_text(out, "person", silence->person);
	json_put_moment(out, "created", silence->created);
	json_put_moment(out, "ended", silence->ended);
	json_put_text(out, "ended_by", silence->ended_by);
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
	buf_printf(out, ", \"tests\": %zu, \"open_changes\": %zu", reach->tests, reach->changes);
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
	json_put_text(out, "warning", warning.data);
	buf_free(&warning);
}

static void put_entry(struct buf *out, const struct event *entry)
{
	json_line(out);
	buf_printf(out, "{\"id\": %" PRId64, entry->id);
	json_put_moment(out, "time", entry->time);
	json_put_text(out, "person", entry->actor.person);
	json_put_text(out, "origin", entry->actor.origin);
	json_put_text(out, "action", event_names[entry->kind]);
	json_put_id(out, "change", entry->change);
	json_put_text(out, "subject", entry->subject);
	json_put_text(out, "detail", entry->detail);
	buf_char(out, '}');
}

void audit_list_put_json(struct buf *out, const struct store_audit *list)
{
	size_t count = list->entry_count;

	buf_text(out, "{\"audit\": [");
	for (size_t i = 0; i < count; i++)
		put_entry(out, &list->entries[i]);
	buf_char(out, ']');
	json_put_id(out, "next", list->more && count > 0 ? list->entries[count - 1].id : 0);
	buf_text(out, "}\n");
}

static void put_shards(struct buf *out, const struct store_turn *seen, int64_t instance)
{
	size_t count = 0;

	buf_text(out, ", \"held\": [");
	for (int i = 0; i < STORE_SHARDS; i++)
		if (seen->shards[i].holder == instance)
			buf_printf(out, "%s%d", count++ > 0 ? ", " : "", i);
	buf_printf(out, "], \"shards\": %zu", count);
	json_put_bool(out, "leader", seen->shards[0].holder == instance);
}

static void put_agent(
	struct buf *out, const struct store_turn *seen, const struct store_agent *agent, bool self)
{
	bool late = agent->until <= seen->now;

	json_open(out, "name", agent->name);
	buf_printf(out, ", \"instance\": %" PRId64, agent->instance);
	json_put_text(out, "state", agent->gone ? "gone" : late ? "late" : "alive");
	json_put_bool(out, "self", self);
	put_shards(out, seen, agent->gone ? -1 : agent->instance);
	buf_printf(out, ", \"tests\": %" PRId64, agent->tests);
	buf_printf(out, ", \"configuration\": \"%016" PRIx64 "\"", (uint64_t)agent->configuration);
	json_put_text(out, "version", agent->version);
	json_put_text(out, "address", *agent->address ? agent->address : NULL);
	json_put_time(out, "joined", agent->joined);
	json_put_time(out, "renewed", agent->renewed);
	json_put_seconds(out, "renewed_seconds_ago", seen->now - agent->renewed);
	json_put_time(out, "lease_until", agent->until);
	buf_printf(out, ", \"late_renewals\": %" PRId64, agent->late);
	json_put_time(out, "gone", agent->gone ? agent->gone : WHEN_NEVER);
	buf_char(out, '}');
}

static bool is_held(const struct store_turn *seen, int shard)
{
	for (size_t i = 0; i < seen->agent_count; i++)
		if (seen->agents[i].instance == seen->shards[shard].holder)
			return seen->agents[i].gone == 0;
	return false;
}

void agents_put_json(struct buf *out, const struct store_turn *seen, int64_t self)
{
	size_t held = 0;

	for (int i = 0; i < STORE_SHARDS; i++)
		held += is_held(seen, i);
	buf_text(out, "{\"shared\": true");
	json_put_time(out, "time", seen->now);
	buf_printf(out, ", \"shards\": %d, \"held\": %zu,\n \"agents\": [", STORE_SHARDS, held);
	for (size_t i = 0; i < seen->agent_count; i++) {
		json_line(out);
		put_agent(out, seen, &seen->agents[i], seen->agents[i].instance == self);
	}
	buf_text(out, "]}\n");
}
