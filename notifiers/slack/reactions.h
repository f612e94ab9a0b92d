/*
 * What triagers' reactions to a message say, from one look to the next.
 *
 * Slack tells which reactions there are, not since when. So those that were seen are noted with the
 * message: a new one says something, the last one seen wins; when the one that counts is removed,
 * what it said is taken back. One that was seen is never taken again, whatever has been said in the
 * meantime elsewhere. No I/O here.
 */
#ifndef NOTIFIERS_SLACK_REACTIONS_H
#define NOTIFIERS_SLACK_REACTIONS_H

#include <jansson.h>

#include "notifiers/notifier.h"
#include "notifiers/slack/options.h"

enum { SLACK_REACTIONS = 100 }; /* that count, of one message; further ones are not seen */

/*
 * Takes `message`, as reactions.get returns it, at the time `now` (ms) into the follow-up. Its
 * notes are the reactions seen, "eyes:U1", the one that counts with the time when it was taken:
 * "x:U2@1625184000000".
 */
void slack_reactions_take(const struct slack_options *options, const json_t *message, int64_t now,
	struct arena *arena, struct follow_up *follow_up);

#endif
