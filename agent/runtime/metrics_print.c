/*
 * The two text formats. They differ in the names of counters and infos (OpenMetrics names the
 * family without the suffix), in units, in how integer bounds are written, and in the end
 * marker, by which OpenMetrics detects a truncated answer.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/runtime/metrics_table.h"

const char *const metrics_content_types[] = {
	[METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
	[METRICS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

static const char *const type_names[][2] = {
	[TYPE_COUNTER] = {"counter", "counter"},
	[TYPE_GAUGE] = {"gauge", "gauge"},
	[TYPE_INFO] = {"gauge", "info"},
	[TYPE_HISTOGRAM] = {"histogram", "histogram"},
};

static const char *const endings[] = {
	[TYPE_COUNTER] = "_total",
	[TYPE_GAUGE] = "",
	[TYPE_INFO] = "_info",
	[TYPE_HISTOGRAM] = "",
};

/* With `quote`, quotation marks are escaped, too. */
static void print_escaped(struct buf *out, const char *text, bool quote)
{
	for (; *text; text++) {
		if (*text == '\n')
			buf_text(out, "\\n");
		else if (*text == '\\' || (quote && *text == '"'))
			buf_printf(out, "\\%c", *text);
		else
			buf_char(out, *text);
	}
}

static void print_label(struct buf *out, const char *name, const char *value, bool *first)
{
	buf_printf(out, "%s%s=\"", *first ? "{" : ",", name);
	print_escaped(out, value, true);
	buf_char(out, '"');
	*first = false;
}

/* One line: name and suffix, labels followed by `le`, value. */
static void print_sample(struct buf *out, const struct metric_row *row,
	const struct metric_child *child, const char *suffix, const char *le, double value)
{
	char text[NUMBER_TEXT];
	bool first = true;

	buf_printf(out, "%s%s", row->name, suffix);
	for (size_t i = 0; i < METRIC_LABELS && row->labels[i]; i++)
		print_label(out, row->labels[i], child->values[i], &first);
	if (le)
		print_label(out, "le", le, &first);
	number_format(value, text);
	buf_printf(out, "%s%s\n", first ? " " : "} ",
		isnan(value)   ? "NaN"
		: isinf(value) ? (value > 0 ? "+Inf" : "-Inf")
			       : text);
}

static void print_histogram(struct buf *out, enum metrics_format format,
	const struct metric_row *row, const struct metric_child *child)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= METRIC_BUCKETS; i++) {
		char le[NUMBER_TEXT + 2] = "+Inf";

		count += child->buckets[i];
		if (i < METRIC_BUCKETS)
			number_format(metric_bounds[i], le);
		if (format == METRICS_OPENMETRICS && i < METRIC_BUCKETS && !strchr(le, '.'))
			strcat(le, ".0");
		print_sample(out, row, child, "_bucket", le, (double)count);
	}
	print_sample(out, row, child, "_sum", NULL, child->value);
	print_sample(out, row, child, "_count", NULL, (double)count);
}

static void print_head(struct buf *out, enum metrics_format format, const struct metric_row *row)
{
	bool open = format == METRICS_OPENMETRICS;
	size_t ending = open ? strlen(endings[row->type]) : 0;
	int length = (int)(strlen(row->name) - ending);

	buf_printf(out, "# HELP %.*s ", length, row->name);
	print_escaped(out, row->help, open);
	buf_printf(out, "\n# TYPE %.*s %s\n", length, row->name, type_names[row->type][open]);
	if (open && row->unit)
		buf_printf(out, "# UNIT %.*s %s\n", length, row->name, row->unit);
}

void metrics_print(const struct metrics *metrics, enum metrics_format format, struct buf *out)
{
	for (size_t id = 0; id < METRIC_COUNT; id++) {
		const struct metric_row *row = &metric_rows[id];
		const struct metric_family *family = &metrics->families[id];

		if (family->count > 0)
			print_head(out, format, row);
		for (size_t i = 0; i < family->count; i++) {
			const struct metric_child *child = &family->children[i];

			if (row->type == TYPE_HISTOGRAM)
				print_histogram(out, format, row, child);
			else
				print_sample(out, row, child, "", NULL, child->value);
		}
	}
	if (format == METRICS_OPENMETRICS)
		buf_text(out, "# EOF\n");
}
