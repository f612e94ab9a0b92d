#include "agent/model/culprit.h"

#include <inttypes.h>

#include "agent/model/json_put.h"

void culprit_put(struct buf *out, const struct culprit *culprit)
{
	buf_printf(out, "{\"bisection\": %" PRId64, culprit->bisection);
	json_put_text(out, "end", culprit->end);
	json_put_text(out, "verdict", culprit->verdict);
	json_put_text(out, "commit", culprit->commit);
	json_put_number(out, "probability", culprit->probability);
	buf_text(out, ", \"set\": [");
	for (size_t i = 0; i < culprit->set_count; i++) {
		buf_text(out, i ? ", {\"commit\": " : "{\"commit\": ");
		buf_json_text(out, culprit->set[i].commit);
		json_put_number(out, "probability", culprit->set[i].probability);
		json_put_bool(out, "broken", culprit->set[i].broken);
		buf_char(out, '}');
	}
	buf_char(out, ']');
	json_put_count(out, "set_total", culprit->set_total);
	buf_char(out, '}');
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
