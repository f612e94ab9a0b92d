/*
 * Sends messages to destinations without an agent: in as many posts as it takes, with up to three
 * attempts. Nothing is stored, as there is no agent to send it later.
 */
#ifndef AGENT_COMMANDS_POST_H
#define AGENT_COMMANDS_POST_H

#include "agent/io/engine.h"
#include "conf/config.h"
#include "notifiers/notifier.h"

struct post {
	const struct receiver *receiver;
	const char *destination;
	const struct message *message; /* its own key is ignored; NULL: there is a payload */
	const char *key, *payload;     /* of a message, post_all sets them */
	/* Set by post_all; a post that has an error before is not sent. */
	struct error error;  /* ERROR_NONE: sent */
	const char *receipt; /* the last request that was sent, or NULL */
	/* The rest is post.c's. */
	struct engine *engine;
	struct arena *arena;
	int64_t now;
	struct attempt attempt;
	enum maybe_delivered maybe_delivered;
	int64_t tries;
};

/* The receiver of that kind with its name (the section), else the first of the kind. NULL and an
 * ERROR_USAGE, which names the option that requires it, if there is none. */
const struct receiver *post_receiver(
	const struct config *config, const char *kind, const char *option, struct error *error);

/* Sends them at the same time and waits for them; `now`: ms, wall clock. */
void post_all(struct post *posts, size_t count, struct arena *arena, int64_t now);

#endif
