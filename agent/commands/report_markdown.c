/*
 * A report as Markdown with tables, as GitHub, GitLab and imports of Confluence read it. Names are
 * code spans: nothing in them is markup, a mention or a link.
 */
#include <string.h>

#include "agent/commands/report.h"

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
static void put_address(struct buf *out, const char *url)
{
	for (; *url; url++) {
		unsigned char c = (unsigned char)*url;

		if (c <= ' ' || c >= 127 || strchr("()<>\\|\"`*_[]", c))
			buf_printf(out, "%%%02X", c);
		else
			buf_char(out, *url);
	}
}

static const struct report_markup markup = {.pieces = {[PIECE_TITLE] = "# $t1\n\n",
						    [PIECE_TALLY] = "$r1\n\n",
						    [PIECE_PROBLEM] = "**$r1** $r2\n\n",
						    [PIECE_PARAGRAPH] = "\n$r1\n\n",
						    [PIECE_FACTS] = "$r1",
						    [PIECE_FACT] = "- $r1: $r2\n",
						    [PIECE_TABLE] = "\n|$r1\n|$r2\n$r3",
						    [PIECE_HEADING] = " $r1 |",
						    [PIECE_RULE] = "---|",
						    [PIECE_ROW] = "|$r1\n",
						    [PIECE_CELL] = " $r2 |",
						    [PIECE_LINE] = " ",
						    [PIECE_TEXT] = "$t1",
						    [PIECE_NAME] = "$n1",
						    [PIECE_LINK] = "[$n2]($u1)",
						    [PIECE_TIME] = "$r2",
						    [PIECE_VERDICT] = "$r1 $r2 $r3",
						    [PIECE_REFERENCE] = "[$r1]($r3-$r2.svg)",
						    [PIECE_PLOT] = "\n## $r2. $r1\n\n"
								   "![plot $r2]($r3-$r2.svg)\n"},
	.text = put_plain,
	.name = put_code,
	.address = put_address};

/* The pictures lie beside the document. */
void report_markdown(struct buf *out, const struct report_document *document)
{
	struct report_document beside = *document;
	const char *slash = document->base ? strrchr(document->base, '/') : NULL;
	struct buf base = {0};

	for (const char *at = slash ? slash + 1 : document->base; at && *at; at++) {
		if (strchr("%#?:", *at))
			buf_printf(&base, "%%%02X", (unsigned)*at);
		else
			put_address(&base, (const char[]){*at, '\0'});
	}
	beside.base = base.data;
	report_put(out, &beside, &markup);
	buf_free(&base);
}
