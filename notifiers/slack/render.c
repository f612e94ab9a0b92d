/*
 * A post is filled until the next change might not fit. Which changes are shown depends on their
 * weight; within a post they are ordered by time and test, worst first.
 */
#include "notifiers/slack/render.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "notifiers/digest.h"
#include "notifiers/http_json.h"
#include "notifiers/slack/follow_up.h"
#include "notifiers/slack/lines.h"

/*
 * Writes blocks of Slack's Block Kit within Slack's limits: counts the bytes of each block and
 * starts the next one before a limit is reached.
 */

/* Bytes, never fewer than the characters that Slack counts. */
enum {
	SLACK_SECTION = 3000,
	SLACK_FIELDS = 10,
	SLACK_FIELD = 2000,
	SLACK_TEXT = 4000,
};

/* Blocks as JSON, and their size. Zeroed: none. */
struct slack_blocks {
	struct buf json;
	struct buf field; /* text of the current field */
	size_t count, text, fields;
	bool first_look; /* fields have their times */
};

/* Verbatim, or Slack would turn parts of names into links and mentions. */
static void text_object(struct slack_blocks *blocks, struct buf *text)
{
	buf_text(&blocks->json, "{\"type\":\"mrkdwn\",\"text\":");
	buf_json_string(&blocks->json, text->data, text->length);
	buf_text(&blocks->json, ",\"verbatim\":true}");
	blocks->text += text->length;
	buf_clear(text);
}

static void block_open(struct slack_blocks *blocks, const char *type)
{
	buf_printf(&blocks->json, "%s{\"type\":\"%s\"", blocks->count++ == 0 ? "" : ",", type);
}

/* Adds the text as a section and empties the buffer. */
static void slack_blocks_section(struct slack_blocks *blocks, struct buf *text)
{
	block_open(blocks, "section");
	buf_text(&blocks->json, ",\"text\":");
	text_object(blocks, text);
	buf_char(&blocks->json, '}');
}

/* The change being added, and the end of the previous field: its commits, and the pages about its
 * changes. */
struct lines {
	struct buf line, range, last_range, help, last_help;
};

static void fields_close(struct slack_blocks *blocks)
{
	if (blocks->fields > 0)
		buf_text(&blocks->json, "]}");
	blocks->fields = 0;
}

/* Ends the current field: its range, and the pages if they fit. Adds it to the open section of
 * fields, or to a new one. */
static void field_close(struct slack_blocks *blocks, const struct lines *lines)
{
	struct buf *field = &blocks->field;

	buf_append(field, lines->last_range.data, lines->last_range.length);
	if (field->length + lines->last_help.length <= SLACK_FIELD)
		buf_append(field, lines->last_help.data, lines->last_help.length);
	if (field->length == 0)
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
	text_object(blocks, field);
}

/* The change goes into the current field, or a new one, below its time. */
static void add_change(struct slack_blocks *blocks, const struct announcement *item,
	struct lines *lines, bool new_time)
{
	struct buf *field = &blocks->field, text = {0};
	struct lines before = *lines;

	if (!blocks->first_look && new_time) {
		fields_close(blocks);
		block_open(blocks, "divider");
		buf_char(&blocks->json, '}');
		slack_date(&text, item->time, TEXT_MINUTE);
		slack_blocks_section(blocks, &text);
		buf_free(&text);
	}
	if (field->length == 0) {
		slack_test_line(field, item);
		if (blocks->first_look) {
			buf_text(field, " since ");
			slack_date(field, item->time, TEXT_MINUTE);
		}
	}
	buf_append(field, lines->line.data, lines->line.length);
	lines->last_range = before.range;
	lines->last_help = before.help;
	lines->range = before.last_range;
	lines->help = before.last_help;
}

/* Whether one more line certainly fits, with the test's name, the commits, the time, a section for
 * the current field, one for itself and one for the triage. */
static bool has_room(const struct slack_blocks *blocks, size_t line, size_t ranges, bool new_time)
{
	size_t text =
		blocks->text + blocks->field.length + line + ranges + SLACK_NAME + SLACK_COMMON + 3;

	return blocks->count + (new_time ? 4 : 2) + 1 <= SLACK_POST_BLOCKS &&
	       text + (new_time ? SLACK_DATE : 0) <= SLACK_POST_TEXT;
}

/*
 * Writes a time, below it a field per test with a line per metric and the commits at the end.
 * Returns how many changes fit Slack's limits, at least one after a section.
 */
static size_t slack_blocks_changes(
	struct slack_blocks *blocks, const struct announcement *const *items, size_t count)
{
	const struct announcement *last = NULL;
	struct lines lines = {0};
	size_t added = 0, first = 0;

	for (; added < count; added++) {
		const struct announcement *item = items[added];
		bool same_time = last && last->time == item->time, continued;

		buf_clear(&lines.line);
		buf_clear(&lines.range);
		buf_clear(&lines.help);
		slack_item_line(&lines.line, item);
		slack_range_line(&lines.range, item);
		continued = same_time && strcmp(last->test, item->test) == 0 &&
			    announcement_same_range(last, item) &&
			    blocks->field.length + lines.line.length + lines.range.length <=
				    SLACK_FIELD;
		first = continued ? first : added;
		slack_help_lines(&lines.help, items + first, added + 1 - first, PAGES);
		if (!has_room(blocks, lines.line.length,
			    lines.last_range.length + lines.range.length + lines.last_help.length +
				    lines.help.length,
			    blocks->first_look || !same_time))
			break;
		if (last && !continued)
			field_close(blocks, &lines);
		add_change(blocks, item, &lines, !same_time);
		last = item;
	}
	field_close(blocks, &lines);
	fields_close(blocks);
	buf_free(&lines.line);
	buf_free(&lines.range);
	buf_free(&lines.last_range);
	buf_free(&lines.help);
	buf_free(&lines.last_help);
	return added;
}

/*
 * Slack's chart of the points around a change: a line of the measured values and one of the levels.
 *
 * A block of type data_visualization takes at most 20 categories, which name the points, and a
 * value for each in every series; it does not know times. So it gets the nearest points of the
 * excerpt as they are: none is averaged away.
 */

/* Slack's, in characters, which are never more than bytes. */
enum { CHART_TITLE = 50, AXIS = 50, LABEL = 20, POINTS = 20 };

enum { NEAR = POINTS / 2, LEAST = 4, DAY = 86400000 };

struct chart {
	const struct announcement *item;
	const int64_t *times;
	const double *values;
	size_t n, words;
	char labels[POINTS][LABEL + 1];
};

/* The nearest points to either side; more of one where there are fewer of the other. */
static bool choose_points(struct chart *chart, const struct excerpt *excerpt)
{
	size_t before = 0, after, from;

	while (before < excerpt->n && excerpt->times[before] < chart->item->time)
		before++;
	after = excerpt->n - before;
	if (before == 0 || after == 0 || excerpt->n < LEAST)
		return false;
	from = before > NEAR ? before - NEAR : 0;
	if (after < NEAR && before > POINTS - after)
		from = before - (POINTS - after);
	else if (after < NEAR)
		from = 0;
	chart->times = excerpt->times + from;
	chart->values = excerpt->values + from;
	chart->n = excerpt->n - from < POINTS ? excerpt->n - from : POINTS;
	return true;
}

/* A part of "2026-03-01 06:00:00". */
struct form {
	int from, length;
};

/* False if two points would have the same. */
static bool write_labels(struct chart *chart, const struct form *form)
{
	char when[WHEN_TEXT];

	for (size_t i = 0; i < chart->n; i++) {
		snprintf(chart->labels[i], sizeof chart->labels[i], "%.*s", form->length,
			when_format(chart->times[i], when) + form->from);
		for (size_t k = 0; k < i; k++)
			if (strcmp(chart->labels[i], chart->labels[k]) == 0)
				return false;
	}
	return true;
}

/* The shortest that name each point once: days, times of a day, or both, and then more of them. */
static void set_labels(struct chart *chart)
{
	static const struct form forms[] = {{0, 10}, {11, 5}, {5, 11}, {0, 16}, {5, 14}, {0, 19}};
	bool days = true, one_day = chart->times[chart->n - 1] - chart->times[0] < DAY;
	size_t first = one_day ? 1 : 2;

	for (size_t i = 0; i < chart->n; i++)
		days &= chart->times[i] % DAY == 0;
	for (size_t i = days ? 0 : first; i < sizeof forms / sizeof *forms; i++)
		if (write_labels(chart, &forms[i]))
			return;
	for (size_t i = 0; i < chart->n; i++)
		snprintf(chart->labels[i], sizeof chart->labels[i], "%zu", i + 1);
}

static void put_words(struct chart *chart, struct buf *out, const char *words, size_t length)
{
	buf_json_string(out, words, length);
	chart->words += length;
}

/* Cleaned and cut to `most` bytes, including the text after it. */
static void put_fitting(
	struct chart *chart, struct buf *out, const char *words, const char *end, size_t most)
{
	static const char cut[] = "…";
	struct buf clean = {0};
	size_t room = most - strlen(end);

	buf_clean(&clean, words, most);
	if (clean.length > room) {
		clean.length = utf8_cut(clean.data, room - strlen(cut));
		buf_text(&clean, cut);
	}
	buf_text(&clean, end);
	put_words(chart, out, clean.data ? clean.data : "", clean.length);
	buf_free(&clean);
}

/* "db.read p99 +24%" */
static void put_title(struct chart *chart, struct buf *out)
{
	struct buf name = {0}, size = {0};

	buf_printf(&name, "%.100s %.100s", chart->item->test, chart->item->metric);
	buf_char(&size, ' ');
	text_percent(&size, &chart->item->change);
	put_fitting(chart, out, name.data, size.data, CHART_TITLE);
	buf_free(&name);
	buf_free(&size);
}

/* The level at that time; of a trend on its way. */
static double level_at(const struct announcement *item, int64_t time)
{
	const struct change *change = &item->change;
	double way = change->level_after - change->level_before;

	if (change->kind != CHANGE_TREND || item->place_to <= item->place_from)
		return time < item->time ? change->level_before : change->level_after;
	if (time <= item->place_from)
		return change->level_before;
	if (time >= item->place_to)
		return change->level_after;
	return change->level_before + way * (double)(time - item->place_from) /
					      (double)(item->place_to - item->place_from);
}

static void put_series(struct chart *chart, struct buf *out, const char *name, bool levels)
{
	buf_text(out, "{\"name\":");
	put_words(chart, out, name, strlen(name));
	buf_text(out, ",\"data\":[");
	for (size_t i = 0; i < chart->n; i++) {
		buf_text(out, i > 0 ? ",{\"label\":" : "{\"label\":");
		put_words(chart, out, chart->labels[i], strlen(chart->labels[i]));
		buf_text(out, ",\"value\":");
		buf_json_number(
			out, levels ? level_at(chart->item, chart->times[i]) : chart->values[i]);
		buf_char(out, '}');
	}
	buf_text(out, "]}");
}

static void put_axes(struct chart *chart, struct buf *out)
{
	static const char zone[] = "UTC";

	buf_text(out, "\"axis_config\":{\"categories\":[");
	for (size_t i = 0; i < chart->n; i++) {
		buf_text(out, i > 0 ? "," : "");
		put_words(chart, out, chart->labels[i], strlen(chart->labels[i]));
	}
	buf_text(out, "],\"x_label\":");
	put_words(chart, out, zone, strlen(zone));
	if (chart->item->unit && *chart->item->unit) {
		buf_text(out, ",\"y_label\":");
		put_fitting(chart, out, chart->item->unit, "", AXIS);
	}
	buf_char(out, '}');
}

/* Appends the block, a JSON object, and returns the bytes of its words; 0 without a block: too few
 * points are known. */
static size_t put_chart(struct buf *out, const struct announcement *item)
{
	struct arena *scratch = arena_new();
	struct chart chart = {.item = item};
	struct excerpt excerpt;

	if (excerpt_unpack(scratch, item->excerpt, &excerpt) && choose_points(&chart, &excerpt)) {
		set_labels(&chart);
		buf_text(out, "{\"type\":\"data_visualization\",\"title\":");
		put_title(&chart, out);
		buf_text(out, ",\"chart\":{\"type\":\"line\",\"series\":[");
		put_series(&chart, out, "measured", false);
		if (isfinite(item->change.level_before) && isfinite(item->change.level_after)) {
			buf_char(out, ',');
			put_series(&chart, out, "level", true);
		}
		buf_text(out, "],");
		put_axes(&chart, out);
		buf_text(out, "}}");
	}
	arena_free(scratch);
	return chart.words;
}

/* REST_MOST: bytes reserved for the line of what is left out, whose numbers are known last. */
enum {
	REST_MOST = 200,
	POST_ITEMS = 150,
	WORST_ITEMS = 20,
	FALLBACK_LINES = 5,
	METADATA_CHANGES = 50,
	CHARTS_MOST = 2 /* Slack limits them, too */
};

/* A post being built. */
struct post {
	const struct announcement *const *items;
	size_t count, number, of; /* number: from 0 on */
};

struct rendering {
	const struct message *message;
	struct digest digest;
	const char *channel;

	const struct announcement **by_weight; /* all, worst first */
	const struct announcement **items;     /* the shown ones, by post */
	struct post posts[SLACK_POSTS];
	size_t post_count, shown;
	bool planned;      /* the distribution over posts is final */
	struct buf charts; /* blocks, with commas, of the first post */
	size_t chart_count, chart_words;

	struct slack_blocks blocks;
	struct buf *payload;
};

/* The silence, what this continues, the headline, and the rest that the first post leaves out. */
static void head_blocks(struct rendering *rendering)
{
	const struct message *message = rendering->message;
	size_t first = digest_changes(rendering->by_weight, rendering->posts[0].count);
	size_t shown = digest_changes(rendering->by_weight, rendering->shown);
	size_t thread = shown - first, left = message->count - shown;
	struct buf text = {0}, range = {0};

	text_summary(&text, message, &slack_style);
	buf_text(&text, message->summary ? "\n" : "");
	if (message->kind == MESSAGE_UPDATED && !message->environment) {
		buf_text(&text, "More change points of ");
		slack_date(&text, message->more_of->time, TEXT_MINUTE);
		if (text_range(&range, message->more_of, &slack_style))
			buf_printf(&text, " (%s)", range.data);
		buf_free(&range);
		buf_text(&text, ": ");
	}
	text_headline(&text, message, &slack_style, "*");
	if (thread + left > 0)
		buf_printf(&text, "\nThe %zu worst are shown", first);
	if (thread > 0)
		buf_printf(&text, "; %zu more are in the thread", thread);
	if (left > 0)
		buf_printf(&text, "; %zu %s left out, `hunter-c changes` lists them", left,
			left == 1 ? "is" : "are");
	slack_blocks_section(&rendering->blocks, &text);
	buf_free(&text);
}

/* Builds the post with as many of its items as fit, and drops the rest from it. */
static void build(struct rendering *rendering, struct post *post)
{
	struct slack_blocks *blocks = &rendering->blocks;
	struct buf text = {0};

	buf_clear(&blocks->json);
	buf_clear(&blocks->field);
	blocks->count = blocks->text = blocks->fields = 0;
	if (post->number == 0) {
		head_blocks(rendering);
		buf_append(&blocks->json, rendering->charts.data, rendering->charts.length);
		blocks->count += rendering->chart_count;
		blocks->text += rendering->chart_words + SLACK_TRIAGE;
		if (!rendering->planned)
			blocks->text += REST_MOST;
	} else {
		buf_printf(&text, "Change points, %zu of %zu", post->number + 1, post->of);
		slack_blocks_section(blocks, &text);
	}
	post->count = slack_blocks_changes(blocks, post->items, post->count);
	buf_free(&text);
}

/* Sorts the weightiest items after the first `done` into place; returns them. */
static const struct announcement *const *pick(
	struct rendering *rendering, size_t done, size_t count)
{
	const struct announcement **items = rendering->items + done;

	memcpy(items, rendering->by_weight + done, count * sizeof *items);
	message_arrange(items, count, rendering->message->first_look);
	return items;
}

/* All changes if they fit; only the worst if a thread follows. */
static void plan_first(struct rendering *rendering)
{
	size_t all = rendering->digest.message.count, count = all < POST_ITEMS ? all : POST_ITEMS;
	struct post *post = &rendering->posts[0];

	do {
		if (count < all && rendering->channel && count > WORST_ITEMS)
			count = WORST_ITEMS;
		*post = (struct post){.items = pick(rendering, 0, count), .count = count, .of = 1};
		build(rendering, post);
		count = post->count < count ? post->count : 0;
	} while (count > 0);
}

/* Distributes `count` items after those of the first post over the posts of the thread; returns how
 * many did not fit. */
static size_t plan_thread(struct rendering *rendering, size_t count)
{
	const struct announcement *const *items = pick(rendering, rendering->posts[0].count, count);

	rendering->post_count = 1;
	while (count > 0 && rendering->post_count < SLACK_POSTS) {
		size_t number = rendering->post_count++;
		struct post *post = &rendering->posts[number];

		*post = (struct post){.items = items,
			.count = count < POST_ITEMS ? count : POST_ITEMS,
			.number = number,
			.of = SLACK_POSTS};
		build(rendering, post);
		items += post->count;
		count -= post->count;
	}
	return count;
}

static void plan(struct rendering *rendering)
{
	enum { THREAD_ITEMS = (SLACK_POSTS - 1) * POST_ITEMS };
	size_t first, count, left;

	rendering->shown = rendering->digest.message.count;
	plan_first(rendering);
	first = rendering->posts[0].count;
	count = rendering->channel ? rendering->digest.message.count - first : 0;
	if (count > THREAD_ITEMS)
		count = THREAD_ITEMS;
	while ((left = plan_thread(rendering, count)) > 0)
		count -= left;
	rendering->shown = first + count;
	for (size_t i = 0; i < rendering->post_count; i++)
		rendering->posts[i].of = rendering->post_count;
	rendering->planned = true;
}

/* Text for notifications and screen readers: the first line and the worst changes. */
static void fallback_text(struct buf *out, const struct rendering *rendering)
{
	size_t count = rendering->digest.message.count, shown = 0, left;
	struct buf line = {0};

	text_summary(out, rendering->message, &slack_style);
	buf_text(out, rendering->message->summary ? "\n" : "");
	text_headline(out, rendering->message, &slack_style, "");
	for (; shown < count && shown < FALLBACK_LINES; shown++) {
		buf_clear(&line);
		buf_char(&line, '\n');
		slack_short_line(&line, rendering->by_weight[shown]);
		if (out->length + line.length > SLACK_TEXT - 100)
			break;
		buf_append(out, line.data, line.length);
	}
	left = rendering->message->count - digest_changes(rendering->by_weight, shown);
	if (left > 0)
		buf_printf(out, "\nand %zu more", left);
	buf_free(&line);
}

/* Writes the body with the blocks. The delivery's key, the post's number and the changes' ids are
 * its metadata, by which a post can be found again. */
static void write_body(struct rendering *rendering, const struct post *post, const struct buf *text)
{
	static const char *const types[MESSAGE_KINDS] = {[MESSAGE_NEW] = "changes",
		[MESSAGE_UPDATED] = "changes",
		[MESSAGE_RECOVERED] = "recovered"};
	const struct message *message = rendering->message;
	const char *type = types[message->kind];
	struct buf *out = rendering->payload;
	size_t named = 0;

	buf_text(out, post->number > 0 ? "\n{" : "{");
	if (rendering->channel) {
		buf_text(out, "\"channel\":");
		buf_json_text(out, rendering->channel);
		if (post->number == 0 && message->loud)
			buf_text(out, ",\"reply_broadcast\":true");
		buf_text(out,
			",\"parse\":\"none\","); /* do not turn host names in `text` into links */
	}
	buf_text(out, "\"text\":");
	buf_json_string(out, text->data, text->length);
	buf_text(out, ",\"unfurl_links\":false,\"unfurl_media\":false,\"blocks\":[");
	buf_append(out, rendering->blocks.json.data, rendering->blocks.json.length);
	buf_char(out, ']');
	if (rendering->channel) {
		buf_printf(out,
			",\"metadata\":{\"event_type\":\"hunter_c_%s\",\"event_payload\":{\"key\":",
			type ? type : "notice");
		buf_json_text(out, message->key);
		buf_printf(out, ",\"part\":%zu,\"changes\":[", post->number + 1);
		for (size_t i = 0; i < post->count; i++) {
			const struct announcement *item = post->items[i];
			size_t count = item->folded ? item->members : 1;

			for (size_t k = 0; k < count && named < METADATA_CHANGES; k++)
				buf_printf(out, "%s%lld", named++ > 0 ? "," : "",
					(long long)(item->folded ? item->folded[k]->id : item->id));
		}
		buf_text(out, "]}}");
	}
	buf_char(out, '}');
}

static void render_changes(struct rendering *rendering, bool charts)
{
	size_t count;
	struct buf text = {0};

	rendering->digest = digest_of(rendering->message);
	count = rendering->digest.message.count;
	rendering->items = memory_new(count, sizeof *rendering->items);
	rendering->by_weight = message_by_weight(&rendering->digest.message);
	/* Charts of the worst changes whose points are known; of a crowd of its worst. */
	for (size_t i = 0; charts && i < count && rendering->chart_count < CHARTS_MOST; i++) {
		size_t before = rendering->charts.length, words;

		buf_char(&rendering->charts, ',');
		words = put_chart(
			&rendering->charts, digest_pages(&rendering->by_weight[i], 1).worst);
		rendering->chart_words += words;
		rendering->chart_count += words > 0;
		if (words == 0)
			rendering->charts.length = before;
	}
	plan(rendering);
	for (size_t i = 0; i < rendering->post_count; i++) {
		struct post *post = &rendering->posts[i];
		size_t planned = post->count;

		build(rendering, post);
		assert(post->count == planned);
		(void)planned;
		buf_clear(&text);
		if (i == 0)
			fallback_text(&text, rendering);
		else
			buf_printf(&text, "Change points, %zu of %zu", i + 1, post->of);
		write_body(rendering, post, &text);
	}
	buf_free(&text);

	buf_free(&rendering->charts);
	free(rendering->items);
	free(rendering->by_weight);
	digest_free(&rendering->digest);
}

/* A digest's section in a block of its own, with as many lines as fit; an item of a post. */
static void add_section(struct rendering *rendering, const struct digest_section *section)
{
	enum { MORE_MOST = 40, LINE_MOST = 600 };
	struct slack_blocks *blocks = &rendering->blocks;
	size_t left = section->more + section->lines.count, shown = 0;
	struct buf text = {0}, line = {0};

	buf_char(&text, '*');
	slack_escaped(&text, section->title, SLACK_NAME);
	buf_char(&text, '*');
	for (; shown < section->lines.count; shown++, left--) {
		buf_clear(&line);
		buf_text(&line, "\n• ");
		slack_escaped(&line, section->lines.items[shown], LINE_MOST);
		if (text.length + line.length > SLACK_SECTION - MORE_MOST ||
			blocks->text + text.length + line.length > SLACK_POST_TEXT - MORE_MOST)
			break;
		buf_append(&text, line.data, line.length);
	}
	if (left > 0)
		buf_printf(&text, "\nand %zu more", left);
	slack_blocks_section(blocks, &text);
	buf_free(&text);
	buf_free(&line);
}

/* One post. The first sections are the most important: the last ones are left out if they do not
 * fit. */
static void add_sections(struct rendering *rendering)
{
	const struct message *message = rendering->message;
	struct buf text = {0};

	for (size_t i = 0; i < message->section_count; i++) {
		if (rendering->blocks.count + 2 < SLACK_POST_BLOCKS &&
			rendering->blocks.text + SLACK_NAME + SLACK_DATE < SLACK_POST_TEXT) {
			add_section(rendering, &message->sections[i]);
			continue;
		}
		buf_printf(&text, "and %zu more sections", message->section_count - i);
		slack_blocks_section(&rendering->blocks, &text);
		break;
	}
	buf_free(&text);
}

/* A section, and its text for notifications, which begins with the subject unless it names it. */
static void render_notice(struct rendering *rendering)
{
	const struct message *message = rendering->message;
	const struct notice *notice = message->notice;
	const struct announcement **items = memory_new(message->count, sizeof *items);
	struct buf section = {0}, text = {0}, body = {0};

	if (!strstr(notice->text, notice->subject)) {
		slack_escaped(&text, notice->subject, SLACK_NAME);
		buf_text(&text, ": ");
	}
	slack_sentence(&body, notice->text);
	buf_append(&text, body.data, body.length);
	buf_text(&section, notice->recovered ? ":large_green_circle: *" : ":warning: *");
	slack_escaped(&section, notice->subject, SLACK_NAME);
	buf_text(&section, "*  ");
	slack_date(&section, notice->ended ? notice->ended : notice->time, TEXT_MINUTE);
	buf_char(&section, '\n');
	buf_append(&section, body.data, body.length);
	buf_free(&body);
	/* Where all is known of the changes of a sentence, of the worst if they are several. */
	for (size_t i = 0; i < message->count; i++)
		items[i] = &message->items[i];
	if (message->count > 0)
		slack_help_lines(&section, items, message->count, PAGE_CHANGE + 1);
	free(items);
	slack_blocks_section(&rendering->blocks, &section);
	add_sections(rendering);
	write_body(rendering, &(struct post){.of = 1}, &text);
	buf_free(&section);
	buf_free(&text);
}

/* One line per recovery, as many as one section holds. */
static void render_recovered(struct rendering *rendering)
{
	enum { MORE_MOST = 100 };
	struct digest digest = digest_of(rendering->message);
	size_t count = digest.message.count, left = rendering->message->count;
	struct buf section = {0}, line = {0}, text = {0};

	text_recoveries(&line, rendering->message);
	slack_escaped(&text, line.data, SLACK_SENTENCE);
	for (size_t shown = 0; shown < count; shown++) {
		const struct announcement *item = &digest.message.items[shown];

		buf_clear(&line);
		slack_recovery_line(&line, item);
		if (section.length + line.length > SLACK_SECTION - MORE_MOST)
			break;
		/* Without the leading line break. */
		buf_append(&section, line.data + (shown == 0), line.length - (shown == 0));
		left -= digest_changes(&item, 1);
	}
	if (left > 0)
		buf_printf(&section,
			"\nand %zu more; `hunter-c changes --state recovered` lists them", left);
	slack_blocks_section(&rendering->blocks, &section);
	write_body(rendering, &(struct post){.of = 1}, &text);
	digest_free(&digest);
	buf_free(&section);
	buf_free(&line);
	buf_free(&text);
}

void slack_render(
	const struct message *message, const char *channel, bool charts, struct buf *payload)
{
	struct rendering rendering = {.message = message,
		.channel = channel,

		.blocks.first_look = message->first_look,
		.payload = payload};

	if (message->kind == MESSAGE_RECOVERED)
		render_recovered(&rendering);
	else if (message->notice)
		render_notice(&rendering);
	else
		render_changes(&rendering, charts);
	buf_free(&rendering.blocks.json);
	buf_free(&rendering.blocks.field);
}

const char *slack_body(struct arena *arena, const char *payload, size_t number)
{
	for (; number > 0 && payload; number--) {
		payload = strchr(payload, '\n');
		if (payload)
			payload++;
	}
	return payload ? arena_strndup(arena, payload, strcspn(payload, "\n")) : NULL;
}

size_t slack_body_count(const char *payload)
{
	size_t count = 1;

	while ((payload = strchr(payload, '\n'))) {
		payload++;
		count++;
	}
	return count;
}

const char *slack_simpler(struct arena *arena, const char *body, bool charts_alone)
{
	json_t *message = body ? json_loads(body, 0, NULL) : NULL;
	json_t *blocks = json_object_get(message, "blocks");
	bool any = false;
	char *text = NULL;
	const char *copy;

	if (!charts_alone)
		any = json_object_del(message, "blocks") == 0;
	for (size_t i = charts_alone ? json_array_size(blocks) : 0; i > 0; i--) {
		const char *type = json_text(json_array_get(blocks, i - 1), "type");

		if (type && strcmp(type, "data_visualization") == 0)
			any |= json_array_remove(blocks, i - 1) == 0;
	}
	if (any)
		text = json_dumps(message, JSON_COMPACT);
	copy = arena_strdup(arena, text);
	free(text);
	json_decref(message);
	return copy;
}
