/* Finds which of a round's clusters are known from an earlier one. */
#include "agent/analysis/shapes.h"

#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"

/* "TEST: METRIC" on one line, with line breaks in names replaced. */
static void put_member(struct buf *out, const struct shape_member *member)
{
	size_t begin = out->length;

	buf_printf(out, "%s: %s", member->test, member->identity);
	for (size_t i = begin; i < out->length; i++)
		if (out->data[i] == '\n')
			out->data[i] = ' ';
}

const char *coalesce_best(const struct shape *shape, struct arena *arena)
{
	struct buf text = {0};

	for (size_t i = 0; i < shape->count && i < COALESCE_BEST; i++) {
		buf_text(&text, i ? "\n" : "");
		put_member(&text, &shape->members[i]);
	}
	return buf_keep(&text, arena);
}

static int64_t distance(const struct shape *shape, const struct known_shape *known)
{
	return shape->time > known->time ? shape->time - known->time : known->time - shape->time;
}

/* Whether the change points are at most so many points of the coarser axis apart. */
static bool within(const struct shape *shape, const struct known_shape *known, int64_t points)
{
	int64_t spacing = shape->spacing > known->spacing ? shape->spacing : known->spacing;

	return shape->sign == known->sign && distance(shape, known) <= points * spacing;
}

/* The share of the lines that are members; a match if above a half. */
static double overlap(const struct dict *members, const char *best)
{
	size_t lines = 0, found = 0;
	struct buf line = {0};

	for (const char *at = best; *at; lines++) {
		size_t length = strcspn(at, "\n");

		buf_clear(&line);
		buf_append(&line, at, length);
		found += dict_get(members, line.data) != NULL;
		at += length + (at[length] == '\n');
	}
	buf_free(&line);
	return lines > 0 ? (double)found / (double)lines : 0;
}

static void list_members(const struct shape *shape, struct dict *members)
{
	struct buf line = {0};

	for (size_t i = 0; i < shape->count; i++) {
		buf_clear(&line);
		put_member(&line, &shape->members[i]);
		*dict_place(members, arena_strndup(members->arena, line.data, line.length)) = shape;
	}
	buf_free(&line);
}

static size_t most_shared(
	const struct shape *shape, const struct known_shape *known, size_t known_count)
{
	struct dict members = {.arena = NULL};
	size_t best = COALESCE_NONE;
	double most = 0.5;

	for (size_t i = 0; i < known_count; i++) {
		double share;

		if (!within(shape, &known[i], COALESCE_FAR))
			continue;
		if (!members.arena) {
			members.arena = arena_new();
			list_members(shape, &members);
		}
		share = overlap(&members, known[i].best);
		if (share <= most)
			continue;
		most = share;
		best = i;
	}
	arena_free(members.arena);
	return best;
}

void coalesce(const struct shape *shapes, size_t count, const struct known_shape *known,
	size_t known_count, size_t *known_of)
{
	for (size_t i = 0; i < count; i++) {
		size_t best = COALESCE_NONE;

		for (size_t k = 0; k < known_count; k++)
			if (within(&shapes[i], &known[k], COALESCE_NEAR) &&
				(best == COALESCE_NONE ||
					distance(&shapes[i], &known[k]) <
						distance(&shapes[i], &known[best])))
				best = k;
		known_of[i] = best;
		if (best == COALESCE_NONE)
			known_of[i] = most_shared(&shapes[i], known, known_count);
	}
}
