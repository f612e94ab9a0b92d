/*
 * The agent's web servers: all pages on each address of `agent.listen`, and those for monitoring
 * also on `agent.metrics_listen`, which may be open to other hosts.
 */
#ifndef AGENT_WEB_WEB_H
#define AGENT_WEB_WEB_H

#include "agent/http/request.h"
#include "agent/monitor/scheduler.h"

struct web;

struct web_options {
	struct delivery_manager *delivery_manager;
	bool insecure; /* `agent.listen` may be any address without authentication */
	void (*reload)(struct agent *agent, reload_done *done, void *context);
	/* Called with a silence as stored. */
	void (*silenced)(void *context, const struct silence *silence);
	/* Why the agent is not ready, as a sentence, or NULL if it is. */
	const char *(*unready)(void *context);
	void (*collect)(void *context); /* called before /metrics is printed, to set gauges */
	void *context;
};

/* Opens all; NULL and an error as for http_start. The caller owns it until web_free. */
struct web *web_open(struct agent *agent, struct scheduler *scheduler,
	const struct web_options *options, struct error *error);

/* web_stop closes; web_free must wait until nothing calls back any more. Both accept NULL. */
void web_stop(struct web *web);
void web_free(struct web *web);

/* Rereads `agent.web_config` if changed; returns the reason if it cannot be used, as access_reload.
 * Watchers (/api/v1/events) have to sign in again. */
const char *web_adopt(struct web *web);

/* The first ports; 0: not listening, or only on Unix sockets. */
uint16_t web_port(const struct web *web);
uint16_t web_metrics_port(const struct web *web);

#endif
