/*
 * See csv.h.
 */
#include "agent/report/csv.h"

#include <math.h>
#include <string.h>

#include "agent/core/buf.h"
#include "agent/report/table.h"

void csv_put_text(const char *text, FILE *out)
{
	if (!text)
		return;
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
