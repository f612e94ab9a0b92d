/*
 * Builds lines from escaped text, and replaces characters that Slack would read as markup.
 */
#include "notifiers/slack/lines.h"

#include <string.h>

#include "agent/base/utf8.h"
#include "agent/base/when.h"

enum {
	METRIC = 400,
	COMMIT = 100,
	LINKS = 500,
	ATTRIBUTES = 200,
	MEMBER = 150,
	CROWD = 800, /* a crowd with its worst changes */
};

static const char ellipsis[] = "…";

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether the underscore is within a word, as in http_requests, where it is not markup. */
static bool within_word(const char *text, size_t at)
{
	size_t before = at, after = at;

	while (before > 0 && text[before] == '_')
		before--;
	while (text[after] == '_')
		after++;
	return is_word(text[before]) && is_word(text[after]);
}

/* Whether the colon may begin an emoji, like :100:, whose second colon may follow the text, or an
 * address. A time of day is neither. */
static bool telling_colon(const char *text, size_t at)
{
	const char *name = text + at + 1;
	size_t length = 0;

	while (is_word(name[length]) || (unsigned char)name[length] >= 0x80 ||
		(name[length] && strchr("_-+'", name[length])))
		length++;
	if (strncmp(name, "//", 2) == 0)
		return true;
	if (length == 0 || (name[length] && name[length] != ':'))
		return false;
	return strspn(name, "0123456789") < length || at == 0 || text[at - 1] < '0' ||
	       text[at - 1] > '9';
}

/* The replacement of a markup character; NULL: keep it. mrkdwn has no escape for these, so similar
 * characters are used. */
static const char *unmarked(const char *text, size_t at)
{
	switch (text[at]) {
	case '*': return "\u2217";
	case '~': return "\u223c";
	case '`': return "\u02cb";
	case '_': return within_word(text, at) ? NULL : "\u02cd";
	case ':': return telling_colon(text, at) ? "\u2236" : NULL;
	case '>': return at == 0 ? "\u203a" : NULL; /* a quotation */
	default: return NULL;
	}
}

static const char *entity(char c)
{
	return c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : NULL;
}

static void escaped(struct buf *out, const char *text, size_t most, bool address)
{
	size_t begin = out->length, cut = begin, at = 0;
	struct buf clean = {0};

	buf_clean(&clean, text, most);
	while (at < clean.length) {
		size_t length = utf8_length(clean.data + at, clean.length - at);
		const char *other = address ? NULL : unmarked(clean.data, at);

		other = other ? other : entity(clean.data[at]);
		buf_append(out, other ? other : clean.data + at, other ? strlen(other) : length);
		at += length;
		if (out->length - begin <= most - (sizeof ellipsis - 1))
			cut = out->length;
		if (out->length - begin > most) {
			out->length = cut;
			buf_text(out, ellipsis);
			break;
		}
	}
	buf_free(&clean);
}

void slack_escaped(struct buf *out, const char *text, size_t most)
{
	escaped(out, text, most, false);
}

/* Slack's date token takes seconds; its fallback text allows no other characters than these. */
void slack_date(struct buf *out, int64_t time, enum text_time exact)
{
	int64_t seconds = time / 1000 - (time % 1000 < 0 ? 1 : 0);
	char when[WHEN_TEXT];

	buf_printf(out, "<!date^%lld^{date_short_pretty}%s|%s>", (long long)seconds,
		exact == TEXT_DAY ? "" : " {time}", when_format(time, when));
}

const struct text_style slack_style = {slack_escaped, slack_date, "→", METRIC};
static const struct text_style member_style = {slack_escaped, slack_date, "→", MEMBER};

/* The length of a time at `text`; 0: none. */
static size_t time_at(const char *text, int64_t *time)
{
	static const char *const forms[] = {"0000-00-00 00:00:00 +0000", "0000-00-00 00:00 UTC"};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t at = 0, length = strlen(forms[i]);

		while (at < length &&
			(text[at] == forms[i][at] || (forms[i][at] == '0' && at < length - 4 &&
							     text[at] >= '0' && text[at] <= '9')))
			at++;
		if (at == length && !is_word(text[length]) && when_parse_stamp(text, length, time))
			return length;
	}
	return 0;
}

/* The position of the next time, or the end of the text. */
static size_t find_time(const char *text, size_t *length, int64_t *time)
{
	size_t at = 0;

	for (*length = 0; text[at]; at++)
		if (text[at] >= '0' && text[at] <= '9' && (at == 0 || !is_word(text[at - 1])) &&
			(*length = time_at(text + at, time)) > 0)
			break;
	return at;
}

void slack_sentence(struct buf *out, const char *text)
{
	size_t end = out->length + SLACK_SENTENCE, length;
	struct buf part = {0};
	int64_t time = 0;

	while (*text && out->length + SLACK_DATE < end) {
		size_t before = find_time(text, &length, &time);

		buf_clear(&part);
		buf_append(&part, text, before);
		buf_reserve(&part, 0);
		if (before > 0)
			slack_escaped(out, part.data, end - SLACK_DATE - out->length);
		if (length > 0)
			slack_date(out, time, TEXT_MINUTE);
		text += before + length;
	}
	buf_free(&part);
}

void slack_test_line(struct buf *out, const struct announcement *item)
{
	buf_char(out, '*');
	slack_escaped(out, item->test, SLACK_NAME);
	buf_char(out, '*');
	if (item->common) {
		buf_char(out, ' ');
		slack_escaped(out, item->common, SLACK_COMMON);
	}
}

/* The worst changes of a crowd that fit, and how to list the others. */
static void members(struct buf *out, const struct announcement *item, size_t begin)
{
	struct buf line = {0}, rest = {0};
	size_t shown = 0;

	for (; shown < CROWD_WORST && shown < item->members; shown++) {
		buf_clear(&line);
		buf_text(&line, "\n• ");
		text_change(&line, item->folded[shown], &member_style, "", "");
		if (out->length + line.length - begin > CROWD)
			break;
		buf_append(out, line.data, line.length);
	}
	text_crowd_rest(&rest, item, shown, &slack_style);
	buf_printf(out, "\n• %s: `", rest.data);
	buf_clear(&rest);
	text_command(&rest, item);
	slack_escaped(out, rest.data, SLACK_NAME);
	buf_text(out, "` lists all");
	buf_free(&line);
	buf_free(&rest);
}

void slack_item_line(struct buf *out, const struct announcement *item)
{
	static const char *const circles[] = {"large_blue", "white", "red"};
	size_t begin = out->length;

	buf_printf(out, "\n:%s_circle: ", circles[1 + announcement_verdict(item)]);
	text_change(out, item, &slack_style, "", "");
	if (item->over.time != 0) {
		buf_text(out, ", ");
		text_recovery(out, item, &slack_style);
	}
	if (item->folded)
		members(out, item, begin);
}

/* The text, as a link if there is a page. The URL has no characters that would end it
 * (url_template_check). */
static void linked(struct buf *out, const char *url, const char *text)
{
	if (url) {
		buf_char(out, '<');
		escaped(out, url, LINKS, true);
		buf_char(out, '|');
	}
	slack_escaped(out, text, COMMIT);
	if (url)
		buf_char(out, '>');
}

static size_t length_escaped(const char *url)
{
	size_t length = 0;

	for (; url && *url; url++)
		length += *url == '&' ? sizeof "&amp;" - 1 : 1;
	return length;
}

void slack_recovery_line(struct buf *out, const struct announcement *item)
{
	const char *page = digest_pages(&item, 1).worst->page;

	buf_text(out,
		announcement_verdict(item) > 0 ? "\n:large_green_circle: " : "\n:white_circle: ");
	slack_test_line(out, item);
	buf_char(out, ' ');
	text_end(out, item, &slack_style, "", " (was ");
	if (page && length_escaped(page) <= LINKS) {
		buf_text(out, "  ");
		linked(out, page, page_names[PAGE_CHANGE]);
	}
}

static void suspects_note(struct buf *out, const struct announcement *item, const char *before)
{
	struct buf text = {0};

	text_suspects(&text, item, &slack_style);
	if (text.length > 0)
		buf_printf(out, "%s%s", before, text.data);
	buf_free(&text);
}

/* A truncated link would be broken, so links that do not fit are left out. The item's commit page
 * may be about another commit. */
static void commits_line(struct buf *out, const struct announcement *item)
{
	const char *commit_url = item->commit_url, *compare_url = item->compare_url;
	const char *before, *after, *likely = announcement_likely(item);
	const char *commit = announcement_commit(item);

	announcement_range(item, &before, &after);
	if (!before && !after) {
		suspects_note(out, item, "\n");
		return;
	}
	if (length_escaped(commit_url) + length_escaped(compare_url) > LINKS)
		commit_url = NULL;
	if (length_escaped(compare_url) > LINKS)
		compare_url = NULL;
	buf_text(out, "\n");
	if (before || !item->suspects.known) {
		slack_escaped(out, before ? before : "?", COMMIT);
		buf_text(out, " .. ");
	}
	linked(out, after && (!commit || strcmp(after, commit) == 0) ? commit_url : NULL,
		after ? after : "?");
	if (compare_url) {
		buf_text(out, " (");
		linked(out, compare_url, "compare");
		buf_char(out, ')');
	}
	suspects_note(out, item, ", ");
	if (likely) {
		buf_text(out, ", most likely ");
		linked(out, !commit || strcmp(likely, commit) == 0 ? commit_url : NULL, likely);
	}
}

void slack_range_line(struct buf *out, const struct announcement *item)
{
	struct buf text = {0};

	text_place(&text, item, &slack_style);
	if (text.length > 0)
		buf_printf(out, "\n%s", text.data);
	commits_line(out, item);
	buf_clear(&text);
	text_attributes(&text, item);
	if (text.length > 0) {
		buf_char(out, '\n');
		slack_escaped(out, text.data, ATTRIBUTES);
	}
	buf_free(&text);
}

/* "\n<...|dashboard>, owner: team-pay", of the pages before `last`; `of`: whose they are, if not
 * all have them. */
static void help_line(struct buf *out, const char *const pages[PAGES], enum page last,
	const struct announcement *of)
{
	bool any = false;

	for (enum page which = 0; which < last; which++) {
		bool link = which != PAGE_OWNER;

		if (!pages[which] || (link && length_escaped(pages[which]) > LINKS))
			continue;
		if (!any && of) {
			buf_text(out, "\nof ");
			slack_escaped(out, of->metric, MEMBER);
			buf_text(out, ": ");
		} else {
			buf_text(out, any ? ", " : "\n");
		}
		any = true;
		if (link) {
			linked(out, pages[which], page_names[which]);
		} else {
			buf_printf(out, "%s: ", page_names[which]);
			slack_escaped(out, pages[which], COMMIT);
		}
	}
}

void slack_help_lines(
	struct buf *out, const struct announcement *const *items, size_t count, enum page last)
{
	struct digest_pages pages = digest_pages(items, count);

	help_line(out, pages.common, last, NULL);
	help_line(out, pages.own, last, pages.worst);
}

void slack_short_line(struct buf *out, const struct announcement *item)
{
	slack_escaped(out, item->test, SLACK_NAME);
	buf_char(out, ' ');
	if (item->common) {
		slack_escaped(out, item->common, SLACK_COMMON);
		buf_char(out, ' ');
	}
	if (item->members > 0) {
		text_change(out, item, &slack_style, "", "");
		return;
	}
	slack_escaped(out, item->metric, METRIC);
	buf_char(out, ' ');
	text_percent(out, &item->change);
	text_basis(out, item, &slack_style);
}
