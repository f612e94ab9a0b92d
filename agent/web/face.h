/*
 * What the agent shows: all pages on `agent.listen`, and those for machines that look after it once
 * more on `agent.metrics_listen`, which may be open to other hosts.
 */
#ifndef AGENT_WEB_FACE_H
#define AGENT_WEB_FACE_H

#include "agent/monitor/watch.h"
#include "agent/web/pages.h"

struct face;

struct face_options {
	bool insecure; /* `agent.listen` may be any address */
	void (*reload)(struct agent *agent, reload_done *done, void *context); /* see struct api */
	const char *(*unready)(void *context); /* see struct pages */
	void (*collect)(void *context);
	void *context;
};

/* Opens both; NULL and an error as http_start says. The caller owns it until face_free. */
struct face *face_open(struct agent *agent, struct watch *watch, const struct face_options *options,
	struct error *error);

/* face_stop closes; face_free is for when nothing calls back any more. Both accept NULL. */
void face_stop(struct face *face);
void face_free(struct face *face);

/* The ports; 0: not listened on. */
uint16_t face_port(const struct face *face);
uint16_t face_metrics_port(const struct face *face);

#endif
