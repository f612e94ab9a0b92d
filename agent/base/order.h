/* Equality of texts that may be missing, and orders for qsort. */
#ifndef AGENT_BASE_ORDER_H
#define AGENT_BASE_ORDER_H

#include <stdbool.h>

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

#endif
