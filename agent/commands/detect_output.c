/* Text is for people and awk, with six digits; JSON numbers are exact. */
#include "agent/commands/detect.h"

#include <string.h>

#include "agent/model/json_put.h"

void detect_put_text(struct buf *out, const char *prefix, size_t prefix_length,
	const struct change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct change *change = &changes[i];
		if (prefix) {
			buf_append(out, prefix, prefix_length);
			buf_char(out, ':');
		}
		buf_printf(out, "%zu\t%.6g\t%.6g\t%.6g\t%.6g\n", change->index, change->pvalue,
			change->mean_before, change->mean_after, change_percent(change));
	}
}

static void put_change(struct buf *out, const struct change *change)
{
	buf_printf(out, "{\"index\": %zu", change->index);
	json_put_number(out, "pvalue", change->pvalue);
	json_put_number(out, "mean_before", change->mean_before);
	json_put_number(out, "mean_after", change->mean_after);
	json_put_number(out, "stddev_before", change->stddev_before);
	json_put_number(out, "stddev_after", change->stddev_after);
	json_put_number(out, "forward_change_percent", change_percent(change));
	json_put_number(out, "magnitude", change->magnitude);
	json_put_levels(out, change);
	buf_printf(out, ", \"place_from\": %zu, \"place_to\": %zu}", change->place_from,
		change->place_to);
}

static void put_id(struct buf *out, const char *id, size_t id_length)
{
	buf_text(out, "{\"id\": ");
	if (id)
		buf_json_value(out, id, id_length);
	else
		buf_text(out, "null");
}

void detect_put_json(struct buf *out, const char *id, size_t id_length,
	const struct change *changes, size_t count)
{
	put_id(out, id, id_length);
	buf_text(out, ", \"change_points\": [");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_text(out, ", ");
		put_change(out, &changes[i]);
	}
	buf_text(out, "]}\n");
}

void detect_put_problem(struct buf *out, const char *id, size_t id_length, const char *problem)
{
	put_id(out, id, id_length);
	buf_text(out, ", \"error\": ");
	buf_json_text(out, problem);
	buf_text(out, "}\n");
}
