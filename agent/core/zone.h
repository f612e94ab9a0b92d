/*
 * Time zones: what the clocks on the wall show, for cycles that follow people's days.
 *
 * A zone is read once, from the system's database (TZif, RFC 8536), and is data from then on: it
 * may be used by several threads at once.
 */
#ifndef CORE_ZONE_H
#define CORE_ZONE_H

#include <stdint.h>

#include "agent/core/error.h"

struct arena;
struct zone;

/*
 * The zone of that name ("Europe/Berlin") in the folder's files; `folder` NULL: the system's.
 * "UTC" is NULL and needs no file. ERROR_USAGE for a name that is none, ERROR_DATA for a file that
 * cannot be read.
 */
bool zone_read(struct arena *arena, const char *folder, const char *name, const struct zone **out,
	struct error *error) MUST_USE;

/* The same from the bytes of a TZif file. */
bool zone_parse(struct arena *arena, const char *data, size_t length, const struct zone **out,
	struct error *error) MUST_USE;

/* Its name, as zone_read was given it ("UTC" for NULL); "" of a zone from zone_parse. */
const char *zone_name(const struct zone *zone);

/* What clocks show at `ms` (since 1970-01-01 UTC), as if that were UTC. NULL is UTC. */
int64_t zone_local(const struct zone *zone, int64_t ms);

#endif
