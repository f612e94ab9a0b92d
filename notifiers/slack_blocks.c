/*
 * See slack_blocks.h.
 */
#include "notifiers/slack_blocks.h"

#include <string.h>

#include "agent/core/when.h"
#include "notifiers/slack_lines.h"
#include "notifiers/text.h"

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

bool slack_blocks_fit(const struct slack_blocks *blocks)
{
	return blocks->count <= SLACK_BLOCKS && blocks->text <= SLACK_BLOCKS_TEXT;
}

static void text_object(struct slack_blocks *blocks, const char *type, const struct buf *text)
{
	buf_printf(&blocks->json, "{\"type\":\"%s\",\"text\":", type);
	buf_json_string(&blocks->json, text->data, text->length);
	buf_char(&blocks->json, '}');
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

void slack_blocks_header(struct slack_blocks *blocks, struct buf *text)
{
	block_of_text(blocks, "header", "plain_text", text);
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
	char when[WHEN_TEXT];

	field_close(blocks);
	fields_close(blocks);
	block_open(blocks, "divider");
	buf_char(&blocks->json, '}');
	buf_printf(&text, "*%s*", when_format(time, when));
	slack_blocks_section(blocks, &text);
	buf_free(&text);
}

static bool same_field(const struct announcement *a, const struct announcement *b)
{
	return a->time == b->time && strcmp(a->test, b->test) == 0 && announcement_same_range(a, b);
}

void slack_blocks_changes(
	struct slack_blocks *blocks, const struct announcement *const *items, size_t count)
{
	const struct announcement *last = NULL;
	struct buf line = {0}, range = {0};

	for (size_t i = 0; i < count; i++) {
		const struct announcement *item = items[i];

		buf_clear(&line);
		slack_item_line(&line, item);
		if (last &&
			(!same_field(last, item) ||
				blocks->field.length + line.length + range.length > SLACK_FIELD)) {
			buf_append(&blocks->field, range.data, range.length);
			field_close(blocks);
		}
		if (!last || last->time != item->time)
			time_block(blocks, item->time);
		if (blocks->field.length == 0)
			slack_test_line(&blocks->field, item);
		buf_append(&blocks->field, line.data, line.length);
		buf_clear(&range);
		slack_range_line(&range, item);
		last = item;
	}
	buf_append(&blocks->field, range.data, range.length);
	field_close(blocks);
	fields_close(blocks);
	buf_free(&line);
	buf_free(&range);
}
