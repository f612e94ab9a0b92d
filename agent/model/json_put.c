/* Keys are the program's own, so they are not escaped. */
#include "agent/model/json_put.h"

#include <inttypes.h>
#include <string.h>

#include "agent/base/when.h"

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

void json_open(struct buf *out, const char *key, const char *value)
{
	if (ends_with(out, "[}"))
		json_line(out);
	buf_char(out, '{');
	json_put_text(out, key, value);
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

void json_put_time(struct buf *out, const char *key, int64_t ms)
{
	char text[WHEN_TEXT];

	json_put_text(out, key, ms == WHEN_NEVER ? NULL : when_format_iso(ms, text));
}

void json_put_moment(struct buf *out, const char *key, int64_t ms)
{
	json_put_time(out, key, ms == 0 ? WHEN_NEVER : ms);
}

void json_put_count(struct buf *out, const char *key, size_t count)
{
	json_key(out, key);
	buf_printf(out, "%zu", count);
}

void json_put_id(struct buf *out, const char *key, int64_t id)
{
	json_key(out, key);
	if (id != 0)
		buf_printf(out, "%" PRId64, id);
	else
		buf_text(out, "null");
}

void json_put_seconds(struct buf *out, const char *key, int64_t ms)
{
	json_key(out, key);
	if (ms == WHEN_NEVER)
		buf_text(out, "null");
	else
		buf_json_number(out, (double)ms / 1000);
}

void json_put_bool(struct buf *out, const char *key, bool value)
{
	json_key(out, key);
	buf_text(out, value ? "true" : "false");
}

void json_put_strings(struct buf *out, const char *key, const struct strings *values)
{
	json_key(out, key);
	buf_char(out, '[');
	for (size_t i = 0; i < values->count; i++) {
		json_next(out);
		buf_json_text(out, values->items[i]);
	}
	buf_char(out, ']');
}

void json_put_means(struct buf *out, const struct change *change)
{
	json_put_number(out, "forward_change_percent", change_percent(change));
	json_put_number(out, "magnitude", change->magnitude);
	json_put_number(out, "mean_before", change->mean_before);
	json_put_number(out, "mean_after", change->mean_after);
	json_put_number(out, "stddev_before", change->stddev_before);
	json_put_number(out, "stddev_after", change->stddev_after);
	json_put_count(out, "count_before", change->count_before);
	json_put_count(out, "count_after", change->count_after);
	json_put_number(out, "pvalue", change->pvalue);
}

void json_put_levels(struct buf *out, const struct change *change)
{
	json_put_text(out, "kind", change_kind_names[change->kind]);
	json_put_number(out, "level_before", change->level_before);
	json_put_number(out, "level_after", change->level_after);
	json_put_number(out, "size", change->size);
	json_put_number(out, "size_low", change->size_low);
	json_put_number(out, "size_high", change->size_high);
}
