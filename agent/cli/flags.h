/* Parses the arguments of a command line by the option tables of their command. */
#ifndef AGENT_CLI_FLAGS_H
#define AGENT_CLI_FLAGS_H

#include "agent/cli/cli.h"

/*
 * Finds the command, fills cli->common, cli->options (defaults first) and cli->arguments, all in
 * cli->arena. Without a command cli->command stays NULL. Fails with an error that names the
 * wrong argument.
 */
bool flags_parse(struct cli *cli, int argc, char **argv, struct error *error) MUST_USE;

#endif
