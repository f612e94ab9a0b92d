/*
 * The options of tests and servers.
 */
#include "sources/prometheus/prometheus.h"

#include <string.h>

#define OPTION(member) offsetof(struct prometheus_options, member)
#define SERVER(member) offsetof(struct prometheus_server, member)

const struct field prometheus_fields[] = {
	{.name = "query",
		.type = FIELD_STRING,
		.offset = OPTION(query),
		.metavar = "PROMQL",
		.help = "PromQL; every label set it returns is a metric of its own; %{BRANCH} in "
			"it is the branch asked for"},
	{.name = "range",
		.type = FIELD_DURATION,
		.offset = OPTION(range),
		.min = 1000,
		.max = 315360000e3,
		.help = "how far back to look where no --since is given; by default 365 days, with "
			"a step at most 11,000 steps"},
	{.name = "step",
		.type = FIELD_DURATION,
		.offset = OPTION(step),
		.max = 315360000e3,
		.help = "distance of the points; without it the query is a selector, and its raw "
			"samples are read with their true time stamps"},
	{.name = "base_branch",
		.type = FIELD_STRING,
		.offset = OPTION(base_branch),
		.initial = "main",
		.metavar = "NAME",
		.help = "what %{BRANCH} is where no --branch is given"},
	{.name = "commit_label",
		.type = FIELD_STRING,
		.offset = OPTION(commit_label),
		.metavar = "LABEL",
		.help = "the label that holds a point's commit; it does not name a series"},
	{.name = "version_label",
		.type = FIELD_STRING,
		.offset = OPTION(version_label),
		.metavar = "LABEL",
		.help = "the label that holds a point's version; it does not name a series"},
	{.name = "attributes",
		.type = FIELD_LIST,
		.offset = OPTION(attributes),
		.metavar = "LABELS",
		.help = "more labels that say something about points, shown with a change, "
			"instead of naming a series"},
	{.name = "build_info",
		.type = FIELD_STRING,
		.offset = OPTION(build_info),
		.metavar = "PROMQL",
		.help = "a second query, whose series have these labels; each point gets those of "
			"the build that ran then (by default revision and version)"},
	{.name = "deployments",
		.type = FIELD_STRING,
		.offset = OPTION(deployments),
		.metavar = "PROMQL",
		.help = "instead of build_info: a query whose values are the times of deployments, "
			"in seconds since 1970, of what its labels say (by default commit and "
			"version)"},
	{0}};

static const char *const flavors[] = {"auto", "prometheus", "victoriametrics", NULL};
static const char *const partial_responses[] = {"fail", "allow", NULL};

const struct field prometheus_server_fields[] = {
	{.name = "flavor",
		.type = FIELD_CHOICE,
		.offset = SERVER(flavor),
		.initial = "auto",
		.choices = flavors,
		.help = "what the server is; auto asks it, where it makes a difference"},
	{.name = "partial_response",
		.type = FIELD_CHOICE,
		.offset = SERVER(partial_response),
		.initial = "fail",
		.choices = partial_responses,
		.help = "whether an answer is taken that lacks a part, as the server says"},
	{0}};

struct pairs prometheus_said(const struct query *query)
{
	const struct prometheus_options *options = query->options;
	const char *commit = options->commit_label, *version = options->version_label;
	if (options->build_info && !commit && !version && options->attributes.count == 0) {
		commit = "revision";
		version = "version";
	}
	if (options->deployments && !commit && !version && options->attributes.count == 0) {
		commit = "commit";
		version = "version";
	}
	return attribute_names(query->arena, commit, version, options->attributes);
}
