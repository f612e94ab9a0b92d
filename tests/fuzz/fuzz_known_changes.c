/*
 * Adding an entry to a file of known changes of any bytes: either it is refused, or all of the text
 * is still there, around what was put into it at one place.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "conf/known_changes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct known_change entry = {.test = "a",
		.commit = "15ce8e36",
		.from = WHEN_ALWAYS,
		.to = WHEN_NEVER,
		.reason = "b: ${c}\n#",
		.until = WHEN_NEVER};
	const char *text = size > 0 ? (const char *)data : "";
	struct buf out = {0};
	struct error error;
	size_t before = 0, after = 0;

	if (known_changes_insert("x.yaml", text, size, &entry, 1, &out, &error)) {
		require(out.length > size);
		while (before < size && out.data[before] == text[before])
			before++;
		while (after < size - before &&
			out.data[out.length - 1 - after] == text[size - 1 - after])
			after++;
		require(before + after == size);
		require(strstr(out.data + before, "15ce8e36") != NULL);
	} else {
		require(error.text[0] != '\0');
	}
	buf_free(&out);
	return 0;
}
