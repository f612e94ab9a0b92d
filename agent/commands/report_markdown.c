/*
 * A report as Markdown with tables, as GitHub, GitLab and imports of Confluence read it. Names are
 * code spans: nothing in them is markup, a mention or a link.
 */
#include <string.h>

#include "agent/base/when.h"
#include "agent/commands/report.h"
#include "notifiers/text.h"

static size_t longest_run(const char *text)
{
	size_t longest = 0, run = 0;

	for (; *text; text++) {
		run = *text == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* A backslash before a bar would be one that escapes it, or be escaped itself. */
static void put_code(struct buf *out, const char *text)
{
	struct buf clean = {0};
	size_t fence;

	buf_clean(&clean, text, REPORT_NAME);
	if (clean.length == 0) {
		buf_text(out, "–");
		return;
	}
	fence = longest_run(clean.data) + 1;
	for (size_t i = 0; i < fence; i++)
		buf_char(out, '`');
	buf_text(out, fence > 1 ? " " : "");
	for (const char *at = clean.data; *at; at++) {
		if (*at == '|')
			buf_text(out, at > clean.data && at[-1] == '\\' ? " \\" : "\\");
		buf_char(out, *at);
	}
	if (fence > 1 || clean.data[clean.length - 1] == '\\')
		buf_char(out, ' ');
	for (size_t i = 0; i < fence; i++)
		buf_char(out, '`');
	buf_free(&clean);
}

/* Text of which no character is markup. */
static void put_plain(struct buf *out, const char *text)
{
	struct buf clean = {0};

	buf_clean(&clean, text, REPORT_NAME);
	for (const char *at = clean.data ? clean.data : ""; *at; at++) {
		if (strchr("\\`*_{}[]()<>#|~!&$@:", *at))
			buf_printf(out, "&#%d;", *at);
		else
			buf_char(out, *at);
	}
	buf_free(&clean);
}

/* The URL is percent-encoded, except for what would end the link. */
static void put_target(struct buf *out, const char *url)
{
	for (; *url; url++) {
		unsigned char c = (unsigned char)*url;

		if (c <= ' ' || c >= 127 || strchr("()<>\\|\"`*_[]", c))
			buf_printf(out, "%%%02X", c);
		else
			buf_char(out, *url);
	}
}

static void put_link(struct buf *out, const char *url, const char *text)
{
	buf_char(out, '[');
	put_code(out, text);
	buf_text(out, "](");
	put_target(out, url);
	buf_char(out, ')');
}

static void put_picture(struct buf *out, const char *base, size_t number)
{
	const char *name = strrchr(base, '/');

	for (const char *at = name ? name + 1 : base; *at; at++) {
		if (strchr("%#?:", *at))
			buf_printf(out, "%%%02X", (unsigned)*at);
		else
			put_target(out, (const char[]){*at, '\0'});
	}
	buf_printf(out, "-%zu.svg", number);
}

static void put_commit(struct buf *out, const struct announcement *item)
{
	const char *commit = announcement_bad(item);
	struct buf none = {0};

	text_suspects(&none, item, &text_utc);
	if (commit && item->commit_url)
		put_link(out, item->commit_url, commit);
	else if (commit)
		put_code(out, commit);
	else
		put_plain(out, none.data ? none.data : "");
	buf_free(&none);
}

static void put_row(struct buf *out, const struct report_document *document,
	const struct report_row *row, const char *base)
{
	const struct report_plot *plot = base ? report_plot_of(document, row) : NULL;
	const struct announcement *item = &row->item;

	buf_printf(out, "| %s %s | ", report_shape(item), report_verdict(item));
	struct buf size = {0};
	text_size(&size, &item->change);
	buf_text(out, size.data ? size.data : "");
	buf_free(&size);
	buf_text(out, " | ");
	put_code(out, item->test);
	buf_text(out, " | ");
	put_code(out, row->series);
	buf_text(out, " | ");
	report_put_levels(&size, item);
	put_plain(out, size.data ? size.data : "");
	buf_free(&size);
	buf_text(out, " | ");
	text_utc.time(out, item->time, false);
	buf_text(out, " | ");
	put_commit(out, item);
	if (document->has_state) {
		buf_text(out, " | ");
		put_plain(out, row->word ? row->word : "");
		if (item->page) {
			buf_char(out, ' ');
			put_link(out, item->page, "decide");
		}
	}
	if (base && plot) {
		buf_printf(out, " | [%zu](", plot->number);
		put_picture(out, base, plot->number);
		buf_char(out, ')');
	} else if (base) {
		buf_text(out, " | ");
	}
	buf_text(out, " |\n");
}

static void put_failed(struct buf *out, const struct report_document *document)
{
	enum { NAMES = 50 };
	const struct strings *failed = &document->failed;

	if (failed->count == 0)
		return;
	buf_printf(out, "**%zu of %zu tests could not be read:** ", failed->count, document->tests);
	report_put_names(out, failed, NAMES, put_code);
	buf_text(out, "\n\n");
}

static void put_table(struct buf *out, const struct report_document *document, const char *base)
{
	if (document->count == 0)
		return;
	buf_printf(out,
		"| Change | Size | Test | Series | Levels | Time | Commit |%s%s\n"
		"|---|---|---|---|---|---|---|%s%s\n",
		document->has_state ? " State |" : "", base ? " Plot |" : "",
		document->has_state ? "---|" : "", base ? "---|" : "");
	for (size_t i = 0; i < document->count && i < REPORT_ROWS; i++)
		put_row(out, document, &document->rows[i], base);
	buf_char(out, '\n');
}

void report_markdown(struct buf *out, const struct report_document *document, const char *base)
{
	struct buf text = {0};

	buf_text(out, "# ");
	put_plain(out, document->title);
	buf_text(out, "\n\n");
	report_put_tally(out, document);
	buf_text(out, "; ");
	report_put_range(out, document);
	if (document->branch) {
		buf_text(out, ", branch ");
		put_code(out, document->branch);
	}
	buf_text(out, ". Made ");
	text_utc.time(out, document->now, false);
	buf_text(out, ".\n\n");
	put_failed(out, document);
	put_table(out, document, base);
	if (base)
		report_put_omitted(&text, document);
	if (text.length > 0)
		buf_printf(out, "%s\n\n", text.data);
	buf_free(&text);
	for (size_t i = 0; base && i < document->plot_count; i++) {
		const struct report_plot *plot = &document->plots[i];

		buf_printf(out, "## %zu. ", plot->number);
		put_code(out, plot->test);
		buf_char(out, ' ');
		put_code(out, plot->series);
		buf_printf(out, "\n\n![plot %zu](", plot->number);
		put_picture(out, base, plot->number);
		buf_text(out, ")\n\n");
	}
}
