/*
 * Which state file a command means.
 */
#ifndef AGENT_COMMANDS_STATE_FILE_H
#define AGENT_COMMANDS_STATE_FILE_H

#include "agent/cli/cli.h"

#define STATE_FILE_HELP "the state file; by default the configuration's agent.state"

/* `path`, or the configuration's, in the command's arena. NULL after an error, which was printed;
 * the exit code is then EXIT_USAGE. */
const char *state_file(struct cli *cli, const char *path);

#endif
