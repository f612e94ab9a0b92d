/*
 * Clusters: groups of `type: cluster` are watched beside their tests.
 *
 * Each has a pass of its own on its own interval, and what it finds is told like a change. Changes
 * of the tests themselves wait for the next pass that begins after they were found: one that
 * belongs to a cluster is told with it, every other as always. If that pass fails they are told,
 * too.
 */
#ifndef AGENT_MONITOR_CLUSTER_H
#define AGENT_MONITOR_CLUSTER_H

#include "agent/notify/dispatcher.h"

struct clusters;

/* Of the agent's generation. They are a filter of the announcer. */
struct clusters *clusters_new(struct agent *agent, struct dispatcher *dispatcher);
/* After the engine was freed. */
void clusters_free(struct clusters *clusters);

void clusters_start(struct clusters *clusters);

/* Takes the agent's new generation. A cluster that means what it meant keeps its place. */
void clusters_adopt(struct clusters *clusters);

#endif
