/*
 * Mute times: named times that recur, in which tests that name them announce nothing.
 *
 * As Alertmanager's time intervals. A mute time holds while one of its intervals does; an interval
 * holds while everything that it names does, on the clock of its time zone: a time of the day, a
 * day of the week or of the month, a month, a year. A local time that daylight saving time skips
 * does not occur, and one that it repeats occurs twice.
 */
#ifndef CONF_MUTE_H
#define CONF_MUTE_H

#include "conf/config.h"

struct mute_time;

const char *mute_name(const struct mute_time *mute);

/* The first of the mute times that holds at `ms` (since 1970-01-01 UTC), or NULL. *until, unless it
 * is NULL, is set to when none of them does any more, or to a time in more than a month until which
 * one does for certain; or, if none holds, to a time until which none does. */
const struct mute_time *mute_find(const struct mutes *mutes, int64_t ms, int64_t *until);

#endif
