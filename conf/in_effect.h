/*
 * A test's effective configuration, option by option, for display.
 *
 * It is built from the option tables, so that a new option is covered without being named here.
 * Secrets, headers, and the parts of an address other than host and path are hidden. Everything is
 * in the arena, or the configuration's.
 */
#ifndef CONF_IN_EFFECT_H
#define CONF_IN_EFFECT_H

#include "conf/config.h"

struct option_in_effect {
	const char *name, *help;
	const char *value; /* as text; NULL: not set */
	bool usual;        /* it is the default */
	bool hidden;       /* all or part of it */
};

struct options_in_effect {
	const char *of;   /* "test", "source", "server", "detection", "metric" */
	const char *name; /* of the test, the source, the server, the detector, the metric */
	const struct option_in_effect *items;
	size_t count;
};

enum { IN_EFFECT_METRICS = 200 }; /* of a test; all others are left out */

/* Returns the number of sections. */
size_t test_in_effect(const struct config *config, const struct schema *schema,
	const struct test *test, struct arena *arena, const struct options_in_effect **out);

/* The server's address as far as it can be shown, or NULL. */
const char *server_address(const struct config *config, const struct schema *schema,
	const struct server *server, struct arena *arena);

#endif
