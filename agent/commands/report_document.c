/*
 * The common content of both formats: a title, the request, the tests that could not be read, a row
 * for each change, what is left out, and the plots.
 */
#include "agent/commands/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/sha256.h"
#include "agent/base/when.h"
#include "agent/cli/cli.h"
#include "agent/report/plot_ticks.h"
#include "agent/web/assets.h"
#include "notifiers/text.h"

/* The pieces that a document is put together from, and what each of them has. */
enum piece {
	PIECE_TITLE,     /* text */
	PIECE_TALLY,     /* content */
	PIECE_PROBLEM,   /* content, content */
	PIECE_PARAGRAPH, /* content */
	PIECE_FACTS,     /* facts */
	PIECE_FACT,      /* name, content */
	PIECE_TABLE,     /* headings, rules, rows */
	PIECE_HEADING,   /* name */
	PIECE_RULE,
	PIECE_ROW,  /* cells */
	PIECE_CELL, /* name of the column, content */
	PIECE_LINE, /* break */
	PIECE_TEXT,
	PIECE_NAME,      /* a text set apart */
	PIECE_LINK,      /* address, text */
	PIECE_TIME,      /* as ISO 8601, and for people */
	PIECE_VERDICT,   /* shape, size, word */
	PIECE_REFERENCE, /* content; number of the plot, base */
	PIECE_PLOT,      /* test, series; number, base; picture, JSON */
	PIECES,
};

/*
 * A format: a template of each piece, in which $r1 is the first text as it is, $t1 the same without
 * markup, $n1 set apart, too, $u1 as an address and $d1 as data of a script.
 */
struct markup {
	const char *pieces[PIECES];
	void (*text)(struct buf *out, const char *text);
	void (*name)(struct buf *out, const char *name);
	void (*address)(struct buf *out, const char *url);
	void (*data)(struct buf *out, const char *json);
};

struct writing {
	const struct report_document *document;
	const struct markup *markup;
	struct arena *arena;
};

/* A piece with its texts, in the arena. */
static const char *piece(const struct writing *w, enum piece piece, ...)
{
	const char *texts[9];
	size_t count = 0;
	struct buf out = {0};
	va_list list;

	va_start(list, piece);
	for (const char *at = w->markup->pieces[piece]; *at; at++) {
		if (*at != '$') {
			buf_char(&out, *at);
			continue;
		}
		size_t which = (size_t)(at[2] - '1');
		while (count <= which)
			texts[count++] = va_arg(list, const char *);
		switch (at[1]) {
		case 't': w->markup->text(&out, texts[which]); break;
		case 'n': w->markup->name(&out, texts[which]); break;
		case 'u': w->markup->address(&out, texts[which]); break;
		case 'd': w->markup->data(&out, texts[which]); break;
		default: buf_text(&out, texts[which]); break;
		}
		at += 2;
	}
	va_end(list);
	return buf_keep(&out, w->arena);
}

static const char *tally(const struct writing *w)
{
	const struct report_document *document = w->document;
	size_t count = document->count, worse = 0, better = 0;
	struct buf out = {0};

	for (size_t i = 0; i < count; i++) {
		int verdict = announcement_verdict(&document->rows[i].item);

		worse += verdict > 0;
		better += verdict < 0;
	}
	if (count == 0)
		buf_text(&out, "No changes");
	else
		buf_printf(&out, "%zu change%s", count, cli_plural(count));
	buf_printf(&out, " in %zu test%s", document->tests, cli_plural(document->tests));
	if (count > 0)
		buf_printf(&out, ": %zu worse, %zu better", worse, better);
	if (count > worse + better)
		buf_printf(&out, ", %zu either way", count - worse - better);
	return buf_keep(&out, w->arena);
}

/* The first `most` names. */
static const char *names_of(const struct writing *w, const struct strings *names, size_t most)
{
	struct buf out = {0};

	for (size_t i = 0; i < names->count && i < most; i++)
		buf_printf(&out, "%s%s", i ? ", " : "", piece(w, PIECE_NAME, names->items[i]));
	if (names->count > most)
		buf_printf(&out, " and %zu more", names->count - most);
	return buf_keep(&out, w->arena);
}

static const char *range_of(const struct writing *w)
{
	const struct report_document *document = w->document;
	struct buf out = {0};

	if (document->since != WHEN_ALWAYS) {
		buf_text(&out, "since ");
		text_utc.time(&out, document->since, TEXT_MINUTE);
	}
	if (document->until != WHEN_NEVER) {
		buf_text(&out, out.length > 0 ? ", before " : "before ");
		text_utc.time(&out, document->until, TEXT_MINUTE);
	}
	return out.length > 0 ? buf_keep(&out, w->arena) : "of the whole range";
}

static const char *time_of(const struct writing *w, int64_t time)
{
	struct buf shown = {0};
	char iso[WHEN_TEXT];

	text_utc.time(&shown, time, TEXT_MINUTE);
	return piece(w, PIECE_TIME, when_format_iso(time, iso), buf_keep(&shown, w->arena));
}

static void put_facts(struct buf *out, const struct writing *w)
{
	enum { ASKED = 20, FAILED = 50 };
	const struct report_document *document = w->document;
	const struct strings *failed = &document->failed;
	const char *const facts[][2] = {
		{"Tests", document->asked.count > 0
				  ? names_of(w, &document->asked, ASKED)
				  : arena_printf(w->arena, "all %zu", document->tests)},
		{"Changes", range_of(w)},
		{"Branch", document->branch ? piece(w, PIECE_NAME, document->branch) : NULL},
		{"Basis", document->has_state ? "what the agent knows"
					      : "a detection on these points"},
		{"Made", time_of(w, document->now)}};
	struct buf list = {0};

	if (failed->count > 0)
		buf_text(out, piece(w, PIECE_PROBLEM,
				      arena_printf(w->arena, "%zu of %zu tests could not be read:",
					      failed->count, document->tests),
				      names_of(w, failed, FAILED)));
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		if (facts[i][1])
			buf_text(&list, piece(w, PIECE_FACT, facts[i][0], facts[i][1]));
	buf_text(out, piece(w, PIECE_FACTS, list.data));
	buf_free(&list);
}

static const char *name_of(const struct writing *w, const struct report_plot *plot)
{
	return arena_printf(w->arena, "%s %s", piece(w, PIECE_NAME, plot->test),
		piece(w, PIECE_NAME, plot->series));
}

static bool is_shown(const struct writing *w, const struct report_plot *plot)
{
	return w->document->plot_count > 0 && plot->svg;
}

/* "604 ns → 684 ns" */
static const char *levels_of(const struct writing *w, const struct announcement *item)
{
	double before = item->change.level_before, after = item->change.level_after;
	struct measure measure = measure_of(fmax(fabs(before), fabs(after)), item->unit);
	char was[TICK_TEXT], is[TICK_TEXT];

	measure_print(&measure, before, was);
	measure_print(&measure, after, is);
	return piece(w, PIECE_TEXT,
		arena_printf(
			w->arena, "%s → %s%s%s", was, is, *measure.rest ? " " : "", measure.rest));
}

static const char *commit_of(const struct writing *w, const struct announcement *item)
{
	const char *commit = announcement_bad(item);
	struct buf none = {0};

	text_suspects(&none, item, &text_utc);
	if (!commit)
		return piece(w, PIECE_TEXT, none.length > 0 ? buf_keep(&none, w->arena) : "–");
	buf_free(&none);
	commit = item->commit_url ? piece(w, PIECE_LINK, item->commit_url, commit)
				  : piece(w, PIECE_NAME, commit);
	return item->compare_url ? arena_printf(w->arena, "%s %s", commit,
					   piece(w, PIECE_LINK, item->compare_url, "compare"))
				 : commit;
}

/* The triage, its author, and a link to the agent's page. */
static const char *state_of(const struct writing *w, const struct report_row *row)
{
	const char *line = piece(w, PIECE_LINE);

	return arena_printf(w->arena, "%s%s%s%s%s",
		row->word ? piece(w, PIECE_TEXT, row->word) : "", row->person ? line : "",
		row->person ? piece(w, PIECE_NAME, row->person) : "", row->item.page ? line : "",
		row->item.page ? piece(w, PIECE_LINK, row->item.page, "decide") : "");
}

static const char *verdict_of(const struct writing *w, const struct announcement *item)
{
	static const char *const shapes[] = {"▼", "◆", "▲"};
	static const char *const verdicts[] = {"better", "changed", "worse"};
	struct buf size = {0};

	text_size(&size, &item->change);
	return piece(w, PIECE_VERDICT, shapes[1 + change_sign(&item->change)],
		buf_keep(&size, w->arena), verdicts[1 + announcement_verdict(item)]);
}

static void put_table(struct buf *out, const struct writing *w)
{
	static const char *const columns[] = {
		"Change", "Test", "Levels", "Time", "Commit", "State"};
	const struct report_document *document = w->document;
	size_t count = sizeof columns / sizeof *columns - !document->has_state;
	struct buf headings = {0}, rules = {0}, rows = {0};

	for (size_t c = 0; c < count; c++) {
		buf_text(&headings, piece(w, PIECE_HEADING, columns[c]));
		buf_text(&rules, piece(w, PIECE_RULE));
	}
	for (size_t i = 0; i < document->count && i < REPORT_ROWS; i++) {
		const struct report_row *row = &document->rows[i];
		const char *name = name_of(w, row->plot);
		const char *const cells[] = {verdict_of(w, &row->item),
			is_shown(w, row->plot)
				? piece(w, PIECE_REFERENCE, name, row->plot->number, document->base)
				: name,
			levels_of(w, &row->item), time_of(w, row->item.time),
			commit_of(w, &row->item), state_of(w, row)};
		struct buf line = {0};

		for (size_t c = 0; c < count; c++)
			buf_text(&line, piece(w, PIECE_CELL, columns[c], cells[c]));
		buf_text(&rows, piece(w, PIECE_ROW, buf_keep(&line, w->arena)));
	}
	buf_text(out, piece(w, PIECE_TABLE, buf_keep(&headings, w->arena),
			      buf_keep(&rules, w->arena), buf_keep(&rows, w->arena)));
}

static void put_omitted(struct buf *out, const struct writing *w)
{
	const struct report_document *document = w->document;
	size_t rows = document->count > REPORT_ROWS ? document->count - REPORT_ROWS : 0, plots = 0;
	struct buf text = {0};

	for (size_t i = 0; i < document->count && document->plot_count > 0; i++)
		plots += !is_shown(w, document->rows[i].plot);
	if (rows > 0)
		buf_printf(&text, "%zu less important changes are not listed. ", rows);
	if (plots > 0)
		buf_printf(&text, "The plots of %zu less important changes were left out.", plots);
	if (text.length > 0)
		buf_text(out, piece(w, PIECE_PARAGRAPH, text.data));
	buf_free(&text);
}

static void put_report(
	struct buf *out, const struct report_document *document, const struct markup *markup)
{
	const struct writing w = {document, markup, arena_new()};

	buf_text(out, piece(&w, PIECE_TITLE, document->title));
	buf_text(out, piece(&w, PIECE_TALLY, tally(&w)));
	put_facts(out, &w);
	if (document->count > 0)
		put_table(out, &w);
	put_omitted(out, &w);
	for (size_t i = 0; i < document->plot_count; i++) {
		const struct report_plot *plot = document->plots[i];

		buf_text(out, piece(&w, PIECE_PLOT, name_of(&w, plot), plot->number, document->base,
				      plot->svg, plot->json));
	}
	arena_free(w.arena);
}

/*
 * A report as one page. All is inline, and the page may do nothing else: its policy names the
 * scripts and the style by their hashes, and allows nothing to be fetched. Each plot is there as a
 * picture, too, for printing and for readers that do not run scripts.
 */

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

static void put_html_address(struct buf *out, const char *url)
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

static const struct markup html = {
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
	.address = put_html_address,
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
	put_report(out, document, &html);
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

/*
 * A report as Markdown with tables, as GitHub, GitLab and imports of Confluence read it. Names are
 * code spans: nothing in them is markup, a mention or a link.
 */

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
static void put_md_address(struct buf *out, const char *url)
{
	for (; *url; url++) {
		unsigned char c = (unsigned char)*url;

		if (c <= ' ' || c >= 127 || strchr("()<>\\|\"`*_[]", c))
			buf_printf(out, "%%%02X", c);
		else
			buf_char(out, *url);
	}
}

static const struct markup markdown = {.pieces = {[PIECE_TITLE] = "# $t1\n\n",
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
	.address = put_md_address};

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
			put_md_address(&base, (const char[]){*at, '\0'});
	}
	beside.base = base.data;
	if (!document->base)
		beside.plot_count = 0;
	put_report(out, &beside, &markdown);
	buf_free(&base);
}
