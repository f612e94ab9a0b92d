/*
 * Clusters: groups of `type: cluster`, which run in addition to their tests.
 *
 * Each has its own run at its own interval, and its findings are announced like changes. A change
 * of a test is held until the next cluster run that begins after the change was found: if it
 * belongs to a cluster, the cluster's message covers it, otherwise it is announced as usual. If
 * that run fails, the held changes are announced, too.
 */
#ifndef AGENT_MONITOR_CLUSTER_H
#define AGENT_MONITOR_CLUSTER_H

#include "agent/notify/dispatcher.h"

struct clusters;

/* Creates the clusters of the agent's configuration and registers them as a filter of the
 * dispatcher. */
struct clusters *clusters_new(struct agent *agent, struct dispatcher *dispatcher);
/* To be called after the engine was freed. */
void clusters_free(struct clusters *clusters);

void clusters_start(struct clusters *clusters);

/* Switches to the agent's new configuration. A cluster whose meaning has not changed keeps its
 * schedule. */
void clusters_adopt(struct clusters *clusters);

#endif
