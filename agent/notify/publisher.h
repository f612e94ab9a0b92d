/*
 * The publisher turns pending announcements into deliveries for the outbox: groups of changes,
 * recoveries, retractions and notices, one message per destination.
 *
 * A group that belongs to a recent message continues its thread. A recovery is a reply to the
 * message that announced the change, where there is a thread, else a message of its own. A
 * retraction is a reply, where the receiver has threads and keeps receipts; other receivers get one
 * if they asked for it. Each receiver gets the kinds of messages that are among its events.
 * Receivers that are no longer configured get nothing.
 *
 * Runs on any thread: it reads only its arguments. Two publishers may run at a time,
 * so `render` and `destinations` of notifiers have no state.
 */
#ifndef AGENT_NOTIFY_PUBLISHER_H
#define AGENT_NOTIFY_PUBLISHER_H

#include "agent/decide/route.h"
#include "agent/model/message.h"
#include "agent/notify/incidents.h"
#include "conf/config.h"

struct publisher {
	const struct config *config;
	const struct store_incidents *incidents; /* needed for changes */
	struct router *router;                   /* of the configuration; needed for changes */
	const struct store_pending *pending;     /* what the round has read; NULL: a reminder */
	int64_t now;                             /* ms, wall clock */
	/* The environment events of the changes, each with the number of its changes that have not
	 * recovered. */
	struct environment_rows events;
	struct store_queue *queue; /* gets the deliveries */
	struct error *lost;        /* of each of config's receivers: why a recovery could not be
				      rendered for it; NULL: there are none to render */
};

/* Adds all messages for the receiver; or none, with an error, if its configuration has no
 * destinations or they cannot be rendered. `group_by`: the names by which each record is grouped.
 * `kinds`: the kinds of messages that its routes allow: without updates, further changes get a
 * message of their own; with updates alone, only further changes are sent. */
bool publisher_changes(const struct publisher *publisher, const struct receiver *receiver,
	const struct change_record **records, const struct strings *group_by, size_t count,
	unsigned kinds, struct error *error) MUST_USE;

/* Moves those changes to the front that the receiver is told now, and returns their number. The
 * others it is told together with what else joins their incidents (incident_gather): *until is set
 * to when the first of these is due, unless it is earlier; 0: never. */
size_t publisher_due(const struct publisher *publisher, const struct receiver *receiver,
	const struct change_record **records, struct strings *group_by, size_t count,
	unsigned kinds, int64_t *until);

/* The same for a message without changes that has a notice. */
bool publisher_message(const struct publisher *publisher, const struct receiver *receiver,
	const struct message *message, struct error *error) MUST_USE;

/* Adds reports of the events that are not due later: retractions, updates, triage and recoveries,
 * to receivers of the change that want them. Sets why one has none. */
void publisher_replies(const struct publisher *publisher, struct due_rows *events);

/* Reminds of these changes of a sent message. */
void publisher_reminder(const struct publisher *publisher, const struct delivery *told,
	const struct change_record *const *records, size_t count);

/* Replies in the event's threads that `value`, another environment, followed. */
void publisher_followed(const struct publisher *publisher, const struct environment_event *event,
	const char *value);

#endif
