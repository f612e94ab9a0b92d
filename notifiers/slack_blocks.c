/*
 * The message is built as often as it takes: with as many changes as could fit, then, while a limit
 * is passed, with fewer of them, the least telling left out first. Rendering costs microseconds,
 * and counting what was really built is simpler than predicting it. Names are cut so short that a
 * field holds at least one line, and one change always fits.
 *
 * All text from outside passes through `escaped`, which leaves no way to write a mention or a link.
 */
#include "notifiers/slack_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/when.h"
#include "notifiers/text.h"

enum {
	TEST_CHARS = 100,
	METRIC_CHARS = 120,
	UNIT_CHARS = 24,
	COMMIT_CHARS = 48,
	NOTICE_CHARS = 500
};
enum { SHOWN_MOST = 150, FALLBACK_LINES = 5, METADATA_CHANGES = 50 };

#define TITLE "hunter-c has detected change points"

/* Blocks as JSON, and what they come to. */
struct blocks {
	struct buf json;
	struct buf field; /* the text of the field that is being written */
	size_t count, text, fields;
};

static void escaped(struct buf *out, const char *text, size_t limit)
{
	struct buf clean = {0};

	text_clean(&clean, text, limit);
	for (size_t i = 0; i < clean.length; i++)
		switch (clean.data[i]) {
		case '&': buf_text(out, "&amp;"); break;
		case '<': buf_text(out, "&lt;"); break;
		case '>': buf_text(out, "&gt;"); break;
		default: buf_char(out, clean.data[i]);
		}
	buf_free(&clean);
}

static void text_object(struct blocks *blocks, const char *type, const struct buf *text)
{
	buf_printf(&blocks->json, "{\"type\":\"%s\",\"text\":", type);
	buf_json_string(&blocks->json, text->data, text->length);
	buf_char(&blocks->json, '}');
	blocks->text += text->length;
}

static void block_open(struct blocks *blocks, const char *type)
{
	buf_printf(&blocks->json, "%s{\"type\":\"%s\"", blocks->count++ == 0 ? "" : ",", type);
}

static void block_of_text(
	struct blocks *blocks, const char *type, const char *text_type, struct buf *text)
{
	block_open(blocks, type);
	buf_text(&blocks->json, ",\"text\":");
	text_object(blocks, text_type, text);
	buf_char(&blocks->json, '}');
	buf_clear(text);
}

static void fields_close(struct blocks *blocks)
{
	if (blocks->fields > 0)
		buf_text(&blocks->json, "]}");
	blocks->fields = 0;
}

/* Adds the field that was written to the open section of fields, or to a new one. */
static void field_close(struct blocks *blocks)
{
	if (blocks->field.length == 0)
		return;
	if (blocks->fields == SLACK_FIELDS)
		fields_close(blocks);
	if (blocks->fields == 0) {
		block_open(blocks, "section");
		buf_text(&blocks->json, ",\"fields\":[");
	} else {
		buf_char(&blocks->json, ',');
	}
	blocks->fields++;
	text_object(blocks, "mrkdwn", &blocks->field);
	buf_clear(&blocks->field);
}

static void item_line(struct buf *out, const struct announcement *item)
{
	int verdict = announcement_verdict(item);

	buf_text(out, verdict > 0   ? "\n:red_circle: "
		      : verdict < 0 ? "\n:large_blue_circle: "
				    : "\n:white_circle: ");
	escaped(out, item->metric, METRIC_CHARS);
	buf_text(out, ": ");
	text_percent(out, &item->change);
	buf_text(out, "  ");
	text_level(out, item->change.mean_before);
	buf_text(out, " → ");
	text_level(out, item->change.mean_after);
	if (item->unit) {
		buf_char(out, ' ');
		escaped(out, item->unit, UNIT_CHARS);
	}
	buf_printf(out, " (p %.2g)", item->change.pvalue);
}

static void range_line(struct buf *out, const struct announcement *item)
{
	const char *before, *after;

	announcement_range(item, &before, &after);
	if (!before && !after)
		return;
	buf_text(out, "\n");
	escaped(out, before ? before : "?", COMMIT_CHARS);
	buf_text(out, " .. ");
	escaped(out, after ? after : "?", COMMIT_CHARS);
}

static void test_line(struct buf *out, const struct announcement *item)
{
	buf_char(out, '*');
	escaped(out, item->test, TEST_CHARS);
	buf_char(out, '*');
}

static void time_block(struct blocks *blocks, int64_t time)
{
	struct buf text = {0};
	char when[WHEN_TEXT];

	field_close(blocks);
	fields_close(blocks);
	block_open(blocks, "divider");
	buf_char(&blocks->json, '}');
	buf_printf(&text, "*%s*", when_format(time, when));
	block_of_text(blocks, "section", "mrkdwn", &text);
	buf_free(&text);
}

/* A time, under it a field for each test, in it a line for each metric and the commits at the end.
 */
static void changes_blocks(
	struct blocks *blocks, const struct announcement *const *items, size_t count)
{
	const struct announcement *last = NULL;
	struct buf line = {0}, range = {0};

	for (size_t i = 0; i < count; i++) {
		const struct announcement *item = items[i];
		bool same_test = last && last->time == item->time &&
				 strcmp(last->test, item->test) == 0 &&
				 announcement_same_range(last, item);

		buf_clear(&line);
		item_line(&line, item);
		if (last && (!same_test || blocks->field.length + line.length + range.length >
						   SLACK_FIELD)) {
			buf_append(&blocks->field, range.data, range.length);
			field_close(blocks);
		}
		if (!last || last->time != item->time)
			time_block(blocks, item->time);
		if (blocks->field.length == 0)
			test_line(&blocks->field, item);
		buf_append(&blocks->field, line.data, line.length);
		buf_clear(&range);
		range_line(&range, item);
		last = item;
	}
	if (range.length > 0)
		buf_append(&blocks->field, range.data, range.length);
	field_close(blocks);
	fields_close(blocks);
	buf_free(&line);
	buf_free(&range);
}

static void left_out(struct buf *out, size_t count)
{
	if (count > 0)
		buf_printf(out, "\n%zu change point%s left out here; the worst are shown", count,
			count == 1 ? " is" : "s are");
}

static void summary_blocks(struct blocks *blocks, const struct message *message, size_t shown)
{
	struct tally tally = message_tally(message);
	const struct announcement *worst = message_worst(message);
	struct buf text = {0};

	buf_text(&text, TITLE);
	block_of_text(blocks, "header", "plain_text", &text);
	text_tally(&text, &tally);
	if (message->count > 1) {
		buf_text(&text, "\nWorst: ");
		test_line(&text, worst);
		buf_char(&text, ' ');
		escaped(&text, worst->metric, METRIC_CHARS);
		buf_char(&text, ' ');
		text_percent(&text, &worst->change);
	}
	left_out(&text, message->count - shown);
	block_of_text(blocks, "section", "mrkdwn", &text);
	buf_free(&text);
}

static int compare_weight(const void *a, const void *b)
{
	const struct announcement *left = *(const struct announcement *const *)a;
	const struct announcement *right = *(const struct announcement *const *)b;
	int weight = announcement_compare_weight(left, right);

	return weight != 0 ? weight : (left > right) - (left < right);
}

static int compare_place(const void *a, const void *b)
{
	const struct announcement *left = *(const struct announcement *const *)a;
	const struct announcement *right = *(const struct announcement *const *)b;

	return (left > right) - (left < right);
}

/* The `count` weightiest come first, in the order of the message. */
static void select_shown(
	const struct message *message, const struct announcement **items, size_t count)
{
	for (size_t i = 0; i < message->count; i++)
		items[i] = &message->items[i];
	if (count == message->count)
		return;
	qsort(items, message->count, sizeof *items, compare_weight);
	qsort(items, count, sizeof *items, compare_place);
}

static void blocks_build(
	struct blocks *blocks, const struct message *message, const struct announcement **items)
{
	size_t shown = message->count < SHOWN_MOST ? message->count : SHOWN_MOST;

	for (;; shown -= shown / 8 + 1) {
		buf_clear(&blocks->json);
		blocks->count = blocks->text = 0;
		summary_blocks(blocks, message, shown);
		select_shown(message, items, shown);
		changes_blocks(blocks, items, shown);
		if (blocks->count <= SLACK_BLOCKS && blocks->text <= SLACK_BLOCKS_TEXT)
			return;
	}
}

/* What notifications and screen readers get: the tally and the worst, worst first. */
static void fallback_text(
	struct buf *out, const struct message *message, const struct announcement **items)
{
	struct tally tally = message_tally(message);
	struct buf line = {0};
	size_t shown = 0;

	buf_text(out, TITLE ": ");
	text_tally(out, &tally);
	qsort(items, message->count, sizeof *items, compare_weight);
	for (; shown < message->count && shown < FALLBACK_LINES; shown++) {
		buf_clear(&line);
		buf_char(&line, '\n');
		escaped(&line, items[shown]->test, TEST_CHARS);
		buf_char(&line, ' ');
		escaped(&line, items[shown]->metric, METRIC_CHARS);
		buf_char(&line, ' ');
		text_percent(&line, &items[shown]->change);
		if (out->length + line.length > SLACK_TEXT - 100)
			break;
		buf_append(out, line.data, line.length);
	}
	if (shown < message->count)
		buf_printf(out, "\nand %zu more", message->count - shown);
	buf_free(&line);
}

/* One section and its text, which is also what notifications show. */
static void notice_blocks(struct blocks *blocks, struct buf *text, const struct notice *notice)
{
	struct buf section = {0};
	char when[WHEN_TEXT];

	escaped(text, notice->subject, TEST_CHARS);
	buf_text(text, ": ");
	escaped(text, notice->text, NOTICE_CHARS);
	buf_text(&section, notice->recovered ? ":large_green_circle: *" : ":warning: *");
	escaped(&section, notice->subject, TEST_CHARS);
	buf_printf(&section, "*  %s\n", when_format(notice->time, when));
	escaped(&section, notice->text, NOTICE_CHARS);
	block_of_text(blocks, "section", "mrkdwn", &section);
	buf_free(&section);
}

/* The delivery's key and the changes' ids, so that a message can be found again by them. */
static void metadata(struct buf *out, const struct message *message)
{
	size_t count = message->count < METADATA_CHANGES ? message->count : METADATA_CHANGES;

	buf_printf(out, ",\"metadata\":{\"event_type\":\"%s\",\"event_payload\":{\"key\":",
		message->kind == MESSAGE_NOTICE ? "hunter_c_notice" : "hunter_c_changes");
	buf_json_text(out, message->key);
	buf_text(out, ",\"changes\":[");
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%lld", i == 0 ? "" : ",", (long long)message->items[i].id);
	buf_text(out, "]}}");
}

void slack_render(const struct message *message, const char *channel, struct buf *payload)
{
	const struct announcement **items = memory_new(message->count, sizeof *items);
	struct blocks blocks = {0};
	struct buf text = {0};

	if (message->kind == MESSAGE_NOTICE) {
		notice_blocks(&blocks, &text, message->notice);
	} else {
		blocks_build(&blocks, message, items);
		fallback_text(&text, message, items);
	}
	buf_char(payload, '{');
	if (channel) {
		buf_text(payload, "\"channel\":");
		buf_json_text(payload, channel);
		buf_char(payload, ',');
	}
	buf_text(payload, "\"text\":");
	buf_json_string(payload, text.data, text.length);
	buf_text(payload, ",\"unfurl_links\":false,\"unfurl_media\":false,\"blocks\":[");
	buf_append(payload, blocks.json.data, blocks.json.length);
	buf_char(payload, ']');
	if (channel)
		metadata(payload, message);
	buf_char(payload, '}');
	buf_free(&text);
	buf_free(&blocks.json);
	buf_free(&blocks.field);
	free(items);
}
