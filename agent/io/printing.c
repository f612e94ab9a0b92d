/*
 * The pool's lane for writing has one thread, which keeps the order and alone touches the torn
 * text. The descriptor stays blocking, as it may be shared with the shell; if it is
 * non-blocking, poll() waits.
 */
#include "agent/io/printing.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/arena.h"

void printer_free(struct printer *printer)
{
	free(printer->torn);
	*printer = (struct printer){0};
}

/* How much of the text has been written already. */
static size_t take_torn(struct printer *printer, const struct transfer *transfer)
{
	size_t written = 0;
	if (printer->torn && printer->torn_length == transfer->body_length &&
		memcmp(printer->torn, transfer->body, transfer->body_length) == 0)
		written = printer->torn_written;
	free(printer->torn);
	printer->torn = NULL;
	return written;
}

static void keep_torn(struct printer *printer, const struct transfer *transfer, size_t written)
{
	if (written == 0)
		return;
	printer->torn = memory_new(transfer->body_length, 1);
	memcpy(printer->torn, transfer->body, transfer->body_length);
	printer->torn_length = transfer->body_length;
	printer->torn_written = written;
}

/* Returns the bytes written; fewer than all after an error, which is in errno. */
static size_t write_all(const char *text, size_t written, size_t length)
{
	while (written < length) {
		ssize_t count = write(STDOUT_FILENO, text + written, length - written);
		if (count >= 0) {
			written += (size_t)count;
		} else if (errno == EAGAIN) {
			struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
			poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			break;
		}
	}
	return written;
}

static void run(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct printing *printing = (struct printing *)job;
	const struct transfer *transfer = printing->transfer;
	size_t before = take_torn(printing->printer, transfer);
	size_t written = write_all(transfer->body, before, transfer->body_length);
	printing->reply =
		(struct reply){.kind = REPLY_ANSWER, .status = 200, .retry_after = -1, .body = ""};
	if (written == transfer->body_length)
		return;
	char text[96];
	snprintf(printing->problem, sizeof printing->problem, "standard output: %s",
		strerror_r(errno, text, sizeof text));
	printing->reply = (struct reply){
		.kind = written > 0 ? REPLY_AMBIGUOUS : REPLY_UNREACHABLE,
		.retry_after = -1,
		.problem = printing->problem,
	};
	keep_torn(printing->printer, transfer, written);
}

static void ended(struct job *job)
{
	struct printing *printing = (struct printing *)job;
	printing->done(printing);
}

void printing_begin(struct printing *printing, struct printer *printer,
	const struct transfer *transfer, void (*done)(struct printing *printing))
{
	printing->job = (struct job){.run = run, .done = ended};
	printing->printer = printer;
	printing->transfer = transfer;
	printing->done = done;
	pool_submit(printer->pool, LANE_WRITE, &printing->job);
}
