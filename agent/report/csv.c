/*
 * Fields of CSV: quoted where necessary, with an apostrophe before anything that a spreadsheet
 * would run as a formula.
 */
#include "agent/report/csv.h"

#include <math.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "agent/model/attribution.h"
#include "agent/report/table.h"

/* Whether a spreadsheet would take the text for a formula. Full-width signs count: spreadsheets in
 * East Asian languages accept them. Control characters are printed as blanks. */
static bool is_formula(const char *text)
{
	static const char *const signs[] = {
		"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};
	const char *at = text;
	while (*at && (unsigned char)*at <= ' ')
		at++;
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (strncmp(at, signs[i], strlen(signs[i])) == 0)
			return !text_is_number(text);
	return false;
}

/* Where the comma is the decimal separator, spreadsheets split cells at semicolons, even quoted
 * ones. */
static void guard(const char *text, struct buf *out)
{
	for (const char *end;; text = end) {
		size_t length = strcspn(text, ";");
		struct buf part = {0};
		buf_append(&part, text, length);
		buf_text(out, part.data && is_formula(part.data) ? "'" : "");
		buf_free(&part);
		end = text + length + (text[length] == ';');
		buf_append(out, text, (size_t)(end - text));
		if (!*end)
			return;
	}
}

static void put_field(const char *text, FILE *out)
{
	if (!text[strcspn(text, ",\"")]) {
		text_print(text, out);
		return;
	}
	struct buf quoted = {0};
	for (; *text; text++) {
		if (*text == '"')
			buf_char(&quoted, '"');
		buf_char(&quoted, *text);
	}
	putc('"', out);
	text_print(quoted.data, out);
	putc('"', out);
	buf_free(&quoted);
}

void csv_put_text(const char *text, bool formulas, FILE *out)
{
	struct buf guarded = {0};
	if (!text || !*text)
		return;
	if (!formulas)
		guard(text, &guarded);
	put_field(formulas ? text : guarded.data, out);
	buf_free(&guarded);
}

void csv_put_next(const char *text, bool formulas, FILE *out)
{
	putc(',', out);
	csv_put_text(text, formulas, out);
}

void csv_put_time(int64_t ms, FILE *out)
{
	char time[WHEN_TEXT];

	fprintf(out, ",%s", ms != 0 ? when_format_iso(ms, time) : "");
}

void csv_put_number(double value, FILE *out)
{
	struct buf text = {0};
	if (isfinite(value))
		buf_json_number(&text, value);
	else
		buf_text(&text, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
	fprintf(out, ",%s", text.data);
	buf_free(&text);
}

void csv_put_means(const struct change *change, FILE *out)
{
	double means[CHANGE_MEANS];

	change_means(change, means);
	for (size_t i = 0; i < CHANGE_MEANS; i++)
		csv_put_number(means[i], out);
	csv_put_number(change->pvalue, out);
}

void csv_put_levels(const struct change *change, FILE *out)
{
	double levels[CHANGE_LEVELS];

	fprintf(out, ",%s", change_kind_names[change->kind]);
	change_levels(change, levels);
	for (size_t i = 0; i < CHANGE_LEVELS; i++)
		csv_put_number(levels[i], out);
}

void csv_put_suspects(const struct attribution *suspects, bool formulas, FILE *out)
{
	putc(',', out);
	if (suspects->known)
		fprintf(out, "%zu", suspects->count);
	csv_put_next(attribution_from(suspects), formulas, out);
	csv_put_next(attribution_to(suspects), formulas, out);
}
