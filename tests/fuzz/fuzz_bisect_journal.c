/* Journals of bisections: whatever is read can be replayed, and written so that it reads the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bisect/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const struct journal *journal, struct buf *out)
{
	journal_put_setup(out, journal->setup);
	for (size_t i = 0; i < journal->count; i++)
		journal_put(out, &journal->entries[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct buf first = {0}, second = {0};
	struct journal journal;
	struct error error;
	struct journal_times times;

	if (journal_read(arena, (const char *)data, size, &journal, &error)) {
		struct bisection *bisection = journal_replay(&journal, &times);

		if (times.paused < 0 || bisection_status(bisection)->phase > BISECT_OVER)
			abort();
		bisection_free(bisection);
		write_again(&journal, &first);
		if (!journal_read(arena, first.data, first.length, &journal, &error))
			abort();
		write_again(&journal, &second);
		if (first.length != second.length ||
			memcmp(first.data, second.data, first.length) != 0)
			abort();
	} else if (error.kind != ERROR_DATA || !*error.text) {
		abort();
	}
	buf_free(&first);
	buf_free(&second);
	arena_free(arena);
	return 0;
}
