/*
 * A change counts as announced if its history has the delivery of a message. Announced and later
 * withdrawn means a false alarm, or a change that later points contradicted.
 */
#include "agent/commands/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "agent/report/table.h"

/* When it first happened, ms; WHEN_NEVER: it did not. */
static int64_t happened(const struct change_record *record, enum event_kind kind)
{
	for (size_t i = 0; i < record->event_count; i++)
		if (record->events[i].kind == kind)
			return record->events[i].time;
	return WHEN_NEVER;
}

/* When it last happened, if it is still the state. */
static int64_t ended(
	const struct change_record *record, enum change_state state, enum event_kind kind)
{
	int64_t time = WHEN_NEVER;

	for (size_t i = 0; i < record->event_count; i++)
		if (record->events[i].kind == kind)
			time = record->events[i].time;
	return record->state == state ? time : WHEN_NEVER;
}

static int64_t withdrawn(const struct change_record *record)
{
	return ended(record, CHANGE_WITHDRAWN, EVENT_WITHDRAWN);
}

static int64_t recovered(const struct change_record *record)
{
	int64_t time = ended(record, CHANGE_RECOVERED, EVENT_RECOVERED);

	return record->state == CHANGE_RECOVERED && time == WHEN_NEVER ? record->first_seen : time;
}

/* The changes of one test, or of all. */
struct replay_tally {
	const char *test;
	size_t told, withdrawn, recovered;
};

static void add(struct replay_tally *tally, const struct change_record *record)
{
	if (happened(record, EVENT_ANNOUNCED) == WHEN_NEVER)
		return;
	tally->told++;
	tally->withdrawn += withdrawn(record) != WHEN_NEVER;
	tally->recovered += recovered(record) != WHEN_NEVER;
}

static int by_test(const void *a, const void *b)
{
	const struct change_record *const *left = a, *const *right = b;

	return strcmp((*left)->item.test, (*right)->item.test);
}

/* A tally per test with changes, by name; the caller frees them. */
static struct replay_tally *tallies(const struct replay_report *report, size_t *count)
{
	struct replay_tally *tallies = memory_new(report->record_count, sizeof *tallies);
	const struct change_record **records = memory_new(report->record_count, sizeof *records);

	for (size_t i = 0; i < report->record_count; i++)
		records[i] = report->records[i];
	qsort(records, report->record_count, sizeof *records, by_test);
	*count = 0;
	for (size_t i = 0; i < report->record_count; i++) {
		const char *test = records[i]->item.test;

		if (*count == 0 || strcmp(tallies[*count - 1].test, test) != 0)
			tallies[(*count)++] = (struct replay_tally){.test = test};
		add(&tallies[*count - 1], records[i]);
	}
	free(records);
	return tallies;
}

static void print_tests(const struct replay_report *report, FILE *out)
{
	size_t count;
	struct replay_tally *tests = tallies(report, &count);

	for (size_t i = 0; i < count; i++) {
		if (tests[i].told == 0)
			continue;
		fputs("  ", out);
		text_print(tests[i].test, out);
		fprintf(out, ": %zu announced, %zu withdrawn later", tests[i].told,
			tests[i].withdrawn);
		if (tests[i].recovered > 0)
			fprintf(out, ", %zu recovered", tests[i].recovered);
		fputc('\n', out);
	}
	free(tests);
}

void replay_print(const struct replay_report *report, FILE *out)
{
	struct replay_tally all = {0};
	char from[WHEN_TEXT], until[WHEN_TEXT];

	for (size_t i = 0; i < report->record_count; i++)
		add(&all, report->records[i]);
	fprintf(out, "%s %s .. %s: %zu test%s, %zu run%s\n",
		report->interrupted ? "interrupted, replayed" : "replayed",
		when_format(report->from, from), when_format(report->until, until), report->tests,
		cli_plural(report->tests), report->runs, cli_plural(report->runs));
	fprintf(out, "%zu message%s announced %zu change%s, %zu of them withdrawn later",
		report->messages, cli_plural(report->messages), all.told, cli_plural(all.told),
		all.withdrawn);
	if (all.recovered > 0)
		fprintf(out, " and %zu recovered", all.recovered);
	fputs("; ", out);
	fprintf(out, "%zu notice%s\n", report->notice_count, cli_plural(report->notice_count));
	print_tests(report, out);
}

static void json_change(struct buf *out, const struct change_record *record)
{
	const struct announcement *item = &record->item;

	json_open(out, "test", item->test);
	json_put_time(out, "time", item->time);
	json_put_time(out, "found", record->first_seen);
	json_put_time(out, "told", happened(record, EVENT_ANNOUNCED));
	json_put_time(out, "withdrawn", withdrawn(record));
	json_put_time(out, "recovered", recovered(record));
	json_put_id(out, "incident", record->item.incident);
	record_put_found(out, item);
	announcement_put_suspects(out, &item->suspects, item->time);
	announcement_put_attributes(out, item);
	buf_char(out, '}');
}

static void json_notice(struct buf *out, const struct replay_notice *notice)
{
	json_open(out, "subject", notice->subject);
	json_put_text(out, "text", notice->text);
	json_put_time(out, "told", notice->told);
	json_put_time(out, "since", notice->since);
	json_put_bool(out, "recovered", notice->recovered);
	buf_char(out, '}');
}

static void json_tests(struct buf *out, const struct replay_report *report)
{
	size_t count;
	struct replay_tally *tests = tallies(report, &count);

	buf_text(out, ", \"by_test\": [");
	for (size_t i = 0; i < count; i++) {
		json_open(out, "test", tests[i].test);
		buf_printf(out, ", \"told\": %zu, \"withdrawn\": %zu, \"recovered\": %zu}",
			tests[i].told, tests[i].withdrawn, tests[i].recovered);
	}
	buf_char(out, ']');
	free(tests);
}

void replay_print_json(const struct replay_report *report, FILE *out)
{
	struct buf text = {0};
	char time[WHEN_TEXT];

	json_open(&text, "from", when_format_iso(report->from, time));
	json_put_time(&text, "until", report->until);
	json_put_bool(&text, "interrupted", report->interrupted);
	buf_printf(&text, ", \"tests\": %zu, \"runs\": %zu, \"messages\": %zu", report->tests,
		report->runs, report->messages);
	json_tests(&text, report);
	buf_text(&text, ",\n\"changes\": [");
	for (size_t i = 0; i < report->record_count; i++) {
		buf_text(&text, i ? ",\n" : "\n");
		json_change(&text, report->records[i]);
		fwrite(text.data, 1, text.length, out);
		buf_clear(&text); /* there may be very many */
	}
	buf_text(&text, "],\n\"notices\": [");
	for (const struct replay_notice *at = report->notices; at; at = at->next)
		json_notice(&text, at);
	buf_text(&text, "]}\n");
	text_flush(&text, out);
}
