/* Signals as a descriptor for the loop: SIGINT and SIGTERM, which end it, and optionally SIGHUP. */
#ifndef AGENT_IO_SIGNALS_H
#define AGENT_IO_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "agent/base/error.h"

struct signals {
	int fd; /* readable when a signal is pending; -1: signals are not caught */
	sigset_t before;
};

/* Blocks SIGHUP until signals_catch takes it over, or unblocks it; a blocked one stays pending. */
void signals_hold_hangup(bool hold);

/* To be called before threads are started, which inherit the signal mask. */
bool signals_catch(struct signals *signals, bool hangup, struct error *error) MUST_USE;
void signals_restore(struct signals *signals);

/* The next pending signal, or 0. */
int signals_take(struct signals *signals);

#endif
