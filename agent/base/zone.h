/*
 * Time zones: local times, for cycles that follow people's days.
 *
 * A zone is read once, from the system's database (TZif, RFC 8536), and is immutable data from
 * then on, so several threads may use it.
 */
#ifndef AGENT_BASE_ZONE_H
#define AGENT_BASE_ZONE_H

#include <stdint.h>

#include "agent/base/error.h"

struct arena;
struct zone;

/*
 * The zone of that name ("Europe/Berlin") in `folder`; NULL: the system's. "UTC" gives NULL and
 * needs no file. ERROR_USAGE for an invalid name, ERROR_DATA for a file that cannot be read.
 */
bool zone_read(struct arena *arena, const char *folder, const char *name, const struct zone **out,
	struct error *error) MUST_USE;

/* The same from the bytes of a TZif file, or NULL. */
struct zone *zone_parse(struct arena *arena, const char *name, const char *data, size_t length,
	struct error *error) MUST_USE;

/* The name that it was read by ("UTC" for NULL). */
const char *zone_name(const struct zone *zone);

/* The local time at `ms` (since 1970-01-01 UTC), as if it were UTC. NULL is UTC. */
int64_t zone_local(const struct zone *zone, int64_t ms);

/* The first time at which the clock shows that local time; of one that it skips, as long after the
 * skip begins as it would be. */
int64_t zone_utc(const struct zone *zone, int64_t local);

#endif
