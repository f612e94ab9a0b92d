/*
 * The reader of dicts against jansson: what jansson takes for an object it takes for a dict, with
 * the same members. All else it must only survive.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "sources/graphite/python_literal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the readers differ: %s\n", what);
	abort();
}

static bool fits(json_t *value, int depth)
{
	const char *key;
	json_t *member;
	size_t at;
	if (depth >= PYTHON_DEPTH)
		return false;
	if (json_is_object(value)) {
		json_object_foreach(value, key, member)
		{
			if (!fits(member, depth + 1))
				return false;
		}
	}
	json_array_foreach(value, at, member)
	{
		if (!fits(member, depth + 1))
			return false;
	}
	return true;
}

static void compare(const json_t *theirs, const char *ours)
{
	double value;
	switch (json_typeof(theirs)) {
	case JSON_STRING:
		require(ours && strcmp(ours, json_string_value(theirs)) == 0, "a text");
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		require(ours && number_parse(ours, strlen(ours), &value) &&
				value == json_number_value(theirs),
			"a number");
		break;
	case JSON_TRUE: require(ours && strcmp(ours, "true") == 0, "true"); break;
	case JSON_FALSE: require(ours && strcmp(ours, "false") == 0, "false"); break;
	case JSON_OBJECT:
	case JSON_ARRAY:
	case JSON_NULL: require(!ours, "what has no text"); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct arena *arena = arena_new();
	struct pairs pairs;
	json_error_t problem;
	json_t *root = NULL, *member;
	bool read = python_literal_read_dict(arena, text, size, &pairs);
	require(read || pairs.count == 0, "members of no dict");
	if (!size || !memchr(text, 0, size)) /* jansson takes some zero bytes for blanks */
		root = json_loadb(
			text, size, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &problem);
	if (json_is_object(root) && fits(root, 0) && json_object_size(root) <= PYTHON_PAIRS_MAX) {
		require(read, "what is a dict");
		require(pairs.count == json_object_size(root), "how many members there are");
		for (size_t i = 0; i < pairs.count; i++) {
			member = json_object_get(root, pairs.items[i].key);
			require(member != NULL, "a key");
			compare(member, pairs.items[i].value);
		}
	}
	json_decref(root);
	arena_free(arena);
	return 0;
}
