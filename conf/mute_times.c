/*
 * Reads the section `mute_times` and the key `mute` of tests and groups, and computes when a mute
 * time holds.
 *
 * The end of a mute time is found by going from one turn to the next: a time of the day at which an
 * interval begins or ends, midnight, or a change of the zone's offset. Between two turns nothing
 * changes.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/base/when.h"
#include "agent/base/zone.h"
#include "conf/load.h"
#include "conf/mute.h"

enum { RANGES_MOST = 50, INTERVALS_MOST = 50, TURNS_MOST = 2000, MINUTES = 1440, ABBREVIATED = 3 };
#define MINUTE INT64_C(60000)
#define DAY (MINUTES * MINUTE)

/* Both included. */
struct mute_range {
	int64_t from, to;
};

/* None: all. */
struct mute_ranges {
	const struct mute_range *items;
	size_t count;
};

enum part { PART_WEEKDAYS, PART_DAYS, PART_MONTHS, PART_YEARS, PARTS };

struct mute_interval {
	struct mute_ranges parts[PARTS], times; /* times: ms after midnight */
	const struct zone *zone;
};

struct mute_time {
	const char *name;
	const struct yaml_node *where;
	const struct mute_interval *intervals;
	size_t count;
	bool used;
};

const char *mute_name(const struct mute_time *mute)
{
	return mute->name;
}

/* When it holds */

static int64_t day_start(int64_t local)
{
	return local - ((local % DAY) + DAY) % DAY;
}

static bool is_among(const struct mute_ranges *ranges, int64_t value)
{
	for (size_t i = 0; i < ranges->count; i++) {
		struct mute_range range = ranges->items[i];

		/* friday:monday and november:february go over the end */
		if (range.from <= range.to ? value >= range.from && value <= range.to
					   : value >= range.from || value <= range.to)
			return true;
	}
	return ranges->count == 0;
}

/* Negative days count from the end of the month: -1 is its last. */
static bool is_day(const struct mute_ranges *ranges, struct date date)
{
	int days = when_month_days(date.year, date.month);

	for (size_t i = 0; i < ranges->count; i++) {
		struct mute_range range = ranges->items[i];

		range.from += range.from < 0 ? days + 1 : 0;
		range.to += range.to < 0 ? days + 1 : 0;
		if (date.day >= range.from && date.day <= range.to)
			return true;
	}
	return ranges->count == 0;
}

static bool interval_holds(const struct mute_interval *interval, int64_t ms)
{
	int64_t local = zone_local(interval->zone, ms), midnight = day_start(local);
	struct date date = when_to_date(local);

	return is_among(&interval->times, local - midnight) &&
	       is_among(&interval->parts[PART_WEEKDAYS], when_weekday(local)) &&
	       is_day(&interval->parts[PART_DAYS], date) &&
	       is_among(&interval->parts[PART_MONTHS], date.month) &&
	       is_among(&interval->parts[PART_YEARS], date.year);
}

static bool holds(const struct mute_time *mute, int64_t ms)
{
	for (size_t i = 0; i < mute->count; i++)
		if (interval_holds(&mute->intervals[i], ms))
			return true;
	return false;
}

static int64_t offset_at(const struct zone *zone, int64_t ms)
{
	return zone_local(zone, ms) - ms;
}

/* The first time after `ms` at which the interval may begin or end. */
static int64_t next_turn(const struct mute_interval *interval, int64_t ms)
{
	int64_t offset = offset_at(interval->zone, ms);
	int64_t since_midnight = ms + offset - day_start(ms + offset), wait = DAY - since_midnight;
	int64_t low = ms, high;

	for (size_t i = 0; i < interval->times.count; i++) {
		int64_t ends[] = {interval->times.items[i].from - since_midnight,
			interval->times.items[i].to + 1 - since_midnight};

		for (size_t j = 0; j < 2; j++)
			if (ends[j] > 0 && ends[j] < wait)
				wait = ends[j];
	}
	high = ms + wait;
	if (offset_at(interval->zone, high) == offset)
		return high;
	/* The zone's clock is changed before that. */
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		if (offset_at(interval->zone, middle) == offset)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static int64_t first_turn(const struct mute_time *mute, int64_t ms, int64_t first)
{
	for (size_t i = 0; i < mute->count; i++) {
		int64_t next = next_turn(&mute->intervals[i], ms);

		first = next < first ? next : first;
	}
	return first;
}

static const struct mute_time *find(const struct mutes *mutes, int64_t ms)
{
	for (size_t i = 0; i < mutes->count; i++)
		if (holds(mutes->items[i], ms))
			return mutes->items[i];
	return NULL;
}

const struct mute_time *mute_find(const struct mutes *mutes, int64_t ms, int64_t *until)
{
	const struct mute_time *found = find(mutes, ms), *now = found;

	if (until && !found) {
		*until = WHEN_NEVER;
		for (size_t i = 0; i < mutes->count; i++)
			*until = first_turn(mutes->items[i], ms, *until);
		return NULL;
	}
	for (size_t turns = 0; until && now && turns < TURNS_MOST; turns++) {
		ms = first_turn(now, ms, WHEN_NEVER);
		now = find(mutes, ms);
	}
	if (until)
		*until = ms;
	return found;
}

/* Reading */

struct interval_options {
	struct strings weekdays, days_of_month, months, years;
	const char *location;
};

const struct field mute_fields[] = {
	OPTION_LIST(struct interval_options, weekdays, "days of the week: [monday:friday, sunday]"),
	OPTION_LIST(struct interval_options, days_of_month,
		"days of the month, from its end if negative: [1, 10:15, -3:-1]"),
	OPTION_LIST(struct interval_options, months, "months: [january:march, 12]"),
	OPTION_LIST(struct interval_options, years, "years: [2026:2028]"),
	OPTION_STRING(struct interval_options, location, "UTC", "time zone: Europe/Berlin"),
	{0},
};

static const char *const interval_keys[] = {"times", NULL};

struct time_options {
	const char *start_time, *end_time;
};

const struct field mute_clock_fields[] = {
	OPTION_STRING(
		struct time_options, start_time, NULL, "start: 22:00", .flags = FIELD_REQUIRED),
	OPTION_STRING(struct time_options, end_time, NULL, "end, at most 24:00; exclusive",
		.flags = FIELD_REQUIRED),
	{0},
};

static const char *const weekday_names[] = {
	"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", NULL};
static const char *const month_names[] = {"january", "february", "march", "april", "may", "june",
	"july", "august", "september", "october", "november", "december", NULL};

static const struct part_rule {
	const char *key;
	const char *const *names; /* or NULL */
	int64_t first, last;      /* first: the number of the first name */
	bool round;               /* a range may go over the end */
	const char *expected;
} part_rules[PARTS] = {
	{"weekdays", weekday_names, 0, -1, true, "a day such as monday, or monday:friday"},
	{"days_of_month", NULL, -31, 31, false, "a day such as 1 or -1, or 1:15 or -3:-1"},
	{"months", month_names, 1, 12, true, "a month such as may or 5, or may:july"},
	{"years", NULL, 1970, 9999, false, "a year such as 2026, or 2026:2028"},
};

/* A name, in full or abbreviated, or a number. */
static bool read_word(const struct part_rule *rule, const char *text, size_t length, int64_t *out)
{
	bool negative = length > 1 && *text == '-';
	size_t at = negative;

	for (size_t i = 0; rule->names && rule->names[i]; i++)
		if ((length == ABBREVIATED || length == strlen(rule->names[i])) &&
			strncasecmp(rule->names[i], text, length) == 0) {
			*out = rule->first + (int64_t)i;
			return true;
		}
	for (*out = 0; at < length && at < 6; at++) {
		if (text[at] < '0' || text[at] > '9')
			return false;
		*out = *out * 10 + (text[at] - '0');
	}
	*out = negative ? -*out : *out;
	return length > 0 && at == length && *out >= rule->first && *out <= rule->last &&
	       !(rule->first < 0 && *out == 0);
}

static bool read_range(const struct part_rule *rule, const char *text, struct mute_range *out,
	const char **problem)
{
	size_t length = strcspn(text, ":");
	const char *end = text[length] ? text + length + 1 : text;

	*problem = NULL;
	if (!read_word(rule, text, length, &out->from) ||
		!read_word(rule, end, strlen(end), &out->to))
		return false;
	if (rule->first < 0 && out->from < 0 && out->to > 0)
		*problem = "a range that begins at the end of the month must end there: -3:-1";
	else if (out->from > out->to && !rule->round && !(out->from > 0 && out->to < 0))
		*problem = "the range ends before it begins";
	return *problem == NULL;
}

static bool is_too_many(const struct scope *scope, const char *key, const struct yaml_node *where,
	size_t count, size_t most)
{
	if (count <= most && (count > 0 || !*key))
		return false;
	if (count == 0)
		loader_error(where, scope, "%s: the list is empty", key);
	else
		loader_error(
			where, scope, "%s%smore than %zu entries", key, *key ? ": " : "", most);
	return true;
}

bool mute_weekdays(const char *text, unsigned *days)
{
	const char *problem;
	struct mute_range range;

	if (!read_range(&part_rules[PART_WEEKDAYS], text, &range, &problem))
		return false;
	for (int64_t day = range.from;; day = (day + 1) % 7) {
		*days |= 1u << day;
		if (day == range.to)
			return true;
	}
}

static void read_item(const struct yaml_node *item, const struct scope *scope,
	const struct part_rule *rule, struct mute_range *out)
{
	const char *missing = NULL, *problem = NULL;
	const char *text = loader_expand(scope->loader, item, false, &missing);

	if (!missing && !read_range(rule, text, out, &problem))
		loader_error(item, scope, "%s: \"%.80s\": %s%s", rule->key, text,
			problem ? "" : "expected ", problem ? problem : rule->expected);
}

/* "22:00" in minutes; "24:00" is the end of the day. */
bool mute_clock(const char *text, int64_t *out)
{
	int hours, minutes, colon = 0, end = 0;

	if (text[strspn(text, "0123456789:")] ||
		sscanf(text, "%2d%n:%2d%n", &hours, &colon, &minutes, &end) != 2 || text[end] ||
		end - colon != 3)
		return false;
	*out = hours * 60 + minutes;
	return minutes < 60 && *out <= MINUTES;
}

static void read_time(
	const struct yaml_node *map, const struct scope *context, struct mute_range *out)
{
	struct scope scope = *context;
	struct time_options options = {0};
	struct reading reading = {.tables = {{mute_clock_fields, &options}}};
	size_t errors = context->loader->problems->errors;

	scope.part = "times";
	reading.scope = scope;
	*out = (struct mute_range){0, DAY - 1};
	if (!loader_is_kind(
		    map, YAML_MAP, &scope, "{start_time: \"22:00\", end_time: \"24:00\"}") ||
		!options_read_all(map, &reading) || errors != context->loader->problems->errors)
		return;
	if (!mute_clock(options.start_time, &out->from))
		loader_error(yaml_get(map, "start_time"), &scope,
			"start_time: \"%.80s\": expected a time such as 22:00", options.start_time);
	else if (!mute_clock(options.end_time, &out->to))
		loader_error(yaml_get(map, "end_time"), &scope,
			"end_time: \"%.80s\": expected a time such as 06:00 or 24:00",
			options.end_time);
	else if (out->from >= out->to)
		loader_error(yaml_get(map, "end_time"), &scope,
			"end_time: not after start_time; split times over midnight in two: until "
			"24:00, and from 00:00 of the next day");
	out->from *= MINUTE;
	out->to = out->to * MINUTE - 1;
}

/* A part of an interval, or with NULL for its rule the times of the day. */
static struct mute_ranges read_part(
	const struct yaml_node *map, const struct scope *scope, const struct part_rule *rule)
{
	const char *key = rule ? rule->key : "times";
	const struct yaml_node *node = yaml_get(map, key), *const * items;
	struct mute_range *ranges;
	size_t count;

	if (!node || loader_is_null(node, scope, key))
		return (struct mute_ranges){0};
	count = yaml_items(&node, &items);
	if (is_too_many(scope, key, node, count, RANGES_MOST))
		return (struct mute_ranges){0};
	ranges = arena_array(scope->loader->arena, count, sizeof *ranges);
	for (size_t i = 0; i < count; i++)
		if (rule)
			read_item(items[i], scope, rule, &ranges[i]);
		else
			read_time(items[i], scope, &ranges[i]);
	return (struct mute_ranges){ranges, count};
}

static void read_interval(
	const struct yaml_node *map, const struct scope *scope, struct mute_interval *interval)
{
	struct interval_options options = {.location = "UTC"};
	struct reading reading = {
		.scope = *scope, .tables = {{mute_fields, &options}}, .other_keys = interval_keys};
	size_t errors = scope->loader->problems->errors, named = 0;
	struct error error;

	if (!loader_is_kind(map, YAML_MAP, scope, "a map such as {weekdays: [saturday, sunday]}") ||
		!options_read_all(map, &reading) || errors != scope->loader->problems->errors)
		return;
	for (size_t i = 0; i < PARTS; i++) {
		interval->parts[i] = read_part(map, scope, &part_rules[i]);
		named += interval->parts[i].count;
	}
	interval->times = read_part(map, scope, NULL);
	if (!zone_read(scope->loader->arena, NULL, options.location, &interval->zone, &error))
		loader_error(yaml_get(map, "location"), scope, "location: %s", error.text);
	if (named + interval->times.count == 0 && errors == scope->loader->problems->errors)
		loader_error(map, scope,
			"always in effect; give weekdays, days_of_month, months, years or "
			"times");
}

static void read_mute_time(
	struct loader *loader, const struct yaml_entry *entry, struct mute_time *mute)
{
	const char *name = loader_name(loader, entry->key);
	struct scope scope = {.loader = loader, .kind = "mute time", .name = name};
	const struct yaml_node *const *items;
	struct mute_interval *intervals;

	mute->name = name;
	mute->where = entry->key;
	loader_check_name(entry->key, &scope, name);
	*dict_place(&loader->mute_times, name) = mute;
	if (yaml_is_null(entry->value) ||
		(entry->value->kind == YAML_LIST && entry->value->count == 0)) {
		loader_error(entry->value, &scope, "expected an interval, or a list of them");
		return;
	}
	mute->count = yaml_items(&entry->value, &items);
	if (is_too_many(&scope, "", entry->value, mute->count, INTERVALS_MOST))
		mute->count = 0;
	intervals = arena_array(loader->arena, mute->count, sizeof *intervals);
	mute->intervals = intervals;
	for (size_t i = 0; i < mute->count; i++)
		read_interval(items[i], &scope, &intervals[i]);
}

void mute_times_read(struct loader *loader, const struct yaml_node *map)
{
	if (!map)
		return;
	loader->mute_list = arena_array(loader->arena, map->count, sizeof *loader->mute_list);
	loader->mute_count = map->count;
	for (size_t i = 0; i < map->count; i++)
		read_mute_time(loader, &map->entries[i], &loader->mute_list[i]);
}

struct mutes mutes_read(
	const struct yaml_node *map, const struct scope *scope, const struct strings *given)
{
	struct loader *loader = scope->loader;
	const struct mute_time **found = arena_array(loader->arena, given->count, sizeof *found);
	size_t count = 0;

	for (size_t i = 0; i < given->count; i++) {
		const char *name = given->items[i];
		const struct mute_time *mute = dict_get(&loader->mute_times, name);

		if (!mute) {
			loader_error(loader_item(loader, yaml_get(map, "mute"), name), scope,
				"mute: no mute time \"%.80s\"%s", name,
				loader_hint_in(loader, name, loader->mute_list, loader->mute_count,
					sizeof *loader->mute_list));
			continue;
		}
		loader->mute_list[mute - loader->mute_list].used = true;
		found[count++] = mute;
	}
	return (struct mutes){found, count};
}

struct mutes mutes_add(struct loader *loader, const struct mutes *mutes, const struct mutes *more,
	const struct yaml_node *where)
{
	size_t count = mutes->count;
	const struct mute_time **all =
		arena_array(loader->arena, mutes->count + more->count, sizeof *all);

	if (!loader_spend(loader, mutes->count + more->count, where))
		return *mutes;
	for (size_t i = 0; i < mutes->count; i++)
		all[i] = mutes->items[i];
	for (size_t i = 0, at; i < more->count; i++) {
		for (at = 0; at < count && all[at] != more->items[i]; at++)
			;
		all[at] = more->items[i];
		count += at == count;
	}
	return (struct mutes){all, count};
}

void mute_times_check(struct loader *loader)
{
	for (size_t i = 0; i < loader->mute_count; i++) {
		const struct mute_time *mute = &loader->mute_list[i];

		if (!mute->used)
			loader_warn(mute->where,
				&(struct scope){
					.loader = loader, .kind = "mute time", .name = mute->name},
				"unused: not referenced in `mute` of any test or group");
	}
}
