/*
 * An empty list is Graphite's answer to a metric that does not exist and to an expression that it
 * cannot read, too. The metrics that a silent target names are asked for one by one, so that the
 * user learns which of the three it is.
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

struct leaves {
	struct arena *arena;
	const char *prefix;
	const char *folders[FOLDERS_MAX];
	size_t folder_at, folder_count;
	const char *paths[LEAVES_MAX];
	size_t count;
};

struct leaves *leaves_new(struct arena *arena, const char *prefix)
{
	struct leaves *leaves = arena_alloc(arena, sizeof *leaves);
	leaves->arena = arena;
	leaves->prefix = prefix;
	leaves->folders[leaves->folder_count++] = prefix;
	return leaves;
}

const char *leaves_ask(const struct leaves *leaves)
{
	if (leaves->folder_at == leaves->folder_count)
		return NULL;
	return arena_printf(leaves->arena, "%s.*", leaves->folders[leaves->folder_at]);
}

bool leaves_take(struct leaves *leaves, const struct graphite_nodes *nodes, struct error *error)
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

struct target *leaves_targets(const struct leaves *leaves, size_t *count)
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

struct inquiry {
	struct query *query;
	const struct target *targets;
	size_t count, at;
	size_t explained, silent;
	struct expression expression; /* of the target under way */
	size_t path;                  /* asked for */
	bool begun;
	bool blind; /* nobody can be asked */
};

struct inquiry *inquiry_new(struct query *query, const struct target *targets, size_t count)
{
	struct inquiry *inquiry = arena_alloc(query->arena, sizeof *inquiry);
	inquiry->query = query;
	inquiry->targets = targets;
	inquiry->count = count;
	return inquiry;
}

static bool is_path(const struct inquiry *inquiry, const struct target *target)
{
	const struct strings *paths = &inquiry->expression.paths;
	return paths->count == 1 && strcmp(paths->items[0], target->text) == 0;
}

static bool is_ascii(const char *text)
{
	while (*text && !(*text & 0x80))
		text++;
	return !*text;
}

/* All that the target names is there, as far as is known. */
static void say_exists(const struct inquiry *inquiry, const struct target *target)
{
	if (inquiry->blind)
		query_notice(inquiry->query,
			"target \"%.*s\" gives no series, and the server, without /metrics/find, "
			"cannot be asked why",
			SHOWN, target->text);
	else if (!is_ascii(target->text))
		query_notice(inquiry->query,
			"target \"%.*s\" gives no series: a server without UTF8_METRICS in its "
			"settings reads no letters beyond ASCII, but ? stands for each",
			SHOWN, target->text);
	else if (is_path(inquiry, target))
		query_notice(inquiry->query,
			"metric \"%.*s\" exists, but the server has no data of it in the range",
			SHOWN, target->text);
	else if (inquiry->expression.paths.count > 0)
		query_notice(inquiry->query,
			"target \"%.*s\" gives no series, though its metrics exist: none has data "
			"in the range, or a function leaves all of them out",
			SHOWN, target->text);
	else
		query_notice(inquiry->query,
			"target \"%.*s\" gives no series: none has these tags, or none has data in "
			"the range",
			SHOWN, target->text);
}

static void move_on(struct inquiry *inquiry)
{
	inquiry->at++;
	inquiry->path = 0;
	inquiry->begun = false;
}

static bool begin(struct inquiry *inquiry, const struct target *target, struct error *error)
{
	inquiry->begun = true;
	inquiry->expression = target_read(inquiry->query->arena, target->text);
	if (inquiry->expression.problem)
		return error_set(error, ERROR_DATA,
			"target \"%.*s\" is broken, so the server gives nothing: %s (character "
			"%zu)",
			SHOWN, target->text, inquiry->expression.problem, inquiry->expression.at);
	return true;
}

bool inquiry_ask(struct inquiry *inquiry, const char **pattern, struct error *error)
{
	*pattern = NULL;
	for (; inquiry->at < inquiry->count; move_on(inquiry)) {
		const struct target *target = &inquiry->targets[inquiry->at];
		if (target->answered)
			continue;
		if (!inquiry->begun && !begin(inquiry, target, error))
			return false;
		if (inquiry->explained == EXPLAINED_MAX) {
			inquiry->silent++;
			continue;
		}
		if (!inquiry->blind && inquiry->path < inquiry->expression.paths.count) {
			*pattern = inquiry->expression.paths.items[inquiry->path];
			return true;
		}
		say_exists(inquiry, target);
		inquiry->explained++;
	}
	if (inquiry->silent > 0)
		query_notice(inquiry->query, "%zu more targets gave no series", inquiry->silent);
	inquiry->silent = 0;
	return true;
}

void inquiry_take(struct inquiry *inquiry, const struct graphite_nodes *nodes)
{
	const struct target *target = &inquiry->targets[inquiry->at];
	const char *path = inquiry->expression.paths.items[inquiry->path++];
	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->items[i].leaf)
			return;
	if (is_path(inquiry, target))
		query_notice(inquiry->query,
			nodes->count > 0 ? "\"%.*s\" is a folder of metrics and no metric"
					 : "the server has no metric \"%.*s\"",
			SHOWN, path);
	else
		query_notice(inquiry->query,
			"target \"%.*s\" gives no series: the server has no metric \"%.*s\"", SHOWN,
			target->text, SHOWN, path);
	inquiry->explained++;
	move_on(inquiry);
}

void inquiry_blind(struct inquiry *inquiry)
{
	inquiry->blind = true;
}
