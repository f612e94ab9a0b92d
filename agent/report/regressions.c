/*
 * The text is Hunter's, since scripts read it, but for units and "new"; the JSON is one document
 * over all tests.
 */
#include "agent/report/regressions.h"
#include "agent/core/json_put.h"
#include "agent/core/when.h"
#include "agent/report/report.h"
#include "agent/report/table.h"
#include "notifiers/text.h"

void regression_report_begin(struct regression_report *report)
{
	if (report->json)
		fputs("{\"tests\": [", report->out);
}

static void print_text(const struct regression_report *report, const char *test,
	const struct regression *worse, size_t count)
{
	text_print(test, report->out);
	fputs(count > 0 ? ":\n" : ": OK\n", report->out);
	for (size_t i = 0; i < count; i++) {
		const struct comparison *comparison = &worse[i].comparison;
		const struct metric *metric = worse[i].before->metric;
		const char *unit = metric ? metric->unit : NULL;
		fputs("    ", report->out);
		text_print_padded(worse[i].before->name, 16, report->out);
		fputs(": ", report->out);
		text_print_level(comparison->level_before, unit, report->out);
		fputs(" --> ", report->out);
		text_print_level(comparison->level_after, unit, report->out);
		putc(' ', report->out);
		if (worse[i].trend)
			report_print_trend(worse[i].after, worse[i].trend, report->out);
		else
			text_print_size(comparison->size, comparison->size_low,
				comparison->size_high, report->out);
		struct buf basis = {0};
		text_basis(&basis, &worse[i].basis);
		fputs(basis.length > 0 ? basis.data : "", report->out);
		buf_free(&basis);
		putc('\n', report->out);
	}
}

static void put_level(
	struct buf *out, const char *key, const struct series *series, const struct level *level)
{
	char time[WHEN_TEXT];
	const int64_t *times = series->axis->times;
	buf_printf(out, ", \"%s\": {\"first\": \"%s\"", key,
		when_format_iso(times[level->span.from], time));
	buf_printf(out, ", \"last\": \"%s\", \"count\": %zu",
		when_format_iso(times[level->span.to - 1], time), level->count);
	json_put_number(out, "mean", level->mean);
	json_put_number(out, "stddev", level->stddev);
	buf_char(out, '}');
}

static void print_json(const struct regression_report *report, const char *test,
	const struct regression *worse, size_t count, size_t compared)
{
	struct buf out = {0};
	buf_text(&out, report->tests ? ",\n  {\"name\": " : "\n  {\"name\": ");
	buf_json_text(&out, test);
	buf_printf(&out, ", \"compared\": %zu, \"regressions\": [", compared);
	for (size_t i = 0; i < count; i++) {
		const struct comparison *comparison = &worse[i].comparison;
		const struct metric *metric = worse[i].before->metric;
		buf_text(&out, i ? ",\n    {\"metric\": " : "\n    {\"metric\": ");
		buf_json_text(&out, worse[i].before->name);
		buf_printf(&out, ", \"direction\": %d, \"unit\": ", metric ? metric->direction : 0);
		buf_json_text(&out, metric ? metric->unit : NULL);
		json_put_number(&out, "forward_change_percent", comparison->percent);
		json_put_number(&out, "pvalue", comparison->pvalue);
		json_put_number(&out, "level_before", comparison->level_before);
		json_put_number(&out, "level_after", comparison->level_after);
		json_put_number(&out, "size", comparison->size);
		json_put_number(&out, "size_low", comparison->size_low);
		json_put_number(&out, "size_high", comparison->size_high);
		buf_printf(&out, ", \"kind\": \"%s\"",
			change_kind_names[worse[i].trend ? CHANGE_TREND : CHANGE_STEP]);
		announcement_put_basis(&out, &worse[i].basis);
		put_level(&out, "before", worse[i].before, &comparison->before);
		put_level(&out, "after", worse[i].after, &comparison->after);
		buf_char(&out, '}');
	}
	buf_text(&out, "]}");
	fwrite(out.data, 1, out.length, report->out);
	buf_free(&out);
}

void regression_report_test(struct regression_report *report, const char *test,
	const struct regression *worse, size_t count, size_t compared)
{
	if (report->json)
		print_json(report, test, worse, count, compared);
	else
		print_text(report, test, worse, count);
	report->tests++;
	report->regressed += count > 0;
}

void regression_report_failure(struct regression_report *report, const char *test, const char *why)
{
	report_put_failure(&report->failed, test, why);
}

void regression_report_end(struct regression_report *report)
{
	if (report->json)
		fprintf(report->out, "%s], \"regressed\": %zu, \"failed\": [%s]}\n",
			report->tests ? "\n" : "", report->regressed,
			report->failed.length ? report->failed.data : "");
	else if (report->regressed == 0 && report->tests == 0 && report->failed.length > 0)
		; /* nothing was read, so nothing can be said */
	else if (report->regressed == 0)
		fputs("No regressions found!\n", report->out);
	else if (report->regressed == 1)
		fputs("Regressions in 1 test found\n", report->out);
	else
		fprintf(report->out, "Regressions in %zu tests found\n", report->regressed);
	buf_free(&report->failed);
}
