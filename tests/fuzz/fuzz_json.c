/*
 * The JSON source on any bytes: it must survive, and find the same wherever its window ends, which
 * blanks in front put to any place in the text.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "sources/files/files.h"
#include "tests/unit/memory_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WINDOW = 64 << 10 };

static void check(bool good)
{
	if (!good)
		abort();
}

struct parsed {
	struct query query;
	struct json_options options;
	struct error error;
	bool good;
};

static void parse(struct parsed *parsed, const void *data, size_t size)
{
	struct input input = input_bytes("fuzz", data, size);

	*parsed = (struct parsed){.options = {.file = "fuzz"},
		.query = {.arena = arena_new(), .since = WHEN_ALWAYS, .until = WHEN_NEVER}};
	parsed->query.options = &parsed->options;
	parsed->good = json_parse(&parsed->query, &input, &parsed->error);
	if (!parsed->good)
		check(parsed->error.kind == ERROR_DATA && parsed->error.text[0]);
}

static void compare(const struct parsed *one, const struct parsed *other)
{
	check(one->good == other->good);
	if (!one->good) {
		check(strcmp(one->error.text, other->error.text) == 0);
		return;
	}
	check(one->query.data.count == other->query.data.count);
	for (size_t i = 0; i < one->query.data.count; i++) {
		const struct series *a = &one->query.data.series[i];
		const struct series *b = &other->query.data.series[i];
		size_t n = a->axis->n;

		check(n == b->axis->n && strcmp(a->identity, b->identity) == 0);
		check(n == 0 || memcmp(a->values, b->values, n * sizeof *a->values) == 0);
		for (size_t k = 0; k < n; k++)
			check(a->axis->times[k] == b->axis->times[k] &&
				(k == 0 || a->axis->times[k] >= a->axis->times[k - 1]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parsed plain, cut;

	parse(&plain, data, size);
	if (size >= 2 && data[0] != 0xEF) { /* a byte order mark is one in front only */
		size_t cut_at = (data[size / 2] + 256u * data[size - 1]) % size;
		size_t blanks = WINDOW - (cut_at < WINDOW ? cut_at : 0);
		char *text = memory_new(blanks + size, 1);

		memset(text, ' ', blanks);
		memcpy(text + blanks, data, size);
		parse(&cut, text, blanks + size);
		compare(&plain, &cut);
		arena_free(cut.query.arena);
		free(text);
	}
	arena_free(plain.query.arena);
	return 0;
}
