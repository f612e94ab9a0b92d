/*
 * Answers that are lists of objects, as those of /metrics/find and of events: read item by item,
 * so that no more than one item at a time is a tree, which may be 75 times its text.
 */
#ifndef SOURCES_GRAPHITE_LIST_H
#define SOURCES_GRAPHITE_LIST_H

#include <jansson.h>

#include "agent/core/arena.h"

enum { GRAPHITE_ITEM_MAX = 1 << 20 }; /* bytes of an item's text */

/* False if the item is not what the list is of. It is good until the function returns. */
typedef bool graphite_item(void *context, const json_t *item);

/* Calls `take` for each item. `api` is what the answer is of, for messages, as is `noun`, what an
 * item is. Some items may have been taken before an error is seen. */
bool graphite_list_read(const char *text, size_t length, const char *api, const char *noun,
	graphite_item *take, void *context, struct error *error) MUST_USE;

#endif
