/*
 * The commands, each in one file or a few; the table in commands.c lists them in the order of
 * --help.
 */
#ifndef AGENT_COMMANDS_COMMANDS_H
#define AGENT_COMMANDS_COMMANDS_H

#include "agent/cli/cli.h"

extern const struct command *const commands[]; /* in the order of --help; ends with NULL */

extern const struct command agents_command;
extern const struct command analyze_command;
extern const struct command bisect_command;
extern const struct command changes_command;
extern const struct command cluster_command;
extern const struct command detect_command;
extern const struct command evaluate_command;
extern const struct command list_groups_command;
extern const struct command list_metrics_command;
extern const struct command list_tests_command;
extern const struct command plot_command;
extern const struct command regressions_command;
extern const struct command remove_annotations_command;
extern const struct command replay_command;
extern const struct command report_command;
extern const struct command route_command;
extern const struct command run_command;
extern const struct command silence_command;
extern const struct command store_command;
extern const struct command triage_command;
extern const struct command validate_command;
extern const struct command why_command;

#endif
