/*
 * `analyze --notify-slack`: the change points of the tests in one message to Slack channels, for
 * those who run it by a timer instead of the agent.
 *
 * Nothing is remembered: each run tells what it sees. By --cph-report-since a weekly report tells
 * the last week's, though more is analyzed.
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

/* NULL without an error where no channel is asked for. ERROR_USAGE: Slack cannot be told by this
 * configuration, or the date is none. */
struct notify *notify_new(const struct notify_flags *flags, const struct config *config,
	const struct cli *cli, struct error *error);
void notify_free(struct notify *notify);

/* Adds what was found in a test; its content is copied. `notify` may be NULL. */
void notify_add(struct notify *notify, const struct analysis *analysis);

/* Posts to all channels and says on stderr where that failed: EXIT_DATA or EXIT_USAGE then. */
enum exit_code notify_send(struct notify *notify);

#endif
