/*
 * --label: a person looks at plots of series, one after another, and says where they changed.
 *
 * Places that some detector finds at a loose threshold have letters. They stand in the order of
 * time, and nothing says which detector found them or what it thinks: labels that follow a detector
 * cannot judge it. Each answer rewrites the file as a whole, so that it can be left at any time.
 * Which series are shown, and in what order, depends on their names only: any first ones of them
 * are a fair sample, and the next start goes on with the same.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/hash.h"
#include "agent/base/order.h"
#include "agent/base/output_file.h"
#include "agent/base/when.h"
#include "agent/commands/gather.h"
#include "agent/commands/plot.h"
#include "agent/evaluate/evaluate.h"
#include "agent/model/json_put.h"
#include "agent/monitor/plotting.h"
#include "agent/report/table.h"

enum { LETTERS = 26, ANSWER_TEXT = 1024, LEAST_POINTS = 2, COLUMNS = 80 };

struct entry {
	struct labelled_series series; /* as labelled, if it is */
	uint64_t test, name;           /* hashes */
	size_t rank;                   /* among those of its test */
	size_t line;                   /* its number in the file, from 1; 0: not labelled yet */
};

/* A place with a letter. */
struct mark {
	size_t at; /* first, for sorting */
	double p;  /* the smallest, to choose those with letters */
	char letter[2];
};

struct session {
	struct cli *cli;
	const struct evaluate_options *options;
	const struct contender *proposers;
	size_t proposer_count;
	struct entry *entries;
	size_t count;
	const char **lines; /* of the file of labels */
	size_t line_count;
	size_t at; /* the entry that is shown */
	struct mark marks[LETTERS];
	size_t mark_count, found; /* places found, with and without a letter */
	bool shown;               /* the entry is on the screen */
	int code;
};

enum request { ANSWER, SKIP, BACK, QUIT, HELP };

static const char *const requests[] = {
	[SKIP] = "skip",
	[BACK] = "back",
	[QUIT] = "quit",
	[HELP] = "help",
};

static const char help[] =
	"  ac           a and c are changes\n"
	"  a b?         a is one, b may be one\n"
	"  -            nothing changed\n"
	"  117          the point of that index is the first of a new level, also 2026-01-14 or\n"
	"               \"2026-01-14 03:00\"; 117? may be one\n"
	"  skip         no answer for now\n"
	"  back         show the series before, to answer again; Enter keeps its answer\n"
	"  quit         stop; the next start goes on here\n";

static uint64_t hash_of(const char *text)
{
	return hash_keyed((struct hash_key){0}, text, strlen(text));
}

/* Series to label. */

static void add_entry(
	struct session *session, const char *test, const struct labelled_series *series)
{
	session->entries = arena_grow(
		session->cli->arena, session->entries, session->count, sizeof *session->entries);
	session->entries[session->count++] = (struct entry){
		.series = *series, .test = hash_of(test), .name = hash_of(series->id)};
}

static void prepare(void *context, struct task *task)
{
	const struct session *session = context;
	const struct plotting all = {.since = WHEN_ALWAYS, .now = session->cli->now};
	(void)plotting_query(&all, task);
}

/* Takes over the memory of the task's data, and its series. */
static void ready(void *context, struct task *const *tasks)
{
	struct session *session = context;
	struct task *task = tasks[0];
	struct arena *arena = session->cli->arena;
	if (!gather_log(task) || task->abandoned)
		return;
	for (size_t i = 0; i < task->query.data.count; i++) {
		const struct series *series = &task->query.data.series[i];
		struct sampling sampling;
		struct error error;
		if (!sampling_read(
			    task->query.arena, task->test, series->axis, &sampling, &error)) {
			session->code = cli_fail(&error);
			return;
		}
		const struct labelled_series one = {
			.id = arena_printf(arena, "%s/%s", task->test->name, series->name),
			.group = arena_strdup(arena, task->test->name),
			.values = series->values,
			.runs = sampling.runs,
			.hashes = sampling.hashes,
			.times = series->axis->times,
			.labels.n = series->axis->n};
		add_entry(session, one.group, &one);
	}
	arena_join(arena, task->query.arena);
	task->query.arena = arena_new();
}

static int by_name_hash(const void *a, const void *b)
{
	const struct test *const *x = a, *const *y = b;
	uint64_t one = hash_of((*x)->name), other = hash_of((*y)->name);
	return (one > other) - (one < other);
}

/* Reads no more tests than there are series to show. */
static bool load_tests(struct session *session, const struct config *config, struct error *error)
{
	struct cli *cli = session->cli;
	const struct test *const *selected;
	size_t count;
	if (!config_select(config, &cli->arguments, cli->arena, &selected, &count, error))
		return false;
	const struct test **tests = arena_array(cli->arena, count, sizeof *tests);
	for (size_t i = 0; i < count; i++)
		tests[i] = selected[i];
	if (count > 0)
		qsort(tests, count, sizeof *tests, by_name_hash);
	struct gather gather = {.tests = tests,
		.count = count < (size_t)session->options->count ? count
								 : (size_t)session->options->count,
		.config = config,
		.prepare = prepare,
		.ready = ready,
		.context = session};
	*error = (struct error){0}; /* that of a failure is printed */
	bool ran = gather_run(&gather, cli);
	session->code = exit_stronger(session->code, gather.code);
	return ran;
}

static int by_test(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->test != y->test)
		return x->test < y->test ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return strcmp(x->series.id, y->series.id);
}

static int by_rank(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return by_test(a, b);
}

/* Chooses the series to show: one of each test, then a second one of each ... */
static bool choose(struct session *session, struct error *error)
{
	struct entry *entries = session->entries;
	size_t count = 0;
	for (size_t i = 0; i < session->count; i++)
		if (entries[i].series.labels.n >= LEAST_POINTS)
			entries[count++] = entries[i];
	if (count == 0)
		return error_set(error, ERROR_DATA, "no series to label");
	qsort(entries, count, sizeof *entries, by_test);
	for (size_t i = 1; i < count; i++) {
		if (strcmp(entries[i].series.id, entries[i - 1].series.id) == 0)
			return error_set(error, ERROR_DATA, "duplicate series id \"%.200s\"",
				entries[i].series.id);
		if (entries[i].test == entries[i - 1].test)
			entries[i].rank = entries[i - 1].rank + 1;
	}
	qsort(entries, count, sizeof *entries, by_rank);
	session->count =
		count < (size_t)session->options->count ? count : (size_t)session->options->count;
	return true;
}

/* The file of labels. */

/* Returns its number. */
static size_t add_line(struct session *session, const char *line)
{
	session->lines = arena_grow(
		session->cli->arena, session->lines, session->line_count, sizeof *session->lines);
	session->lines[session->line_count++] = line;
	return session->line_count;
}

static bool load_labels(struct session *session, struct error *error)
{
	const struct evaluate_options *options = session->options;
	const struct strings files = {&options->label, 1};
	struct labelled_set set = {.lines = true};
	if (access(options->label, F_OK) != 0)
		return true;
	bool good =
		labelled_load(&files, (size_t)options->max_line, session->cli->arena, &set, error);
	for (size_t i = 0; good && i < set.count; i++) {
		const struct labelled_series *labelled = &set.series[i];
		size_t line = add_line(session, labelled->line);
		if (!labelled->labels.annotators)
			good = error_set(error, ERROR_USAGE,
				"--label: %s has series without labels (\"%.200s\"): use a "
				"separate file for labels, and --series for the series",
				options->label, labelled->id);
		for (size_t e = 0; e < session->count; e++)
			if (strcmp(session->entries[e].series.id, labelled->id) == 0) {
				session->entries[e].series = *labelled;
				session->entries[e].line = line;
			}
	}
	return good;
}

static void put_places(struct buf *out, const char *name, struct places places)
{
	buf_printf(out, ", \"%s\": [", name);
	for (size_t i = 0; i < places.count; i++)
		buf_printf(out, "%s%zu", i ? ", " : "", places.at[i]);
	buf_char(out, ']');
}

/* One number, run, hash or time of the series. */
static void put_point(
	struct buf *out, const struct labelled_series *series, const void *points, size_t i)
{
	char text[WHEN_TEXT];
	if (points == series->values)
		buf_json_number(out, series->values[i]);
	else if (points == series->runs)
		buf_printf(out, "%zu", series->runs[i]);
	else if (points == series->times)
		buf_printf(out, "\"%s\"", when_format_iso(series->times[i], text));
	else if (series->hashes[i])
		buf_printf(out, "\"%016llx\"", (unsigned long long)series->hashes[i]);
	else
		buf_text(out, "null");
}

/* The series and its labels, as labelled.h has them. */
static const char *line_of(const struct labelled_series *series, struct arena *arena)
{
	const struct {
		const char *name;
		const void *points;
	} lists[] = {{"series", series->values}, {"times", series->times}, {"runs", series->runs},
		{"hashes", series->hashes}};
	struct buf out = {0};
	json_put(&out, "{id: %s", series->id);
	if (*series->group)
		json_put_text(&out, "class", series->group);
	for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
		if (!lists[k].points)
			continue;
		buf_printf(&out, ", \"%s\": [", lists[k].name);
		for (size_t i = 0; i < series->labels.n; i++) {
			json_next(&out);
			put_point(&out, series, lists[k].points, i);
		}
		buf_char(&out, ']');
	}
	put_places(&out, "true", series->labels.all);
	put_places(&out, "maybe", series->labels.maybe);
	buf_char(&out, '}');
	return buf_keep(&out, arena);
}

/* Candidates. */

static int by_p(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : order_sizes(a, b);
}

/* Adds what one detector finds, unless another found it nearby. */
static void add_found(
	struct mark *marks, size_t *count, const struct change *changes, size_t change_count)
{
	size_t others = *count;
	for (size_t i = 0; i < change_count; i++) {
		size_t at = changes[i].index, k = 0;
		while (k < others &&
			(marks[k].at > at + SCORE_NEAR || at > marks[k].at + SCORE_NEAR))
			k++;
		if (k == others)
			marks[k = (*count)++] = (struct mark){.at = at, .p = changes[i].pvalue};
		marks[k].p = fmin(marks[k].p, changes[i].pvalue);
	}
}

/* A detector for which a series is too long offers nothing. */
static void find_marks(struct session *session, const struct labelled_series *series)
{
	size_t n = series->labels.n, count = 0, found;
	struct scratch *scratch = scratch_new();
	struct change *room = memory_new(n, sizeof *room);
	struct mark *marks = memory_new(n * session->proposer_count, sizeof *marks);
	struct error error;
	bool seasonal;
	for (size_t i = 0; i < session->proposer_count; i++)
		if (evaluate_find(&session->proposers[i], series, scratch, room, &found, &seasonal,
			    &error))
			add_found(marks, &count, room, found);
	session->found = count;
	qsort(marks, count, sizeof *marks, by_p);
	count = count < LETTERS ? count : LETTERS;
	qsort(marks, count, sizeof *marks, order_sizes);
	session->mark_count = count;
	for (size_t i = 0; i < count; i++) {
		session->marks[i] = marks[i];
		session->marks[i].letter[0] = (char)('a' + i);
	}
	free(marks);
	free(room);
	scratch_free(scratch);
}

/* What is shown. */

static void show_plot(const struct session *session, const struct labelled_series *series)
{
	struct arena *arena = arena_new();
	size_t n = series->labels.n;
	struct plot_change *changes = arena_array(arena, session->mark_count, sizeof *changes);
	int64_t *times = arena_array(arena, n, sizeof *times);
	for (size_t i = 0; i < n; i++)
		times[i] = series->times ? series->times[i] : (int64_t)i;
	for (size_t i = 0; i < session->mark_count; i++)
		changes[i] = (struct plot_change){.time = times[session->marks[i].at],
			.before = (double)NAN,
			.after = (double)NAN,
			.size = (double)NAN,
			.mark = session->marks[i].letter};
	const struct plot_line line = {.n = n,
		.times = times,
		.values = series->values,
		.changes = changes,
		.change_count = session->mark_count};
	const struct plot plot = {.title = arena_printf(arena, "%zu of %zu  %s", session->at + 1,
					  session->count, series->id),
		.lines = &line,
		.line_count = 1,
		.numbered = !series->times};
	plot_print(session->cli, &plot);
	arena_free(arena);
}

/* "117 (2026-01-14 03:00)" */
static void put_place(struct buf *out, const struct labelled_series *series, size_t at)
{
	char text[WHEN_TEXT];
	buf_printf(out, "%zu", at);
	if (series->times)
		buf_printf(out, " (%.16s)", when_format(series->times[at], text));
}

/* As many on a line as there is room for. */
static void show_marks(const struct session *session, const struct labelled_series *series)
{
	struct buf out = {0};
	size_t width = 0;
	for (size_t i = 0; i < session->mark_count; i++) {
		size_t start = out.length;
		buf_printf(&out, "   %s ", session->marks[i].letter);
		put_place(&out, series, session->marks[i].at);
		width += out.length - start;
		if (i + 1 == session->mark_count || width + (out.length - start) > COLUMNS) {
			buf_char(&out, '\n');
			width = 0;
		}
	}
	if (session->mark_count == 0)
		buf_text(&out, "no candidate places\n");
	if (session->found > session->mark_count)
		buf_printf(&out, "%zu more candidates without a letter: give their index or date\n",
			session->found - session->mark_count);
	text_flush(&out, session->cli->out);
}

static void put_list(struct buf *out, const char *title, const struct labelled_series *series,
	struct places places)
{
	for (size_t i = 0; i < places.count; i++) {
		buf_text(out, i ? ", " : title);
		put_place(out, series, places.at[i]);
	}
}

static void show_answer(const struct session *session, const struct labelled_series *series)
{
	struct buf out = {0};
	const struct labels *labels = &series->labels;
	buf_text(&out,
		labels->all.count + labels->maybe.count ? "labelled:" : "labelled: no change");
	put_list(&out, " change at ", series, labels->all);
	put_list(&out, labels->all.count ? "; maybe at " : " maybe at ", series, labels->maybe);
	fprintf(session->cli->out, "%s\n", out.data);
	buf_free(&out);
}

/* Answers. */

struct answer {
	enum request request;
	size_t *sure, *maybe, sure_count, maybe_count;
};

static bool read_date(
	const struct session *session, const char *word, size_t *at, struct error *error)
{
	const struct labelled_series *series = &session->entries[session->at].series;
	size_t n = series->labels.n;
	char first[WHEN_TEXT], last[WHEN_TEXT];
	int64_t time;
	if (!when_parse(word, session->cli->now, &time, error))
		return false;
	if (!series->times)
		return error_set(error, ERROR_USAGE,
			"\"%.80s\": the series has no times, give an index", word);
	*at = times_lower_bound(series->times, n, time);
	if (*at == 0 || *at == n)
		return error_set(error, ERROR_USAGE,
			"\"%.80s\" is not within the series, after %.16s and up to %.16s", word,
			when_format(series->times[0], first),
			when_format(series->times[n - 1], last));
	return true;
}

static bool read_letter(const struct session *session, char letter, size_t *at, struct error *error)
{
	size_t number = (size_t)(letter - 'a');
	if (number >= session->mark_count)
		return error_set(error, ERROR_USAGE,
			session->mark_count ? "no candidate \"%c\", only a to %c"
					    : "no candidate \"%c\": the series has none",
			letter, (char)('a' + session->mark_count - 1));
	*at = session->marks[number].at;
	return true;
}

/* A place by index or date. */
static bool read_place(
	const struct session *session, const char *word, size_t *at, struct error *error)
{
	size_t n = session->entries[session->at].series.labels.n;
	if (word[0] >= 'a' && word[0] <= 'z' && word[1] == '\0')
		return read_letter(session, word[0], at, error);
	if (word[strspn(word, "0123456789")] != '\0')
		return read_date(session, word, at, error);
	errno = 0;
	unsigned long index = strtoul(word, NULL, 10);
	if (errno != 0 || index < 1 || index >= n)
		return error_set(error, ERROR_USAGE,
			"%.40s is not within the series: a change has an index from 1 to %zu", word,
			n - 1);
	*at = index;
	return true;
}

static void add_place(struct answer *answer, size_t at, bool maybe)
{
	if (maybe)
		answer->maybe[answer->maybe_count++] = at;
	else
		answer->sure[answer->sure_count++] = at;
}

/* "ac", "ab?c", "117", "117?", "2026-01-14?" */
static bool read_word(
	const struct session *session, char *word, struct answer *answer, struct error *error)
{
	size_t length = strlen(word), at = 0;
	bool maybe = word[length - 1] == '?';
	if (word[strspn(word, "abcdefghijklmnopqrstuvwxyz?")] != '\0') {
		word[length - maybe] = '\0';
		if (!read_place(session, word, &at, error))
			return false;
		add_place(answer, at, maybe);
		return true;
	}
	for (const char *c = word; *c; c += 1 + (c[1] == '?')) {
		if (*c == '?')
			return error_set(
				error, ERROR_USAGE, "\"?\" must follow a candidate, as in \"b?\"");
		if (!read_letter(session, *c, &at, error))
			return false;
		add_place(answer, at, c[1] == '?');
	}
	return true;
}

/* The next word of the text; a date and its time of day are one. NULL: there is none. */
static char *next_word(char **text)
{
	char *word = *text + strspn(*text, " \t,"), *end = word + strcspn(word, " \t,");
	size_t clock = *end == ' ' ? strcspn(end + 1, " \t,") : 0;
	if (memchr(word, '-', (size_t)(end - word)) && clock > 0 && memchr(end + 1, ':', clock))
		end += 1 + clock;
	*text = *end ? end + 1 : end;
	*end = '\0';
	return *word ? word : NULL;
}

static bool read_request(const char *word, char *rest, struct answer *answer, struct error *error)
{
	for (size_t i = SKIP; i <= HELP; i++)
		if (strcmp(word, requests[i]) == 0)
			answer->request = (enum request)i;
	if (strcmp(word, "?") == 0)
		answer->request = HELP;
	return answer->request == ANSWER || !next_word(&rest) ||
	       error_set(
		       error, ERROR_USAGE, "%s must be the only answer", requests[answer->request]);
}

static bool read_answer(
	const struct session *session, char *text, struct answer *answer, struct error *error)
{
	struct arena *arena = session->cli->arena;
	size_t most = strlen(text) + 1;
	char *word = next_word(&text);
	*answer = (struct answer){.sure = arena_array(arena, most, sizeof *answer->sure),
		.maybe = arena_array(arena, most, sizeof *answer->maybe)};
	if (!word && session->entries[session->at].line > 0) {
		answer->request = SKIP;
		return true;
	}
	if (!word)
		return error_set(error, ERROR_USAGE,
			"\"-\" if nothing changed; \"skip\" for no "
			"answer; \"?\" for help");
	if (strcmp(word, "-") == 0) {
		if (next_word(&text))
			return error_set(error, ERROR_USAGE, "\"-\" must be the only answer");
		return true;
	}
	if (!read_request(word, text, answer, error))
		return false;
	for (; word && answer->request == ANSWER; word = next_word(&text))
		if (!read_word(session, word, answer, error))
			return false;
	return true;
}

/* Carries out. */

static void go_to(struct session *session, size_t at)
{
	session->at = at;
	session->shown = false;
}

/* To the next series without labels. */
static void go_on(struct session *session)
{
	size_t at = session->at + 1;
	while (at < session->count && session->entries[at].line > 0)
		at++;
	go_to(session, at);
}

static bool write_answer(struct session *session, struct answer *answer, struct error *error)
{
	struct entry *entry = &session->entries[session->at];
	struct labels *labels = &entry->series.labels;
	labelled_arrange(answer->sure, &answer->sure_count);
	labelled_arrange(answer->maybe, &answer->maybe_count);
	labels->all = (struct places){answer->sure, answer->sure_count};
	labels->maybe = (struct places){answer->maybe, answer->maybe_count};
	if (entry->line == 0)
		entry->line = add_line(session, NULL);
	session->lines[entry->line - 1] = line_of(&entry->series, session->cli->arena);
	show_answer(session, &entry->series);
	go_on(session);
	struct buf text = {0};
	for (size_t i = 0; i < session->line_count; i++)
		buf_printf(&text, "%s\n", session->lines[i]);
	bool good = output_write(session->options->label, text.data, text.length, error);
	buf_free(&text);
	return good;
}

/* False and an error if the answer makes no sense or, of another kind, could not be written. */
static bool carry_out(struct session *session, char *text, bool *quit, struct error *error)
{
	struct answer answer;
	if (!read_answer(session, text, &answer, error))
		return false;
	switch (answer.request) {
	case ANSWER: return write_answer(session, &answer, error);
	case SKIP: go_on(session); return true;
	case BACK:
		if (session->at == 0)
			return error_set(error, ERROR_USAGE, "this is the first series");
		go_to(session, session->at - 1);
		return true;
	case QUIT: *quit = true; return true;
	case HELP: fputs(help, session->cli->out); return true;
	}
	return true;
}

static void show(struct session *session)
{
	const struct entry *entry = &session->entries[session->at];
	fputc('\n', session->cli->out);
	find_marks(session, &entry->series);
	show_plot(session, &entry->series);
	show_marks(session, &entry->series);
	if (entry->line > 0)
		show_answer(session, &entry->series);
	session->shown = true;
}

/* A line that was typed, without its end; false: there is none any more. */
static bool read_line(char text[ANSWER_TEXT])
{
	if (!fgets(text, ANSWER_TEXT, stdin))
		return false;
	size_t length = strcspn(text, "\n");
	for (int c = text[length]; c != '\n' && c != EOF;)
		c = fgetc(stdin); /* the rest of a line that is too long */
	text[length] = '\0';
	return true;
}

static bool ask(struct session *session, struct error *error)
{
	char text[ANSWER_TEXT];
	bool quit = false;
	while (!quit && session->at < session->count) {
		if (!session->shown)
			show(session);
		fputs("changes (\"ac\", \"-\" for none, \"?\" for help): ", session->cli->out);
		fflush(session->cli->out);
		if (!read_line(text)) {
			fputc('\n', session->cli->out);
			break;
		}
		if (carry_out(session, text, &quit, error))
			continue;
		if (error->kind != ERROR_USAGE)
			return false;
		fprintf(session->cli->out, "%s\n", error->text);
	}
	return true;
}

static bool load(struct session *session, struct error *error)
{
	if (!output_check(session->options->label, error))
		return error_prefix(error, "--label: ");
	if (session->options->series.count > 0) {
		const struct evaluate_options *options = session->options;
		struct labelled_set set = {.lines = true};
		bool good = labelled_load(&options->series, (size_t)options->max_line,
			session->cli->arena, &set, error);
		for (size_t i = 0; good && i < set.count; i++)
			add_entry(session, set.series[i].id, &set.series[i]);
		return good;
	}
	if (cli_config(session->cli))
		return load_tests(session, session->cli->config, error);
	session->code = EXIT_USAGE; /* and its problems are printed */
	*error = (struct error){0};
	return false;
}

int evaluate_label(struct cli *cli, const struct contender *proposers, size_t count)
{
	struct session session = {.cli = cli,
		.options = cli->options,
		.proposers = proposers,
		.proposer_count = count};
	struct error error = {0};
	bool good =
		load(&session, &error) && choose(&session, &error) && load_labels(&session, &error);
	if (good) {
		session.at = SIZE_MAX;
		go_on(&session);
		good = ask(&session, &error);
		size_t labelled = 0;
		for (size_t i = 0; i < session.count; i++)
			labelled += session.entries[i].line > 0;
		fprintf(cli->out, "%zu of %zu series are labelled in %s\n", labelled, session.count,
			session.options->label);
		if (labelled == session.count)
			fprintf(cli->out,
				"score with: hunter-c evaluate --truth %s; label more with --count "
				"%zu\n",
				session.options->label, 2 * session.count);
	}
	return !good && *error.text ? cli_fail(&error) : session.code;
}
