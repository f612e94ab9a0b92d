/*
 * Packed: the number of points; the times as differences of differences, of which evenly spaced
 * points need one byte each; the first value and the largest distance from it as doubles; the
 * other values as fractions of that distance, in four bytes each. Integers are zigzag coded and
 * come in groups of seven bits, the lowest first.
 */
#include "agent/model/excerpt.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"

/* Times in ms of either sign; differences of differences of such times do not overflow. */
#define MOST_TIME (INT64_C(1) << 53)

enum { INTEGER_BYTES = 10, FRACTION_BYTES = 4, DOUBLE_BYTES = 8 };

_Static_assert(INTEGER_BYTES *(EXCERPT_MOST + 1) + 2 * DOUBLE_BYTES +
			       FRACTION_BYTES * (EXCERPT_MOST - 1) <=
		       EXCERPT_BYTES,
	"an excerpt fits");

struct writer {
	unsigned char bytes[EXCERPT_BYTES];
	size_t length;
};

static void put_integer(struct writer *out, int64_t value)
{
	uint64_t rest = ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);

	for (; rest >= 0x80; rest >>= 7)
		out->bytes[out->length++] = (unsigned char)(rest | 0x80);
	out->bytes[out->length++] = (unsigned char)rest;
}

static void put_bits(struct writer *out, uint64_t bits, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out->bytes[out->length++] = (unsigned char)(bits >> (8 * i));
}

static void put_double(struct writer *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	put_bits(out, bits, DOUBLE_BYTES);
}

struct taker {
	const unsigned char *at;
	size_t left;
	bool failed;
};

static int64_t take_integer(struct taker *in)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char byte;

		if (in->left == 0)
			break;
		byte = *in->at++;
		in->left--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return (int64_t)(value >> 1) ^ ((value & 1) ? -1 : 0);
	}
	in->failed = true;
	return 0;
}

static uint64_t take_bits(struct taker *in, size_t bytes)
{
	uint64_t bits = 0;

	if (in->left < bytes) {
		in->failed = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		bits |= (uint64_t)in->at[i] << (8 * i);
	in->at += bytes;
	in->left -= bytes;
	return bits;
}

static double take_double(struct taker *in)
{
	uint64_t bits = take_bits(in, DOUBLE_BYTES);
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

struct points {
	int64_t times[EXCERPT_MOST];
	double values[EXCERPT_MOST];
	size_t n;
};

static bool is_shown(int64_t time, double value)
{
	return isfinite(value) && time >= -MOST_TIME && time <= MOST_TIME;
}

/* Distances between values must be finite, too. */
static void add(struct points *out, int64_t time, double value)
{
	out->times[out->n] = time;
	out->values[out->n++] = fmax(-DBL_MAX / 4, fmin(DBL_MAX / 4, value));
}

/* The lowest and the highest of each of EXCERPT_SIDE equal parts. */
static void thin(struct points *out, const int64_t *times, const double *values, size_t n)
{
	for (size_t part = 0; part < EXCERPT_SIDE; part++) {
		size_t from = part * n / EXCERPT_SIDE, to = (part + 1) * n / EXCERPT_SIDE;
		size_t low = to, high = to;

		for (size_t i = from; i < to; i++) {
			if (!is_shown(times[i], values[i]))
				continue;
			low = low == to || values[i] < values[low] ? i : low;
			high = high == to || values[i] > values[high] ? i : high;
		}
		if (low == to)
			continue;
		add(out, times[low < high ? low : high], values[low < high ? low : high]);
		if (low != high)
			add(out, times[low < high ? high : low], values[low < high ? high : low]);
	}
}

static void write_points(struct writer *out, const struct points *points)
{
	double base = points->values[0], reach = 0;
	int64_t before = 0, step = 0;

	for (size_t i = 1; i < points->n; i++)
		reach = fmax(reach, fabs(points->values[i] - base));
	put_integer(out, (int64_t)points->n);
	for (size_t i = 0; i < points->n; i++) {
		int64_t next = points->times[i] - before;

		put_integer(out, i > 0 ? next - step : next);
		step = i > 0 ? next : 0;
		before = points->times[i];
	}
	put_double(out, base);
	put_double(out, reach);
	for (size_t i = 1; i < points->n; i++) {
		float fraction = (float)(reach > 0 ? (points->values[i] - base) / reach : 0);
		uint32_t bits;

		memcpy(&bits, &fraction, sizeof bits);
		put_bits(out, bits, FRACTION_BYTES);
	}
}

struct packed_excerpt excerpt_pack(struct arena *arena, const int64_t *times, const double *values,
	size_t n, size_t first, size_t last)
{
	size_t from = first > EXCERPT_SIDE ? first - EXCERPT_SIDE : 0;
	size_t to = last < n && n - last > EXCERPT_SIDE ? last + EXCERPT_SIDE + 1 : n;
	struct points points = {.n = 0};
	struct writer out = {.length = 0};
	unsigned char *bytes;

	if (from < to && to - from > EXCERPT_MOST)
		thin(&points, times + from, values + from, to - from);
	else
		for (size_t i = from; i < to; i++)
			if (is_shown(times[i], values[i]))
				add(&points, times[i], values[i]);
	if (points.n == 0)
		return (struct packed_excerpt){0};
	write_points(&out, &points);
	bytes = arena_alloc(arena, out.length);
	memcpy(bytes, out.bytes, out.length);
	return (struct packed_excerpt){bytes, out.length};
}

static bool read_points(struct taker *in, int64_t *times, double *values, size_t n)
{
	int64_t before = 0, step = 0;
	double base, reach;

	for (size_t i = 0; i < n; i++) {
		int64_t next = take_integer(in);

		if (in->failed || next < -4 * MOST_TIME || next > 4 * MOST_TIME)
			return false;
		next += i > 0 ? step : 0;
		times[i] = before + next;
		if (times[i] < -MOST_TIME || times[i] > MOST_TIME || (i > 0 && next < 0))
			return false;
		step = i > 0 ? next : 0;
		before = times[i];
	}
	base = take_double(in);
	reach = take_double(in);
	for (size_t i = 0; i < n; i++) {
		uint32_t bits = i > 0 ? (uint32_t)take_bits(in, FRACTION_BYTES) : 0;
		float fraction;

		memcpy(&fraction, &bits, sizeof fraction);
		values[i] = base + reach * (double)fraction;
		if (!isfinite(values[i]))
			return false;
	}
	return !in->failed && in->left == 0;
}

bool excerpt_unpack(struct arena *arena, struct packed_excerpt packed, struct excerpt *out)
{
	struct taker in = {packed.bytes, packed.length, false};
	int64_t count, *times;
	double *values;

	*out = (struct excerpt){0};
	if (packed.length == 0)
		return true;
	count = take_integer(&in);
	if (in.failed || count < 1 || count > EXCERPT_MOST)
		return false;
	times = arena_array(arena, (size_t)count, sizeof *times);
	values = arena_array(arena, (size_t)count, sizeof *values);
	if (!read_points(&in, times, values, (size_t)count))
		return false;
	*out = (struct excerpt){(size_t)count, times, values};
	return true;
}
