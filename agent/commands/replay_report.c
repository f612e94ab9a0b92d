/*
 * A change counts as announced if its history has the delivery of a message. Announced and later
 * withdrawn means a false alarm, or a change that later points contradicted.
 */
#include "agent/commands/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "agent/report/table.h"

/* When it first, or last, happened, ms; WHEN_NEVER: it did not. */
static int64_t happened(const struct change_record *record, enum event_kind kind, bool last)
{
	int64_t time = WHEN_NEVER;

	for (size_t i = 0; i < record->event_count && (last || time == WHEN_NEVER); i++)
		if (record->events[i].kind == kind)
			time = record->events[i].time;
	return time;
}

/* When it came to be in that state, if it still is. */
static int64_t withdrawn(const struct change_record *record)
{
	return record->state == CHANGE_WITHDRAWN ? happened(record, EVENT_WITHDRAWN, true)
						 : WHEN_NEVER;
}

static int64_t recovered(const struct change_record *record)
{
	int64_t time = happened(record, EVENT_RECOVERED, true);

	if (record->state != CHANGE_RECOVERED)
		return WHEN_NEVER;
	return time == WHEN_NEVER ? record->first_seen : time;
}

/* The changes of one test, or of all. */
struct replay_tally {
	const char *test;
	size_t told, withdrawn, recovered;
};

static void add(struct replay_tally *tally, const struct change_record *record)
{
	if (happened(record, EVENT_ANNOUNCED, false) == WHEN_NEVER)
		return;
	tally->told++;
	tally->withdrawn += withdrawn(record) != WHEN_NEVER;
	tally->recovered += recovered(record) != WHEN_NEVER;
}

static int by_test(const void *a, const void *b)
{
	const struct replay_tally *left = a, *right = b;

	return strcmp(left->test, right->test);
}

/* A tally per test with changes, by name, and that of all tests. */
static struct replay_tally *tallies(const struct replay_report *report, struct arena *arena,
	size_t *count, struct replay_tally *all)
{
	const struct record_rows *records = &report->records;
	struct replay_tally *tallies = arena_array(arena, records->count, sizeof *tallies);
	struct dict tests = {.arena = arena};

	*all = (struct replay_tally){0};
	*count = 0;
	for (size_t i = 0; i < records->count; i++) {
		const char *test = records->items[i].item.test;
		const void **place = dict_place(&tests, test);

		if (!*place) {
			tallies[*count].test = test;
			*place = (const void *)++*count;
		}
		add(&tallies[(size_t)*place - 1], &records->items[i]);
		add(all, &records->items[i]);
	}
	qsort(tallies, *count, sizeof *tallies, by_test);
	return tallies;
}

void replay_print(const struct replay_report *report, FILE *out)
{
	struct arena *arena = arena_new();
	struct replay_tally all, *tests;
	char from[WHEN_TEXT], until[WHEN_TEXT];
	size_t count;

	tests = tallies(report, arena, &count, &all);
	fprintf(out, "%s %s .. %s: %zu test%s, %zu run%s\n",
		report->interrupted ? "interrupted, replayed" : "replayed",
		when_format(report->from, from), when_format(report->until, until), report->tests,
		cli_plural(report->tests), report->runs, cli_plural(report->runs));
	fprintf(out, "%zu message%s announced %zu change%s, %zu of them withdrawn later",
		report->messages, cli_plural(report->messages), all.told, cli_plural(all.told),
		all.withdrawn);
	if (all.recovered > 0)
		fprintf(out, " and %zu recovered", all.recovered);
	fprintf(out, "; %zu notice%s\n", report->notice_count, cli_plural(report->notice_count));
	for (size_t i = 0; i < count; i++) {
		if (tests[i].told == 0)
			continue;
		text_line(out, "  %s: %zu announced, %zu withdrawn later%s", tests[i].test,
			tests[i].told, tests[i].withdrawn,
			tests[i].recovered > 0
				? arena_printf(arena, ", %zu recovered", tests[i].recovered)
				: "");
	}
	arena_free(arena);
}

static void json_change(struct buf *out, const struct change_record *record)
{
	const struct announcement *item = &record->item;

	json_put(out,
		"{test: %s, time: %jd time, found: %jd time, told: %jd time, withdrawn: %jd time,"
		" recovered: %jd time, incident: %jd id",
		item->test, item->time, record->first_seen,
		happened(record, EVENT_ANNOUNCED, false), withdrawn(record), recovered(record),
		record->item.incident);
	record_put_found(out, item);
	announcement_put_suspects(out, &item->suspects, item->time);
	announcement_put_attributes(out, item);
	buf_char(out, '}');
}

void replay_print_json(const struct replay_report *report, FILE *out)
{
	struct arena *arena = arena_new();
	struct replay_tally all, *tests;
	struct buf text = {0};
	size_t count;

	tests = tallies(report, arena, &count, &all);
	json_put(&text,
		"{from: %jd time, until: %jd time, interrupted: %d bool, tests: %zu, runs: %zu,"
		" messages: %zu, by_test: [",
		report->from, report->until, report->interrupted, report->tests, report->runs,
		report->messages);
	for (size_t i = 0; i < count; i++)
		json_put(&text, "\n{test: %s, told: %zu, withdrawn: %zu, recovered: %zu}",
			tests[i].test, tests[i].told, tests[i].withdrawn, tests[i].recovered);
	buf_text(&text, "],\n\"changes\": [");
	for (size_t i = report->records.count; i > 0; i--) {
		buf_text(&text, i < report->records.count ? ",\n" : "\n");
		json_change(&text, &report->records.items[i - 1]);
		fwrite(text.data, 1, text.length, out);
		buf_clear(&text); /* there may be very many */
	}
	buf_text(&text, "],\n\"notices\": [");
	for (const struct replay_notice *at = report->notices; at; at = at->next)
		json_put(&text,
			"\n{subject: %s, text: %s, told: %jd time, since: %jd time, recovered: %d "
			"bool}",
			at->subject, at->text, at->told, at->since, at->recovered);
	buf_text(&text, "]}\n");
	text_flush(&text, out);
	arena_free(arena);
}
