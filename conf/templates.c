/*
 * Inheritance: lays a test over its templates, which are applied from left to right.
 *
 * Maps merge, lists append, a value replaces, null changes nothing: Hunter's rules. Two things are
 * our own: templates may inherit from templates, and `detection` is kept as a list of layers, since
 * a layer that names another detector drops those below. What merging writes out is counted, since
 * templates that inherit each other twice double at each step.
 */
#include <string.h>

#include "conf/load.h"

enum { CHAIN_MAX = 50 };

struct template
{
	const char *name;
	const struct yaml_node *node; /* as written */
	const struct yaml_node
		*resolved; /* with what it inherits; NULL: not resolved yet, or broken */
	bool open, done;
};

static const struct yaml_node *resolve(
	const struct scope *scope, const struct yaml_node *map, int depth);

static const struct yaml_node *merge_maps(
	struct loader *loader, const struct yaml_node *below, const struct yaml_node *above);

static const struct yaml_node *append_lists(
	struct loader *loader, const struct yaml_node *below, const struct yaml_node *above)
{
	if (!loader_spend(loader, below->count + above->count, above))
		return above;
	struct yaml_node *list = arena_alloc(loader->arena, sizeof *list);
	const struct yaml_node **items =
		arena_array(loader->arena, below->count + above->count, sizeof *items);
	for (size_t i = 0; i < below->count; i++)
		items[i] = below->items[i];
	for (size_t i = 0; i < above->count; i++)
		items[below->count + i] = above->items[i];
	*list = *above;
	list->items = items;
	list->count = below->count + above->count;
	return list;
}

static const struct yaml_node *merge_values(struct loader *loader, const char *key,
	const struct yaml_node *below, const struct yaml_node *above)
{
	if (yaml_is_null(above))
		return below;
	if (yaml_is_null(below))
		return above;
	if (strcmp(key, "detection") == 0) {
		size_t n = detection_is_layers(below) ? below->count : 1;
		return loader_spend(loader, n + 1, above)
			       ? detection_layers(loader->arena, below, above)
			       : above;
	}
	if (below->kind == YAML_MAP && above->kind == YAML_MAP)
		return merge_maps(loader, below, above);
	if (below->kind == YAML_LIST && above->kind == YAML_LIST)
		return append_lists(loader, below, above);
	return above;
}

static const struct yaml_node *merge_maps(
	struct loader *loader, const struct yaml_node *below, const struct yaml_node *above)
{
	if (!loader_spend(loader, below->count + above->count, above))
		return above;
	struct yaml_entry *entries =
		arena_array(loader->arena, below->count + above->count, sizeof *entries);
	struct dict keys = {.arena = loader->arena};
	size_t count = 0;
	for (; count < below->count; count++) {
		entries[count] = below->entries[count];
		*dict_place(&keys, entries[count].key->text) = &entries[count];
	}
	for (size_t i = 0; i < above->count; i++) {
		const struct yaml_entry *entry = &above->entries[i];
		const void **place = dict_place(&keys, entry->key->text);
		struct yaml_entry *to = &entries[count];
		if (*place)
			to = entries + ((const struct yaml_entry *)*place - entries);
		else
			count++;
		const struct yaml_node *value =
			*place ? merge_values(loader, entry->key->text, to->value, entry->value)
			       : entry->value;
		*to = (struct yaml_entry){entry->key, value};
		*place = to;
	}
	struct yaml_node *map = arena_alloc(loader->arena, sizeof *map);
	*map = *above;
	map->entries = entries;
	map->count = count;
	return map;
}

/* The template with all it inherits, or NULL if it is unusable, which has been reported. */
static const struct yaml_node *resolve_template(
	const struct scope *scope, const struct yaml_node *where, int depth)
{
	struct loader *loader = scope->loader;
	const char *missing = NULL;
	const char *name = loader_expand(loader, where, false, &missing);
	if (missing) {
		loader_error(where, scope, "inherit: ${%s} is not set", missing);
		return NULL;
	}
	const struct template *found = dict_get(&loader->templates, name);
	if (!found) {
		loader_error(where, scope, "inherit: unknown template \"%.80s\"%s", where->text,
			loader_hint_in(loader, name, loader->template_list, loader->template_count,
				sizeof *found));
		return NULL;
	}
	struct template *template = loader->template_list + (found - loader->template_list);
	if (template->open || depth > CHAIN_MAX) {
		loader_error(where, scope,
			template->open ? "inherit: the template \"%.80s\" inherits from itself"
				       : "inherit: more than 50 templates deep at \"%.80s\"",
			where->text);
		return NULL;
	}
	if (template->done)
		return template->resolved;
	struct scope self = {.loader = loader, .kind = "template", .name = name};
	template->open = true;
	template->resolved = resolve(&self, template->node, depth + 1);
	template->open = false;
	template->done = true;
	return template->resolved;
}

static const struct yaml_node *resolve(
	const struct scope *scope, const struct yaml_node *map, int depth)
{
	const struct yaml_node *inherit = yaml_get(map, "inherit");
	const struct yaml_node *sum = NULL;
	if (!inherit || loader_is_null(inherit, scope, "inherit"))
		return map;
	const struct yaml_node *const *items;
	size_t count = yaml_items(&inherit, &items);
	for (size_t i = 0; i < count; i++) {
		if (items[i]->kind != YAML_SCALAR) {
			loader_error(items[i], scope, "inherit: expected the name of a template");
			return NULL;
		}
		const struct yaml_node *part = resolve_template(scope, items[i], depth);
		if (!part)
			return NULL;
		sum = sum ? merge_maps(scope->loader, sum, part) : part;
	}
	return sum ? merge_maps(scope->loader, sum, map) : map;
}

void templates_read(struct loader *loader, const struct yaml_node *map)
{
	if (!map)
		return;
	loader->template_list = arena_array(loader->arena, map->count, sizeof(struct template));
	loader->template_count = map->count;
	for (size_t i = 0; i < map->count; i++) {
		const struct yaml_entry *entry = &map->entries[i];
		struct template *template = &loader->template_list[i];
		template->name = loader_name(loader, entry->key);
		struct scope scope = {.loader = loader, .kind = "template", .name = template->name};
		template->node = entry->value;
		if (yaml_is_null(entry->value) ||
			!loader_is_kind(entry->value, YAML_MAP, &scope, "a map"))
			template->node = yaml_empty_map(loader->arena, entry->key);
		const void **place = dict_place(&loader->templates, template->name);
		if (*place)
			loader_error(entry->key, &scope, "already defined");
		*place = template;
	}
}

const struct yaml_node *templates_resolve(
	struct loader *loader, const char *name, const struct yaml_node *test)
{
	struct scope scope = {.loader = loader, .kind = "test", .name = name};
	return resolve(&scope, test, 1);
}
