/*
 * Graphite returns an empty list for a metric without data, for an unknown metric and for an
 * expression that it cannot parse. The metrics of a target without series are looked up one by one,
 * so that the user learns which of the three it is.
 */
#include "sources/graphite/find.h"

#include <string.h>

#include "sources/graphite/list.h"

enum {
	EXPLAINED_MAX = 20, /* targets without series that are explained */
	ASKED_MAX = 20,     /* metrics of each target to look up */
	SHOWN = 200,
};

struct reading {
	struct arena *arena;
	struct graphite_nodes *out;
};

static bool read_node(void *context, const json_t *item)
{
	struct reading *reading = context;
	struct graphite_nodes *out = reading->out;
	const json_t *id = json_object_get(item, "id"), *leaf = json_object_get(item, "leaf");
	if (!id)
		id = json_object_get(item, "path");
	if (!leaf)
		leaf = json_object_get(item, "is_leaf");
	if (!json_is_string(id) || !(json_is_boolean(leaf) || json_is_integer(leaf)))
		return false;
	if (strlen(json_string_value(id)) != json_string_length(id)) {
		out->unusable++;
		return true;
	}
	if (out->count == FOUND_MAX)
		return true;
	out->items = arena_grow(reading->arena, out->items, out->count, sizeof *out->items);
	out->items[out->count++] =
		(struct graphite_node){arena_strdup(reading->arena, json_string_value(id)),
			json_is_true(leaf) || json_integer_value(leaf) != 0};
	return true;
}

bool graphite_find_read(struct arena *arena, const char *text, size_t length,
	struct graphite_nodes *out, struct error *error)
{
	struct reading reading = {arena, out};
	*out = (struct graphite_nodes){0};
	return graphite_list_read(
		text, length, "find", "metric", read_node, &reading, &out->unusable, error);
}

const char *metric_walk_ask(const struct metric_walk *walk)
{
	if (walk->folder_at == walk->folder_count)
		return NULL;
	return arena_printf(walk->arena, "%s.*", walk->folders[walk->folder_at]);
}

bool metric_walk_take(
	struct metric_walk *walk, const struct graphite_nodes *nodes, struct error *error)
{
	walk->folder_at++;
	for (size_t i = 0; i < nodes->count; i++) {
		const struct graphite_node *node = &nodes->items[i];
		bool full =
			node->leaf ? walk->count == LEAVES_MAX : walk->folder_count == FOLDERS_MAX;
		if (full)
			return error_set(error, ERROR_DATA,
				"more than %d metrics or %d folders below \"%.*s\": list the "
				"metrics to use under metrics",
				LEAVES_MAX, FOLDERS_MAX, SHOWN, walk->prefix);
		if (node->leaf)
			walk->paths[walk->count++] = node->path;
		else
			walk->folders[walk->folder_count++] = node->path;
	}
	return true;
}

struct target *metric_walk_targets(const struct metric_walk *walk, size_t *count)
{
	struct target *targets = arena_array(walk->arena, walk->count, sizeof *targets);
	size_t length = strlen(walk->prefix);
	for (size_t i = 0; i < walk->count; i++) {
		const char *path = walk->paths[i];
		bool below = strncmp(path, walk->prefix, length) == 0 && path[length] == '.';
		struct metric *metric = arena_alloc(walk->arena, sizeof *metric);
		*metric = (struct metric){.name = below ? path + length + 1 : path, .scale = 1};
		targets[i] = (struct target){
			.metric = metric, .text = path, .plain = target_is_plain(path)};
	}
	*count = walk->count;
	return targets;
}

static bool is_path(const struct diagnosis *diagnosis, const struct target *target)
{
	const struct strings *paths = &diagnosis->expression.paths;
	return paths->count == 1 && strcmp(paths->items[0], target->text) == 0;
}

static bool is_ascii(const char *text)
{
	while (*text && !(*text & 0x80))
		text++;
	return !*text;
}

/* Everything that the target names exists, as far as is known. */
static void notice_exists(const struct diagnosis *diagnosis, const struct target *target)
{
	if (!diagnosis->no_find && is_ascii(target->text) && is_path(diagnosis, target))
		query_notice(diagnosis->query,
			"metric \"%.*s\" exists, but has no data in the range", SHOWN,
			target->text);
	else
		query_notice(diagnosis->query, "target \"%.*s\" returns no series%s", SHOWN,
			target->text,
			diagnosis->no_find ? ", and the server has no /metrics/find to find out why"
			: !is_ascii(target->text)
				? ": a server without UTF8_METRICS in its settings accepts only "
				  "ASCII; use ? for any other letter"
			: diagnosis->expression.paths.count > 0
				? ", although its metrics exist: none has data in the range, or a "
				  "function removes all of them"
				: ": none has these tags, or none has data in the range");
}

static void move_on(struct diagnosis *diagnosis)
{
	diagnosis->at++;
	diagnosis->path = 0;
	diagnosis->started = false;
}

bool diagnosis_ask(struct diagnosis *diagnosis, const char **pattern, struct error *error)
{
	*pattern = NULL;
	for (; diagnosis->at < diagnosis->count; move_on(diagnosis)) {
		const struct target *target = &diagnosis->targets[diagnosis->at];
		if (target->answered)
			continue;
		if (!diagnosis->started)
			diagnosis->expression = target_read(diagnosis->query->arena, target->text);
		diagnosis->started = true;
		if (diagnosis->expression.problem)
			return error_set(error, ERROR_DATA,
				"target \"%.*s\" is malformed, so the server returns nothing: %s "
				"(character %zu)",
				SHOWN, target->text, diagnosis->expression.problem,
				diagnosis->expression.at);
		if (diagnosis->explained == EXPLAINED_MAX) {
			diagnosis->unexplained++;
			continue;
		}
		if (!diagnosis->no_find && diagnosis->path < ASKED_MAX &&
			diagnosis->path < diagnosis->expression.paths.count) {
			*pattern = diagnosis->expression.paths.items[diagnosis->path];
			return true;
		}
		notice_exists(diagnosis, target);
		diagnosis->explained++;
	}
	if (diagnosis->unexplained > 0)
		query_notice(diagnosis->query, "%zu more targets returned no series",
			diagnosis->unexplained);
	diagnosis->unexplained = 0;
	return true;
}

void diagnosis_take(struct diagnosis *diagnosis, const struct graphite_nodes *nodes)
{
	const struct target *target = &diagnosis->targets[diagnosis->at];
	const char *path = diagnosis->expression.paths.items[diagnosis->path++];
	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->items[i].leaf)
			return;
	if (is_path(diagnosis, target))
		query_notice(diagnosis->query,
			nodes->count > 0 ? "\"%.*s\" is a folder, not a metric"
					 : "the server has no metric \"%.*s\"",
			SHOWN, path);
	else
		query_notice(diagnosis->query,
			"target \"%.*s\" returns no series: the server has no metric \"%.*s\"",
			SHOWN, target->text, SHOWN, path);
	diagnosis->explained++;
	move_on(diagnosis);
}
