/*
 * The common content of both formats: a title, the request, the tests that could not be read, a row
 * for each change, what is left out, and the plots.
 */
#include <math.h>
#include <stdarg.h>

#include "agent/base/when.h"
#include "agent/cli/cli.h"
#include "agent/commands/report.h"
#include "agent/report/plot_ticks.h"
#include "notifiers/text.h"

struct writing {
	const struct report_document *document;
	const struct report_markup *markup;
	struct arena *arena;
};

/* A piece with its texts, in the arena. */
static const char *piece(const struct writing *w, enum report_piece piece, ...)
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

void report_put(
	struct buf *out, const struct report_document *document, const struct report_markup *markup)
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
