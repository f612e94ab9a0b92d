/*
 * Every piece of text is composed plainly, then escaped by the style.
 */
#include "notifiers/body.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/utf8.h"
#include "notifiers/digest.h"

enum {
	NAME_CHARS = 200,
	CULPRIT_CHARS = 310,
	TEXT_CHARS = 1000,
	TITLE_CHARS = 300,
	LINES_MOST = 1000
};

enum { LEVEL_MESSAGE, LEVEL_TEST, LEVEL_CHANGE, LEVEL_DETAIL };

struct writer {
	struct buf *out;
	const struct body_style *style;
	struct buf text; /* composed, to be escaped */
	size_t most;
	bool first_look;
};

/* In a composed text, by enum body_mark; buf_clean lets no such character through. */
static const char begins[][2] = {"\020", "\021", "\022", "\023", "\024"};
#define END "\030"

/* Writes what was composed, and a link, as a line; nothing of neither. */
static void line(struct writer *writer, size_t level, const char *url)
{
	const struct body_style *style = writer->style;
	const char *at = writer->text.data, *begin;

	if (writer->text.length == 0 && !url)
		return;
	buf_text(writer->out, style->open[level]);
	for (size_t left = writer->text.length; left > 0;) {
		size_t length = strcspn(at, "\020\021\022\023\024" END);

		if (length > 0)
			style->escape(writer->out, at, length);
		at += length;
		left -= length;
		if (left == 0)
			break;
		begin = *at == *END ? style->end : style->begin[*at - *begins[0]];
		buf_text(writer->out, begin ? begin : style->begin[BODY_STRONG]);
		at++;
		left--;
	}
	buf_clear(&writer->text);
	if (url)
		style->link(writer->out, url);
	buf_text(writer->out, style->close);
}

static void gap(struct writer *writer)
{
	buf_text(writer->out, writer->style->gap);
}

static void name(struct writer *writer, const char *text)
{
	writer->style->text->name(&writer->text, text, NAME_CHARS);
}

static void time_of(struct writer *writer, const char *before, int64_t time)
{
	buf_text(&writer->text, before);
	writer->style->text->time(&writer->text, time, TEXT_FULL);
}

static void write_page(
	struct writer *writer, enum page which, const char *text, const struct announcement *of)
{
	if (!text)
		return;
	buf_text(&writer->text, page_names[which]);
	if (of) {
		buf_text(&writer->text, " of ");
		name(writer, of->metric);
	}
	buf_text(&writer->text, ": ");
	if (which == PAGE_OWNER)
		name(writer, text);
	line(writer, LEVEL_DETAIL, which == PAGE_OWNER ? NULL : text);
}

/* The range of the last of these changes, and their pages: "      dashboard:
 * https://grafana.example/d/shop", "      owner of p99: team-pay" */
static void write_range(
	struct writer *writer, const struct announcement *const *items, size_t count)
{
	const struct announcement *item = items[count - 1];
	struct digest_pages pages = digest_pages(items, count);

	text_place(&writer->text, item, writer->style->text);
	line(writer, LEVEL_DETAIL, NULL);
	text_commits(&writer->text, item, writer->style->text);
	line(writer, LEVEL_DETAIL, NULL);
	text_attributes(&writer->text, item);
	line(writer, LEVEL_DETAIL, NULL);
	line(writer, LEVEL_DETAIL, item->compare_url ? item->compare_url : item->commit_url);
	for (enum page which = 0; which < PAGES; which++) {
		write_page(writer, which, pages.common[which], NULL);
		write_page(writer, which, pages.own[which], pages.worst);
	}
}

/* The worst changes of a crowd, and how to list the others. */
static void write_members(
	struct writer *writer, const struct announcement *item, enum body_mark mark)
{
	size_t shown = item->members < CROWD_WORST ? item->members : CROWD_WORST;

	for (size_t i = 0; i < shown; i++) {
		text_change(&writer->text, item->folded[i], writer->style->text, begins[mark], END);
		line(writer, LEVEL_DETAIL, NULL);
	}
	text_crowd_rest(&writer->text, item, shown, writer->style->text);
	buf_text(&writer->text, ": ");
	text_command(&writer->text, item);
	buf_text(&writer->text, " lists all");
	line(writer, LEVEL_DETAIL, NULL);
}

/* "    p99: +24% [21, 27]  3.17e+07 --> 3.94e+07 ns  regression" */
static void write_item(struct writer *writer, const struct announcement *item)
{
	static const enum body_mark marks[] = {BODY_BETTER, BODY_STRONG, BODY_WORSE};
	const struct text_style *style = writer->style->text;
	int verdict = announcement_verdict(item);
	enum body_mark mark = marks[1 + verdict];
	struct buf culprit = {0};

	text_change(&writer->text, item, style, begins[mark], END);
	if (item->over.time != 0) {
		buf_text(&writer->text, ", ");
		text_recovery(&writer->text, item, style);
	}
	if (item->status)
		buf_printf(&writer->text, ", %s", item->status);
	if (verdict != 0)
		buf_printf(&writer->text, "  %s", change_verdict_name(verdict));
	if (writer->first_look)
		time_of(writer, " since ", item->time);
	line(writer, LEVEL_CHANGE, NULL);
	if (item->culprit) {
		buf_printf(&culprit, "bisected: %s", item->culprit->verdict);
		style->name(&writer->text, culprit.data, CULPRIT_CHARS);
		line(writer, LEVEL_DETAIL, NULL);
		buf_free(&culprit);
	}
	if (item->folded)
		write_members(writer, item, mark);
}

static void write_test(struct writer *writer, const struct announcement *item)
{
	buf_text(&writer->text, begins[BODY_STRONG]);
	name(writer, item->test);
	buf_text(&writer->text, END);
	if (item->common) {
		buf_char(&writer->text, ' ');
		name(writer, item->common);
	}
	line(writer, LEVEL_TEST, NULL);
}

static void write_time(struct writer *writer, int64_t time)
{
	gap(writer);
	time_of(writer, "", time);
	line(writer, LEVEL_MESSAGE, NULL);
}

/* "15 regressions in checkout, pay since 2021-07-02 00:00:00 +0000" */
static void write_head(struct writer *writer, const struct message *message)
{
	text_summary(&writer->text, message, writer->style->text);
	line(writer, LEVEL_MESSAGE, NULL);
	buf_text(&writer->text, begins[BODY_STRONG]);
	text_headline(&writer->text, message, writer->style->text, "");
	buf_text(&writer->text, END);
	line(writer, LEVEL_MESSAGE, NULL);
	if (message->environment || message->kind != MESSAGE_UPDATED || !message->more_of)
		return;
	time_of(writer, "more change points of ", message->more_of->time);
	line(writer, LEVEL_MESSAGE, NULL);
}

/* "prometheus 2021-07-02 00:00:00 +0000", when it began or ended; below it the problem. */
static void write_notice(struct writer *writer, const struct notice *notice)
{
	buf_text(&writer->text, begins[notice->recovered ? BODY_GOOD : BODY_BAD]);
	name(writer, notice->subject);
	time_of(writer, END "  ", notice->ended ? notice->ended : notice->time);
	line(writer, LEVEL_MESSAGE, NULL);
	buf_clean(&writer->text, notice->text, TEXT_CHARS);
	line(writer, LEVEL_CHANGE, NULL);
}

static void write_left_out(struct writer *writer, size_t left)
{
	if (left > 0) {
		gap(writer);
		buf_printf(&writer->text,
			"%zu more change points are left out; hunter-c changes lists them", left);
		line(writer, LEVEL_MESSAGE, NULL);
	}
	gap(writer);
}

/* "    p99: back to 100 ms after 3 h  (+24%  100 --> 124 ms)" */
static void write_recovered(struct writer *writer, const struct message *message)
{
	struct digest digest = digest_of(message);
	const struct announcement *last = NULL;
	size_t lines = digest.message.count, shown = lines < writer->most ? lines : writer->most;
	const struct announcement **items = memory_new(lines, sizeof *items);

	buf_text(&writer->text, begins[BODY_STRONG]);
	if (message->environment)
		text_recoveries(&writer->text, message);
	else
		buf_text(&writer->text, "recovered");
	buf_text(&writer->text, END);
	line(writer, LEVEL_MESSAGE, NULL);
	for (size_t i = 0; i < shown; i++) {
		const struct announcement *item = items[i] = &digest.message.items[i];
		bool new_time = !last || last->over.time != item->over.time;

		if (new_time)
			write_time(writer, item->over.time);
		if (new_time || strcmp(last->test, item->test) != 0)
			write_test(writer, item);
		text_end(&writer->text, item, writer->style->text,
			begins[announcement_verdict(item) > 0 ? BODY_BETTER : BODY_STRONG],
			END "  (");
		line(writer, LEVEL_CHANGE, NULL);
		write_page(writer, PAGE_CHANGE, digest_pages(&item, 1).worst->page, NULL);
		last = item;
	}
	write_left_out(writer, message->count - digest_changes(items, shown));
	free(items);
	digest_free(&digest);
}

/* The changes in blocks of the same time, in them blocks of the same test; a first look by test. */
static void write_items(struct writer *writer, const struct message *message)
{
	struct digest digest = digest_of(message);
	size_t lines = digest.message.count, count = lines < writer->most ? lines : writer->most;
	const struct announcement **items = message_by_weight(&digest.message);
	const struct announcement *last = NULL;
	size_t first = 0;

	message_arrange(items, count, message->first_look);
	writer->first_look = message->first_look;
	for (size_t i = 0; i < count; i++) {
		const struct announcement *item = items[i];
		bool new_time = !message->first_look && (!last || last->time != item->time);
		bool new_test = !last || new_time || strcmp(last->test, item->test) != 0;

		if (last && (new_test || !announcement_same_range(last, item))) {
			write_range(writer, items + first, i - first);
			first = i;
		}
		if (new_time)
			write_time(writer, item->time);
		else if (new_test && message->first_look)
			gap(writer);
		if (new_test)
			write_test(writer, item);
		write_item(writer, item);
		last = item;
	}
	if (last)
		write_range(writer, items + first, count - first);
	write_left_out(writer, message->count - digest_changes(items, count));
	free(items);
	digest_free(&digest);
}

static void write_section(struct writer *writer, const struct digest_section *section)
{
	size_t count = section->lines.count, shown = count < writer->most ? count : writer->most;
	size_t left = section->more + count - shown;

	buf_text(&writer->text, begins[BODY_STRONG]);
	buf_clean(&writer->text, section->title, TEXT_CHARS);
	buf_text(&writer->text, END);
	line(writer, LEVEL_TEST, NULL);
	for (size_t i = 0; i < shown; i++) {
		buf_clean(&writer->text, section->lines.items[i], TEXT_CHARS);
		line(writer, LEVEL_CHANGE, NULL);
	}
	if (left > 0) {
		buf_printf(&writer->text, "and %zu more", left);
		line(writer, LEVEL_CHANGE, NULL);
	}
	gap(writer);
}

void body_write(
	struct buf *out, const struct message *message, const struct body_style *style, size_t most)
{
	struct writer writer = {
		.out = out, .style = style, .most = most < LINES_MOST ? most : LINES_MOST};

	if (message->kind == MESSAGE_RECOVERED) {
		write_recovered(&writer, message);
	} else {
		if (message->notice)
			write_notice(&writer, message->notice);
		else if (message->count > 0)
			write_head(&writer, message);
		if (message->count > 0)
			write_items(&writer, message);
		else if (message->notice)
			gap(&writer);
		for (size_t i = 0; i < message->section_count; i++)
			write_section(&writer, &message->sections[i]);
	}
	buf_free(&writer.text);
}

/* The title, cut so that its line fits. */
static void fit_title(struct buf *out, const struct message *message,
	const struct body_style *style, size_t bytes)
{
	size_t start = out->length;
	struct buf title = {0};

	body_title(&title, message);
	for (size_t length = title.length; length > 0; length = utf8_cut(title.data, length - 1)) {
		out->length = start;
		buf_text(out, style->open[LEVEL_MESSAGE]);
		style->escape(out, title.data, length);
		buf_text(out, style->close);
		if (out->length - start <= bytes)
			break;
	}
	buf_free(&title);
}

void body_fit(struct buf *out, const struct message *message, const struct body_style *style,
	size_t bytes)
{
	size_t start = out->length, fits = 0, too_many = LINES_MOST, most = LINES_MOST;

	for (;;) {
		out->length = start;
		body_write(out, message, style, most);
		if (out->length - start > bytes)
			too_many = most;
		else if (most == LINES_MOST || too_many - most <= 1)
			return;
		else
			fits = most;
		if (too_many <= 1)
			break;
		most = too_many - fits <= 1 ? fits : fits + (too_many - fits) / 2;
	}
	out->length = start;
	fit_title(out, message, style, bytes);
}

void body_title(struct buf *out, const struct message *message)
{
	if (message->kind == MESSAGE_REMINDER)
		buf_text(out, "reminder: ");
	if (message->kind == MESSAGE_RECOVERED && message->count > 1 && !message->environment) {
		buf_text(out, "recovered: ");
		text_what(out, message, &text_plain);
	} else if (message->kind == MESSAGE_RECOVERED) {
		text_recoveries(out, message);
	} else if (message->notice) {
		buf_clean(out, message->notice->subject, NAME_CHARS);
		buf_text(out, ": ");
		buf_clean(out, message->notice->text, TITLE_CHARS);
	} else if (message->environment) {
		text_environment(out, message->environment, &text_plain);
	} else if (message->count > 0) {
		if (message->kind == MESSAGE_UPDATED)
			buf_text(out, "more: ");
		text_what(out, message, &text_plain);
	}
}

unsigned body_color(const struct message *message)
{
	enum { GOOD = 0x1a7f37, BAD = 0xd1242f, NEITHER = 0x57606a };
	struct tally tally = message_tally(message);
	bool recovered = message->kind == MESSAGE_RECOVERED ||
			 (message->notice && message->notice->recovered);

	if (recovered || message->notice)
		return recovered ? GOOD : message->kind == MESSAGE_NOTICE ? BAD : NEITHER;
	return tally.regressions > 0 ? BAD : tally.improvements > 0 ? GOOD : NEITHER;
}

void text_triage(struct buf *out, const struct triage *triage)
{
	buf_text(out, triage->state == TRIAGE_OPEN && triage->version > 0
			      ? "open again"
			      : triage_state_names[triage->state]);
	if (triage->person && *triage->person) {
		buf_text(out, " by ");
		buf_clean(out, triage->person, NAME_CHARS);
	}
	if (triage->owner && *triage->owner) {
		buf_text(out, ", owner ");
		buf_clean(out, triage->owner, NAME_CHARS);
	}
	if (triage->until > 0) {
		buf_text(out, ", until ");
		text_utc_time(out, triage->until, TEXT_MINUTE);
	}
	if (triage->note && *triage->note) {
		buf_text(out, ": ");
		buf_clean(out, triage->note, NAME_CHARS);
	}
}

/* The state of a change besides recovered; NULL: none. */
static const char *status_of(struct arena *arena, const struct announced_change *change)
{
	struct buf out = {0};

	if (change->state == ANNOUNCED_WITHDRAWN)
		buf_text(&out, "no longer found");
	if (change->triage.version > 0) {
		buf_text(&out, out.length > 0 ? "; " : "");
		text_triage(&out, &change->triage);
	}
	if (out.length > 0)
		return buf_keep(&out, arena);
	buf_free(&out);
	return NULL;
}

struct message body_of_announced(
	struct arena *arena, const struct announced_change *changes, size_t count)
{
	struct announcement *items = arena_array(arena, count, sizeof *items);

	for (size_t i = 0; i < count; i++) {
		items[i] = changes[i].item;
		items[i].status = status_of(arena, &changes[i]);
	}
	return (struct message){.kind = MESSAGE_NEW, .items = items, .count = count};
}

static void as_is(struct buf *out, const char *text, size_t length)
{
	buf_append(out, text, length);
}

static void bare_link(struct buf *out, const char *url)
{
	buf_text(out, url);
}

/* Around a name, until it is escaped; buf_clean lets no such character through. */
#define NAME_BEGIN '\001'
#define NAME_END '\002'

static void mark_name(struct buf *out, const char *text, size_t limit)
{
	buf_char(out, NAME_BEGIN);
	buf_clean(out, text, limit);
	buf_char(out, NAME_END);
}

/* Names as code, in which nothing has a meaning but its end. */
static const struct text_style text_marked = {mark_name, text_utc_time, "→", NAME_CHARS};

/* In a fence that is longer than any run of backticks within. */
static void put_code(struct buf *out, const char *text, size_t length)
{
	size_t run = 0, longest = 0;

	for (size_t i = 0; i < length; i++) {
		run = text[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	for (size_t i = 0; i <= longest; i++)
		buf_char(out, '`');
	buf_text(out, longest > 0 ? " " : "");
	buf_append(out, text, length);
	buf_text(out, longest > 0 ? " " : "");
	for (size_t i = 0; i <= longest; i++)
		buf_char(out, '`');
}

/* Whether a character and what follows begin a mention or a link. */
static bool begins_reference(const char *text, size_t at, size_t length)
{
	char next = at + 1 < length ? text[at + 1] : ' ';
	bool word = (next >= '0' && next <= '9') || ((next | 32) >= 'a' && (next | 32) <= 'z') ||
		    next == '"' || next == '_' || (unsigned char)next >= 0x80;

	switch (text[at]) {
	case '@':
	case '#': return true;
	case '!':
	case '&':
	case '~':
	case '%':
	case '$': return word;
	case ':': return next == '/';
	case '.': return at > 2 && strncmp(text + at - 3, "www", 3) == 0;
	default: return false;
	}
}

/* Punctuation with a meaning anywhere in GitHub's, GitLab's, Mattermost's and Discord's Markdown.
 * What an @ or other sign refers to is cut off from it by a zero-width space. */
static void put_escaped(struct buf *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (strchr("\\`*_{}[]<>()#!|~&$", text[i]) && text[i])
			buf_char(out, '\\');
		buf_char(out, text[i]);
		if (begins_reference(text, i, length))
			buf_text(out, "\xe2\x80\x8b");
	}
}

static void escape_markdown(struct buf *out, const char *text, size_t length)
{
	while (length > 0) {
		const char *name = memchr(text, NAME_BEGIN, length);
		size_t before = name ? (size_t)(name - text) : length, code = 0;

		put_escaped(out, text, before);
		if (!name)
			return;
		text += before + 1;
		length -= before + 1;
		while (code < length && text[code] != NAME_END)
			code++;
		if (code > 0)
			put_code(out, text, code);
		text += code < length ? code + 1 : code;
		length -= code < length ? code + 1 : code;
	}
}

/* In angle brackets nothing but these has a meaning. */
static void markdown_link(struct buf *out, const char *url)
{
	buf_printf(out, "<%s>", url);
}

static void html_link(struct buf *out, const char *url)
{
	buf_text(out, "<a href=\"");
	buf_markup(out, url, strlen(url));
	buf_text(out, "\">");
	buf_markup(out, url, strlen(url));
	buf_text(out, "</a>");
}

#define BOLD "\033[1m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

const struct body_style body_terminal = {.text = &text_plain,
	.escape = as_is,
	.link = bare_link,
	.begin = {BOLD, RED, GREEN, BOLD RED, BOLD GREEN},
	.end = PLAIN,
	.open = {"", "  ", "    ", "      "},
	.close = "\n",
	.gap = "\n"};

const struct body_style body_plain = {.text = &text_utc,
	.escape = as_is,
	.link = bare_link,
	.begin = {""},
	.end = "",
	.open = {"", "  ", "    ", "      "},
	.close = "\n",
	.gap = "\n"};

const struct body_style body_markdown = {.text = &text_marked,
	.escape = escape_markdown,
	.link = markdown_link,
	.begin = {"**"},
	.end = "**",
	.open = {"", "\n", "- ", "  - "}, /* a test is no continuation of the list before it */
	.close = "\n",
	.gap = "\n"};

/* Colours that can be read on white and on black. */
#define DIV(indent) "<div style=\"margin-left:" indent "em\">"
#define COLOR(color) "<strong style=\"color:" color "\">"

const struct body_style body_html = {.text = &text_utc,
	.escape = buf_markup,
	.link = html_link,
	.begin = {"<strong>", COLOR("#d1242f"), COLOR("#1a7f37"), COLOR("#d1242f"),
		COLOR("#1a7f37")},
	.end = "</strong>",
	.open = {DIV("0"), DIV("0"), DIV("1"), DIV("2")},
	.close = "</div>\n",
	.gap = "<br>\n"};
