/*
 * The options of tests and servers.
 */
#include "sources/prometheus/prometheus.h"

#include <string.h>

const struct field prometheus_fields[] = {
	OPTION_STRING(struct prometheus_options, query, NULL,
		"PromQL; every label set it returns is a metric of its own; %{BRANCH} in it is the "
		"branch asked for",
		.metavar = "PROMQL"),
	OPTION_DURATION(struct prometheus_options, range, NULL, 1000, 315360000e3,
		"how far back to look where no --since is given; by default 365 days, with a step "
		"at most 11,000 steps"),
	OPTION_DURATION(struct prometheus_options, step, NULL, 0, 315360000e3,
		"distance of the points; without it the query is a selector, and its raw samples "
		"are read with their true time stamps"),
	OPTION_STRING(struct prometheus_options, base_branch, "main",
		"what %{BRANCH} is where no --branch is given", .metavar = "NAME"),
	OPTION_STRING(struct prometheus_options, commit_label, NULL,
		"the label that holds a point's commit; it does not name a series",
		.metavar = "LABEL"),
	OPTION_STRING(struct prometheus_options, version_label, NULL,
		"the label that holds a point's version; it does not name a series",
		.metavar = "LABEL"),
	OPTION_LIST(struct prometheus_options, attributes,
		"more labels that say something about points, shown with a change, instead of "
		"naming a series",
		.metavar = "LABELS"),
	OPTION_STRING(struct prometheus_options, build_info, NULL,
		"a second query, whose series have these labels; each point gets those of the "
		"build that ran then (by default revision and version)",
		.metavar = "PROMQL"),
	OPTION_STRING(struct prometheus_options, deployments, NULL,
		"instead of build_info: a query whose values are the times of deployments, in "
		"seconds since 1970, of what its labels say (by default commit and version)",
		.metavar = "PROMQL"),
	{0},
};

static const char *const flavors[] = {"auto", "prometheus", "victoriametrics", NULL};
static const char *const partial_responses[] = {"fail", "allow", NULL};

const struct field prometheus_server_fields[] = {
	OPTION_CHOICE(struct prometheus_server, flavor, "auto", flavors,
		"what the server is; auto asks it, where it makes a difference"),
	OPTION_CHOICE(struct prometheus_server, partial_response, "fail", partial_responses,
		"whether an answer is taken that lacks a part, as the server says"),
	{0},
};

struct pairs prometheus_point_labels(const struct query *query)
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
