/*
 * Reads answers that are lists of objects, those of /metrics/find and of events, item by item, so
 * that only one item at a time is a tree, which may take 75 times the memory of its text.
 */
#ifndef SOURCES_GRAPHITE_LIST_H
#define SOURCES_GRAPHITE_LIST_H

#include <jansson.h>

#include "agent/base/arena.h"

enum { GRAPHITE_ITEM_MAX = 1 << 20 }; /* bytes of text */

/* Returns false if the item is not valid. It exists until the function returns. */
typedef bool graphite_item(void *context, const json_t *item);

/* Calls `take` for each item; it may have been called before an error is found. `api` and `noun`
 * name the API and its items in messages. *unusable counts the items left out because a string in
 * them is not Unicode text. */
bool graphite_list_read(const char *text, size_t length, const char *api, const char *noun,
	graphite_item *take, void *context, size_t *unusable, struct error *error) MUST_USE;

#endif
