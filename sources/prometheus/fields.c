/*
 * The options of tests and servers.
 */
#include "sources/prometheus/prometheus.h"

#include <string.h>

const struct field prometheus_fields[] = {
	OPTION_STRING(struct prometheus_options, query, NULL,
		"PromQL; each returned label set is a metric; %{BRANCH} is the requested branch",
		.metavar = "PROMQL"),
	OPTION_DURATION(struct prometheus_options, range, NULL, 1000, 315360000e3,
		"time range to read unless --since is given; default: 365 days, with a step at "
		"most 11,000 steps"),
	OPTION_DURATION(struct prometheus_options, step, NULL, 0, 315360000e3,
		"step of the query; without it the query is a selector whose raw samples are read "
		"with their own timestamps"),
	OPTION_STRING(struct prometheus_options, base_branch, "main",
		"value of %{BRANCH} without --branch", .metavar = "NAME"),
	OPTION_STRING(struct prometheus_options, commit_label, NULL,
		"label of a point's commit; not part of the series' name", .metavar = "LABEL"),
	OPTION_STRING(struct prometheus_options, version_label, NULL,
		"label of a point's version; not part of the series' name", .metavar = "LABEL"),
	OPTION_LIST(struct prometheus_options, attributes,
		"further labels that describe points and are shown with a change; not part of the "
		"series' name",
		.metavar = "LABELS"),
	OPTION_STRING(struct prometheus_options, build_info, NULL,
		"query for build information: each point gets the labels of the build running at "
		"its time (default: revision and version)",
		.metavar = "PROMQL"),
	OPTION_STRING(struct prometheus_options, deployments, NULL,
		"instead of build_info: query whose values are deployment times in Unix seconds "
		"and whose labels name the commit and version",
		.metavar = "PROMQL"),
	{0},
};

static const char *const flavors[] = {"auto", "prometheus", "victoriametrics", NULL};
static const char *const partial_responses[] = {"fail", "allow", NULL};

const struct field prometheus_server_fields[] = {
	OPTION_CHOICE(struct prometheus_server, flavor, "auto", flavors,
		"kind of server; auto: detected when needed"),
	OPTION_CHOICE(struct prometheus_server, partial_response, "fail", partial_responses,
		"accept responses marked as partial by the server"),
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
