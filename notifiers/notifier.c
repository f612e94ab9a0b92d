/*
 * The registry of notifiers, in the order of the documentation.
 */
#include "notifiers/notifier.h"

const struct plugin *const notifiers[] = {
	&slack_notifier.plugin, &webhook_notifier.plugin, &stdout_notifier.plugin, NULL};

const struct notifier *notifier_find(const char *name)
{
	return (const struct notifier *)plugin_find(notifiers, name);
}
