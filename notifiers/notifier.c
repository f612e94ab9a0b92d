/*
 * The registry of notifiers, in the order of the documentation.
 */
#include "notifiers/notifier.h"

#include <string.h>

const struct notifier *const notifiers[] = {
	&slack_notifier, &webhook_notifier, &stdout_notifier, NULL};

const struct notifier *notifier_find(const char *name)
{
	for (const struct notifier *const *at = notifiers; *at; at++)
		if (strcmp((*at)->name, name) == 0)
			return *at;
	return NULL;
}
