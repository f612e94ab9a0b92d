/*
 * The common part of sources, notifiers and detectors: a name, tables of options and their checks.
 *
 * Each of these structs begins with its struct plugin. A registry is an array of pointers to them
 * that ends with NULL; its user knows the struct that each begins.
 */
#ifndef AGENT_BASE_PLUGIN_H
#define AGENT_BASE_PLUGIN_H

#include "agent/base/field.h"

struct metric;

struct plugin {
	const char *name;    /* as in the configuration */
	const char *summary; /* one line for --help and the man page */
	/* Of sources and detectors: the options of a test. Of notifiers: those of the section. */
	const struct field *fields;
	size_t options_size;
	/* Of sources: the options of a server, or NULL. 0: the source has no servers. */
	const struct field *server_fields;
	size_t server_size;
	/* The server (of a source) or section (of a notifier) takes endpoint_fields as well; its
	 * struct begins with a struct endpoint. */
	bool endpoint;
	bool mail; /* whose URL is that of a mail server */
	/*
	 * Checks beyond those of the fields, or NULL: of the options of a test, receiver or
	 * detector, and of a test together with its metrics. A text that begins with "OPTION: " is
	 * reported at that option. ERROR_USAGE is an error. ERROR_DATA is a warning: reading the
	 * test may fail, and the receiver, which reaches nobody, is left out.
	 */
	bool (*check)(const void *options, struct error *error);
	bool (*check_metrics)(const void *options, const struct metric *metrics, size_t count,
		struct error *error);
	/*
	 * Of notifiers, optional: whether the section of that name, with these options, is for
	 * commands only. It is no receiver then, and need not be complete.
	 */
	bool (*on_demand)(const void *options);
};

/* The plugin of that name, or NULL. */
const struct plugin *plugin_find(const struct plugin *const *plugins, const char *name);

/* Writes the names of all plugins, or of those with servers, for "did you mean"; returns their
 * number. */
enum { PLUGIN_NAMES = 60 };
size_t plugin_names(
	const struct plugin *const *plugins, bool servers, const char *names[PLUGIN_NAMES]);

#endif
