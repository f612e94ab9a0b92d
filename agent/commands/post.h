/*
 * Sends a message to one destination without an agent: in as many posts as it takes, with up to
 * three attempts. Nothing is stored, as there is no agent to send it later.
 */
#ifndef AGENT_COMMANDS_POST_H
#define AGENT_COMMANDS_POST_H

#include "agent/io/engine.h"
#include "conf/config.h"
#include "notifiers/notifier.h"

/* Set by the caller, which keeps it until the engine has run. */
struct post {
	struct engine *engine;
	struct arena *arena;
	const struct receiver *receiver;
	const char *destination;
	int64_t now; /* ms, wall clock */
	/* Called on failure. The error is valid during the call. */
	void (*failed)(struct post *post, const struct error *error);
	void *context;
	const char *key, *payload; /* for post_begin; post_send sets them */
	const char *receipt;       /* the last request that was sent, or NULL */
	/* The rest is post.c's. */
	struct attempt attempt;
	enum maybe_delivered maybe_delivered;
	int64_t tries;
};

/* Writes the message and begins to send it; its own key is ignored. */
void post_send(struct post *post, const struct message *message);

/* Begins to send the payload. */
void post_begin(struct post *post);

#endif
