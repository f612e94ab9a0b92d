/*
 * An index from names of data to the tests that read them, for requests that name data just
 * written.
 *
 * The time of a look-up hardly depends on the number of tests: there are indexes of whole paths, of
 * their beginnings, of patterns by their parts, and of series by their name with the one label of a
 * selector that fewest others share. An index is immutable, and any thread may use it as long as
 * the configuration lives.
 */
#ifndef AGENT_MONITOR_READERS_H
#define AGENT_MONITOR_READERS_H

#include "conf/config.h"

struct readers;

/* Takes about a second for 100,000 tests. For any thread. */
struct readers *readers_new(const struct test *const *tests, size_t count);
void readers_free(struct readers *readers); /* accepts NULL */

/* Tests that read the data: their numbers, each once. */
struct found_readers {
	const struct readers *readers;
	unsigned char *marked; /* a byte for each test */
	uint32_t *tests;
	size_t count;
};

struct found_readers found_readers_new(const struct readers *readers, struct arena *arena);

/* A series of Prometheus, or of Graphite with its tags. */
struct written_series {
	const char *name; /* "": it has none */
	const struct pair *labels;
	size_t count;
	bool unlabelled; /* only the name is known: all tests that may read a series of it */
};

/* Add the tests that read something; false: there is none. A path of Graphite may have tags
 * ("used;host=a"); a relative path of a file begins in the folder of the agent. */
bool readers_of_path(struct found_readers *out, const char *path);
bool readers_of_series(struct found_readers *out, const struct written_series *series);
bool readers_of_file(struct found_readers *out, const char *path);
bool readers_named(struct found_readers *out, const char *test);

#endif
