/*
 * A report as one page. All is inline, and the page may do nothing else: its policy names the
 * scripts and the style by their hashes, and allows nothing to be fetched. Each plot is there as a
 * picture, too: it is what is printed, and what is seen where scripts may not run.
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

/* Escapes what the buffer has, and frees it. */
static void put_text(struct buf *out, struct buf *text)
{
	buf_markup(out, text->data, text->length);
	buf_free(text);
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
	text_utc.time(out, ms, false);
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
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned char sum[SHA256_BYTES + 1] = {0};
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_add(&hash, content->data, content->length);
	sha256_end(&hash, sum);
	buf_text(out, " 'sha256-");
	for (size_t i = 0; i < SHA256_BYTES; i += 3) {
		unsigned bits = (unsigned)sum[i] << 16 | (unsigned)sum[i + 1] << 8;

		bits |= i + 2 < SHA256_BYTES ? sum[i + 2] : 0;
		buf_char(out, digits[bits >> 18]);
		buf_char(out, digits[bits >> 12 & 63]);
		buf_char(out, digits[bits >> 6 & 63]);
		if (i + 2 < SHA256_BYTES)
			buf_char(out, digits[bits & 63]);
	}
	buf_text(out, "='");
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

/* What the page consists of besides its content. */
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

/* ---- the content ---- */

static void put_asked(struct buf *out, const struct report_document *document)
{
	enum { NAMES = 20 };

	if (document->asked.count == 0)
		buf_printf(out, "all %zu", document->tests);
	report_put_names(out, &document->asked, NAMES, put_isolated);
}

static void put_failed(struct buf *out, const struct report_document *document)
{
	enum { NAMES = 50 };
	const struct strings *failed = &document->failed;

	if (failed->count == 0)
		return;
	buf_printf(out, "<p class=\"problem\">%zu of %zu tests could not be read: ", failed->count,
		document->tests);
	report_put_names(out, failed, NAMES, put_isolated);
	buf_text(out, "</p>\n");
}

static void put_summary(struct buf *out, const struct report_document *document)
{
	struct buf text = {0};

	buf_text(out, "<h1>");
	put_name(out, document->title);
	buf_text(out, "</h1>\n<p class=\"tally\">");
	report_put_tally(&text, document);
	put_text(out, &text);
	buf_text(out, "</p>\n");
	put_failed(out, document);
	buf_text(out, "<dl class=\"facts\">\n<dt>Tests</dt><dd>");
	put_asked(out, document);
	buf_text(out, "</dd>\n<dt>Changes</dt><dd>");
	report_put_range(&text, document);
	put_text(out, &text);
	buf_text(out, "</dd>\n");
	if (document->branch) {
		buf_text(out, "<dt>Branch</dt><dd>");
		put_isolated(out, document->branch);
		buf_text(out, "</dd>\n");
	}
	buf_printf(out, "<dt>Basis</dt><dd>%s</dd>\n<dt>Made</dt><dd>",
		document->has_state ? "what the agent knows" : "a detection on these points");
	put_time(out, document->now);
	buf_text(out, "</dd>\n</dl>\n");
}

static void put_commit(struct buf *out, const struct announcement *item)
{
	const char *commit = announcement_bad(item);
	struct buf none = {0};

	text_suspects(&none, item, &text_utc);
	if (!commit && none.length > 0)
		put_text(out, &none);
	else if (!commit)
		buf_text(out, "–");
	else if (item->commit_url)
		put_link(out, item->commit_url, commit);
	else
		put_isolated(out, commit);
	if (commit && item->compare_url) {
		buf_char(out, ' ');
		put_link(out, item->compare_url, "compare");
	}
	buf_free(&none);
}

static void put_verdict(struct buf *out, const struct announcement *item)
{
	static const char *const classes[] = {"better", "neither", "worse"};
	struct buf text = {0};

	buf_printf(out, "<span class=\"verdict %s\"><span aria-hidden=\"true\">%s</span> ",
		classes[1 + announcement_verdict(item)], report_shape(item));
	text_size(&text, &item->change);
	put_text(out, &text);
	buf_printf(out, " <span class=\"word\">%s</span></span>", report_verdict(item));
}

static void put_row(
	struct buf *out, const struct report_document *document, const struct report_row *row)
{
	const struct report_plot *plot = report_plot_of(document, row);
	const struct announcement *item = &row->item;
	struct buf text = {0};

	buf_text(out, "<tr><td data-label=\"Change\">");
	put_verdict(out, item);
	buf_text(out, "</td><td data-label=\"Test\" class=\"name\">");
	if (plot)
		buf_printf(out, "<a href=\"#plot-%zu\">", plot->number);
	put_isolated(out, item->test);
	buf_char(out, ' ');
	put_isolated(out, row->series);
	buf_text(out, plot ? "</a>" : "");
	buf_text(out, "</td><td data-label=\"Levels\">");
	report_put_levels(&text, item);
	put_text(out, &text);
	buf_text(out, "</td><td data-label=\"Time\">");
	put_time(out, item->time);
	buf_text(out, "</td><td data-label=\"Commit\" class=\"name\">");
	put_commit(out, item);
	if (document->has_state) {
		buf_text(out, "</td><td data-label=\"State\">");
		if (row->word)
			put_name(out, row->word);
		if (row->person) {
			buf_text(out, "<br>");
			put_isolated(out, row->person);
		}
		if (item->page) {
			buf_text(out, "<br>");
			put_link(out, item->page, "decide");
		}
	}
	buf_text(out, "</td></tr>\n");
}

static void put_table(struct buf *out, const struct report_document *document)
{
	if (document->count == 0)
		return;
	buf_printf(out,
		"<div class=\"table\"><table class=\"changes\">\n<thead><tr><th>Change</th>"
		"<th>Test and series</th><th>Levels</th><th>Time</th><th>Commit</th>%s</tr>"
		"</thead>\n<tbody>\n",
		document->has_state ? "<th>State</th>" : "");
	for (size_t i = 0; i < document->count && i < REPORT_ROWS; i++)
		put_row(out, document, &document->rows[i]);
	buf_text(out, "</tbody>\n</table></div>\n");
}

static void put_plot(struct buf *out, const struct report_plot *plot)
{
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

void report_html(struct buf *out, const struct report_document *document)
{
	struct parts parts = {0};
	struct buf text = {0};

	make_parts(&parts, document);
	put_head(out, document, &parts);
	buf_text(out, "<body>\n<main>\n");
	put_summary(out, document);
	put_table(out, document);
	report_put_omitted(&text, document);
	if (text.length > 0) {
		buf_text(out, "<p class=\"quiet\">");
		put_text(out, &text);
		buf_text(out, "</p>\n");
	}
	for (size_t i = 0; i < document->plot_count; i++)
		put_plot(out, &document->plots[i]);
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
