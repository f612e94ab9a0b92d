/*
 * Help and version texts, made from the command table and the option tables.
 */
#ifndef AGENT_CLI_HELP_H
#define AGENT_CLI_HELP_H

#include "agent/base/buf.h"
#include "agent/cli/cli.h"

/* The overview of all commands, one command's help, and the version with those of the libraries. */
void help_overview(struct buf *out, const struct command *const *commands);
void help_command(struct buf *out, const struct command *command);
void help_version(struct buf *out);

/* A flag with its value, "-P, --p-value P" or "--once", without indentation. */
void help_flag(struct buf *out, const struct field *field);

#endif
