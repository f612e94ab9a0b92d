/*
 * Whether changes fail a command that gates (`analyze`, `regressions`): known changes and triage.
 * A record is made of each change, as the agent makes one, and only for tests that may need it.
 */
#include "agent/commands/gate.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "agent/commands/records.h"
#include "agent/commands/state_file.h"
#include "agent/decide/gate.h"
#include "agent/monitor/news.h"
#include "agent/store/store.h"

const struct field gate_fields[] = {
	OPTION_LIST(struct gate_flags, known_changes,
		"additional known_changes file; its entries do not fail the gate",
		.metavar = "FILE"),
	OPTION_STRING(struct gate_flags, state, NULL,
		"ignore changes that are triaged in this state file", .metavar = "FILE"),
	OPTION_STRING_AS("agent", struct gate_flags, agent.agent, NULL,
		"ignore changes that are triaged in this running agent: a URL or unix:/path",
		.variable = "HUNTER_AGENT", .metavar = "URL"),
	OPTION_STRING_AS("token_file", struct gate_flags, agent.token_file, NULL,
		"file with its access token", .variable = "HUNTER_TOKEN_FILE", .metavar = "PATH"),
	OPTION_STRING_AS("ca_file", struct gate_flags, agent.ca_file, NULL,
		"CA certificates to verify its certificate, instead of the system's",
		.variable = "HUNTER_CA_FILE", .metavar = "PATH"),
	OPTION_BOOL(struct gate_flags, strict, "count accepted changes as well"),
	{0},
};

struct gate {
	const struct command_context *context;
	struct record_rows triaged; /* by test */
	struct dict tests;          /* of its first record, the index + 1 */
	bool judges;                /* else no change is accepted */
	bool *told;                 /* by entry: that it has expired */
};

/* The triaged changes of tests, and then the other changes of these tests, from a state file or a
 * running agent. */
struct reading {
	struct arena *arena;
	struct agent_api *api; /* or NULL: from the state */
	const char *state;
	struct change_record *records;
	size_t count;
};

static void add_record(struct reading *reading, const struct change_record *record)
{
	reading->records = arena_grow(
		reading->arena, reading->records, reading->count, sizeof *reading->records);
	reading->records[reading->count++] = *record;
}

/* Of these tests; `triage`: only in these states. */
static bool list_state(
	struct reading *reading, const struct strings *tests, unsigned triage, struct error *error)
{
	struct store_list *list = store_list_new(NULL, NULL);
	bool read;

	list->filter = (struct change_filter){.names = *tests, .triage = triage};
	read = tests->count == 0 || store_tx(reading->state, STORE_READ, &list->call, error);
	for (size_t i = 0; read && i < list->records.count; i++)
		add_record(reading, &list->records.items[i]);
	arena_join(reading->arena, list->call.arena);
	return read;
}

static bool take_page(void *context, json_t *page, bool *wanted)
{
	struct reading *reading = context;
	struct change_record record;

	*wanted = true;
	for (size_t i = 0; i < json_array_size(page); i++) {
		if (!record_read(reading->arena, json_array_get(page, i), &record))
			return false;
		add_record(reading, &record);
	}
	return true;
}

static bool list_agent(
	struct reading *reading, const char *name, const char *value, struct error *error)
{
	const struct pair pair = {name, value};
	bool more;

	return agent_api_changes(
		reading->api, &(struct pairs){&pair, 1}, take_page, reading, &more, error);
}

static int compare(const void *a, const void *b)
{
	const struct change_record *left = a, *right = b;
	int order = strcmp(left->item.test, right->item.test);

	return order != 0 ? order
			  : (left->item.id > right->item.id) - (left->item.id < right->item.id);
}

/* Two steps: first the triaged changes, which are few; then, to match them reliably, all changes of
 * their tests. */
static bool read_triaged(struct reading *reading, const struct strings *tests, struct error *error)
{
	const unsigned triaged = (1 << TRIAGE_STATES) - (1 << (TRIAGE_OPEN + 1));
	struct dict names = {.arena = reading->arena};
	const char **items = arena_array(reading->arena, tests->count, sizeof *items);
	struct strings some = {items, 0};
	struct buf states = {0};
	bool read;

	for (int state = TRIAGE_OPEN + 1; state < TRIAGE_STATES; state++)
		buf_printf(
			&states, "%s%s", states.length > 0 ? "," : "", triage_state_names[state]);
	read = reading->api ? list_agent(reading, "triage", states.data, error)
			    : list_state(reading, tests, triaged, error);
	buf_free(&states);
	for (size_t i = 0; i < reading->count; i++)
		*dict_place(&names, reading->records[i].item.test) = reading;
	for (size_t i = 0; i < tests->count; i++)
		if (dict_get(&names, tests->items[i]))
			items[some.count++] = tests->items[i];
	reading->records = NULL;
	reading->count = 0;
	if (read && !reading->api)
		read = list_state(reading, &some, 0, error);
	for (size_t i = 0; read && reading->api && i < some.count; i++)
		read = list_agent(reading, "test", some.items[i], error);
	if (read && reading->count > 0)
		qsort(reading->records, reading->count, sizeof *reading->records, compare);
	return read || error_prefix(error, reading->api ? "--agent: " : "--state: ");
}

bool gate_read(const struct gate_flags *flags, const struct test *const *tests, size_t count,
	struct arena *arena, struct record_rows *out, struct error *error)
{
	const char **names = arena_array(arena, count, sizeof *names);
	const struct strings list = {names, count};
	const struct state_flags asked = {.state_file = flags->state, .agent = flags->agent};
	struct reading reading = {.arena = arena, .state = flags->state};
	bool agent, read;

	*out = (struct record_rows){0};
	if (!state_of_agent(&asked, &agent, error))
		return false;
	if (!agent && !flags->state)
		return true;
	for (size_t i = 0; i < count; i++)
		names[i] = tests[i]->name;
	if (agent && !(reading.api = agent_api_new(&flags->agent, NULL, error)))
		return false;
	read = read_triaged(&reading, &list, error);
	agent_api_free(reading.api);
	*out = (struct record_rows){reading.records, reading.count};
	return read;
}

struct gate *gate_new(
	const struct gate_flags *flags, const struct command_context *context, struct error *error)
{
	struct arena *arena = context->cli->arena;
	struct gate *gate = arena_alloc(arena, sizeof *gate);

	*gate = (struct gate){.context = context,
		.tests = {.arena = arena},
		.judges = !context->otava && !flags->strict,
		.told = arena_array(
			arena, context->config->known_change_count, sizeof *gate->told)};
	if (gate->judges &&
		!gate_read(flags, context->tests, context->count, arena, &gate->triaged, error))
		return NULL;
	for (size_t i = gate->triaged.count; i > 0; i--)
		*dict_place(&gate->tests, gate->triaged.items[i - 1].item.test) = (const void *)i;
	return gate;
}

static struct record_rows rows_of(const struct gate *gate, const char *test)
{
	size_t first = (size_t)dict_get(&gate->tests, test), end = first;

	if (first == 0)
		return (struct record_rows){0};
	while (end < gate->triaged.count && strcmp(gate->triaged.items[end].item.test, test) == 0)
		end++;
	return (struct record_rows){gate->triaged.items + first - 1, end - first + 1};
}

/* Logs once that an entry would have covered a change. */
static void tell_expired(
	struct gate *gate, const struct known_change *entry, const struct change_record *record)
{
	bool *told = &gate->told[entry - gate->context->config->known_changes];
	char until[WHEN_TEXT], place[300];

	if (*told)
		return;
	*told = true;
	snprintf(place, sizeof place, "%.200s:%d", entry->file, entry->line);
	log_event(LEVEL_WARN, "known_changes entry expired: counting its change again",
		LOG_TEXT("test", record->item.test), LOG_TEXT("metric", record->item.metric),
		LOG_TEXT("entry", place), LOG_TEXT("until", when_format(entry->until, until)),
		LOG_TEXT("reason", entry->reason));
}

static struct change_record record_of(struct arena *arena, const struct test *test,
	const struct series *series, const struct change *change, const struct prepared *points)
{
	struct change_record record = {
		.item = announce_change(arena, test->name, test->environment, series, change)};

	record.series = series->identity;
	record.sign = change_sign(change);
	record.item.spacing =
		news_spacing(points->times, points->n, points->positions[change->index]);
	return record;
}

/* Why an entry of known_changes covers the record, or NULL. */
static const char *judge_known(struct gate *gate, const struct change_record *record)
{
	const struct config *config = gate->context->config;
	const struct known_change *expired;
	const struct known_change *entry = gate_known(config->known_changes,
		config->known_change_count, record, gate->context->cli->now, &expired);

	if (!entry && expired)
		tell_expired(gate, expired, record);
	return entry ? entry->reason : NULL;
}

/* Why the change that the record was matched with is accepted, "expected: bigger cache (ann)", or
 * NULL. */
static const char *judge_triage(const struct gate *gate, struct arena *arena,
	const struct triage *triage, const struct change *change)
{
	struct buf text = {0};

	if (gate_triage(triage, change, gate->context->cli->now).verdict != DROP)
		return NULL;
	buf_text(&text, triage_state_names[triage->state]);
	if (triage->note)
		buf_printf(&text, ": %s", triage->note);
	if (triage->person)
		buf_printf(&text, " (%s)", triage->person);
	return buf_keep(&text, arena);
}

/* The main branch's changes are recorded without a branch. */
static const char *recorded_branch(const struct test *test, const char *branch)
{
	const char *main = test_option(test, "base_branch");

	return !branch || strcmp(branch, main ? main : "main") == 0 ? "" : branch;
}

/* Sets `accepted` of the changes that match, by the agent's own rule, a recorded and triaged one.
 */
static void judge_recorded(const struct gate *gate, struct arena *arena, struct record_rows rows,
	const char *branch, struct findings *findings, const char **accepted)
{
	const struct change_record **known = arena_array(arena, rows.count, sizeof *known);
	struct matching result;
	size_t count = 0;

	for (size_t i = 0; i < rows.count; i++)
		if (strcmp(rows.items[i].series, findings->series->identity) == 0 &&
			strcmp(rows.items[i].branch, branch) == 0)
			known[count++] = &rows.items[i];
	news_match(arena, findings, known, count, &result);
	for (size_t i = 0; i < findings->count; i++)
		if (result.known_of[i] != MATCH_NONE)
			accepted[i] = judge_triage(gate, arena, &known[result.known_of[i]]->triage,
				&findings->changes[i]);
}

static void judge_series(struct gate *gate, struct arena *arena, const char *branch,
	const struct test *test, struct findings *findings, const char **accepted)
{
	struct record_rows rows = rows_of(gate, test->name);
	struct prepared points = findings_prepared(arena, findings);

	if (rows.count > 0)
		judge_recorded(
			gate, arena, rows, recorded_branch(test, branch), findings, accepted);
	for (size_t i = 0; i < findings->count; i++) {
		struct change_record record =
			record_of(arena, test, findings->series, &findings->changes[i], &points);
		const char *reason = judge_known(gate, &record);

		accepted[i] = reason ? reason : accepted[i];
	}
}

void gate_judge(
	struct gate *gate, struct arena *arena, const char *branch, const struct analysis *analysis)
{
	const struct config *config = gate->context->config;
	const char *test = analysis->test->name;
	bool needed = gate->judges &&
		      (gate_concerns(config->known_changes, config->known_change_count, test) ||
			      rows_of(gate, test).count > 0);

	for (size_t s = 0; s < analysis->data->count && !gate->context->otava; s++) {
		struct findings *findings = &analysis->findings[s];
		const char **accepted = arena_array(arena, findings->count, sizeof *accepted);

		if (needed && findings->count > 0)
			judge_series(gate, arena, branch, analysis->test, findings, accepted);
		findings->accepted = accepted;
	}
}

const char *gate_judge_span(struct gate *gate, struct arena *arena, const struct test *test,
	struct findings *findings, const struct change *change)
{
	const struct config *config = gate->context->config;
	struct prepared points;
	struct change_record record;

	if (!gate->judges ||
		!gate_concerns(config->known_changes, config->known_change_count, test->name))
		return NULL;
	points = findings_prepared(arena, findings);
	record = record_of(arena, test, findings->series, change, &points);
	return judge_known(gate, &record);
}

struct gate_lack {
	const char *metric, *what;
	bool judged; /* one of its series can be */
};

void gate_lack(struct gate_lacks *lacks, const struct series *series, const char *what)
{
	const char *own = series->metric ? series->metric->name : "the test";
	const char *metric = series->labels.count > 0 ? own : series->name;
	const void **place;

	lacks->metrics.arena = lacks->arena;
	place = dict_place(&lacks->metrics, metric);
	if (!*place) {
		lacks->items =
			arena_grow(lacks->arena, lacks->items, lacks->count, sizeof *lacks->items);
		lacks->items[lacks->count] = (struct gate_lack){metric, what, !what};
		*place = (const void *)++lacks->count;
	} else if (!what) {
		lacks->items[(size_t)*place - 1].judged = true;
	}
}

bool gate_has_enough(const struct gate_lacks *lacks, const struct test *test, struct error *error)
{
	const struct gate_lack *first = NULL;
	size_t lacking = 0;

	for (size_t i = lacks->count; i > 0; i--)
		if (!lacks->items[i - 1].judged) {
			first = &lacks->items[i - 1];
			lacking++;
		}
	if (!first)
		return true;
	return error_set(error, ERROR_DATA, "test \"%s\": not enough data: %.200s has %s%s",
		test->name, first->metric, first->what,
		lacking == 1 ? ""
		: lacking == 2
			? "; one more metric lacks data"
			: arena_printf(lacks->arena, "; %zu more metrics lack data", lacking - 1));
}

void gate_print(size_t accepted, FILE *out)
{
	if (accepted > 0)
		fprintf(out, "%zu accepted change%s not counted\n", accepted, cli_plural(accepted));
}
