/*
 * The words of a command line, parsed by the option tables of the command they name.
 */
#ifndef AGENT_CLI_FLAGS_H
#define AGENT_CLI_FLAGS_H

#include "agent/cli/cli.h"

/*
 * Finds the command, fills cli->common, cli->options (defaults first) and cli->arguments, all in
 * cli->arena. Without a command cli->command stays NULL. Fails with what is wrong about a word.
 */
bool flags_parse(struct cli *cli, int argc, char **argv, struct error *error) MUST_USE;

#endif
