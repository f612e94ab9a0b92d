/*
 * POST /api/v1/arrived: runs the tests that read the data just written.
 *
 * A worker reads one body after the other. It makes the index of readers at the first one, and
 * again after a reload of the configuration.
 */
#include "agent/web/arrived.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/scan.h"
#include "agent/web/api.h"

enum {
	MOST_NAME = 8192, /* bytes */
	MOST_LABELS = 128,
	MOST_SHOWN = 1000, /* tests in an answer */
	MOST_BYTES = HTTP_BULK_MOST,
	MOST_WAITING = 50,                   /* requests, and ... */
	MOST_BYTES_WAITING = 4 * MOST_BYTES, /* ... their bodies, apart from the first */
};

/* Reading a body. */

struct reader_of_names {
	struct arrived *out;
	struct error *error;
	struct pair labels[MOST_LABELS];
	size_t line; /* 0: JSON */
	struct scan scan;
	const char *begin;
};

static bool wrong(struct reader_of_names *reader, const char *problem)
{
	if (reader->line > 0)
		return error_set(reader->error, ERROR_USAGE, "line %zu: %s", reader->line, problem);
	return error_set(reader->error, ERROR_USAGE, "byte %zu: %s",
		(size_t)(reader->scan.at - reader->begin) + 1, problem);
}

static void count(struct reader_of_names *reader, bool read)
{
	reader->out->names++;
	reader->out->unread += !read;
}

/* Takes the quoted value off the text, and unescapes it in place; NULL: it is malformed. */
static char *take_value(char **at)
{
	char *value = *at + 1, *to = value, *from = value;

	if (**at != '"')
		return NULL;
	while (*from && *from != '"') {
		if (*from == '\\' && from[1])
			from++;
		else {
			*to++ = *from++;
			continue;
		}
		*to++ = *from == 'n' ? '\n' : *from;
		from++;
	}
	if (!*from)
		return NULL;
	*to = '\0';
	*at = from + 1;
	return value;
}

static char *skip_blanks(char *at)
{
	return at + strspn(at, " \t");
}

/* Takes `a="1", b="2"}` off the text, up to its end. */
static bool take_labels(struct reader_of_names *reader, char *at, struct written_series *series)
{
	for (at = skip_blanks(at); *at != '}'; at = skip_blanks(at)) {
		char *name = at, *value;
		size_t length = strcspn(at, "=\" \t,{}");

		at = skip_blanks(at + length);
		if (length == 0 || *at != '=')
			return wrong(reader, "a label and = are missing");
		at = skip_blanks(at + 1);
		name[length] = '\0';
		value = take_value(&at);
		if (!value)
			return wrong(reader, "a value in quotation marks is missing");
		if (series->count == MOST_LABELS)
			return wrong(reader, "the series has too many labels");
		if (strcmp(name, "__name__") == 0)
			series->name = value;
		else
			reader->labels[series->count++] = (struct pair){name, value};
		at = skip_blanks(at);
		if (*at == ',')
			at++;
		else if (*at != '}')
			return wrong(reader, "a comma or } is missing");
	}
	at = skip_blanks(at + 1);
	return !*at || wrong(reader, "unexpected text after the }");
}

/* up{job="a"}, or the name alone. */
static bool take_series(struct reader_of_names *reader, char *text)
{
	char *brace = strchr(text, '{');
	struct written_series series = {
		.name = text, .labels = reader->labels, .unlabelled = !brace};

	text[strcspn(text, " \t{")] = '\0';
	if (brace && !take_labels(reader, brace + 1, &series))
		return false;
	count(reader, readers_of_series(&reader->out->readers, &series));
	return true;
}

static bool take(struct reader_of_names *reader, enum arrived_kind kind, char *text)
{
	struct found_readers *readers = &reader->out->readers;

	if (!*text)
		return wrong(reader, "a name is missing");
	if (strlen(text) > MOST_NAME)
		return wrong(reader, "the name is too long");
	switch (kind) {
	case ARRIVED_GRAPHITE: count(reader, readers_of_path(readers, text)); return true;
	case ARRIVED_PROMETHEUS: return take_series(reader, text);
	case ARRIVED_FILE: count(reader, readers_of_file(readers, text)); return true;
	case ARRIVED_TEST: count(reader, readers_named(readers, text)); return true;
	case ARRIVED_ANY:
	default: return false;
	}
}

static enum arrived_kind kind_of(const char *word, size_t length, const char *const *words)
{
	for (size_t i = 0; words[i]; i++)
		if (strlen(words[i]) == length && strncmp(words[i], word, length) == 0)
			return (enum arrived_kind)(i + 1);
	return ARRIVED_ANY;
}

static const char *const kinds[] = {"graphite", "prometheus", "file", "test", NULL};

static bool take_line(struct reader_of_names *reader, enum arrived_kind kind, char *line)
{
	size_t length = strlen(line);

	while (length > 0 && strchr(" \t\r", line[length - 1]))
		line[--length] = '\0';
	line = skip_blanks(line);
	if (!*line)
		return true;
	if (kind == ARRIVED_ANY) {
		length = strcspn(line, " \t");
		kind = kind_of(line, length, kinds);
		if (kind == ARRIVED_ANY)
			return wrong(reader,
				"graphite, prometheus, file or test is needed before a name");
		line = skip_blanks(line + length);
	}
	if (kind == ARRIVED_GRAPHITE)
		line[strcspn(line, " \t")] = '\0';
	return take(reader, kind, line);
}

static bool read_lines(
	struct reader_of_names *reader, char *body, size_t length, enum arrived_kind kind)
{
	char *end = body + length;

	while (body < end) {
		char *next = memchr(body, '\n', (size_t)(end - body));

		next = next ? next : end;
		*next = '\0';
		reader->line++;
		if (strlen(body) != (size_t)(next - body))
			return wrong(reader, "a NUL");
		if (!take_line(reader, kind, body))
			return false;
		body = next + 1;
	}
	return true;
}

static bool read_names(struct reader_of_names *reader, enum arrived_kind kind)
{
	struct scan *scan = &reader->scan;

	if (!scan_open(scan, '['))
		return scan_fail(scan, "a list of names is missing");
	while (scan_item(scan))
		if (!scan_text(scan) || !take(reader, kind, scan->text.data))
			return false;
	return !scan->problem;
}

static bool read_json(struct reader_of_names *reader)
{
	static const char *const keys[] = {"graphite", "prometheus", "files", "tests", NULL};
	struct scan *scan = &reader->scan;

	scan_space(scan);
	if (!scan_open(scan, '{'))
		return scan_fail(scan, "an object is missing");
	while (scan_key(scan)) {
		enum arrived_kind kind = kind_of(scan->text.data, strlen(scan->text.data), keys);

		if (kind == ARRIVED_ANY)
			return wrong(reader,
				"the keys are \"graphite\", \"prometheus\", \"files\" and "
				"\"tests\"");
		if (!read_names(reader, kind))
			return false;
	}
	return !scan->problem && scan_end(scan);
}

bool arrived_read(
	struct arrived *out, char *body, size_t length, enum arrived_kind kind, struct error *error)
{
	struct reader_of_names reader = {.out = out, .error = error, .begin = body};
	size_t blank = strspn(body, " \t\r\n");
	bool good;

	*error = (struct error){0};
	if (kind != ARRIVED_ANY || body[blank] != '{')
		return read_lines(&reader, body, length, kind);
	reader.scan = (struct scan){.at = body, .end = body + length};
	good = read_json(&reader);
	if (!good && !*error->text)
		wrong(&reader, reader.scan.problem ? reader.scan.problem : "it is malformed");
	buf_free(&reader.scan.text);
	return good;
}

/* Requests. */

/* In an arena of its own, as the loop may use its request's meanwhile; but not the body. */
struct arrival {
	struct arena *arena;
	struct arrivals *arrivals;
	struct http_request *request;
	size_t came; /* bytes */
	bool packed;
	enum arrived_kind kind;
	struct arrived arrived;
	bool read;
	struct error error;
	int status; /* if it was not read */
	struct arrival *next;
};

struct arrivals {
	struct api *api;
	struct config_ref *config_ref; /* of the readers */
	struct readers *readers;       /* NULL: not made yet */
	struct arrival *first, **end;  /* the first is being read */
	size_t waiting, bytes;         /* all of them, as they came */
};

struct arrivals *arrivals_new(struct api *api)
{
	struct arrivals *arrivals = memory_new(1, sizeof *arrivals);

	*arrivals = (struct arrivals){.api = api, .end = &arrivals->first};
	return arrivals;
}

void arrivals_free(struct arrivals *arrivals)
{
	if (!arrivals)
		return;
	for (struct arrival *next, *arrival = arrivals->first; arrival; arrival = next) {
		next = arrival->next;
		arena_free(arrival->arena);
	}
	readers_free(arrivals->readers);
	config_ref_release(arrivals->config_ref);
	free(arrivals);
}

/* Replaces the body by the text that gzip compressed. */
static bool unpack(struct arrival *arrival)
{
	struct buf out = {0}, *body = &arrival->request->body;
	bool good = http_unpack(body->data, body->length, MOST_BYTES, &out);

	buf_free(body);
	*body = out;
	if (out.length > MOST_BYTES) {
		arrival->status = 413;
		return error_set(&arrival->error, ERROR_USAGE, "the body is too large");
	}
	return good ||
	       error_set(&arrival->error, ERROR_USAGE, "the body is not whole, or not gzip");
}

/* On a worker. */
static void work(void *context)
{
	struct arrival *arrival = context;
	struct arrivals *arrivals = arrival->arrivals;
	struct buf *body = &arrival->request->body;

	if (!arrivals->readers)
		arrivals->readers =
			readers_new(arrivals->config_ref->tests, arrivals->config_ref->test_count);
	arrival->arrived.readers = found_readers_new(arrivals->readers, arrival->arena);
	arrival->status = 400;
	arrival->read = (!arrival->packed || unpack(arrival)) &&
			arrived_read(&arrival->arrived, body->data, body->length, arrival->kind,
				&arrival->error);
}

/* Runs the tests, and answers. */
static void run_readers(const struct arrival *arrival)
{
	const struct api *api = arrival->arrivals->api;
	const struct arrived *arrived = &arrival->arrived;
	size_t count = arrived->readers.count, shown = count < MOST_SHOWN ? count : MOST_SHOWN;
	struct buf *out = &arrival->request->buffer;

	metrics_add(api->agent->metrics, METRIC_ARRIVED, (double)(arrived->names - arrived->unread),
		"yes");
	metrics_add(api->agent->metrics, METRIC_ARRIVED, (double)arrived->unread, "no");
	json_put(out, "{names: %zu, unread: %zu, count: %zu, tests: [", arrived->names,
		arrived->unread, count);
	for (size_t i = 0; i < count; i++) {
		const char *test =
			arrival->arrivals->config_ref->tests[arrived->readers.tests[i]]->name;

		scheduler_written(api->scheduler, test);
		if (i >= shown)
			continue;
		json_put(out, "%s", test);
	}
	json_put(out, "], left_out: %zu}", count - shown);
	http_send(arrival->request, 202);
}

static void begin(struct arrivals *arrivals);

static void done(void *context)
{
	struct arrival *arrival = context;
	struct arrivals *arrivals = arrival->arrivals;

	if (arrival->read)
		run_readers(arrival);
	else
		http_fail(arrival->request, arrival->status, "%s", arrival->error.text);
	arrivals->first = arrival->next;
	arrivals->waiting--;
	arrivals->bytes -= arrival->came;
	if (!arrivals->first)
		arrivals->end = &arrivals->first;
	arena_free(arrival->arena);
	if (arrivals->first)
		begin(arrivals);
}

/* The readers are not in use meanwhile. */
static void begin(struct arrivals *arrivals)
{
	struct agent *agent = arrivals->api->agent;

	if (arrivals->config_ref != agent->config_ref) {
		readers_free(arrivals->readers);
		arrivals->readers = NULL;
		config_ref_release(arrivals->config_ref);
		arrivals->config_ref = config_ref_hold(agent->config_ref);
	}
	engine_compute(agent->engine, work, done, arrivals->first);
}

static void add(struct arrivals *arrivals, struct http_request *request, enum arrived_kind kind,
	bool packed)
{
	struct arena *arena = arena_new();
	struct arrival *arrival = arena_alloc(arena, sizeof *arrival);

	*arrival = (struct arrival){.arena = arena,
		.arrivals = arrivals,
		.request = request,
		.came = request->body.length,
		.packed = packed,
		.kind = kind};
	arrivals->waiting++;
	arrivals->bytes += arrival->came;
	buf_append(&request->body, "", 0); /* so that a NUL follows */
	*arrivals->end = arrival;
	arrivals->end = &arrival->next;
	if (arrivals->first == arrival)
		begin(arrivals);
}

void api_post_arrived(struct http_request *request)
{
	struct arrivals *arrivals = api_of(request)->arrivals;
	const char *word = http_parameter(request, "kind");
	const char *encoding = http_header(request, "Content-Encoding");
	enum arrived_kind kind = word ? kind_of(word, strlen(word), kinds) : ARRIVED_ANY;
	bool packed = encoding && strcasecmp(encoding, "gzip") == 0;

	if (word && kind == ARRIVED_ANY)
		http_fail(request, 400, "kind: graphite, prometheus, file or test is needed");
	else if (encoding && *encoding && !packed && strcasecmp(encoding, "identity") != 0)
		http_fail(request, 415, "unsupported encoding: expected gzip or none");
	else if (arrivals->waiting > MOST_WAITING ||
		 (arrivals->first && arrivals->bytes - arrivals->first->came >= MOST_BYTES_WAITING))
		http_fail(request, 503, "too many requests are waiting to be read");
	else
		add(arrivals, request, kind, packed);
}
