/*
 * JSON lines, by several equal threads: each takes the next batch of whole lines, finds the
 * change points of each line, and puts the answer into the ring. The thread that puts in the
 * answer that is due writes it, and all finished ones that follow. So the output is in the
 * input's order whatever the number of threads, and the ring bounds memory.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/analysis.h"
#include "agent/analysis/line_batch.h"
#include "agent/analysis/series_lines.h"
#include "agent/base/clock.h"
#include "agent/commands/detect.h"
#include "detectors/detector.h"

enum { SLOTS_A_THREAD = 3, ANSWER_KEPT = 1024 * 1024 };
enum { PROGRESS_AFTER = 1000, PROGRESS_EVERY = 250 }; /* ms */

enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_DONE };

struct slot {
	enum slot_state state;
	struct batch batch;
	struct buf answer;
	size_t lines;
};

/* The progress line on stderr; printed by the thread that writes answers. */
struct progress {
	int64_t due; /* ms */
	size_t lines;
	bool shown;
};

struct ring {
	const struct detect_task *task;
	/* Held while a batch is read, so that batches are numbered in the order of reading. */
	pthread_mutex_t reading;
	struct batch_reader *reader;
	size_t taken;
	/* Guards the following, and the states of the slots. */
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct slot *slots;
	size_t slot_count;
	size_t due;   /* index of the answer to be written next */
	bool writing; /* a thread is writing, and owns `progress` */
	struct progress progress;
	int failed; /* errno of a failed write: nothing more is read or written */
	bool bad_data;
};

/* The working memory of one thread. */
struct worker {
	const struct detect_task *task;
	struct line_reader *reader;
	struct scratch *scratch;
	struct change *changes;
	double *adjusted; /* values without their cycles */
	size_t capacity;  /* of both */
	/* The detection for the latest options, and their text. */
	struct arena *arena;
	struct detection detection;
	struct buf options;
	bool bad_data;
};

/* The line's detection, rebuilt only if its options differ from those of the line before. */
static bool choose_detection(struct worker *worker, const struct line *line,
	const struct detection **out, struct error *error)
{
	struct setting settings[LINE_OPTIONS_MAX];

	*out = line->option_count == 0 ? &worker->task->detection : &worker->detection;
	if (line->option_count == 0 || (line->options_length == worker->options.length &&
					       memcmp(line->options_text, worker->options.data,
						       line->options_length) == 0))
		return true;
	for (size_t i = 0; i < line->option_count; i++)
		settings[i] = (struct setting){line->options[i].name, line->options[i].value};
	arena_free(worker->arena);
	worker->arena = arena_new();
	buf_clear(&worker->options);
	if (!detection_overlay(worker->task->schema, &worker->task->detection, settings,
		    line->option_count, worker->arena, &worker->detection, error))
		return false;
	buf_append(&worker->options, line->options_text, line->options_length);
	return true;
}

/* In the values without the cycles that the detection removes. */
static bool find_changes(struct worker *worker, const struct line *line,
	const struct detection *detection, size_t *count, struct error *error)
{
	struct samples samples = {
		.n = line->n, .values = line->values, .runs = line->runs, .hashes = line->hashes};

	if (line->n > worker->capacity) {
		free(worker->changes);
		free(worker->adjusted);
		worker->changes = memory_new(line->n, sizeof *worker->changes);
		worker->adjusted = memory_new(line->n, sizeof *worker->adjusted);
		worker->capacity = line->n;
	}
	if (!line->times && detect_wants_times(detection))
		return error_set(error, ERROR_DATA,
			"season: removing cycles requires \"times\", or \"start\" and \"step\"");
	if (line->times) {
		struct season season =
			season_fit(analysis_season(detection), analysis_clock(detection), 0,
				line->values, line->times, line->n, worker->scratch);

		samples.excursion = season.excursion;
		if (season.cycles) {
			season_remove(
				&season, line->times, line->values, line->n, worker->adjusted);
			samples.values = worker->adjusted;
		}
		season_free(&season);
	}
	return detector_run(detector_find(detection->detector->name), &samples, detection->options,
		worker->scratch, worker->changes, count, error);
}

static void put_answer(struct worker *worker, const struct line *line, uint64_t number,
	size_t count, struct buf *out)
{
	if (worker->task->output == DETECT_JSONL) {
		detect_put_json(out, line->id, line->id_length, worker->changes, count);
		return;
	}
	char place[32];
	const char *prefix = line->id;
	size_t length = line->id_length;
	if (!prefix) {
		length = (size_t)snprintf(place, sizeof place, "%llu", (unsigned long long)number);
		prefix = place;
	} else if (*prefix == '"') {
		prefix++;
		length -= 2;
	}
	detect_put_text(out, prefix, length, worker->changes, count);
}

/* Returns the number of lines. A bad line is answered with an error; in text output, which has no
 * room for it, on stderr. */
static size_t answer_batch(struct worker *worker, const struct batch *batch, struct buf *out)
{
	struct batch_line text;
	size_t offset = 0, count = 0;

	for (uint64_t number = batch->line; batch_line(batch, &offset, &text); number++, count++) {
		struct line line;
		struct error error;
		const struct detection *detection;
		size_t found;

		if (!text.cut && batch_line_is_blank(&text))
			continue;
		bool good = line_read(worker->reader, text.text, text.length, &line, &error);
		if (text.cut)
			good = error_set(&error, ERROR_DATA,
				"line longer than %zu bytes (--max-line)", worker->task->max_line);
		if (good && choose_detection(worker, &line, &detection, &error) &&
			find_changes(worker, &line, detection, &found, &error)) {
			put_answer(worker, &line, number, found, out);
			continue;
		}
		worker->bad_data = true;
		error_prefix(&error, "%s:%llu: ", batch->file, (unsigned long long)number);
		if (worker->task->output == DETECT_JSONL)
			detect_put_problem(out, line.id, line.id_length, error.text);
		else
			cli_fail(&error);
	}
	return count;
}

/* The next batch in its slot, once there is room in the ring. NULL at the end, and after a failed
 * write. */
static struct slot *take_batch(struct ring *ring)
{
	enum batch_step step = BATCH_END;
	struct slot *slot;
	struct error error;
	bool stop;

	pthread_mutex_lock(&ring->reading);
	slot = &ring->slots[ring->taken % ring->slot_count];
	pthread_mutex_lock(&ring->lock);
	while (slot->state != SLOT_FREE && !ring->failed)
		pthread_cond_wait(&ring->freed, &ring->lock);
	stop = ring->failed;
	pthread_mutex_unlock(&ring->lock);
	while (!stop && (step = batch_read(ring->reader, &slot->batch, &error)) == BATCH_FAILED) {
		cli_fail(&error);
		pthread_mutex_lock(&ring->lock);
		ring->bad_data = true;
		pthread_mutex_unlock(&ring->lock);
	}
	if (step == BATCH_LINES) {
		pthread_mutex_lock(&ring->lock);
		slot->state = SLOT_BUSY;
		pthread_mutex_unlock(&ring->lock);
		ring->taken++;
	}
	pthread_mutex_unlock(&ring->reading);
	return step == BATCH_LINES ? slot : NULL;
}

static void show_progress(struct ring *ring, size_t lines)
{
	struct progress *progress = &ring->progress;
	progress->lines += lines;
	if (!ring->task->progress || clock_monotonic() < progress->due)
		return;
	progress->due = clock_monotonic() + PROGRESS_EVERY;
	progress->shown = true;
	fprintf(stderr, "\r\033[K%zu lines done", progress->lines);
	fflush(stderr);
}

/* Writes and empties the answer; returns the errno of a failure. */
static int write_answer(FILE *out, struct slot *slot)
{
	int failure = 0;
	if (slot->answer.length > 0 &&
		(fwrite(slot->answer.data, 1, slot->answer.length, out) != slot->answer.length ||
			fflush(out) != 0))
		failure = errno ? errno : EIO;
	if (slot->answer.capacity > ANSWER_KEPT)
		buf_free(&slot->answer);
	buf_clear(&slot->answer);
	return failure;
}

/* Puts the answer into the ring and writes the answers that are due. */
static void return_slot(struct ring *ring, struct slot *slot)
{
	pthread_mutex_lock(&ring->lock);
	slot->state = SLOT_DONE;
	if (ring->writing) {
		pthread_mutex_unlock(&ring->lock);
		return;
	}
	ring->writing = true;
	for (;;) {
		struct slot *due = &ring->slots[ring->due % ring->slot_count];
		if (due->state != SLOT_DONE || ring->failed)
			break;
		pthread_mutex_unlock(&ring->lock);
		int failure = write_answer(ring->task->out, due);
		show_progress(ring, due->lines);
		pthread_mutex_lock(&ring->lock);
		ring->failed = failure;
		due->state = SLOT_FREE;
		ring->due++;
		pthread_cond_broadcast(&ring->freed);
	}
	ring->writing = false;
	pthread_mutex_unlock(&ring->lock);
}

static void *work(void *context)
{
	struct ring *ring = context;
	struct worker worker = {
		.task = ring->task, .reader = line_reader_new(), .scratch = scratch_new()};
	struct slot *slot;
	while ((slot = take_batch(ring))) {
		slot->lines = answer_batch(&worker, &slot->batch, &slot->answer);
		return_slot(ring, slot);
	}
	pthread_mutex_lock(&ring->lock);
	ring->bad_data |= worker.bad_data;
	pthread_mutex_unlock(&ring->lock);
	line_reader_free(worker.reader);
	scratch_free(worker.scratch);
	arena_free(worker.arena);
	buf_free(&worker.options);
	free(worker.changes);
	free(worker.adjusted);
	return NULL;
}

int detect_lines(const struct detect_task *task)
{
	struct ring ring = {.task = task,
		.reading = PTHREAD_MUTEX_INITIALIZER,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.freed = PTHREAD_COND_INITIALIZER,
		.reader = task->reader,
		.slot_count = task->jobs * SLOTS_A_THREAD,
		.progress = {.due = clock_monotonic() + PROGRESS_AFTER}};
	size_t started = 0;
	pthread_t *threads = memory_new(task->jobs, sizeof *threads);

	ring.slots = memory_new(ring.slot_count, sizeof *ring.slots);
	/* This thread is one of the `jobs`; if threads cannot be started it is slower, not wrong.
	 */
	while (started + 1 < task->jobs &&
		pthread_create(&threads[started], NULL, work, &ring) == 0)
		started++;
	work(&ring);
	while (started > 0)
		pthread_join(threads[--started], NULL);
	free(threads);
	if (ring.progress.shown)
		fputs("\r\033[K", stderr);
	for (size_t i = 0; i < ring.slot_count; i++) {
		batch_free(&ring.slots[i].batch);
		buf_free(&ring.slots[i].answer);
	}
	free(ring.slots);
	errno = ring.failed; /* for the caller that checks the stream */
	return ring.bad_data ? EXIT_DATA : EXIT_NOTHING;
}
