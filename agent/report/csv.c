/*
 * See csv.h.
 */
#include "agent/report/csv.h"

#include <math.h>
#include <string.h>

#include "agent/core/buf.h"
#include "agent/report/table.h"

/* Full-width signs are signs to spreadsheets in East Asian languages. Control characters are
 * printed as blanks. */
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

void csv_put_text(const char *text, bool formulas, FILE *out)
{
	if (!text)
		return;
	bool guarded = !formulas && is_formula(text);
	if (!text[strcspn(text, ",\"")]) {
		fputs(guarded ? "'" : "", out);
		text_print(text, out);
		return;
	}
	struct buf quoted = {0};
	if (guarded)
		buf_char(&quoted, '\'');
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
