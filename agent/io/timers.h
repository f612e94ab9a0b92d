/* Timers: calls that are due at a time of the monotonic clock, run in order of that time. */
#ifndef AGENT_IO_TIMERS_H
#define AGENT_IO_TIMERS_H

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

void timers_free(struct timers *timers); /* drops all without calling them */

/* Timers due in the same ms are called in the order they were added. */
void timers_add(struct timers *timers, int64_t due, timer_call *call, void *context);

/* False: no timers. */
bool timers_next(const struct timers *timers, int64_t *due);

/* An alarm is a single call whose time can be moved earlier. Timers cannot be removed, so the old
 * timer of a moved alarm still fires, and does nothing. Moving an alarm to a later time has no
 * effect: the callee checks the time. It must live as long as the timers. */
struct alarm {
	timer_call *call;
	void *context;
	struct timers *timers; /* private to the timers from here on */
	int64_t due;
	bool set;
};

/* Makes the alarm's call come at `due`, or earlier if an earlier time was set before. */
void timers_set_alarm(struct timers *timers, struct alarm *alarm, int64_t due);

/* Calls the timers due at `now`; timers added by those calls wait for the next run. */
void timers_run(struct timers *timers, int64_t now);

#endif
