/*
 * See slack_lines.h.
 */
#include "notifiers/slack_lines.h"

#include <string.h>

#include "agent/core/utf8.h"
#include "notifiers/text.h"

enum { METRIC = 400, UNIT = 60, COMMIT = 100, SHARED = 200, LINKS = 500 };

static const char ellipsis[] = "…";

void slack_escaped(struct buf *out, const char *text, size_t most)
{
	size_t begin = out->length, cut = begin, at = 0;
	struct buf clean = {0};

	text_clean(&clean, text, most);
	while (at < clean.length) {
		size_t length = utf8_length(clean.data + at, clean.length - at);

		switch (clean.data[at]) {
		case '&': buf_text(out, "&amp;"); break;
		case '<': buf_text(out, "&lt;"); break;
		case '>': buf_text(out, "&gt;"); break;
		default: buf_append(out, clean.data + at, length);
		}
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

void slack_test_line(struct buf *out, const struct announcement *item)
{
	buf_char(out, '*');
	slack_escaped(out, item->test, SLACK_NAME);
	buf_char(out, '*');
}

/* "(1336 series, 96% renderer=gpu)" */
static void cluster(struct buf *out, const struct announcement *item)
{
	if (item->members == 0)
		return;
	buf_printf(out, " (%zu series", item->members);
	if (item->shared) {
		buf_text(out, ", ");
		slack_escaped(out, item->shared, SHARED);
	}
	buf_char(out, ')');
}

void slack_item_line(struct buf *out, const struct announcement *item)
{
	int verdict = announcement_verdict(item);

	buf_text(out, verdict > 0   ? "\n:red_circle: "
		      : verdict < 0 ? "\n:large_blue_circle: "
				    : "\n:white_circle: ");
	slack_escaped(out, item->metric, METRIC);
	cluster(out, item);
	buf_text(out, ": ");
	text_percent(out, &item->change);
	buf_text(out, "  ");
	text_level(out, item->change.mean_before);
	buf_text(out, " → ");
	text_level(out, item->change.mean_after);
	if (item->unit) {
		buf_char(out, ' ');
		slack_escaped(out, item->unit, UNIT);
	}
	buf_printf(out, " (p %.2g)", item->change.pvalue);
}

/* The text, as a link if there is a page for it. The page's address has no characters that would
 * end it (link_check). */
static void linked(struct buf *out, const char *url, const char *text)
{
	if (url) {
		buf_char(out, '<');
		slack_escaped(out, url, LINKS);
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

/* A link that is cut leads nowhere: those too long for the line are left out. */
void slack_range_line(struct buf *out, const struct announcement *item)
{
	const char *commit_url = item->commit_url, *compare_url = item->compare_url;
	const char *before, *after;

	announcement_range(item, &before, &after);
	if (!before && !after)
		return;
	if (length_escaped(commit_url) + length_escaped(compare_url) > LINKS)
		commit_url = NULL;
	if (length_escaped(compare_url) > LINKS)
		compare_url = NULL;
	buf_text(out, "\n");
	slack_escaped(out, before ? before : "?", COMMIT);
	buf_text(out, " .. ");
	linked(out, commit_url, after ? after : "?");
	if (compare_url) {
		buf_text(out, " (");
		linked(out, compare_url, "compare");
		buf_char(out, ')');
	}
}

void slack_short_line(struct buf *out, const struct announcement *item)
{
	slack_escaped(out, item->test, SLACK_NAME);
	buf_char(out, ' ');
	slack_escaped(out, item->metric, METRIC);
	buf_char(out, ' ');
	text_percent(out, &item->change);
}
