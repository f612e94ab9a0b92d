/*
 * `validate --receivers`: sends each destination of each receiver one message that is marked as a
 * test (MESSAGE_TEST).
 */
#ifndef AGENT_COMMANDS_TRY_RECEIVERS_H
#define AGENT_COMMANDS_TRY_RECEIVERS_H

#include "agent/cli/cli.h"

/* The outcome. */
struct tried_receiver {
	const char *receiver, *kind, *destination; /* destination: "" if there is only one */
	const char *problem;                       /* NULL: sent */
	int code;
};

struct tried_receivers {
	struct tried_receiver *items;
	size_t count;
};

/*
 * All receivers of the configuration, but not the terminal, unless it is configured or the only
 * one; `silent`: without those that print on the standard output. They are tried at the same time,
 * with up to three attempts. The results are in cli->arena. False if it could not even begin.
 */
bool try_receivers(struct cli *cli, const struct config *config, bool silent,
	struct tried_receivers *out, struct error *error) MUST_USE;

#endif
