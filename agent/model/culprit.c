#include "agent/model/culprit.h"

#include <inttypes.h>
#include <string.h>

#include "agent/base/scan.h"
#include "agent/model/json_put.h"

static void put_set(struct buf *out, const struct culprit *culprit)
{
	buf_text(out, ", \"set\": [");
	for (size_t i = 0; i < culprit->set_count; i++) {
		buf_text(out, i ? ", {\"commit\": " : "{\"commit\": ");
		buf_json_text(out, culprit->set[i].commit);
		json_put_number(out, "probability", culprit->set[i].probability);
		json_put_bool(out, "broken", culprit->set[i].broken);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

void culprit_put(struct buf *out, const struct culprit *culprit)
{
	buf_printf(out, "{\"bisection\": %" PRId64, culprit->bisection);
	json_put_text(out, "end", culprit->end);
	json_put_text(out, "verdict", culprit->verdict);
	json_put_text(out, "commit", culprit->commit);
	json_put_number(out, "probability", culprit->probability);
	put_set(out, culprit);
	buf_printf(out, ", \"set_total\": %zu}", culprit->set_total);
}

static bool read_text(struct scan *scan, struct arena *arena, const char **out)
{
	*out = NULL;
	if (scan_word(scan, "null"))
		return true;
	if (!scan_text(scan))
		return false;
	*out = arena_strdup(arena, scan->text.data ? scan->text.data : "");
	return true;
}

static bool read_flag(struct scan *scan, bool *out)
{
	*out = scan_word(scan, "true");
	return *out || scan_word(scan, "false");
}

static bool read_whole(struct scan *scan, int64_t *out)
{
	double value;

	if (!scan_number(scan, &value) || value < 0 || value > 9e15)
		return false;
	*out = (int64_t)value;
	return true;
}

static bool read_commit(struct scan *scan, struct arena *arena, struct culprit_commit *out)
{
	*out = (struct culprit_commit){0};
	if (!scan_open(scan, '{'))
		return false;
	while (scan_key(scan)) {
		const char *key = scan->text.data;
		bool good = strcmp(key, "commit") == 0        ? read_text(scan, arena, &out->commit)
			    : strcmp(key, "probability") == 0 ? scan_number(scan, &out->probability)
			    : strcmp(key, "broken") == 0      ? read_flag(scan, &out->broken)
							      : scan_value(scan);

		if (!good)
			return false;
	}
	return !scan->problem && out->commit;
}

static bool read_set(struct scan *scan, struct arena *arena, struct culprit *out)
{
	struct culprit_commit *items = arena_array(arena, CULPRIT_SET_MOST, sizeof *items);

	out->set = items;
	if (!scan_open(scan, '['))
		return false;
	while (scan_item(scan))
		if (out->set_count == CULPRIT_SET_MOST ||
			!read_commit(scan, arena, &items[out->set_count++]))
			return false;
	return !scan->problem;
}

static bool read_member(struct scan *scan, struct arena *arena, struct culprit *out)
{
	const char *key = scan->text.data;
	int64_t total = 0;

	if (strcmp(key, "bisection") == 0)
		return read_whole(scan, &out->bisection);
	if (strcmp(key, "end") == 0)
		return read_text(scan, arena, &out->end);
	if (strcmp(key, "verdict") == 0)
		return read_text(scan, arena, &out->verdict);
	if (strcmp(key, "commit") == 0)
		return read_text(scan, arena, &out->commit);
	if (strcmp(key, "probability") == 0)
		return scan_number(scan, &out->probability);
	if (strcmp(key, "set") == 0)
		return read_set(scan, arena, out);
	if (strcmp(key, "set_total") != 0)
		return scan_value(scan);
	if (!read_whole(scan, &total))
		return false;
	out->set_total = (size_t)total;
	return true;
}

static bool read_all(struct scan *scan, struct arena *arena, struct culprit *out)
{
	if (!scan_open(scan, '{'))
		return false;
	while (scan_key(scan))
		if (!read_member(scan, arena, out))
			return false;
	return !scan->problem && scan_end(scan) && out->bisection > 0 && out->end && out->verdict;
}

const struct culprit *culprit_read(struct arena *arena, const char *text)
{
	struct culprit *out = arena_alloc(arena, sizeof *out);
	struct scan scan = {.at = text, .end = text + strlen(text)};
	bool good;

	*out = (struct culprit){0};
	good = read_all(&scan, arena, out);
	buf_free(&scan.text);
	return good ? out : NULL;
}

struct culprit *culprit_copy(struct arena *arena, const struct culprit *culprit)
{
	struct culprit *copy;
	struct culprit_commit *set;

	if (!culprit)
		return NULL;
	copy = arena_alloc(arena, sizeof *copy);
	*copy = *culprit;
	copy->end = arena_strdup(arena, culprit->end);
	copy->verdict = arena_strdup(arena, culprit->verdict);
	copy->commit = arena_strdup(arena, culprit->commit);
	copy->set = set = arena_array(arena, culprit->set_count, sizeof *set);
	for (size_t i = 0; i < culprit->set_count; i++) {
		set[i] = culprit->set[i];
		set[i].commit = arena_strdup(arena, culprit->set[i].commit);
	}
	return copy;
}
