/*
 * Names for the series of one target, by what differs between them.
 */
#ifndef SOURCES_GRAPHITE_STRING_INDEX_H
#define SOURCES_GRAPHITE_STRING_INDEX_H

#include "sources/graphite/target.h"

/*
 * Sets metric, name and identity of `count` series from what the server calls them (sorted).
 * A series alone is called as its metric or, without one, as the server calls it; several are
 * METRIC{web1}, METRIC{web2}, where the servers' names are servers.web1.cpu and servers.web2.cpu;
 * of tagged series the tags that differ are shown: METRIC{host="a"}. Returns how many have the
 * server's name of another one; they are numbered in
 * the order in which they come.
 */
size_t string_index_add(struct arena *arena, const struct target *target, const char *const *texts,
	size_t count, struct series *series);

#endif
