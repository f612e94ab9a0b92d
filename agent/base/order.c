#include "agent/base/order.h"

#include <stdint.h>
#include <string.h>

bool order_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

int order_maybe(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

int order_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int order_times(const void *a, const void *b)
{
	const int64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

int order_sizes(const void *a, const void *b)
{
	const size_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

int order_numbers(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

size_t order_lower_bound(const void *key, const void *items, size_t count, size_t size,
	int (*compare)(const void *, const void *))
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare((const char *)items + middle * size, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
