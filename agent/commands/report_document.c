/*
 * The common content of both formats: a title, the request, the tests that could not be read, a row
 * for each change, what is left out, and the plots.
 */
#include <math.h>

#include "agent/base/when.h"
#include "agent/cli/cli.h"
#include "agent/commands/report.h"
#include "agent/report/plot_ticks.h"
#include "notifiers/text.h"

static void put_tally(struct buf *out, const struct report_document *document)
{
	size_t count = document->count, worse = 0, better = 0;

	for (size_t i = 0; i < count; i++) {
		int verdict = announcement_verdict(&document->rows[i].item);

		worse += verdict > 0;
		better += verdict < 0;
	}
	if (count == 0)
		buf_text(out, "No changes");
	else
		buf_printf(out, "%zu change%s", count, cli_plural(count));
	buf_printf(out, " in %zu test%s", document->tests, cli_plural(document->tests));
	if (count > 0)
		buf_printf(out, ": %zu worse, %zu better", worse, better);
	if (count > worse + better)
		buf_printf(out, ", %zu either way", count - worse - better);
}

/* The first `most` names. */
static void put_names(struct buf *out, const struct report_markup *markup,
	const struct strings *names, size_t most)
{
	for (size_t i = 0; i < names->count && i < most; i++) {
		buf_text(out, i ? ", " : "");
		markup->name(out, names->items[i]);
	}
	if (names->count > most)
		buf_printf(out, " and %zu more", names->count - most);
}

static void put_range(struct buf *out, const struct report_document *document)
{
	if (document->since == WHEN_ALWAYS && document->until == WHEN_NEVER)
		buf_text(out, "of the whole range");
	if (document->since != WHEN_ALWAYS) {
		buf_text(out, "since ");
		text_utc.time(out, document->since, TEXT_MINUTE);
	}
	if (document->until != WHEN_NEVER) {
		buf_text(out, document->since != WHEN_ALWAYS ? ", before " : "before ");
		text_utc.time(out, document->until, TEXT_MINUTE);
	}
}

static void put_facts(
	struct buf *out, const struct report_document *document, const struct report_markup *markup)
{
	enum { ASKED = 20, FAILED = 50 };
	const struct strings *failed = &document->failed;

	if (failed->count > 0) {
		buf_printf(out, "%s%zu of %zu tests could not be read:%s", markup->problem.before,
			failed->count, document->tests, markup->problem.after);
		put_names(out, markup, failed, FAILED);
		buf_text(out, markup->paragraph.after);
	}
	buf_text(out, markup->facts.before);
	buf_printf(out, "%sTests%s", markup->fact.before, markup->fact.after);
	if (document->asked.count == 0)
		buf_printf(out, "all %zu", document->tests);
	put_names(out, markup, &document->asked, ASKED);
	buf_text(out, markup->fact_end);
	buf_printf(out, "%sChanges%s", markup->fact.before, markup->fact.after);
	put_range(out, document);
	buf_text(out, markup->fact_end);
	if (document->branch) {
		buf_printf(out, "%sBranch%s", markup->fact.before, markup->fact.after);
		markup->name(out, document->branch);
		buf_text(out, markup->fact_end);
	}
	buf_printf(out, "%sBasis%s", markup->fact.before, markup->fact.after);
	buf_text(out, document->has_state ? "what the agent knows" : "a detection on these points");
	buf_text(out, markup->fact_end);
	buf_printf(out, "%sMade%s", markup->fact.before, markup->fact.after);
	markup->time(out, document->now);
	buf_printf(out, "%s%s", markup->fact_end, markup->facts.after);
}

/* The plot of the row; NULL if it was left out. */
static const struct report_plot *plot_of(
	const struct report_document *document, const struct report_row *row)
{
	for (size_t i = 0; i < document->plot_count; i++)
		if (document->plots[i].ordinal == row->plot)
			return &document->plots[i];
	return NULL;
}

/* "604 ns → 684 ns" */
static void put_levels(
	struct buf *out, const struct announcement *item, const struct report_markup *markup)
{
	double before = item->change.level_before, after = item->change.level_after;
	struct measure measure = measure_of(fmax(fabs(before), fabs(after)), item->unit);
	char was[TICK_TEXT], is[TICK_TEXT];
	struct buf text = {0};

	measure_print(&measure, before, was);
	measure_print(&measure, after, is);
	buf_printf(&text, "%s → %s%s%s", was, is, *measure.rest ? " " : "", measure.rest);
	markup->text(out, text.data);
	buf_free(&text);
}

static void put_commit(
	struct buf *out, const struct announcement *item, const struct report_markup *markup)
{
	const char *commit = announcement_bad(item);
	struct buf none = {0};

	text_suspects(&none, item, &text_utc);
	if (!commit)
		markup->text(out, none.length > 0 ? none.data : "–");
	else if (item->commit_url)
		markup->link(out, item->commit_url, commit);
	else
		markup->name(out, commit);
	if (commit && item->compare_url) {
		buf_char(out, ' ');
		markup->link(out, item->compare_url, "compare");
	}
	buf_free(&none);
}

/* The triage, its author, and a link to the agent's page. */
static void put_state(
	struct buf *out, const struct report_row *row, const struct report_markup *markup)
{
	if (row->word)
		markup->text(out, row->word);
	if (row->person) {
		buf_text(out, markup->line);
		markup->name(out, row->person);
	}
	if (row->item.page) {
		buf_text(out, markup->line);
		markup->link(out, row->item.page, "decide");
	}
}

static void put_verdict(
	struct buf *out, const struct announcement *item, const struct report_markup *markup)
{
	static const char *const shapes[] = {"▼", "◆", "▲"};
	static const char *const verdicts[] = {"better", "changed", "worse"};
	struct buf size = {0};

	text_size(&size, &item->change);
	markup->verdict(out, shapes[1 + change_sign(&item->change)], size.data,
		verdicts[1 + announcement_verdict(item)]);
	buf_free(&size);
}

static const char *const columns[] = {"Change", "Test", "Levels", "Time", "Commit", "State"};

static void put_row(struct buf *out, const struct report_document *document,
	const struct report_row *row, const struct report_markup *markup, size_t count)
{
	const struct report_plot *plot = plot_of(document, row);
	const struct announcement *item = &row->item;

	buf_text(out, markup->row.before);
	for (size_t c = 0; c < count; c++) {
		markup->cell(out, columns[c]);
		switch (c) {
		case 0: put_verdict(out, item, markup); break;
		case 1:
			if (plot)
				markup->refer(out, document, plot, true);
			markup->name(out, item->test);
			buf_char(out, ' ');
			markup->name(out, row->series);
			if (plot)
				markup->refer(out, document, plot, false);
			break;
		case 2: put_levels(out, item, markup); break;
		case 3: markup->time(out, item->time); break;
		case 4: put_commit(out, item, markup); break;
		default: put_state(out, row, markup); break;
		}
		buf_text(out, markup->cell_end);
	}
	buf_text(out, markup->row.after);
}

static void put_table(
	struct buf *out, const struct report_document *document, const struct report_markup *markup)
{
	size_t count = sizeof columns / sizeof *columns - !document->has_state;

	if (document->count == 0)
		return;
	buf_text(out, markup->table.before);
	for (size_t c = 0; c < count; c++)
		buf_printf(
			out, "%s%s%s", markup->heading.before, columns[c], markup->heading.after);
	buf_text(out, markup->headings.before);
	for (size_t c = 0; c < count; c++)
		buf_text(out, markup->rule);
	buf_text(out, markup->headings.after);
	for (size_t i = 0; i < document->count && i < REPORT_ROWS; i++)
		put_row(out, document, &document->rows[i], markup, count);
	buf_text(out, markup->table.after);
}

static void put_omitted(
	struct buf *out, const struct report_document *document, const struct report_markup *markup)
{
	size_t rows = document->count > REPORT_ROWS ? document->count - REPORT_ROWS : 0, plots = 0;

	for (size_t i = 0; i < document->count && document->plot_count > 0; i++)
		plots += !plot_of(document, &document->rows[i]);
	if (rows + plots == 0)
		return;
	buf_text(out, markup->paragraph.before);
	if (rows > 0)
		buf_printf(out, "%zu less important changes are not listed. ", rows);
	if (plots > 0)
		buf_printf(out, "The plots of %zu less important changes were left out.", plots);
	buf_text(out, markup->paragraph.after);
}

void report_put(
	struct buf *out, const struct report_document *document, const struct report_markup *markup)
{
	buf_text(out, markup->title.before);
	markup->text(out, document->title);
	buf_printf(out, "%s%s", markup->title.after, markup->tally);
	put_tally(out, document);
	buf_text(out, markup->paragraph.after);
	put_facts(out, document, markup);
	put_table(out, document, markup);
	put_omitted(out, document, markup);
	for (size_t i = 0; i < document->plot_count; i++)
		markup->plot(out, document, &document->plots[i]);
}
