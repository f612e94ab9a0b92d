/*
 * Graphite returns an empty list for a metric without data, for one that does not exist and for an
 * expression that it cannot parse. The metrics of a target without series are looked up one by one,
 * so that the user learns which of the three it is.
 */
#include "sources/graphite/find.h"

#include <string.h>

#include "sources/graphite/list.h"

enum {
	LEAVES_MAX = 1000,
	FOLDERS_MAX = 500,
	EXPLAINED_MAX = 20, /* silent targets that are inquired into */
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
	if (!json_is_string(id) || strlen(json_string_value(id)) != json_string_length(id) ||
		!(json_is_boolean(leaf) || json_is_integer(leaf)))
		return false;
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
	return graphite_list_read(text, length, "find", "metric", read_node, &reading, error);
}

struct metric_walk {
	struct arena *arena;
	const char *prefix;
	const char *folders[FOLDERS_MAX];
	size_t folder_at, folder_count;
	const char *paths[LEAVES_MAX];
	size_t count;
};

struct metric_walk *metric_walk_new(struct arena *arena, const char *prefix)
{
	struct metric_walk *leaves = arena_alloc(arena, sizeof *leaves);
	leaves->arena = arena;
	leaves->prefix = prefix;
	leaves->folders[leaves->folder_count++] = prefix;
	return leaves;
}

const char *metric_walk_ask(const struct metric_walk *leaves)
{
	if (leaves->folder_at == leaves->folder_count)
		return NULL;
	return arena_printf(leaves->arena, "%s.*", leaves->folders[leaves->folder_at]);
}

bool metric_walk_take(
	struct metric_walk *leaves, const struct graphite_nodes *nodes, struct error *error)
{
	leaves->folder_at++;
	for (size_t i = 0; i < nodes->count; i++) {
		const struct graphite_node *node = &nodes->items[i];
		bool full = node->leaf ? leaves->count == LEAVES_MAX
				       : leaves->folder_count == FOLDERS_MAX;
		if (full)
			return error_set(error, ERROR_DATA,
				"more than %d metrics or %d folders below \"%.*s\": name those "
				"that "
				"are wanted in metrics",
				LEAVES_MAX, FOLDERS_MAX, SHOWN, leaves->prefix);
		if (node->leaf)
			leaves->paths[leaves->count++] = node->path;
		else
			leaves->folders[leaves->folder_count++] = node->path;
	}
	return true;
}

struct target *metric_walk_targets(const struct metric_walk *leaves, size_t *count)
{
	struct target *targets = arena_array(leaves->arena, leaves->count, sizeof *targets);
	size_t length = strlen(leaves->prefix);
	for (size_t i = 0; i < leaves->count; i++) {
		const char *path = leaves->paths[i];
		bool below = strncmp(path, leaves->prefix, length) == 0 && path[length] == '.';
		struct metric *metric = arena_alloc(leaves->arena, sizeof *metric);
		*metric = (struct metric){.name = below ? path + length + 1 : path, .scale = 1};
		targets[i] = (struct target){
			.metric = metric, .text = path, .plain = target_is_plain(path)};
	}
	*count = leaves->count;
	return targets;
}

struct diagnosis {
	struct query *query;
	const struct target *targets;
	size_t count, at;
	size_t explained, silent;
	struct expression expression; /* of the target under way */
	size_t path;                  /* asked for */
	bool begun;
	bool blind; /* nobody can be asked */
};

struct diagnosis *diagnosis_new(struct query *query, const struct target *targets, size_t count)
{
	struct diagnosis *diagnosis = arena_alloc(query->arena, sizeof *diagnosis);
	diagnosis->query = query;
	diagnosis->targets = targets;
	diagnosis->count = count;
	return diagnosis;
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

/* All that the target names is there, as far as is known. */
static void say_exists(const struct diagnosis *diagnosis, const struct target *target)
{
	if (diagnosis->blind)
		query_notice(diagnosis->query,
			"target \"%.*s\" gives no series, and the server, without /metrics/find, "
			"cannot be asked why",
			SHOWN, target->text);
	else if (!is_ascii(target->text))
		query_notice(diagnosis->query,
			"target \"%.*s\" gives no series: a server without UTF8_METRICS in its "
			"settings reads no letters beyond ASCII, but ? stands for each",
			SHOWN, target->text);
	else if (is_path(diagnosis, target))
		query_notice(diagnosis->query,
			"metric \"%.*s\" exists, but the server has no data of it in the range",
			SHOWN, target->text);
	else if (diagnosis->expression.paths.count > 0)
		query_notice(diagnosis->query,
			"target \"%.*s\" gives no series, though its metrics exist: none has data "
			"in the range, or a function leaves all of them out",
			SHOWN, target->text);
	else
		query_notice(diagnosis->query,
			"target \"%.*s\" gives no series: none has these tags, or none has data in "
			"the range",
			SHOWN, target->text);
}

static void move_on(struct diagnosis *diagnosis)
{
	diagnosis->at++;
	diagnosis->path = 0;
	diagnosis->begun = false;
}

static bool begin(struct diagnosis *diagnosis, const struct target *target, struct error *error)
{
	diagnosis->begun = true;
	diagnosis->expression = target_read(diagnosis->query->arena, target->text);
	if (diagnosis->expression.problem)
		return error_set(error, ERROR_DATA,
			"target \"%.*s\" is broken, so the server gives nothing: %s (character "
			"%zu)",
			SHOWN, target->text, diagnosis->expression.problem,
			diagnosis->expression.at);
	return true;
}

bool diagnosis_ask(struct diagnosis *diagnosis, const char **pattern, struct error *error)
{
	*pattern = NULL;
	for (; diagnosis->at < diagnosis->count; move_on(diagnosis)) {
		const struct target *target = &diagnosis->targets[diagnosis->at];
		if (target->answered)
			continue;
		if (!diagnosis->begun && !begin(diagnosis, target, error))
			return false;
		if (diagnosis->explained == EXPLAINED_MAX) {
			diagnosis->silent++;
			continue;
		}
		if (!diagnosis->blind && diagnosis->path < diagnosis->expression.paths.count) {
			*pattern = diagnosis->expression.paths.items[diagnosis->path];
			return true;
		}
		say_exists(diagnosis, target);
		diagnosis->explained++;
	}
	if (diagnosis->silent > 0)
		query_notice(
			diagnosis->query, "%zu more targets gave no series", diagnosis->silent);
	diagnosis->silent = 0;
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
			nodes->count > 0 ? "\"%.*s\" is a folder of metrics and no metric"
					 : "the server has no metric \"%.*s\"",
			SHOWN, path);
	else
		query_notice(diagnosis->query,
			"target \"%.*s\" gives no series: the server has no metric \"%.*s\"", SHOWN,
			target->text, SHOWN, path);
	diagnosis->explained++;
	move_on(diagnosis);
}

void diagnosis_blind(struct diagnosis *diagnosis)
{
	diagnosis->blind = true;
}
