#include "agent/model/culprit.h"

#include <inttypes.h>

#include "agent/model/json_put.h"

void culprit_put(struct buf *out, const struct culprit *culprit)
{
	json_put(out,
		"{bisection: %jd, end: %s, verdict: %s, commit: %s, probability: %g, "
		"set: [",
		culprit->bisection, culprit->end, culprit->verdict, culprit->commit,
		culprit->probability);
	for (size_t i = 0; i < culprit->set_count; i++) {
		buf_text(out, i ? ", {\"commit\": " : "{\"commit\": ");
		buf_json_text(out, culprit->set[i].commit);
		json_put(out, "probability: %g, broken: %d bool}", culprit->set[i].probability,
			culprit->set[i].broken);
	}
	json_put(out, "], set_total: %zu}", culprit->set_total);
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
