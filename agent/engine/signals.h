/*
 * Signals as something that the loop reads: SIGINT and SIGTERM, which end it, and SIGHUP, if it is
 * wanted.
 */
#ifndef AGENT_SIGNALS_H
#define AGENT_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "agent/core/error.h"

struct signals {
	int fd; /* readable when one has come; -1: they are not caught */
	sigset_t before;
};

/* Blocks SIGHUP, or lets it through again, until signals_catch wants it: what comes meanwhile
 * waits.
 */
void signals_hold_hangup(bool hold);

/* To be called before threads are started, which inherit what is blocked. */
bool signals_catch(struct signals *signals, bool hangup, struct error *error) MUST_USE;
void signals_restore(struct signals *signals);

/* The next that has come, or 0. */
int signals_take(struct signals *signals);

#endif
