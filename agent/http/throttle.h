/*
 * Slows down guessing: after some failures a client must pause before the next attempt; the pause
 * doubles with each failure up to some seconds. Other clients are not delayed. Pure, on the
 * caller's clock; keeps a fixed number of places, and replaces the one whose pause ends first.
 */
#ifndef AGENT_HTTP_THROTTLE_H
#define AGENT_HTTP_THROTTLE_H

#include <stddef.h>
#include <stdint.h>

enum {
	THROTTLE_FIRST = 500, /* ms of the first pause */
	THROTTLE_LONGEST = 8000,
	THROTTLE_FORGET = 120000, /* ms after the end of a pause */
	THROTTLE_PLACES = 512,
};

/* Zeroed but for `free`: nothing has failed. */
struct throttle {
	unsigned free; /* failures without a pause */
	struct throttle_place {
		uint64_t key; /* a keyed hash of who failed: a client, or a name there */
		int64_t until;
		unsigned failures;
	} places[THROTTLE_PLACES];
	size_t count;
};

/* ms of `now` until the next attempt is allowed, 0: now. */
int64_t throttle_pause(const struct throttle *throttle, uint64_t key, int64_t now);

/* The attempt failed; returns the number of failures in a row. */
unsigned throttle_failed(struct throttle *throttle, uint64_t key, int64_t now);
void throttle_succeeded(struct throttle *throttle, uint64_t key);

#endif
