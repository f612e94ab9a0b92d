/*
 * Graphite's /metrics/find: lists metrics, and finds out why a target returned nothing.
 */
#ifndef SOURCES_GRAPHITE_FIND_H
#define SOURCES_GRAPHITE_FIND_H

#include "sources/graphite/target.h"
#include "sources/source.h"

enum { FOUND_MAX = 10000 }; /* nodes of one answer */

/* A metric (leaf), or a folder. */
struct graphite_node {
	const char *path;
	bool leaf;
};

struct graphite_nodes {
	struct graphite_node *items;
	size_t count;
	size_t unusable; /* left out: their names are no Unicode text or contain a NUL */
};

/* Reads an answer into the arena. */
bool graphite_find_read(struct arena *arena, const char *text, size_t length,
	struct graphite_nodes *out, struct error *error) MUST_USE;

/* A walk through everything below a prefix, folder by folder. */
enum { LEAVES_MAX = 1000, FOLDERS_MAX = 500 };

struct metric_walk {
	struct arena *arena; /* the first two are set by the caller */
	const char *prefix;
	const char *folders[FOLDERS_MAX]; /* the prefix and those below */
	size_t folder_at, folder_count;
	const char *paths[LEAVES_MAX];
	size_t count;
};

/* The next pattern to look up, or NULL at the end. */
const char *metric_walk_ask(const struct metric_walk *walk);
bool metric_walk_take(
	struct metric_walk *walk, const struct graphite_nodes *nodes, struct error *error) MUST_USE;

/* A target for each metric, named by the path after the prefix. */
struct target *metric_walk_targets(const struct metric_walk *walk, size_t *count);

/* Finds out why targets returned no series. */
struct diagnosis {
	struct query *query; /* the first three are set by the caller */
	const struct target *targets;
	size_t count;
	bool no_find; /* the server has no /metrics/find: no more look-ups are made */
	size_t at, explained, unexplained;
	struct expression expression; /* of the current target */
	size_t path;                  /* of the expression, to look up next */
	bool started;
};

/*
 * The next pattern to look up, or NULL at the end; the findings are then in the query's notices.
 * Fails on a malformed expression.
 */
bool diagnosis_ask(struct diagnosis *diagnosis, const char **pattern, struct error *error) MUST_USE;
void diagnosis_take(struct diagnosis *diagnosis, const struct graphite_nodes *nodes);

#endif
