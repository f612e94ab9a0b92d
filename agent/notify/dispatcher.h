/*
 * The dispatcher announces what is pending in the store: new changes, recoveries, retractions.
 *
 * A round reads them from the store, applies the filters to the changes, and renders messages on a
 * worker. One transaction puts these into the store's outbox and settles what they announce.
 * Nothing is kept in memory between rounds, so a crash neither repeats nor loses an announcement. A
 * round starts `group_wait` after the first arrival; a single pass has one, dispatcher_flush.
 *
 * In a fleet only the leader announces changes. Each turn of the fleet reports whether more is
 * pending; `group_wait` counts from then. The other agents keep the silences, which hold notices
 * too, and queue notices of their own.
 */
#ifndef AGENT_NOTIFY_DISPATCHER_H
#define AGENT_NOTIFY_DISPATCHER_H

#include "agent/notify/environments.h"
#include "agent/notify/notices.h"
#include "agent/notify/silences.h"

struct dispatcher;

struct dispatcher *dispatcher_new(struct agent *agent);
void dispatcher_free(struct dispatcher *dispatcher);

/* Resumes from the restored state: recent messages, which later changes may continue, environment
 * events, and pending changes. */
void dispatcher_restore(struct dispatcher *dispatcher, const struct store_restore *restored);

/* Adds a filter, at most DISPATCHER_FILTERS; it comes before those added earlier. Silences and
 * environments are always there, in this order. */
enum { DISPATCHER_FILTERS = 4 };
void dispatcher_filter(struct dispatcher *dispatcher, struct filter filter);

struct silences *dispatcher_silences(const struct dispatcher *dispatcher);
struct notices *dispatcher_notices(const struct dispatcher *dispatcher);

/* Starts a round now. */
void dispatcher_flush(struct dispatcher *dispatcher);

/* In a single pass, whose rounds all start with dispatcher_flush: whether there was a hint since
 * the last one. */
bool dispatcher_is_due(const struct dispatcher *dispatcher);

#endif
