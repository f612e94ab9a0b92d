/*
 * Whether a message of ours is in a channel already: what to ask Slack, and what its answers say.
 *
 * Slack has no idempotency key. A message carries the delivery's key in its metadata, and after an
 * answer that did not come the channel's history since the delivery was made is read, page by page,
 * until the key is found; a reply in a thread is no part of that history, so for one the thread is
 * read first. It may have been posted on its own all the same: as the thread was gone, or was not
 * known by then. The history is asked by the channel's id; for a name the id is looked up
 * first among the channels of the bot. No I/O here: the notifier carries the questions.
 */
#ifndef NOTIFIERS_SLACK_SEARCH_H
#define NOTIFIERS_SLACK_SEARCH_H

#include "agent/core/arena.h"
#include "agent/core/transfer.h"

struct slack_search {
	struct arena *arena;
	const char *channel, *key; /* as the delivery has them */
	size_t part;               /* of the message, from 1 on */
	const char *thread;        /* ts of the message in whose thread it is, or NULL */
	int64_t since;             /* ms, when the message was made */
	const char *id;            /* the channel's, once it is known */
	bool public_only;          /* the scope for private channels is missing */
	bool thread_read;          /* the message is not in the thread */
	unsigned pages;

	/* Out. */
	const char *question; /* method and parameters to be asked next, below api_url */
	const char *stamp;    /* SEARCH_FOUND: the message's ts */
	const char *reason;   /* SEARCH_LATER, SEARCH_DENIED: for people */
};

enum slack_found {
	SEARCH_ON,     /* ask the next question */
	SEARCH_FOUND,  /* the message is there */
	SEARCH_ABSENT, /* it is not */
	SEARCH_LATER,  /* Slack is not well */
	SEARCH_DENIED, /* Slack does not let us look */
};

/* The first part of the struct is set; makes the first question. */
void slack_search_begin(struct slack_search *search);

enum slack_found slack_search_take(struct slack_search *search, const struct reply *reply);

#endif
