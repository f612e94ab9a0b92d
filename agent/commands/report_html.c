/*
 * A report as one page. All is inline, and the page may do nothing else: its policy names the
 * scripts and the style by their hashes, and allows nothing to be fetched. Each plot is there as a
 * picture, too, for printing and for readers that do not run scripts.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/base/sha256.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"
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

static void put_link(struct buf *out, const char *url, const char *text)
{
	buf_text(out, "<a rel=\"noreferrer\" href=\"");
	buf_markup(out, url, strlen(url));
	buf_text(out, "\">");
	put_isolated(out, text);
	buf_text(out, "</a>");
}

static void put_time(struct buf *out, int64_t ms)
{
	char iso[WHEN_TEXT];

	buf_printf(out, "<time datetime=\"%s\">", when_format_iso(ms, iso));
	text_utc.time(out, ms, TEXT_MINUTE);
	buf_text(out, "</time>");
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
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_add(&hash, content->data, content->length);
	sha256_end(&hash, sum);
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

/* The style element of the pictures, the same in each. */
static void put_picture_style(struct buf *out, const struct report_document *document)
{
	for (size_t i = 0; i < document->plot_count; i++) {
		const char *begin = strstr(document->plots[i].svg, "<style>"), *end;

		if (!begin)
			continue;
		begin += strlen("<style>");
		end = strstr(begin, "</style>");
		buf_append(out, begin, end ? (size_t)(end - begin) : strlen(begin));
		return;
	}
}

/* The frame of the page. */
struct parts {
	struct buf style, library, script, pictures;
};

static void make_parts(struct parts *parts, const struct report_document *document)
{
	put_asset(&parts->style, "dygraph.css");
	put_asset(&parts->style, "page.css");
	put_asset(&parts->style, "chart.css");
	put_asset(&parts->style, "report.css");
	put_asset(&parts->library, "dygraph.js");
	put_module(&parts->script, "dom.js");
	put_module(&parts->script, "chart.js");
	put_module(&parts->script, "report.js");
	put_picture_style(&parts->pictures, document);
}

static void put_head(
	struct buf *out, const struct report_document *document, const struct parts *parts)
{
	buf_text(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "script-src");
	put_hash(out, &parts->library);
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

static void put_verdict(struct buf *out, const char *shape, const char *size, const char *verdict)
{
	buf_printf(out,
		"<span class=\"verdict %s\"><span aria-hidden=\"true\">%s</span> %s "
		"<span class=\"word\">%s</span></span>",
		verdict, shape, size, verdict);
}

static void put_cell(struct buf *out, const char *column)
{
	buf_printf(out, "<td data-label=\"%s\">", column);
}

static void refer(struct buf *out, const struct report_document *document,
	const struct report_plot *plot, bool begins)
{
	(void)document;
	if (begins)
		buf_printf(out, "<a href=\"#plot-%zu\">", plot->number);
	else
		buf_text(out, "</a>");
}

static void put_plot(
	struct buf *out, const struct report_document *document, const struct report_plot *plot)
{
	(void)document;
	buf_printf(out, "<section class=\"plot\" id=\"plot-%zu\">\n<h2>", plot->number);
	put_isolated(out, plot->test);
	buf_char(out, ' ');
	put_isolated(out, plot->series);
	buf_text(out, "</h2>\n<div class=\"drawn\" hidden></div>\n<div class=\"still\">");
	buf_text(out, plot->svg);
	buf_text(out, "</div>\n<script type=\"application/json\">");
	put_data(out, plot->json);
	buf_text(out, "</script>\n</section>\n");
}

static const struct report_markup markup = {.title = {"<h1>", "</h1>\n"},
	.tally = "<p class=\"tally\">",
	.problem = {"<p class=\"problem\">", " "},
	.paragraph = {"<p class=\"quiet\">", "</p>\n"},
	.facts = {"<dl class=\"facts\">\n", "</dl>\n"},
	.fact = {"<dt>", "</dt><dd>"},
	.fact_end = "</dd>\n",
	.table = {"<div class=\"table\"><table class=\"changes\">\n<thead><tr>",
		"</tbody>\n</table></div>\n"},
	.heading = {"<th>", "</th>"},
	.headings = {"</tr></thead>\n<tbody>\n", ""},
	.rule = "",
	.row = {"<tr>", "</tr>\n"},
	.cell_end = "</td>",
	.line = "<br>",
	.text = put_name,
	.name = put_isolated,
	.link = put_link,
	.time = put_time,
	.verdict = put_verdict,
	.cell = put_cell,
	.refer = refer,
	.plot = put_plot};

void report_html(struct buf *out, const struct report_document *document)
{
	struct parts parts = {0};

	make_parts(&parts, document);
	put_head(out, document, &parts);
	buf_text(out, "<body>\n<main>\n");
	report_put(out, document, &markup);
	buf_printf(out, "<footer class=\"quiet\">hunter-c %s</footer>\n</main>\n", HUNTER_VERSION);
	if (document->plot_count > 0) {
		buf_text(out, "<script>");
		buf_append(out, parts.library.data, parts.library.length);
		buf_text(out, "</script>\n<script type=\"module\">");
		buf_append(out, parts.script.data, parts.script.length);
		buf_text(out, "</script>\n");
	}
	buf_text(out, "</body>\n</html>\n");
	buf_free(&parts.style);
	buf_free(&parts.library);
	buf_free(&parts.script);
	buf_free(&parts.pictures);
}
