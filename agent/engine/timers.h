/*
 * Timers: calls that are due at a time of the monotonic clock, in order of that time.
 */
#ifndef AGENT_TIMERS_H
#define AGENT_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void timer_call(void *context);

/* Zeroed: no timers. */
struct timers {
	struct timer *heap;
	size_t count, capacity;
	uint64_t added;
	int64_t now; /* of the last timers_run */
};

void timers_free(struct timers *timers); /* without calling any */

/* Timers that are due at the same ms are called in the order they were added. */
void timers_add(struct timers *timers, int64_t due, timer_call *call, void *context);

/* False if there is none. */
bool timers_next(const struct timers *timers, int64_t *due);

/*
 * An alarm is a call that is wanted once, at a time that may be moved forward. Timers cannot be
 * taken back, so one that the alarm left behind still comes; it then does nothing. Moving it to a
 * later time does nothing either: whoever is called looks what is due. It must live as long as the
 * timers.
 */
struct alarm {
	timer_call *call;
	void *context;
	struct timers *timers; /* from here on the timers' own */
	int64_t due;
	bool set;
};

/* Sees to it that the alarm's call comes at `due`, or earlier if that was wanted before. */
void timers_set_alarm(struct timers *timers, struct alarm *alarm, int64_t due);

/* Calls what is due at `now`; what those calls add is left for the next time. */
void timers_run(struct timers *timers, int64_t now);

#endif
