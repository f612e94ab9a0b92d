/*
 * Standard input is an anonymous file: nothing needs to be written while the command runs, and a
 * command that ignores its input does not fail. The process is watched through a pidfd, as its
 * pipes may outlive it in the hands of its children.
 *
 * The group is signalled only while its leader has not been reaped, when no other process can have
 * its number.
 */
#include "agent/io/execution.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/clock.h"
#include "agent/base/log.h"
#include "agent/base/output_file.h"
#include "agent/base/secret.h"
#include "agent/base/when.h"

enum { PIECE = 8192 };

/* A file with a command's output: the beginning up to half of its size, then the end. The command
 * is not to fail for an error of it. */
struct transcript {
	int fd;
	size_t half, written, dropped;
	struct buf end;
};

/* What a command writes, and what is kept of it: the first line. */
struct stream {
	int ends[2]; /* of the pipe; -1: closed */
	char *line;  /* of EXECUTION_LINE + 1 bytes */
	size_t length;
	bool whole;
	struct buf *all;               /* or NULL: also the rest, ... */
	size_t most;                   /* ... up to so many bytes, ... */
	bool keeps_end;                /* ... the last ones */
	struct transcript *transcript; /* or NULL */
};

enum { STREAMS = 2 }; /* standard output and standard error */

struct command {
	pid_t pid;
	int input, process; /* -1: closed */
	struct stream streams[STREAMS];
	bool timed_out, stopped; /* it was ended: by its time, by the executor */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Returns an errno. */
static int open_input(const struct transfer *transfer, int *fd)
{
	*fd = memfd_create("event", MFD_CLOEXEC);
	return *fd >= 0 && output_all(*fd, transfer->body, transfer->body_length) &&
			       lseek(*fd, 0, SEEK_SET) >= 0
		       ? 0
		       : errno;
}

static int open_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	return fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ? errno : 0;
}

/* A later one of that name replaces it, or with a value of NULL removes it. Returns the new count.
 */
static size_t add_variables(
	const struct pairs *more, struct arena *arena, char **list, size_t count)
{
	for (size_t i = 0; i < more->count; i++) {
		const char *key = more->items[i].key;
		size_t at = 0, length = strlen(key);
		while (at < count &&
			(strncmp(list[at], key, length) != 0 || list[at][length] != '='))
			at++;
		if (more->items[i].value) {
			list[at] = arena_printf(arena, "%s=%s", key, more->items[i].value);
			count += at == count;
		} else if (at < count) {
			list[at] = list[--count];
		}
	}
	return count;
}

/* "PATH=...", NULL-terminated. */
static char **environment_of(const struct transfer *transfer, struct arena *arena)
{
	static const char *const kept[] = {
		"HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"};
	enum { KEPT = sizeof kept / sizeof *kept };
	size_t given = transfer->environment.count + transfer->plain.count, count = 0;
	bool inherits = transfer->options && transfer->options->inherits;
	const char *path = getenv("PATH");
	char **list;
	while (inherits && environ[count])
		count++;
	list = arena_array(arena, KEPT + 2 + count + given, sizeof *list);
	for (size_t i = 0; i < count; i++)
		list[i] = environ[i];
	if (!inherits)
		list[count++] = arena_printf(
			arena, "PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin");
	for (size_t i = 0; i < KEPT && !inherits; i++)
		if (getenv(kept[i]))
			list[count++] = arena_printf(arena, "%s=%s", kept[i], getenv(kept[i]));
	count = add_variables(&transfer->environment, arena, list, count);
	list[add_variables(&transfer->plain, arena, list, count)] = NULL;
	return list;
}

/* Returns an errno, that of exec included. */
static int spawn(const struct transfer *transfer, struct command *command)
{
	struct arena *arena = arena_new();
	const struct command_options *options = transfer->options;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	posix_spawn_file_actions_init(&actions);
	if (options && options->folder)
		posix_spawn_file_actions_addchdir_np(&actions, options->folder);
	posix_spawn_file_actions_adddup2(&actions, command->input, STDIN_FILENO);
	for (int i = 0; i < STREAMS; i++)
		posix_spawn_file_actions_adddup2(
			&actions, command->streams[i].ends[1], STDOUT_FILENO + i);
	/* libcurl's sockets are not closed by exec. */
	posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes,
		POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	int failed = posix_spawnp(&command->pid, transfer->command[0], &actions, &attributes,
		(char *const *)(uintptr_t)transfer->command, environment_of(transfer, arena));
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	arena_free(arena);
	return failed;
}

static int command_start(const struct transfer *transfer, struct command *command)
{
	int failed = open_input(transfer, &command->input);
	for (int i = 0; i < STREAMS && !failed; i++)
		failed = open_pipe(command->streams[i].ends);
	failed = failed ? failed : spawn(transfer, command);
	close_fd(&command->input);
	for (int i = 0; i < STREAMS; i++)
		close_fd(&command->streams[i].ends[1]);
	if (failed)
		return failed;
	command->process = pidfd_open(command->pid, 0);
	if (command->process >= 0)
		return 0;
	failed = errno;
	kill(-command->pid, SIGKILL);
	waitpid(command->pid, NULL, 0);
	return failed;
}

/* Returns the number of dropped bytes. */
static size_t cut_beginning(struct buf *text, size_t most)
{
	size_t surplus = text->length - most;
	memmove(text->data, text->data + surplus, most + 1);
	text->length = most;
	return surplus;
}

/* Appends, and drops the beginning beyond `most` bytes, but not each time. Returns what it drops.
 */
static size_t append_end(struct buf *end, size_t most, const char *data, size_t length)
{
	buf_append(end, data, length);
	return end->length >= 2 * most ? cut_beginning(end, most) : 0;
}

static void transcript_append(struct transcript *transcript, const char *data, size_t length)
{
	size_t left = transcript->half - transcript->written, now = length < left ? length : left;
	(void)output_all(transcript->fd, data, now);
	transcript->written += now;
	if (now < length)
		transcript->dropped +=
			append_end(&transcript->end, transcript->half, data + now, length - now);
}

static void transcript_end(struct transcript *transcript)
{
	struct buf *end = &transcript->end;
	char text[64];
	if (end->length > transcript->half)
		transcript->dropped += cut_beginning(end, transcript->half);
	if (transcript->dropped > 0) {
		int length = snprintf(
			text, sizeof text, "\n[... %zu bytes left out ...]\n", transcript->dropped);
		(void)output_all(transcript->fd, text, (size_t)length);
	}
	(void)output_all(transcript->fd, end->data, end->length);
	buf_free(end);
}

static void keep(struct stream *stream, const char *data, size_t length)
{
	if (stream->transcript)
		transcript_append(stream->transcript, data, length);
	for (size_t i = 0; i < length && !stream->whole; i++) {
		bool blank = data[i] == '\n' || data[i] == '\r';
		if (blank && stream->length == 0)
			continue;
		stream->whole = blank || stream->length == EXECUTION_LINE;
		if (!stream->whole)
			stream->line[stream->length++] = data[i];
	}
	stream->line[stream->length] = '\0';
	if (stream->all && stream->keeps_end)
		append_end(stream->all, stream->most, data, length);
	else if (stream->all && stream->all->length + length <= stream->most)
		buf_append(stream->all, data, length);
	else if (stream->all)
		stream->most = stream->all->length; /* without gaps */
}

/* Reads what is available; closes the descriptor at the end. */
static void drain(struct stream *stream)
{
	char data[PIECE];
	ssize_t count = read(stream->ends[0], data, sizeof data);
	if (count > 0)
		keep(stream, data, (size_t)count);
	else if (count == 0 || (errno != EAGAIN && errno != EINTR))
		close_fd(&stream->ends[0]);
}

/* Sends SIGTERM to the group, later SIGKILL. Returns the time of the next step. */
static int64_t end_group(struct command *command, int64_t now, bool again, int64_t grace)
{
	kill(-command->pid, again ? SIGKILL : SIGTERM);
	return again ? INT64_MAX : now + grace;
}

/* Reads its output until it has ended. */
static void watch(struct execution *execution, struct command *command)
{
	int64_t due = clock_monotonic() + execution->transfer->timeout;
	bool ending = false;
	for (;;) {
		int64_t now = clock_monotonic();
		struct pollfd fds[] = {{.fd = command->process, .events = POLLIN},
			{.fd = command->streams[0].ends[0], .events = POLLIN},
			{.fd = command->streams[1].ends[0], .events = POLLIN},
			{.fd = command->stopped ? -1 : execution->executor->stop, .events = POLLIN},
			{.fd = command->stopped ? -1 : execution->cancel, .events = POLLIN}};
		int64_t left = due > now ? due - now : 0;
		if (poll(fds, 5, due == INT64_MAX ? -1 : left < 60000 ? (int)left : 60000) < 0)
			continue;
		for (int i = 0; i < STREAMS; i++)
			if (fds[1 + i].revents)
				drain(&command->streams[i]);
		if (fds[0].revents)
			return;
		now = clock_monotonic();
		if (fds[3].revents || fds[4].revents) {
			command->stopped = true;
			due = end_group(command, now, false, EXECUTION_LAST_GRACE);
			ending = true;
		} else if (now >= due) {
			command->timed_out = true;
			due = end_group(command, now, ending, EXECUTION_GRACE);
			ending = true;
		}
	}
}

/* Reaps it and, if it was ended, its group; and reads what is left in the pipes. */
static int reap(struct command *command, const struct command_options *options)
{
	enum { MOST = 64 };
	int status = 0;
	if (command->timed_out || command->stopped || (options && options->whole_group))
		kill(-command->pid, SIGKILL);
	if (waitpid(command->pid, &status, 0) < 0)
		status = 0; /* our parent had SIGCHLD ignored: the status is lost */
	for (int i = 0; i < STREAMS; i++) {
		struct stream *stream = &command->streams[i];
		bool rest = stream->all || stream->transcript;
		size_t left = MOST + (stream->all ? stream->most / PIECE : 0);
		for (; left > 0 && stream->ends[0] >= 0 && (rest || !stream->whole); left--)
			drain(stream);
	}
	return status;
}

static void mask(char *text, const struct transfer *transfer)
{
	const struct pairs *given = &transfer->environment;
	for (size_t i = 0; i < given->count; i++)
		secret_mask(text, strlen(text), &(struct strings){&given->items[i].value, 1});
}

static struct reply not_started(struct execution *execution, int failed)
{
	bool missing = failed == ENOENT || failed == ENOTDIR;
	bool refused = failed == EACCES || failed == EPERM || failed == ENOEXEC ||
		       failed == E2BIG || failed == EISDIR || failed == ELOOP;
	char text[96];
	snprintf(execution->problem, sizeof execution->problem, "cannot start: %s",
		strerror_r(failed, text, sizeof text));
	return (struct reply){.kind = REPLY_UNREACHABLE,
		.retry_after = -1,
		.body = "",
		.problem = execution->problem,
		.status = missing   ? EXECUTION_NOT_FOUND
			  : refused ? EXECUTION_REFUSED
				    : 0};
}

static struct reply outcome(struct execution *execution, const struct command *command, int status)
{
	char text[WHEN_TEXT];
	if (command->timed_out) {
		snprintf(execution->problem, sizeof execution->problem, "timed out after %s",
			when_format_duration(execution->transfer->timeout, text));
		return (struct reply){.kind = REPLY_AMBIGUOUS};
	}
	if (command->stopped)
		return (struct reply){.kind = REPLY_AMBIGUOUS};
	if (WIFSIGNALED(status)) {
		int signal = WTERMSIG(status);
		snprintf(execution->problem, sizeof execution->problem, "killed by signal %d (%s)",
			signal, sigdescr_np(signal));
		return (struct reply){.kind = REPLY_ANSWER, .status = 128 + signal};
	}
	return (struct reply){.kind = REPLY_ANSWER, .status = WEXITSTATUS(status)};
}

static void run(struct execution *execution)
{
	const struct transfer *transfer = execution->transfer;
	const struct command_options *options = transfer->options;
	bool much = transfer->most_output > 0, logs = options && options->log > 0;
	struct transcript transcript = {
		.fd = logs ? options->log : -1, .half = logs ? options->most_log / 2 : 0};
	struct transcript *log = logs ? &transcript : NULL;
	struct command command = {.input = -1,
		.process = -1,
		.streams = {{.ends = {-1, -1},
				    .line = execution->output_line,
				    .all = much ? &execution->output : NULL,
				    .most = transfer->most_output,
				    .keeps_end = much && options && options->keeps_end,
				    .transcript = log},
			{.ends = {-1, -1}, .line = execution->problem, .transcript = log}}};
	struct stream *output = &command.streams[0];
	int64_t start = clock_monotonic();
	int failed = command_start(transfer, &command);
	if (failed) {
		execution->reply = not_started(execution, failed);
	} else {
		watch(execution, &command);
		execution->reply = outcome(execution, &command, reap(&command, options));
	}
	close_fd(&command.process);
	for (int i = 0; i < STREAMS; i++)
		close_fd(&command.streams[i].ends[0]);
	if (log)
		transcript_end(log);
	if (output->keeps_end && execution->output.length > output->most)
		cut_beginning(&execution->output, output->most);
	mask(execution->output_line, transfer);
	mask(execution->problem, transfer);
	execution->reply.retry_after = -1;
	execution->reply.body = execution->output_line;
	execution->reply.length = strlen(execution->output_line);
	execution->reply.problem = *execution->problem ? execution->problem : NULL;
	execution->reply.took = 1000 * (clock_monotonic() - start);
	log_event(much || options ? LEVEL_DEBUG : LEVEL_INFO, "command ended",
		LOG_TEXT("command", transfer->command[0]),
		LOG_INT("status", execution->reply.status),
		LOG_INT("ms", execution->reply.took / 1000),
		LOG_TEXT("output", execution->output_line),
		LOG_TEXT("problem", execution->problem));
}

static void *work(void *argument)
{
	struct execution *execution = argument;
	run(execution);
	pool_return(execution->executor->pool, &execution->job);
	return NULL;
}

static void forget(struct execution *execution)
{
	struct execution **link = &execution->executor->live;
	while (*link != execution)
		link = &(*link)->next;
	*link = execution->next;
	if (execution->watched)
		pthread_join(execution->thread, NULL);
	close_fd(&execution->cancel);
}

static void ended(struct job *job)
{
	struct execution *execution = (struct execution *)job;
	forget(execution);
	execution->done(execution);
}

/* Returns an errno. */
static int start_thread(struct execution *execution)
{
	struct executor *executor = execution->executor;
	sigset_t all, before;
	if (executor->stop == 0) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (fd < 0)
			return errno;
		executor->stop = fd;
		signal(SIGCHLD, SIG_DFL); /* ignored, it would reap them itself */
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&execution->thread, NULL, work, execution);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

void execution_begin(struct execution *execution, struct executor *executor,
	const struct transfer *transfer, void (*done)(struct execution *execution))
{
	bool cancellable = transfer->options && transfer->options->cancellable;
	*execution = (struct execution){.job = {.done = ended},
		.executor = executor,
		.transfer = transfer,
		.done = done,
		.cancel = cancellable ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1,
		.next = executor->live};
	executor->live = execution;
	int failed = cancellable && execution->cancel < 0 ? errno : start_thread(execution);
	execution->watched = !failed;
	if (!failed)
		return;
	execution->reply = not_started(execution, failed);
	execution->reply.status = 0;
	pool_return(executor->pool, &execution->job);
}

void execution_cancel(struct execution *execution)
{
	if (execution->cancel >= 0 && eventfd_write(execution->cancel, 1) != 0 && errno != EAGAIN)
		abort(); /* it is readable already, or the counter is full */
}

void executor_stop(struct executor *executor)
{
	if (executor->stop == 0)
		return;
	if (eventfd_write(executor->stop, 1) != 0)
		abort(); /* the counter cannot overflow: it is written once */
	while (executor->live)
		forget(executor->live);
	close(executor->stop);
	executor->stop = 0;
}
