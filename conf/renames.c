/*
 * Tests and metrics with a former name: `was:`. The new name takes over the records of the old one,
 * so each old name has one successor and must not be in use.
 */
#include <string.h>

#include "conf/load.h"

struct noted_rename {
	struct rename rename;
	const struct yaml_node *where;
	struct scope scope;
	struct noted_rename *next;
};

void rename_note(const struct yaml_node *map, const struct scope *scope, const char *was)
{
	struct noted_rename *noted;

	if (!was)
		return;
	noted = arena_alloc(scope->loader->arena, sizeof *noted);
	*noted = (struct noted_rename){.rename = {scope->name, scope->metric, was},
		.where = yaml_get(map, "was"),
		.scope = *scope};
	*scope->loader->last_rename = noted;
	scope->loader->last_rename = &noted->next;
}

static void check(struct loader *loader, const struct noted_rename *noted, struct dict *heirs)
{
	const struct rename *rename = &noted->rename;
	const struct test *test = dict_get(loader->tests, rename->test);
	const struct test *before = rename->metric ? NULL : dict_get(loader->tests, rename->was);
	const void **heir = dict_place(heirs,
		rename->metric ? arena_printf(loader->arena, "%s\n%s", rename->test, rename->was)
			       : rename->was);
	const struct noted_rename *other = *heir;

	if (before)
		loader_error(noted->where, &noted->scope,
			"was: the test \"%.200s\" still exists, at %s:%d", rename->was,
			before->file, before->line);
	else if (rename->metric && test && test_metric(test, rename->was))
		loader_error(noted->where, &noted->scope, "was: the metric \"%.200s\" still exists",
			rename->was);
	else if (other)
		loader_error(noted->where, &noted->scope,
			"was: \"%.200s\" is already the former name of \"%.200s\"", rename->was,
			other->rename.metric ? other->rename.metric : other->rename.test);
	else if (!*rename->was)
		loader_error(noted->where, &noted->scope, "was: expected a name");
	*heir = noted;
}

void renames_read(struct loader *loader)
{
	struct config *config = loader->config;
	struct dict heirs = {.arena = loader->arena};
	struct rename *renames;
	size_t count = 0;

	for (struct noted_rename *at = loader->first_rename; at; at = at->next, count++)
		check(loader, at, &heirs);
	config->renames = renames = arena_array(loader->arena, count, sizeof *renames);
	for (struct noted_rename *at = loader->first_rename; at; at = at->next)
		if (!at->rename.metric)
			renames[config->rename_count++] = at->rename;
	for (struct noted_rename *at = loader->first_rename; at; at = at->next)
		if (at->rename.metric)
			renames[config->rename_count++] = at->rename;
}

const char *former_name(const struct config *config, const char *test, const char *metric)
{
	for (size_t i = 0; i < config->rename_count; i++) {
		const struct rename *rename = &config->renames[i];
		bool about = metric ? rename->metric && strcmp(rename->metric, metric) == 0
				    : !rename->metric;
		if (about && strcmp(rename->test, test) == 0)
			return rename->was;
	}
	return NULL;
}
