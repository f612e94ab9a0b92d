/*
 * Checks whether a message has been posted to a channel already.
 *
 * Slack has no idempotency key. Each message carries the delivery's key in its metadata; after a
 * lost reply the channel's history since the delivery was created is read, page by page, until the
 * key is found. Thread replies are not part of that history, unless the channel shows them, too, so
 * for a reply the thread is read first; it may still have been posted outside of the thread, if
 * that was gone or not yet known, or have become visible meanwhile. The history needs the channel's
 * id; for a name, the id is looked up in the bot's channels. No I/O here: the notifier sends the
 * requests.
 *
 * Without the scope for private channels Slack rejects a request for both kinds of channels, so
 * only the public ones are requested then.
 */
#ifndef NOTIFIERS_SLACK_SEARCH_H
#define NOTIFIERS_SLACK_SEARCH_H

#include "agent/base/transfer.h"

struct slack_search {
	struct arena *arena;
	const char *channel, *key; /* of the delivery */
	size_t part;               /* part of the message, from 1 */
	const char *thread;        /* ts of its thread's first message, or NULL */
	int64_t since;             /* ms, when the message was created */
	const char *id;            /* the channel's id, once known */
	bool public_only;          /* the scope for private channels is missing */
	bool thread_read;          /* the thread was searched without a result */
	unsigned pages;

	/* Out. */
	const char *question; /* method and parameters of the next request, below api_url */
	const char *stamp;    /* SEARCH_FOUND: the message's ts */
	const char *reason;   /* SEARCH_LATER, SEARCH_DENIED: for the log */
};

enum slack_found {
	SEARCH_ON,     /* send the next request */
	SEARCH_FOUND,  /* the message has been posted, in `thread` */
	SEARCH_ABSENT, /* not posted */
	SEARCH_LATER,  /* temporary error */
	SEARCH_DENIED, /* no permission to check */
};

/* Expects the input part of the struct; creates the first request. */
void slack_search_begin(struct slack_search *search);

/* Takes the reply to the last request. */
enum slack_found slack_search_take(struct slack_search *search, const struct reply *reply);

#endif
