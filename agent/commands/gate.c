/* A record is made of each change, as the agent makes one, and only for tests that may need it. */
#include "agent/commands/gate.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "agent/commands/state_file.h"
#include "agent/commands/triage_list.h"
#include "agent/decide/gate.h"
#include "agent/monitor/news.h"
#include "agent/notify/announce.h"

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
	const struct config *config;
	struct triage_list *triaged; /* or NULL */
	int64_t now;
	bool off;    /* no change is accepted */
	bool strict; /* none is accepted */
	bool *told;  /* by entry: that it has expired */
};

bool gate_read(const struct gate_flags *flags, const struct test *const *tests, size_t count,
	struct arena *arena, struct triage_list **out, struct error *error)
{
	const char **names = arena_array(arena, count, sizeof *names);
	const struct strings list = {names, count};
	const struct state_flags asked = {.state_file = flags->state, .agent = flags->agent};
	struct agent_api *api = NULL;
	bool agent;

	if (!state_of_agent(&asked, &agent, error))
		return false;
	if (!agent && !flags->state)
		return true;
	for (size_t i = 0; i < count; i++)
		names[i] = tests[i]->name;
	if (agent && !(api = agent_api_new(&flags->agent, NULL, error)))
		return false;
	*out = triage_list_read(flags->state, api, &list, error);
	agent_api_free(api);
	return *out != NULL;
}

struct gate *gate_new(
	const struct gate_flags *flags, const struct command_context *context, struct error *error)
{
	const struct config *config = context->config;
	struct gate *gate = memory_new(1, sizeof *gate);

	*gate = (struct gate){.config = config,
		.now = context->cli->now,
		.off = context->otava,
		.strict = flags->strict};
	gate->told = memory_new(config->known_change_count + 1, sizeof *gate->told);
	if (gate->off || gate->strict ||
		gate_read(flags, context->tests, context->count, context->cli->arena,
			&gate->triaged, error))
		return gate;
	gate_free(gate);
	return NULL;
}

void gate_free(struct gate *gate)
{
	if (!gate)
		return;
	triage_list_free(gate->triaged);
	free(gate->told);
	free(gate);
}

/* Logs once that an entry would have covered a change. */
static void tell_expired(
	struct gate *gate, const struct known_change *entry, const struct change_record *record)
{
	bool *told = &gate->told[entry - gate->config->known_changes];
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
	const struct known_change *expired;
	const struct known_change *entry = gate_known(gate->config->known_changes,
		gate->config->known_change_count, record, gate->now, &expired);

	if (!entry && expired)
		tell_expired(gate, expired, record);
	return entry ? entry->reason : NULL;
}

/* "expected: bigger cache (ann)" */
static const char *words_of(struct arena *arena, const struct triage *triage)
{
	struct buf text = {0};

	buf_text(&text, triage_state_names[triage->state]);
	if (triage->note)
		buf_printf(&text, ": %s", triage->note);
	if (triage->person)
		buf_printf(&text, " (%s)", triage->person);
	return buf_keep(&text, arena);
}

/* Why the change that the record was matched with is accepted, or NULL. */
static const char *judge_triage(const struct gate *gate, struct arena *arena,
	const struct triage *triage, const struct change *change)
{
	return gate_triage(triage, change, gate->now).verdict == DROP ? words_of(arena, triage)
								      : NULL;
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
	struct record_rows rows = triage_list_rows(gate->triaged, test->name);
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
	const struct config *config = gate->config;
	const char *test = analysis->test->name;
	bool needed = !gate->off && !gate->strict &&
		      (gate_concerns(config->known_changes, config->known_change_count, test) ||
			      triage_list_rows(gate->triaged, test).count > 0);

	for (size_t s = 0; s < analysis->data->count && !gate->off; s++) {
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
	struct prepared points;
	struct change_record record;

	if (gate->off || gate->strict ||
		!gate_concerns(
			gate->config->known_changes, gate->config->known_change_count, test->name))
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
