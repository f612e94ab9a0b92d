/* Equality of texts that may be missing, and orders for qsort. */
#ifndef AGENT_BASE_ORDER_H
#define AGENT_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>

/* Both are missing (NULL), or equal. */
bool order_same(const char *a, const char *b);

/* Like strcmp; a missing one comes first. */
int order_maybe(const char *a, const char *b);

/* Elements are texts (const char *), times (int64_t), numbers of things (size_t) or numbers
 * (double, no NaN), ascending. */
int order_texts(const void *a, const void *b);
int order_times(const void *a, const void *b);
int order_sizes(const void *a, const void *b);
int order_numbers(const void *a, const void *b);

/* The index of the first of the sorted items that is not less than the key; `count` if all are. */
size_t order_lower_bound(const void *key, const void *items, size_t count, size_t size,
	int (*compare)(const void *, const void *));

#endif
