/*
 * Notifies systemd: ready, reloading, stopping, a status line, and watchdog notifications. Without
 * NOTIFY_SOCKET in the environment nothing is sent.
 *
 * A watchdog notification is sent at half the watchdog's timeout, and only if the loop runs and the
 * store answers, even with an error: a full disk is no reason for a restart.
 */
#ifndef AGENT_SERVICE_SYSTEMD_H
#define AGENT_SERVICE_SYSTEMD_H

#include "agent/runtime/agent.h"

struct systemd;

/* NULL without a socket; all functions accept that. */
struct systemd *systemd_new(struct agent *agent, config_env *env, void *env_context);
void systemd_free(struct systemd *systemd); /* after the engine was freed */

/* After the start; starts the watchdog notifications. */
void systemd_ready(struct systemd *systemd);

/* Before and after each reload. `problem`: why it failed, or NULL. */
void systemd_reloading(struct systemd *systemd);
void systemd_reloaded(struct systemd *systemd, const char *problem);
void systemd_stopping(struct systemd *systemd);

#endif
