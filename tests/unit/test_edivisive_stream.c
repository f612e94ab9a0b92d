/*
 * A stream that is fed bit by bit reports exactly what a full run over the same values does, bit
 * for bit.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/edivisive/edivisive.h"
#include "tests/unit/random_series.h"
#include "tests/unit/same_change.h"
#include "tests/unit/sanitized.h"

enum { SERIES = CASES(1500), LONGEST = 500 };

static void assert_same(const struct change *a, size_t a_count, const struct change *b,
	size_t b_count, uint64_t seed, size_t n)
{
	if (a_count != b_count)
		fail_msg("seed %llu, %zu values: %zu change points, full run %zu",
			(unsigned long long)seed, n, a_count, b_count);
	if (!same_changes(a, b, a_count))
		fail_msg("seed %llu, %zu values: change points differ from the full run's",
			(unsigned long long)seed, n);
}

static void stream_one(uint64_t seed, const struct edivisive_options *options, size_t most_at_once,
	struct scratch *scratch, size_t *found)
{
	static double values[LONGEST];
	static struct change full[LONGEST];
	uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
	size_t n = 1 + random_below(&state, LONGEST - 1), excursion = seed % 4 ? 0 : 12;
	random_series(&state, values, n);
	struct stream *stream = edivisive_detector.stream_new(options, excursion);
	for (size_t seen = 0; seen < n;) {
		size_t more = random_below(&state, most_at_once + 1), count;
		more = more < n - seen ? more : n - seen;
		const struct change *changes = edivisive_detector.stream_append(
			stream, values + seen, more, scratch, &count);
		seen += more;
		static struct change copy[LONGEST];
		if (count > 0)
			memcpy(copy, changes, count * sizeof(*copy));
		struct samples samples = {.values = values, .n = seen, .excursion = excursion};
		size_t expected = edivisive_detector.detect(&samples, options, scratch, full);
		assert_same(copy, count, full, expected, seed, seen);
		*found += count;
	}
	edivisive_detector.stream_free(stream);
}

static void stream_many(enum edivisive_profile profile)
{
	static const int64_t windows[] = {50, 50, 50, 20, 10, 7, 4, 3, 2, 1000};
	struct scratch *scratch = scratch_new();
	size_t found = 0;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		struct edivisive_options options = {
			.window = windows[seed % 10],
			.p_value = seed % 3 ? 0.001 : 0.05,
			.magnitude = seed % 7 ? 0 : 0.03,
			.profile = (int)profile,
		};
		stream_one(seed, &options, seed % 20 ? 250 : 5, scratch, &found);
	}
	scratch_free(scratch);
	assert_true(found > SERIES);
}

static void test_default(void **state)
{
	(void)state;
	stream_many(EDIVISIVE_DEFAULT);
}

static void test_otava(void **state)
{
	(void)state;
	stream_many(EDIVISIVE_OTAVA);
}

/* Long enough for many settled chunks, with appends of one. */
static void test_long_one_by_one(void **state)
{
	(void)state;
	enum { N = 3000, CHECK_EVERY = 97 };
	static double values[N];
	static struct change full[N];
	struct scratch *scratch = scratch_new();
	for (uint64_t seed = 1; seed <= CASES(3) + 1; seed++) {
		uint64_t random = seed;
		random_series(&random, values, N);
		struct edivisive_options options = {.window = 50, .p_value = 0.001};
		struct stream *stream = edivisive_detector.stream_new(&options, 0);
		for (size_t n = 1; n <= N; n++) {
			size_t count;
			const struct change *changes = edivisive_detector.stream_append(
				stream, values + n - 1, 1, scratch, &count);
			if (n % CHECK_EVERY != 0)
				continue;
			struct samples samples = {.values = values, .n = n};
			struct scratch *own = scratch_new();
			size_t expected = edivisive_detector.detect(&samples, &options, own, full);
			assert_same(changes, count, full, expected, seed, n);
			scratch_free(own);
		}
		edivisive_detector.stream_free(stream);
	}
	scratch_free(scratch);
}

/* Nothing but missing values, then nothing at all, then values. */
static void test_late_start(void **state)
{
	(void)state;
	struct scratch *scratch = scratch_new();
	for (int profile = EDIVISIVE_DEFAULT; profile <= EDIVISIVE_OTAVA; profile++) {
		struct edivisive_options options = {
			.window = 50, .p_value = 0.001, .profile = profile};
		struct stream *stream = edivisive_detector.stream_new(&options, 0);
		double values[160];
		size_t count = 1;
		for (size_t i = 0; i < 160; i++)
			values[i] = i < 60 ? nan("") : (i < 110 ? 10 : 20) + (double)(i % 3);
		edivisive_detector.stream_append(stream, values, 0, scratch, &count);
		assert_int_equal(count, 0);
		edivisive_detector.stream_append(stream, values, 60, scratch, &count);
		assert_int_equal(count, 0);
		edivisive_detector.stream_append(stream, values, 0, scratch, &count);
		assert_int_equal(count, 0);
		const struct change *changes =
			edivisive_detector.stream_append(stream, values + 60, 100, scratch, &count);
		assert_true(count >= 1);
		assert_int_equal(changes[count - 1].index, 110);
		edivisive_detector.stream_free(stream);
	}
	edivisive_detector.stream_free(NULL);
	scratch_free(scratch);
}

/* Between appends the stream rests, and what is not fixed becomes other values, or fewer. */
static void rest_one(uint64_t seed, const struct edivisive_options *options,
	struct scratch *scratch, size_t *found, size_t *kept)
{
	enum { N = 1200 };
	static double values[N], others[N];
	static struct change full[N], copy[N];
	uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
	struct stream *stream = edivisive_detector.stream_new(options, 0);
	size_t seen = 0, rest = 0, fixed = 0;
	random_series(&state, values, N);
	random_series(&state, others, N);
	for (int turn = 0; turn < 12 && seen < N; turn++) {
		size_t count, n = seen + random_below(&state, N / 8);
		if (random_below(&state, 3) == 0 && fixed < seen) {
			size_t from = fixed + random_below(&state, seen - fixed);
			memcpy(values + from, others + from, (seen - from) * sizeof(*values));
			n = from + random_below(&state, n - from + 1);
		}
		n = n < N ? n : N;
		const struct change *changes = edivisive_detector.stream_append(
			stream, values + rest, n - rest, scratch, &count);
		if (count > 0)
			memcpy(copy, changes, count * sizeof(*copy));
		struct samples samples = {.values = values, .n = n};
		size_t expected = edivisive_detector.detect(&samples, options, scratch, full);
		assert_same(copy, count, full, expected, seed, n);
		*found += count;
		*kept += rest;
		seen = n;
		rest = edivisive_detector.stream_rest(stream, &fixed);
		assert_true(rest <= fixed || fixed == 0);
		assert_true(fixed <= seen && rest <= seen);
		size_t chunk = edivisive_detector.stream_chunk(stream, seen / 2);
		assert_true(chunk <= seen / 2);
	}
	edivisive_detector.stream_free(stream);
}

static void test_rest(void **state)
{
	(void)state;
	static const int64_t windows[] = {50, 20, 10, 7, 4, 3, 2, 1000};
	struct scratch *scratch = scratch_new();
	size_t found = 0, kept = 0;
	for (uint64_t seed = 1; seed <= CASES(600); seed++) {
		struct edivisive_options options = {
			.window = windows[seed % 8],
			.p_value = seed % 3 ? 0.001 : 0.05,
			.profile = seed % 5 ? EDIVISIVE_DEFAULT : EDIVISIVE_OTAVA,
		};
		rest_one(seed, &options, scratch, &found, &kept);
	}
	scratch_free(scratch);
	assert_true(found > CASES(600));
	assert_true(kept > CASES(600) * 100);
}

/*
 * A stream that begins at a chunk of another one finds what that one finds. At its front it may
 * find more: what the other one, which knows what was before, has rejected there.
 */
static void test_chunks_are_beginnings(void **state)
{
	(void)state;
	enum { N = 2000, SETTLED = 200 };
	static double values[N];
	static struct change whole[N];
	struct scratch *scratch = scratch_new();
	struct edivisive_options options = {.window = 50, .p_value = 0.001};
	size_t same = 0, different = 0, chunks = 0;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed * 7919;
		size_t whole_count, count;
		random_series(&random, values, N);
		struct stream *stream = edivisive_detector.stream_new(&options, 0);
		const struct change *changes =
			edivisive_detector.stream_append(stream, values, N, scratch, &whole_count);
		if (whole_count > 0)
			memcpy(whole, changes, whole_count * sizeof(*whole));
		size_t start = edivisive_detector.stream_chunk(stream, 500 + seed);
		edivisive_detector.stream_free(stream);
		chunks += start > 0;
		stream = edivisive_detector.stream_new(&options, 0);
		changes = edivisive_detector.stream_append(
			stream, values + start, N - start, scratch, &count);
		size_t at = 0;
		for (size_t i = 0; i < whole_count; i++) {
			if (whole[i].index < start + SETTLED)
				continue;
			while (at < count && changes[at].index + start < whole[i].index)
				at++;
			if (at < count && changes[at].index + start == whole[i].index)
				same++;
			else
				different++;
		}
		edivisive_detector.stream_free(stream);
	}
	scratch_free(scratch);
	assert_true(chunks > 200);
	assert_true(same > 1000);
	if (different * 200 > same)
		fail_msg("%zu change points are the same, %zu are not", same, different);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_otava),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_chunks_are_beginnings),
		cmocka_unit_test(test_long_one_by_one),
		cmocka_unit_test(test_late_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
