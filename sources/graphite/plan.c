/*
 * Branches are part of paths, as in Hunter: a branch has a prefix of its own, or its name stands in
 * the prefix. A test that has no place for it cannot be asked about a branch.
 */
#include "sources/graphite/plan.h"

#include <string.h>

#include "sources/graphite/graphite.h"

static bool branch_missing(const char *option, struct error *error)
{
	return error_set(error, ERROR_USAGE,
		"the test does not support branches (--branch or $BRANCH): set branch_prefix, or "
		"use %%{BRANCH} in its "
		"%s",
		option);
}

static bool find_prefix(const struct query *query, const char **out, struct error *error)
{
	const struct graphite_options *options = query->options;
	const char *prefix = options->prefix;
	if (query->branch && options->branch_prefix)
		prefix = options->branch_prefix;
	else if (query->branch && prefix && !strstr(prefix, "%{BRANCH}"))
		return branch_missing("prefix", error);
	*out = prefix;
	return !prefix || target_fill_branch(query->arena, prefix, query->branch, out, error);
}

static bool find_target(
	const struct query *query, const char *text, struct target *out, struct error *error)
{
	if (query->branch && !strstr(text, "%{BRANCH}"))
		return branch_missing("target", error);
	if (!target_fill_branch(query->arena, text, query->branch, &out->text, error))
		return false;
	out->plain = target_is_plain(out->text);
	return true;
}

/* The target of a metric: its own, its suffix behind the prefix, or the test's. */
static bool metric_target(const struct query *query, const struct metric *metric,
	const char *prefix, struct target *out, struct error *error)
{
	const struct graphite_options *options = query->options;
	out->metric = metric;
	if (metric->query)
		return find_target(query, metric->query, out, error);
	if (metric->suffix && prefix) {
		const char *suffix;
		if (!target_fill_branch(
			    query->arena, metric->suffix, query->branch, &suffix, error))
			return false;
		out->text = arena_printf(query->arena, "%s.%s", prefix, suffix);
		out->plain = target_is_plain(out->text);
		return true;
	}
	if (options->target && !metric->suffix)
		return find_target(query, options->target, out, error);
	return error_set(error, ERROR_USAGE, "metric \"%s\" has no %s", metric->name,
		metric->suffix ? "prefix: the test lacks it" : "suffix and no target");
}

bool graphite_plan(struct query *query, struct graphite_plan *out, struct error *error)
{
	const struct graphite_options *options = query->options;
	size_t sharing = 0;
	for (size_t i = 0; i < query->metric_count; i++)
		sharing += !query->metrics[i].query && !query->metrics[i].suffix;
	if (sharing > 1 && options->target)
		return error_set(error, ERROR_USAGE,
			"%zu metrics have no target of their own, so they would be the same",
			sharing);
	if (!find_prefix(query, &out->prefix, error))
		return false;
	out->targets = arena_array(
		query->arena, query->metric_count ? query->metric_count : 1, sizeof *out->targets);
	out->count = query->metric_count;
	for (size_t i = 0; i < query->metric_count; i++)
		if (!metric_target(query, &query->metrics[i], out->prefix, &out->targets[i], error))
			return false;
	if (query->metric_count > 0)
		return true;
	if (options->target) {
		out->count = 1;
		return find_target(query, options->target, out->targets, error);
	}
	out->targets = NULL;
	return out->prefix ||
	       error_set(error, ERROR_USAGE, "the test has neither prefix nor target");
}
