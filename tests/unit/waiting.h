/*
 * How a test waits: for the thing itself, looked at again and again, as tests/e2e/waiting.py does.
 * That something does not happen is seen at what comes after it.
 */
#ifndef TESTS_WAITING_H
#define TESTS_WAITING_H

#include <poll.h>

#include "agent/base/clock.h"
#include "tests/unit/unit.h"

/* ms: bounds what hangs; nothing that works comes near it. */
enum { LONGEST = 300000 };

/* Between two looks. */
static inline void look_again(void)
{
	poll(NULL, 0, 1);
}

#define wait_until(condition)                                                                      \
	do {                                                                                       \
		const int64_t end_ = clock_monotonic() + LONGEST;                                  \
		while (!(condition)) {                                                             \
			if (clock_monotonic() > end_)                                              \
				fail_msg("it never came: %s", #condition);                         \
			look_again();                                                              \
		}                                                                                  \
	} while (0)

/* Time itself, where nothing tells when: the test must be right however long this took. `why` says
 * for what. */
static inline void pause_for(int ms, const char *why)
{
	(void)why;
	poll(NULL, 0, ms);
}

#endif
