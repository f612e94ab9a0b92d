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

/* The URL is percent-encoded, except for characters that end the link. */
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

static void put_time(struct buf *out, int64_t time)
{
	text_utc.time(out, time, TEXT_MINUTE);
}

static void put_verdict(struct buf *out, const char *shape, const char *size, const char *verdict)
{
	buf_printf(out, "%s %s %s", shape, size, verdict);
}

static void put_cell(struct buf *out, const char *column)
{
	(void)column;
	buf_text(out, " ");
}

static void refer(struct buf *out, const struct report_document *document,
	const struct report_plot *plot, bool begins)
{
	if (begins) {
		buf_char(out, '[');
		return;
	}
	buf_text(out, "](");
	put_picture(out, document->base, plot->number);
	buf_char(out, ')');
}

static void put_plot(
	struct buf *out, const struct report_document *document, const struct report_plot *plot)
{
	buf_printf(out, "\n## %zu. ", plot->number);
	put_code(out, plot->test);
	buf_char(out, ' ');
	put_code(out, plot->series);
	buf_printf(out, "\n\n![plot %zu](", plot->number);
	put_picture(out, document->base, plot->number);
	buf_text(out, ")\n");
}

static const struct report_markup markup = {.title = {"# ", "\n\n"},
	.tally = "",
	.problem = {"**", "** "},
	.paragraph = {"\n", "\n\n"},
	.facts = {"", ""},
	.fact = {"- ", ": "},
	.fact_end = "\n",
	.table = {"\n|", ""},
	.heading = {" ", " |"},
	.headings = {"\n|", "\n"},
	.rule = "---|",
	.row = {"|", "\n"},
	.cell_end = " |",
	.line = " ",
	.text = put_plain,
	.name = put_code,
	.link = put_link,
	.time = put_time,
	.verdict = put_verdict,
	.cell = put_cell,
	.refer = refer,
	.plot = put_plot};

void report_markdown(struct buf *out, const struct report_document *document)
{
	report_put(out, document, &markup);
}
