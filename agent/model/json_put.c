/* Keys are the program's own, so they are not escaped. */
#include "agent/model/json_put.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/when.h"

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

static bool ends_with(const struct buf *out, const char *any)
{
	return out->length > 0 && strchr(any, out->data[out->length - 1]);
}

void json_next(struct buf *out)
{
	if (out->length > 0 && !ends_with(out, "[{ \n"))
		buf_text(out, ", ");
}

void json_line(struct buf *out)
{
	buf_text(out, out->length > 0 && !ends_with(out, "[") ? ",\n  " : "\n  ");
}

void json_key(struct buf *out, const char *key)
{
	json_next(out);
	buf_printf(out, "\"%s\": ", key);
}

void json_put_text(struct buf *out, const char *key, const char *value)
{
	json_key(out, key);
	buf_json_text(out, value);
}

void json_put_clean(struct buf *out, const char *key, const char *text, size_t most)
{
	struct buf clean = {0};

	if (text) {
		buf_reserve(&clean, 0);
		buf_clean(&clean, text, most);
	}
	json_put_text(out, key, clean.data);
	buf_free(&clean);
}

void json_put_number(struct buf *out, const char *key, double value)
{
	json_key(out, key);
	buf_json_number(out, value);
}

/* `how`: the first letter of the word behind the conversion, or 0. */
static void put_integer(struct buf *out, char how, int64_t value)
{
	char text[WHEN_TEXT];

	if ((value == WHEN_NEVER && how) || (value == 0 && (how == 'm' || how == 'i')))
		buf_text(out, "null");
	else if (how == 's')
		buf_json_number(out, (double)value / 1000);
	else if (how == 'm' || how == 't')
		buf_json_text(out, when_format_iso(value, text));
	else
		buf_printf(out, "%" PRId64, value);
}

static void put_strings(struct buf *out, const struct strings *values)
{
	buf_char(out, '[');
	for (size_t i = 0; i < values->count; i++) {
		json_next(out);
		buf_json_text(out, values->items[i]);
	}
	buf_char(out, ']');
}

static void put_value(struct buf *out, const char *at, char how, va_list *values)
{
	int64_t value = 0;

	switch (*at) {
	case 's': {
		const char *text = va_arg(*values, const char *);

		if (how == 'j')
			buf_text(out, text);
		else
			buf_json_text(out, how && text && !*text ? NULL : text);
		return;
	}
	case 'p': put_strings(out, va_arg(*values, const struct strings *)); return;
	case 'g': buf_json_number(out, va_arg(*values, double)); return;
	case 'd': value = va_arg(*values, int); break;
	case 'z': value = (int64_t)va_arg(*values, size_t); break;
	default: value = va_arg(*values, int64_t);
	}
	if (how == 'b')
		buf_text(out, value ? "true" : "false");
	else
		put_integer(out, how, value);
}

void json_put(struct buf *out, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	for (const char *at = format; *at; at++) {
		size_t length = strspn(at, WORD), name = *at == '%' ? strspn(at + 1, WORD) : 0;
		bool worded = name > 0 && at[name + 1] == ' ' && islower(at[name + 2]);

		if (*at == '\n' && out->length > 0)
			json_line(out);
		else if (!strchr("]},: \n", *at))
			json_next(out);
		if (name > 0) {
			put_value(out, at + 1, worded ? at[name + 2] : 0, &values);
			at += name;
			at += worded ? 1 + strspn(at + 2, WORD) : 0;
		} else if (length > 0) {
			buf_printf(out, at[length] == ':' ? "\"%.*s\": " : "%.*s", (int)length, at);
			at += length - 1;
		} else if (strchr("{[]}", *at)) {
			buf_char(out, *at);
		}
	}
	va_end(values);
}

void json_put_means(struct buf *out, const struct change *change)
{
	json_put(out,
		"forward_change_percent: %g, magnitude: %g, mean_before: %g, "
		"mean_after: %g, stddev_before: %g, stddev_after: %g, "
		"count_before: %zu, count_after: %zu, pvalue: %g",
		change_percent(change), change->magnitude, change->mean_before, change->mean_after,
		change->stddev_before, change->stddev_after, change->count_before,
		change->count_after, change->pvalue);
}

void json_put_levels(struct buf *out, const struct change *change)
{
	json_put(out,
		"kind: %s, level_before: %g, level_after: %g, size: %g, "
		"size_low: %g, size_high: %g",
		change_kind_names[change->kind], change->level_before, change->level_after,
		change->size, change->size_low, change->size_high);
}
