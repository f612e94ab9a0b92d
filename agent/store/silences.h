/* Silences: the changes and notices to hold back, with owner, reason and end. */
#ifndef AGENT_STORE_SILENCES_H
#define AGENT_STORE_SILENCES_H

#include "agent/model/silence.h"
#include "agent/store/events.h"

/* Adds a silence; one that is there with the same words and times is not added again. Of one with
 * an id, writes `ended` with ended_by unless it has ended, and sets `reminded` and `summed`. */
struct store_silence {
	struct store_call call;
	struct silence silence;
	struct actor actor;
	int64_t now; /* ms */

	bool found;             /* out: there is one with this id, or it was added */
	struct silence written; /* out: its present state, if found */
};

STORE_CALL(silence);

struct store_silences {
	struct store_call call;
	bool all;    /* else those that are not over, or not summed yet */
	int64_t now; /* ms */

	struct silence_rows silences; /* out: by id */
};

STORE_CALL(silences);

#endif
