/*
 * Interprets triagers' reactions to a message from one poll to the next.
 *
 * Slack lists the reactions without their times. So known ones are noted with the message: a new
 * one sets the triage, the last new one wins; when the one that counts is removed, its triage is
 * taken back. A known one is never applied again, even if the triage was changed elsewhere. No I/O
 * here.
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
