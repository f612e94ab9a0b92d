/*
 * A report as one page. All is inline, and the page may do nothing else: its policy names the
 * scripts and the style by their hashes, and allows nothing to be fetched. Each plot is there as a
 * picture, too, for printing and for readers that do not run scripts.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/base/sha256.h"
#include "agent/base/utf8.h"
#include "agent/commands/report.h"
#include "agent/web/assets.h"
#include "notifiers/text.h"

/* Text from outside, as content or in an attribute. */
static void put_name(struct buf *out, const char *text)
{
	struct buf clean = {0};

	buf_clean(&clean, text, REPORT_NAME);
	buf_markup(out, clean.data, clean.length);
	buf_free(&clean);
}

static void put_isolated(struct buf *out, const char *text)
{
	buf_text(out, "<bdi>");
	put_name(out, text);
	buf_text(out, "</bdi>");
}

static void put_address(struct buf *out, const char *url)
{
	buf_markup(out, url, strlen(url));
}

/* JSON as the content of a script element, which no markup in it ends. */
static void put_data(struct buf *out, const char *json)
{
	for (; *json; json++) {
		if (*json == '<' || *json == '>' || *json == '&')
			buf_printf(out, "\\u%04x", (unsigned)*json);
		else if (strncmp(json, "\xe2\x80\xa8", 3) == 0 ||
			 strncmp(json, "\xe2\x80\xa9", 3) == 0) {
			buf_printf(out, "\\u202%c", json[2] & 1 ? '9' : '8');
			json += 2;
		} else
			buf_char(out, *json);
	}
}

/* ---- the policy ---- */

static void put_hash(struct buf *out, const struct buf *content)
{
	unsigned char sum[SHA256_BYTES];

	sha256(content->data, content->length, sum);
	buf_text(out, " 'sha256-");
	buf_base64(out, sum, sizeof sum);
	buf_char(out, '\'');
}

static void put_asset(struct buf *out, const char *name)
{
	asset_put(asset_named(name), out);
	buf_char(out, '\n');
}

/* A module of the page, without its line of imports: all are one module here. */
static void put_module(struct buf *out, const char *name)
{
	struct buf text = {0};
	const char *rest, *import;

	put_asset(&text, name);
	rest = text.data;
	import = strstr(rest, "\nimport ");
	if (import) {
		buf_append(out, rest, (size_t)(import - rest));
		rest = strchr(import + 1, '\n');
	}
	buf_text(out, rest);
	buf_free(&text);
}

/* The frame of the page. */
struct parts {
	struct buf style, charts, script, pictures;
};

static void put_head(
	struct buf *out, const struct report_document *document, const struct parts *parts)
{
	buf_text(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "script-src");
	put_hash(out, &parts->charts);
	put_hash(out, &parts->script);
	buf_text(out, "; style-src");
	put_hash(out, &parts->style);
	if (parts->pictures.length > 0)
		put_hash(out, &parts->pictures);
	buf_text(out, "; base-uri 'none'; form-action 'none'\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		      "<meta name=\"color-scheme\" content=\"light dark\">\n"
		      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
	put_name(out, document->title);
	buf_text(out, "</title>\n<style>");
	buf_append(out, parts->style.data, parts->style.length);
	buf_text(out, "</style>\n</head>\n");
}

static const struct report_markup markup = {
	.pieces = {[PIECE_TITLE] = "<h1>$t1</h1>\n",
		[PIECE_TALLY] = "<p class=\"tally\">$r1</p>\n",
		[PIECE_PROBLEM] = "<p class=\"problem\">$r1 $r2</p>\n",
		[PIECE_PARAGRAPH] = "<p class=\"quiet\">$r1</p>\n",
		[PIECE_FACTS] = "<dl class=\"facts\">\n$r1</dl>\n",
		[PIECE_FACT] = "<dt>$r1</dt><dd>$r2</dd>\n",
		[PIECE_TABLE] = "<div class=\"table\"><table class=\"changes\">\n"
				"<thead><tr>$r1</tr></thead>\n<tbody>\n$r3</tbody>\n"
				"</table></div>\n",
		[PIECE_HEADING] = "<th>$r1</th>",
		[PIECE_RULE] = "",
		[PIECE_ROW] = "<tr>$r1</tr>\n",
		[PIECE_CELL] = "<td data-label=\"$r1\">$r2</td>",
		[PIECE_LINE] = "<br>",
		[PIECE_TEXT] = "$t1",
		[PIECE_NAME] = "$n1",
		[PIECE_LINK] = "<a rel=\"noreferrer\" href=\"$u1\">$n2</a>",
		[PIECE_TIME] = "<time datetime=\"$r1\">$r2</time>",
		[PIECE_VERDICT] =
			"<span class=\"verdict $r3\"><span aria-hidden=\"true\">$r1</span> "
			"$r2 <span class=\"word\">$r3</span></span>",
		[PIECE_REFERENCE] = "<a href=\"#plot-$r2\">$r1</a>",
		[PIECE_PLOT] =
			"<section class=\"plot\" id=\"plot-$r2\">\n<h2>$r1</h2>\n"
			"<div class=\"drawn\" hidden></div>\n<div class=\"still\">$r4</div>\n"
			"<script type=\"application/json\">$d5</script>\n</section>\n"},
	.text = put_name,
	.name = put_isolated,
	.address = put_address,
	.data = put_data};

void report_html(struct buf *out, const struct report_document *document)
{
	struct parts parts = {0};

	put_asset(&parts.style, "dygraph.css");
	put_asset(&parts.style, "page.css");
	put_asset(&parts.style, "chart.css");
	put_asset(&parts.style, "report.css");
	put_asset(&parts.charts, "dygraph.js");
	put_module(&parts.script, "dom.js");
	put_module(&parts.script, "chart.js");
	put_module(&parts.script, "report.js");
	if (document->plot_count > 0) { /* the style element of the pictures, the same in each */
		const char *begin = strstr(document->plots[0]->svg, "<style>") + strlen("<style>");

		buf_append(&parts.pictures, begin, (size_t)(strstr(begin, "</style>") - begin));
	}
	put_head(out, document, &parts);
	buf_text(out, "<body>\n<main>\n");
	report_put(out, document, &markup);
	buf_printf(out, "<footer class=\"quiet\">hunter-c %s</footer>\n</main>\n", HUNTER_VERSION);
	if (document->plot_count > 0) {
		buf_text(out, "<script>");
		buf_append(out, parts.charts.data, parts.charts.length);
		buf_text(out, "</script>\n<script type=\"module\">");
		buf_append(out, parts.script.data, parts.script.length);
		buf_text(out, "</script>\n");
	}
	buf_text(out, "</body>\n</html>\n");
	buf_free(&parts.style);
	buf_free(&parts.charts);
	buf_free(&parts.script);
	buf_free(&parts.pictures);
}
