/*
 * The dispatcher announces what is pending in the store: new changes, recoveries, retractions.
 *
 * A round reads them from the store, applies the filters to the changes, and renders messages on a
 * worker. One transaction puts these into the store's outbox and settles what they announce; then
 * the delivery manager takes over. Nothing is kept in memory between rounds, so a crash neither
 * repeats nor loses an announcement. A round starts `group_wait` after the first arrival; a single
 * pass has one, dispatcher_flush.
 *
 * In a fleet only the leader announces changes. Each turn of the fleet reports whether more is
 * pending; `group_wait` counts from when that was recorded. The other agents keep the silences,
 * which hold notices too, and queue notices of their own.
 */
#ifndef AGENT_NOTIFY_DISPATCHER_H
#define AGENT_NOTIFY_DISPATCHER_H

#include "agent/notify/delivery_manager.h"
#include "agent/notify/environments.h"
#include "agent/notify/silences.h"

struct dispatcher;

struct dispatcher *dispatcher_new(struct agent *agent, struct delivery_manager *delivery_manager);
void dispatcher_free(struct dispatcher *dispatcher);

/* To be called with the records of a run. In a fleet the leader reads it from the store. */
void dispatcher_note(struct dispatcher *dispatcher, const struct store_record *recorded);

/* Resumes from the restored state: recent messages, which later changes may continue, environment
 * events, and pending changes. */
void dispatcher_restore(struct dispatcher *dispatcher, const struct store_restore *restored);

/* Announced or accepted changes are pending again. */
void dispatcher_again(struct dispatcher *dispatcher);

/* Adds a filter, at most DISPATCHER_FILTERS; it comes before those added earlier. Silences and
 * environments are always there, in this order. */
enum { DISPATCHER_FILTERS = 4 };
void dispatcher_filter(struct dispatcher *dispatcher, struct filter filter);

/* Applies the filters again; call when a filter's answers may have changed. */
void dispatcher_look(struct dispatcher *dispatcher);

/* The monitor reports the observations of each run to it. */
struct environments *dispatcher_environments(const struct dispatcher *dispatcher);

/* A silence was added or ended early; `silence` is as stored. */
void dispatcher_silence(struct dispatcher *dispatcher, const struct silence *silence);

/* Whether a notice about the target is held back now. *until: when that may end. */
bool dispatcher_silences(
	const struct dispatcher *dispatcher, const struct silence_target *subject, int64_t *until);

/* See silences_version. */
uint64_t dispatcher_silences_version(const struct dispatcher *dispatcher);

/* To be called after a reload. */
void dispatcher_adopt(struct dispatcher *dispatcher);

/* Starts a round now. */
void dispatcher_flush(struct dispatcher *dispatcher);

/*
 * Queues a notice to the named receivers; names that are not configured are skipped. A condition is
 * stored, or deleted, in the same transaction, so that a crash before it loses neither and the next
 * process sends the notice. In a fleet the notice is the test's (NULL: the leader's), and is
 * dropped if another agent has that.
 */
void dispatcher_notice(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition, const char *test);

/* The same with any store_queue, which it takes over; in a fleet the caller has fenced it. */
void dispatcher_notice_storing(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request);

/* Queues a message without changes that has a notice to the receiver, with the request, which it
 * takes over. False: its configuration has no destinations, or it cannot be rendered; nothing is
 * stored. */
bool dispatcher_message(struct dispatcher *dispatcher, const struct message *message,
	const struct receiver *receiver, struct store_queue *request) MUST_USE;

#endif
