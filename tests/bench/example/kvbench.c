/*
 * kvbench: a small in-memory key-value benchmark whose measurements feed the shipped example.
 *
 * It measures itself for real: one run executes a workload for a given number of operations and
 * prints throughput (operations per second) and latency quantiles (nanoseconds). Changes are
 * injected as real work, not as edited numbers: `build` stands for the number of a nightly build,
 * and some builds make an operation do more, or less. measure.py runs it for every build and writes
 * the CSV files; conf/example/README.md tells their story.
 *
 *   kvbench WORKLOAD BUILD   WORKLOAD: read.inmem, read.range, write.rf1, write.batch-10
 *   kvbench amounts          reads an amount of work a line and writes the nanoseconds it took
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 1 << 15, OPERATIONS = 60000, WARM_UP = 6000, RECORD = 256 };

struct change_record {
	uint64_t key;
	uint8_t value[RECORD];
};

static struct change_record table[SLOTS];
static uint32_t latency[OPERATIONS];
static uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdU;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53U;
	return x ^ (x >> 33);
}

static uint64_t checksum(const uint8_t *p, size_t n)
{
	uint64_t h = 14695981039346656037U;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211U;
	return h;
}

/* Reads one record. Injected: builds 90.. check 64 more bytes; builds 165.. walk the bytes again in
 * one of 8 reads. */
static void read_one(uint64_t i, int build)
{
	const struct change_record *r = &table[mix(i) % SLOTS];
	sink += checksum(r->value, build >= 90 ? RECORD : RECORD - 64);
	if (build >= 165 && i % 8 == 0)
		sink += checksum(r->value, RECORD);
}

/* Reads neighbouring records. Injected: builds 60..74 read two more (a mistake, mended in build
 * 75). */
static void read_range(uint64_t i, int build)
{
	size_t at = mix(i) % (SLOTS - 8);
	size_t count = build >= 60 && build < 75 ? 7 : 5;
	for (size_t k = 0; k < count; k++)
		sink += checksum(table[at + k].value, RECORD / 4);
}

static void write_one(uint64_t i)
{
	struct change_record *r = &table[mix(i) % SLOTS];
	r->key = i;
	memset(r->value, (int)(i & 0xff), RECORD);
	sink += checksum(r->value, RECORD - 64);
}

/* Writes ten records. Injected: from build 130 the checksum covers the batch's headers only (an
 * improvement). */
static void write_batch(uint64_t i, int build)
{
	for (uint64_t k = 0; k < 10; k++) {
		struct change_record *r = &table[mix(i * 10 + k) % SLOTS];
		r->key = i;
		memset(r->value, (int)(k + i), RECORD);
		sink += checksum(r->value, build >= 130 ? 64 : 96);
	}
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* One measurement a line: so many reads, and how long they took in all. */
static int read_amounts(void)
{
	uint64_t amount, next = 0;
	while (scanf("%" SCNu64, &amount) == 1) {
		uint64_t start = now_ns();
		for (uint64_t end = next + amount; next < end; next++)
			read_one(next, 0);
		printf("%" PRIu64 "\n", now_ns() - start);
		fflush(stdout);
	}
	return sink == 42;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "amounts") == 0) {
		for (uint64_t i = 0; i < SLOTS; i++)
			write_one(i);
		return read_amounts();
	}
	if (argc != 3) {
		fprintf(stderr, "usage: kvbench WORKLOAD BUILD | kvbench amounts\n");
		return 2;
	}
	const char *work = argv[1];
	int build = atoi(argv[2]);
	for (uint64_t i = 0; i < SLOTS; i++)
		write_one(i);
	uint64_t start = 0;
	for (uint64_t i = 0; i < OPERATIONS + WARM_UP; i++) {
		if (i == WARM_UP)
			start = now_ns();
		uint64_t before = now_ns();
		if (strcmp(work, "read.inmem") == 0)
			read_one(i, build);
		else if (strcmp(work, "read.range") == 0)
			read_range(i, build);
		else if (strcmp(work, "write.rf1") == 0)
			write_one(i);
		else
			write_batch(i, build);
		if (i >= WARM_UP)
			latency[i - WARM_UP] = (uint32_t)(now_ns() - before);
	}
	double seconds = (double)(now_ns() - start) / 1e9;
	qsort(latency, OPERATIONS, sizeof latency[0], by_size);
	printf("%.0f,%u,%u,%u,%u\n", OPERATIONS / seconds, latency[OPERATIONS / 2],
		latency[OPERATIONS * 9 / 10], latency[OPERATIONS * 95 / 100],
		latency[OPERATIONS * 99 / 100]);
	return sink == 42;
}
