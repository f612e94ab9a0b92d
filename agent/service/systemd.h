/*
 * What systemd is told of the agent: ready, reloading, stopping, a line of status, and signs of
 * life for its watchdog. Where no NOTIFY_SOCKET is in the environment nothing is told.
 *
 * A sign of life is given at half the time the watchdog waits, and only if the loop turns and the
 * store answers, whatever it answers: a full disk is no reason to be started again.
 */
#ifndef AGENT_SERVICE_SYSTEMD_H
#define AGENT_SERVICE_SYSTEMD_H

#include "agent/runtime/agent.h"

struct systemd;

/* NULL if nobody is to be told; all functions accept that. */
struct systemd *systemd_new(struct agent *agent, config_env *env, void *env_context);
void systemd_free(struct systemd *systemd); /* after the engine was freed */

/* After the start. The signs of life begin with it. */
void systemd_ready(struct systemd *systemd);

/* Before and after each reload. `problem`: why it was not loaded, or NULL. */
void systemd_reloading(struct systemd *systemd);
void systemd_reloaded(struct systemd *systemd, const char *problem);
void systemd_stopping(struct systemd *systemd);

#endif
