/*
 * The schema the configuration is checked against: the registries of this binary.
 */
#include "agent/analysis/shapes.h"
#include "agent/cli/cli.h"
#include "detectors/detector.h"
#include "notifiers/notifier.h"
#include "sources/source.h"

static const struct plugin cluster_plugin = {
	.name = "cluster", .fields = shape_fields, .options_size = sizeof(struct shape_options)};

const struct schema cli_schema = {.sources = sources,
	.notifiers = notifiers,
	.detectors = detectors,
	.endpoint_fields = endpoint_fields,
	.cluster = &cluster_plugin};
