/*
 * `analyze --update-grafana`: makes the annotations of a test in Grafana agree with its changes,
 * over the time that was analyzed; and `remove-annotations`.
 */
#ifndef AGENT_COMMANDS_ANNOTATIONS_H
#define AGENT_COMMANDS_ANNOTATIONS_H

#include "agent/analysis/analysis.h"
#include "agent/cli/cli.h"

struct annotations;

/* Lives as long as the command. ERROR_USAGE: no usable section grafana. `option`: the option that
 * requires it, for errors. */
struct annotations *annotations_new(const struct config *config, const char *option,
	const struct cli *cli, struct error *error);

/* Adds a test that was analyzed; copies it. `annotations` may be NULL. */
void annotations_add(
	struct annotations *annotations, const struct analysis *analysis, const char *branch);

/* Writes them and reports failures on stderr: EXIT_DATA or EXIT_USAGE then. */
int annotations_send(struct annotations *annotations);

#endif
