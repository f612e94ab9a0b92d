/*
 * The tags of a change's annotation in Grafana that the configuration asks for: `tags` and
 * `annotate` of the test and `annotate` of the metric, with Hunter's variables.
 *
 * %{TEST_NAME}, %{METRIC_NAME}, %{GRAPHITE_PATH} and %{GRAPHITE_PREFIX} are replaced;
 * %{GRAPHITE_PATH_COMPONENTS} and %{GRAPHITE_PREFIX_COMPONENTS} make a tag for each part. A tag
 * with a variable that has no value, as Graphite's have for other tests, is left out.
 */
#ifndef AGENT_ANALYSIS_ANNOTATION_TAGS_H
#define AGENT_ANALYSIS_ANNOTATION_TAGS_H

#include "conf/config.h"

/* `metric`: as the change names it, with its labels; `branch` may be NULL. In the arena. */
struct strings annotation_tags(
	struct arena *arena, const struct test *test, const char *metric, const char *branch);

#endif
