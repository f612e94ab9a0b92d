/*
 * Follow-ups of a Slack message: reactions.get reads the triagers' reactions to it, chat.update
 * edits it.
 *
 * Both need the message's own `ts` and its channel's id, which are in its receipt (api.h); a
 * message without them, as by a webhook, is left alone. The edited message is the first post as
 * it was rendered and stored, with one block at the end that has the triage of its changes.
 */
#ifndef NOTIFIERS_SLACK_FOLLOW_UP_H
#define NOTIFIERS_SLACK_FOLLOW_UP_H

#include "notifiers/notifier.h"

enum { SLACK_TRIAGE = 1000 }; /* bytes that the line about the triage has */

/* A step of slack_notifier; see struct notifier. */
enum step slack_follow_up(struct attempt *attempt, const struct reply *last);

#endif
