/*
 * Finds plugins by name.
 */
#include "agent/base/plugin.h"

#include <string.h>

const struct plugin *plugin_find(const struct plugin *const *plugins, const char *name)
{
	for (; plugins && *plugins; plugins++)
		if (strcmp((*plugins)->name, name) == 0)
			return *plugins;
	return NULL;
}

size_t plugin_names(
	const struct plugin *const *plugins, bool servers, const char *names[PLUGIN_NAMES])
{
	size_t count = 0;
	for (; plugins && *plugins && count < PLUGIN_NAMES; plugins++)
		if (!servers || (*plugins)->server_size > 0)
			names[count++] = (*plugins)->name;
	return count;
}
