/*
 * JSON in two forms. Ours is one document for all tests, with numbers as numbers. Otava's is one
 * document for each test, on a line of its own, with statistics as rounded strings; key order,
 * spacing and escapes are those of Python's json.dumps.
 */
#include "agent/report/report.h"

#include <inttypes.h>
#include <math.h>

#include "agent/analysis/timeline.h"
#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "agent/report/table.h"

/* Unless the value is NULL. Names of attributes and labels are foreign. */
static void put_named(struct buf *out, const char *name, const char *value)
{
	if (!value)
		return;
	json_next(out);
	buf_json_text(out, name);
	buf_text(out, ": ");
	buf_json_text(out, value);
}

void report_put_change(struct buf *out, const struct findings *findings,
	const struct change *change, const struct strings *attributes, struct arena *arena)
{
	const struct series *series = findings->series;
	const int64_t *times = series->axis->times;
	struct attribution suspects = attribution_of(arena, series, change);
	struct announcement item = {0};
	int64_t ms = times[change->index];

	json_open(out, "metric", series->name);
	json_put_count(out, "index", change->index);
	json_put_time(out, "time", ms);
	json_put_number(out, "timestamp", (double)ms / 1000);
	buf_text(out, ", \"attributes\": {");
	for (size_t i = 0; i < attributes->count; i++)
		put_named(out, attributes->items[i],
			change_attribute(series, change, attributes->items[i]));
	buf_text(out, "}, \"attributes_before\": {");
	for (size_t i = 0; i < attributes->count; i++)
		put_named(out, attributes->items[i],
			change_attribute_before(series, change, attributes->items[i]));
	buf_char(out, '}');
	json_put_text(out, "commit_before", change_attribute_before(series, change, "commit"));
	buf_text(out, ", \"labels\": {");
	for (size_t i = 0; i < series->labels.count; i++)
		put_named(out, series->labels.items[i].key, series->labels.items[i].value);
	buf_char(out, '}');
	announcement_put_suspects(out, &suspects, ms);
	findings_basis(arena, findings, change, &item);
	announcement_put_basis(out, &item);
	if (findings->accepted)
		json_put_text(out, "accepted", change_accepted(findings, change));
	json_put_means(out, change);
	json_put_bool(out, "regression", change_is_regression(series, change));
	json_put_levels(out, change);
	json_put_time(out, "place_from", times[change->place_from]);
	json_put_time(out, "place_to", times[change->place_to]);
	buf_char(out, '}');
}

void report_put_series(struct buf *out, const struct series *series)
{
	size_t missing = 0;
	for (size_t i = 0; i < series->axis->n; i++)
		missing += isnan(series->values[i]) ? 1 : 0;
	json_open(out, "name", series->name);
	buf_printf(out, ", \"direction\": %d", series_direction(series));
	json_put_text(out, "unit", series->metric ? series->metric->unit : NULL);
	json_put_count(out, "points", series->axis->n);
	json_put_count(out, "missing", missing);
}

void report_json(const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	struct timeline timeline = timeline_of(arena, analysis->data);
	struct hits hits = hits_of(analysis, &timeline, arena);
	struct strings names = timeline_attributes(arena, &timeline, report->attributes, false);
	struct buf out = {0};

	buf_text(&out, report->tests ? ",\n  " : "\n  ");
	json_open(&out, "name", analysis->test->name);
	buf_text(&out, ", \"metrics\": [");
	for (size_t s = 0; s < analysis->data->count; s++) {
		report_put_series(&out, analysis->findings[s].series);
		buf_char(&out, '}');
	}
	buf_text(&out, "],\n   \"changes\": [");
	for (size_t i = 0; i < hits.count; i++)
		report_put_change(&out, &analysis->findings[hits.items[i].series],
			hits.items[i].change, &names, arena);
	buf_text(&out, "]}");
	text_flush(&out, report->out);
}

/* A JSON string of ASCII only, as json.dumps writes it. */
static void put_ascii(struct buf *out, const char *text)
{
	struct buf plain = {0};
	buf_json_text(&plain, text);
	const unsigned char *s = (const unsigned char *)plain.data;
	while (*s) {
		if (*s < 0x80) {
			buf_char(out, (char)*s++);
			continue;
		}
		unsigned length = *s < 0xE0   ? 2
				  : *s < 0xF0 ? 3
					      : 4; /* valid UTF-8, by buf_json_text */
		unsigned code = *s & (0xFFU >> (length + 1));
		for (unsigned i = 1; i < length; i++)
			code = code << 6 | (s[i] & 0x3F);
		s += length;
		if (code >= 0x10000)
			buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10),
				0xDC00 + (code & 0x3FF));
		else
			buf_printf(out, "\\u%04x", code);
	}
	buf_free(&plain);
}

static void put_rounded(struct buf *out, const char *key, int digits, double value)
{
	if (isnan(value)) /* never "-nan" */
		buf_printf(out, ", \"%s\": \"nan\"", key);
	else
		buf_printf(out, ", \"%s\": \"%.*f\"", key, digits, value);
}

static void put_otava_change(
	struct buf *out, const struct series *series, const struct change *change, int64_t time)
{
	buf_text(out, "{\"metric\": ");
	put_ascii(out, series->name);
	buf_printf(out, ", \"index\": %zu, \"time\": %" PRId64, change->index, time);
	put_rounded(out, "forward_change_percent", 0, change_percent(change));
	put_rounded(out, "magnitude", 6, change->magnitude);
	put_rounded(out, "mean_before", 6, change->mean_before);
	put_rounded(out, "stddev_before", 6, change->stddev_before);
	put_rounded(out, "mean_after", 6, change->mean_after);
	put_rounded(out, "stddev_after", 6, change->stddev_after);
	put_rounded(out, "pvalue", 6, change->pvalue);
	buf_char(out, '}');
}

/* The attributes of the changes on the row of the first hit, which never conflict. */
static void put_otava_attributes(struct buf *out, const struct analysis *analysis,
	const struct hit *hits, size_t count, const struct strings *names)
{
	buf_char(out, '{');
	for (size_t i = 0; i < names->count; i++) {
		const char *value = NULL;

		for (size_t h = 0; h < count && !value &&
				   moment_compare(&hits[0].moment, &hits[h].moment) == 0;
			h++)
			value = change_attribute(analysis->findings[hits[h].series].series,
				hits[h].change, names->items[i]);
		json_next(out);
		put_ascii(out, names->items[i]);
		buf_text(out, ": ");
		put_ascii(out, value);
	}
	buf_char(out, '}');
}

void report_json_otava(
	const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	struct timeline timeline = timeline_of(arena, analysis->data);
	struct hits hits = hits_of(analysis, &timeline, arena);
	struct strings names = timeline_attributes(arena, &timeline, report->attributes, true);
	struct buf out = {0};

	buf_char(&out, '{');
	put_ascii(&out, analysis->test->name);
	buf_text(&out, ": [");
	for (size_t i = 0; i < hits.count; i++) {
		const struct hit *hit = &hits.items[i];
		int64_t ms = hit->moment.time;
		int64_t time = (ms - ((ms % 1000) + 1000) % 1000) / 1000;

		if (i == 0 || moment_compare(&hit[-1].moment, &hit->moment) != 0) {
			buf_printf(&out,
				"%s{\"time\": %" PRId64 ", \"attributes\": ", i ? "]}, " : "",
				time);
			put_otava_attributes(&out, analysis, hit, hits.count - i, &names);
			buf_text(&out, ", \"changes\": [");
		} else {
			buf_text(&out, ", ");
		}
		put_otava_change(&out, analysis->findings[hit->series].series, hit->change, time);
	}
	buf_text(&out, hits.count ? "]}]}\n" : "]}\n");
	text_flush(&out, report->out);
}
