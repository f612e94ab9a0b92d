/*
 * A TZif file lists the times at which a zone's offset changed, and in its last line a rule for
 * later times ("CET-1CEST,M3.5.0,M10.5.0/3", as in POSIX). Only the block of 64-bit times is
 * read, which every file since 2005 has.
 */
#include "agent/base/zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/when.h"

enum { HEADER = 44, COUNTS = 20, NAME_MOST = 64, FILE_MOST = 1 << 20, TYPE_SIZE = 6 };
#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

/* The day of a year on which a rule switches, and how many ms after midnight. */
struct turn {
	enum { TURN_MONTH, TURN_JULIAN, TURN_DAY } kind;
	int month, week, day;
	int64_t after;
};

struct rule {
	bool there, summer;
	int64_t standard, daylight; /* offsets, ms east of Greenwich */
	struct turn begin, end;     /* start and end of daylight saving time */
};

struct zone {
	const char *name;
	size_t count;
	const int64_t *times;   /* ms; from each on ... */
	const int64_t *offsets; /* ... the offset is this one, ms */
	int64_t first;          /* the offset before the first of them */
	struct rule rule;       /* after the last of them */
};

/* The file */

static uint64_t big_endian(const unsigned char *at, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | at[i];
	return value;
}

/* The six counts of a header, in the order of the file. */
struct counts {
	size_t indicators, standards, leaps, times, types, letters;
};

static bool read_counts(const unsigned char *at, size_t left, struct counts *out)
{
	size_t values[6];

	if (left < HEADER || memcmp(at, "TZif", 4) != 0)
		return false;
	for (size_t i = 0; i < 6; i++)
		values[i] = (size_t)big_endian(at + COUNTS + 4 * i, 4);
	*out = (struct counts){values[0], values[1], values[2], values[3], values[4], values[5]};
	return out->types > 0 && out->types <= 256;
}

static size_t block_size(const struct counts *counts, size_t time_size)
{
	return counts->times * (time_size + 1) + counts->types * TYPE_SIZE + counts->letters +
	       counts->leaps * (time_size + 4) + counts->standards + counts->indicators;
}

static int64_t offset_of(const unsigned char *type)
{
	return (int32_t)big_endian(type, 4) * SECOND;
}

static bool read_times(struct arena *arena, const unsigned char *at, const struct counts *counts,
	struct zone *zone)
{
	const unsigned char *kinds = at + 8 * counts->times, *types = kinds + counts->times;
	int64_t *times = arena_array(arena, counts->times, sizeof *times);
	int64_t *offsets = arena_array(arena, counts->times, sizeof *offsets);

	for (size_t i = 0; i < counts->times; i++) {
		int64_t seconds = (int64_t)big_endian(at + 8 * i, 8);

		if (kinds[i] >= counts->types)
			return false;
		seconds = seconds < INT64_MIN / SECOND ? INT64_MIN / SECOND : seconds;
		seconds = seconds > INT64_MAX / SECOND ? INT64_MAX / SECOND : seconds;
		times[i] = seconds * SECOND;
		offsets[i] = offset_of(types + TYPE_SIZE * kinds[i]);
		if (i > 0 && times[i] < times[i - 1])
			return false;
	}
	zone->count = counts->times;
	zone->times = times;
	zone->offsets = offsets;
	zone->first = offset_of(types);
	return true;
}

/* Reads the rule: each reader moves *at past its part, or returns false. */

static bool read_name(const char **at)
{
	const char *from = *at;
	bool quoted = **at == '<';

	while (quoted ? **at && **at != '>' : isalpha((unsigned char)**at))
		(*at)++;
	if (quoted && *(*at)++ != '>')
		return false;
	return *at - from >= 3;
}

static bool read_number(const char **at, int most, int *out)
{
	int value = 0, digits = 0;

	for (; isdigit((unsigned char)**at) && digits < 4; (*at)++, digits++)
		value = 10 * value + (**at - '0');
	*out = value;
	return digits > 0 && value <= most;
}

/* [+-]hh[:mm[:ss]] as ms. */
static bool read_clock(const char **at, int64_t *out)
{
	int parts[3] = {0}, sign = **at == '-' ? -1 : 1;

	*at += **at == '-' || **at == '+';
	if (!read_number(at, 167, &parts[0]))
		return false;
	for (size_t i = 1; i < 3 && **at == ':'; i++) {
		(*at)++;
		if (!read_number(at, 59, &parts[i]))
			return false;
	}
	*out = sign * (parts[0] * 3600 + parts[1] * 60 + parts[2]) * SECOND;
	return true;
}

static bool read_turn(const char **at, struct turn *out)
{
	bool good;

	if (*(*at)++ != ',')
		return false;
	*out = (struct turn){.kind = TURN_DAY, .after = 7200 * SECOND};
	if (**at == 'M') {
		(*at)++;
		out->kind = TURN_MONTH;
		good = read_number(at, 12, &out->month) && *(*at)++ == '.' &&
		       read_number(at, 5, &out->week) && *(*at)++ == '.' &&
		       read_number(at, 6, &out->day) && out->month >= 1 && out->week >= 1;
	} else {
		out->kind = **at == 'J' ? TURN_JULIAN : TURN_DAY;
		*at += **at == 'J';
		good = read_number(at, 365, &out->day);
	}
	if (!good || **at != '/')
		return good;
	(*at)++;
	return read_clock(at, &out->after);
}

/* POSIX counts offsets westwards. */
static bool read_rule(const char *at, struct rule *out)
{
	int64_t west;

	*out = (struct rule){0};
	if (!*at)
		return true;
	if (!read_name(&at) || !read_clock(&at, &west))
		return false;
	out->there = true;
	out->standard = -west;
	if (!*at)
		return true;
	out->summer = true;
	if (!read_name(&at))
		return false;
	west -= 3600 * SECOND;
	if (*at != ',' && !read_clock(&at, &west))
		return false;
	out->daylight = -west;
	return read_turn(&at, &out->begin) && read_turn(&at, &out->end) && !*at;
}

static bool read_zone(
	struct arena *arena, const unsigned char *data, size_t length, struct zone *zone)
{
	struct counts counts;
	char text[128] = "";
	size_t skip;

	if (!read_counts(data, length, &counts) || data[4] < '2')
		return false;
	skip = HEADER + block_size(&counts, 4);
	if (skip > length || !read_counts(data + skip, length - skip, &counts))
		return false;
	data += skip + HEADER;
	length -= skip + HEADER;
	if (block_size(&counts, 8) > length || !read_times(arena, data, &counts, zone))
		return false;
	data += block_size(&counts, 8);
	length -= block_size(&counts, 8);
	if (length < 2 || length - 2 >= sizeof text || data[0] != '\n' || data[length - 1] != '\n')
		return false;
	memcpy(text, data + 1, length - 2);
	return read_rule(text, &zone->rule);
}

struct zone *zone_parse(
	struct arena *arena, const char *name, const char *data, size_t length, struct error *error)
{
	struct zone *zone = arena_alloc(arena, sizeof *zone);

	zone->name = arena_strdup(arena, name);
	if (length <= FILE_MOST && read_zone(arena, (const unsigned char *)data, length, zone))
		return zone;
	(void)error_set(error, ERROR_DATA, "not a time zone file (TZif, version 2 or later)");
	return NULL;
}

const char *zone_name(const struct zone *zone)
{
	return zone ? zone->name : "UTC";
}

static bool is_name(const char *name)
{
	if (!isalpha((unsigned char)*name) || strlen(name) > NAME_MOST || strstr(name, "//"))
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("/_+-", *name))
			return false;
	return true;
}

static const struct zone *read_file(
	struct arena *arena, const char *name, FILE *file, struct error *error)
{
	char *data = memory_new(FILE_MOST + 1, 1);
	size_t length = fread(data, 1, FILE_MOST + 1, file);
	const struct zone *zone = NULL;

	if (ferror(file))
		(void)error_set(error, ERROR_DATA, "cannot be read");
	else
		zone = zone_parse(arena, name, data, length, error);
	free(data);
	return zone;
}

bool zone_read(struct arena *arena, const char *folder, const char *name, const struct zone **out,
	struct error *error)
{
	char path[4096];
	FILE *file;

	*out = NULL;
	if (strcmp(name, "UTC") == 0)
		return true;
	if (!is_name(name))
		return error_set(error, ERROR_USAGE,
			"\"%s\" is not a time zone (use a name such as Europe/Berlin, or UTC)",
			name);
	snprintf(path, sizeof path, "%s/%s", folder ? folder : "/usr/share/zoneinfo", name);
	file = fopen(path, "re");
	if (!file && errno == ENOENT)
		return error_set(error, ERROR_USAGE,
			"no time zone \"%s\" (looked for %s; is the package tzdata installed?)",
			name, path);
	if (!file)
		return error_set(error, ERROR_DATA, "%s: %s", path, strerror(errno));
	*out = read_file(arena, name, file, error);
	fclose(file);
	return *out || error_prefix(error, "%s: ", path);
}

/* Local time */

/* When the switch is in that year, on a clock without daylight saving. The weekday of a month is
 * the week'th such one, 5 for the last. */
static int64_t turn_time(int64_t year, const struct turn *turn)
{
	bool month = turn->kind == TURN_MONTH;
	int64_t first, day = turn->day;

	if (!when_from_date((struct date){year, month ? turn->month : 1, 1}, &first))
		return WHEN_NEVER;
	if (month) {
		day = (turn->day - when_weekday(first) + 7) % 7 + 7 * (turn->week - 1);
		while (day >= when_month_days(year, turn->month))
			day -= 7;
	} else if (turn->kind == TURN_JULIAN) {
		day += (when_month_days(year, 2) == 29 && turn->day > 59) - 1;
	}
	return first + day * DAY + turn->after;
}

static int64_t rule_offset(const struct rule *rule, int64_t ms)
{
	int64_t year, begin, end;

	if (!rule->summer)
		return rule->standard;
	year = when_to_date(ms + rule->standard).year;
	begin = turn_time(year, &rule->begin);
	end = turn_time(year, &rule->end);
	if (begin == WHEN_NEVER || end == WHEN_NEVER)
		return rule->standard;
	begin -= rule->standard;
	end -= rule->daylight;
	bool summer = begin < end ? ms >= begin && ms < end : ms >= begin || ms < end;
	return summer ? rule->daylight : rule->standard;
}

int64_t zone_local(const struct zone *zone, int64_t ms)
{
	size_t low = 0, high = zone ? zone->count : 0;

	if (!zone)
		return ms;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (zone->times[middle] <= ms)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == zone->count && zone->rule.there)
		return ms + rule_offset(&zone->rule, ms);
	return ms + (low > 0 ? zone->offsets[low - 1] : zone->first);
}

int64_t zone_utc(const struct zone *zone, int64_t local)
{
	/* No clock differs by as much, nor is one changed twice within that time. */
	const int64_t around = 26 * 3600 * SECOND;
	int64_t before = local - (zone_local(zone, local - around) - (local - around));
	int64_t after = local - (zone_local(zone, local + around) - (local + around));

	if (zone_local(zone, before) != local && zone_local(zone, after) == local)
		return after;
	return before;
}
