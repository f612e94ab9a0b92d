/*
 * Counts the bytes of each block while it is written, and starts the next one before a limit is
 * reached.
 */
#include "notifiers/slack/blocks.h"

#include <string.h>

#include "notifiers/slack/lines.h"

void slack_blocks_free(struct slack_blocks *blocks)
{
	buf_free(&blocks->json);
	buf_free(&blocks->field);
}

void slack_blocks_clear(struct slack_blocks *blocks)
{
	buf_clear(&blocks->json);
	buf_clear(&blocks->field);
	blocks->count = blocks->text = blocks->fields = 0;
}

/* Verbatim, or Slack makes links and mentions of what looks like one in a name. */
static void text_object(struct slack_blocks *blocks, const char *type, const struct buf *text)
{
	buf_printf(&blocks->json, "{\"type\":\"%s\",\"text\":", type);
	buf_json_string(&blocks->json, text->data, text->length);
	buf_text(&blocks->json, strcmp(type, "mrkdwn") == 0 ? ",\"verbatim\":true}" : "}");
	blocks->text += text->length;
}

static void block_open(struct slack_blocks *blocks, const char *type)
{
	buf_printf(&blocks->json, "%s{\"type\":\"%s\"", blocks->count++ == 0 ? "" : ",", type);
}

static void block_of_text(
	struct slack_blocks *blocks, const char *type, const char *text_type, struct buf *text)
{
	block_open(blocks, type);
	buf_text(&blocks->json, ",\"text\":");
	text_object(blocks, text_type, text);
	buf_char(&blocks->json, '}');
	buf_clear(text);
}

void slack_blocks_section(struct slack_blocks *blocks, struct buf *text)
{
	block_of_text(blocks, "section", "mrkdwn", text);
}

static void fields_close(struct slack_blocks *blocks)
{
	if (blocks->fields > 0)
		buf_text(&blocks->json, "]}");
	blocks->fields = 0;
}

/* Adds the field that was written to the open section of fields, or to a new one. */
static void field_close(struct slack_blocks *blocks)
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

static void time_block(struct slack_blocks *blocks, int64_t time)
{
	struct buf text = {0};

	field_close(blocks);
	fields_close(blocks);
	block_open(blocks, "divider");
	buf_char(&blocks->json, '}');
	slack_date(&text, time, false);
	slack_blocks_section(blocks, &text);
	buf_free(&text);
}

static bool same_field(const struct announcement *a, const struct announcement *b)
{
	return a->time == b->time && strcmp(a->test, b->test) == 0 && announcement_same_range(a, b);
}

/* Whether one more line surely fits, with all it may bring along: the test's name, the commits, the
 * time, and a section for what is being written and one for itself. */
static bool has_room(const struct slack_blocks *blocks, size_t line, size_t ranges, bool new_time)
{
	size_t text =
		blocks->text + blocks->field.length + line + ranges + SLACK_NAME + SLACK_COMMON + 3;

	return blocks->count + (new_time ? 4 : 2) <= SLACK_BLOCKS &&
	       text + (new_time ? SLACK_DATE : 0) <= SLACK_BLOCKS_TEXT;
}

/* The change that is being added, and what ends the field of the one before it: its commits, and
 * the pages about those from `first` on. */
struct lines {
	struct buf line, range, last_range, help, last_help;
	size_t first;
};

/* Ends the field, with the pages if they fit. */
static void finish_field(struct slack_blocks *blocks, struct lines *lines)
{
	buf_append(&blocks->field, lines->last_range.data, lines->last_range.length);
	if (blocks->field.length + lines->last_help.length <= SLACK_FIELD)
		buf_append(&blocks->field, lines->last_help.data, lines->last_help.length);
	field_close(blocks);
}

static void swap(struct buf *a, struct buf *b)
{
	struct buf other = *a;

	*a = *b;
	*b = other;
}

/* Whether the item goes into the field of the one before it, which would not become too long. */
static bool continues(const struct slack_blocks *blocks, const struct announcement *last,
	const struct announcement *item, const struct lines *lines)
{
	return last && same_field(last, item) &&
	       blocks->field.length + lines->line.length + lines->range.length <= SLACK_FIELD;
}

static void add_change(struct slack_blocks *blocks, const struct announcement *last,
	const struct announcement *item, struct lines *lines, bool continued)
{
	if (last && !continued)
		finish_field(blocks, lines);
	if (!last || last->time != item->time)
		time_block(blocks, item->time);
	if (blocks->field.length == 0)
		slack_test_line(&blocks->field, item);
	buf_append(&blocks->field, lines->line.data, lines->line.length);
	swap(&lines->last_range, &lines->range);
	swap(&lines->last_help, &lines->help);
}

size_t slack_blocks_changes(
	struct slack_blocks *blocks, const struct announcement *const *items, size_t count)
{
	const struct announcement *last = NULL;
	struct lines lines = {0};
	size_t added = 0;

	for (; added < count; added++) {
		const struct announcement *item = items[added];
		bool new_time = !last || last->time != item->time, continued;

		buf_clear(&lines.line);
		buf_clear(&lines.range);
		buf_clear(&lines.help);
		slack_item_line(&lines.line, item);
		slack_range_line(&lines.range, item);
		continued = continues(blocks, last, item, &lines);
		lines.first = continued ? lines.first : added;
		slack_help_lines(&lines.help, items + lines.first, added + 1 - lines.first);
		if (!has_room(blocks, lines.line.length,
			    lines.last_range.length + lines.range.length + lines.last_help.length +
				    lines.help.length,
			    new_time))
			break;
		add_change(blocks, last, item, &lines, continued);
		last = item;
	}
	finish_field(blocks, &lines);
	fields_close(blocks);
	buf_free(&lines.line);
	buf_free(&lines.range);
	buf_free(&lines.last_range);
	buf_free(&lines.help);
	buf_free(&lines.last_help);
	return added;
}
