/*
 * The schema the configuration is checked against: the registries of this binary.
 */
#include "agent/analysis/shapes.h"
#include "agent/bisect/extract.h"
#include "agent/cli/cli.h"
#include "detectors/detector.h"
#include "notifiers/notifier.h"
#include "sources/source.h"

static const struct plugin cluster_plugin = {
	.name = "cluster", .fields = shape_fields, .options_size = sizeof(struct shape_options)};

static void notifier_events(const struct plugin *plugin, unsigned *able, unsigned *defaults)
{
	const struct notifier *notifier = notifier_find(plugin->name);

	*able = notifier->events;
	*defaults = notifier->defaults;
}

const struct schema cli_schema = {.sources = sources,
	.notifiers = notifiers,
	.detectors = detectors,
	.endpoint_fields = endpoint_fields,
	.events = message_kind_names,
	.event_count = MESSAGE_TEST,
	.notifier_events = notifier_events,
	.cluster = &cluster_plugin,
	.extract_check = extract_check};
