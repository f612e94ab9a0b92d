/*
 * `analyze --notify-slack`: posts the change points of the tests in one message to Slack
 * channels, for use from a timer instead of the agent.
 *
 * No state is kept: each run posts what it finds. With --cph-report-since a weekly report covers
 * the last week only, though more is analyzed.
 */
#ifndef AGENT_COMMANDS_NOTIFY_H
#define AGENT_COMMANDS_NOTIFY_H

#include "agent/analysis/analysis.h"
#include "agent/cli/cli.h"

struct notify_flags {
	struct strings notify_slack;
	const char *cph_report_since;
};

extern const struct field notify_fields[];

struct notify;

/* NULL without an error if no channel is given. ERROR_USAGE: no usable Slack configuration, or
 * an invalid date. */
struct notify *notify_new(const struct notify_flags *flags, const struct config *config,
	const struct cli *cli, struct error *error);
void notify_free(struct notify *notify);

/* Adds the changes of a test; copies them. `notify` may be NULL. */
void notify_add(struct notify *notify, const struct analysis *analysis);

/* Posts to all channels and reports failures on stderr: EXIT_DATA or EXIT_USAGE then. */
int notify_send(struct notify *notify);

#endif
