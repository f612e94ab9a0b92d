#include "agent/monitor/bisect_lab.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/monitor/bisect_work.h"
#include "notifiers/notifier.h"

const char *const lab_outcomes[] = {"measured", "untestable", "failed", NULL};

enum {
	ASK_FIRST = 2000,   /* ms until a request to a lab is repeated, doubled each time ... */
	ASK_MOST = 300000,  /* ... up to this */
	PROBLEM_MOST = 300, /* bytes */
};

_Static_assert(BISECT_MEASURED == 0 && BISECT_UNTESTABLE == 1 && BISECT_FAILED == 2,
	"lab_outcomes has them in this order");

struct device {
	struct lab *lab;
	bool running;
	struct bisect_run run;
	const char *commit;
	int64_t begun;          /* ms, wall clock */
	struct attempt *asking; /* or NULL */
	bool asked;             /* the lab has taken the request */
	int64_t ask_at;         /* engine_now of the next request, if one is due */
	int64_t ask_again;      /* ms to wait after the next failure */
	int64_t until;          /* engine_now: no answer is waited for after that */
	char problem[PROBLEM_MOST];
};

struct lab {
	struct bisect_work *work;
	size_t count; /* runs at a time */
	struct device devices[];
};

struct lab *lab_new(struct bisect_work *work)
{
	size_t count = work->setup->options.workers;
	struct lab *lab = memory_new(1, sizeof *lab + count * sizeof *lab->devices);

	lab->work = work;
	lab->count = count;
	for (size_t i = 0; i < count; i++)
		lab->devices[i].lab = lab;
	return lab;
}

void lab_free(struct lab *lab)
{
	for (size_t i = 0; lab && i < lab->count; i++)
		if (lab->devices[i].asking)
			arena_free(lab->devices[i].asking->arena);
	free(lab);
}

static int64_t now_of(const struct lab *lab)
{
	return engine_now(lab->work->agent->engine);
}

static void begin_run(
	void *context, const struct bisect_run *run, const char *commit, int64_t begun)
{
	struct lab *lab = context;
	struct device *device = &lab->devices[run->worker];
	int64_t now = now_of(lab), passed = agent_now(lab->work->agent) - begun;

	*device = (struct device){.lab = lab,
		.running = true,
		.run = *run,
		.commit = commit,
		.begun = begun,
		.ask_at = now,
		.ask_again = ASK_FIRST,
		.until = now + lab->work->setup->timeout - (passed > 0 ? passed : 0)};
}

static bool is_busy(const void *context, size_t worker)
{
	const struct device *device = &((const struct lab *)context)->devices[worker];

	return device->running || device->asking;
}

static void end_run(
	struct device *device, enum bisect_outcome outcome, double value, const char *problem)
{
	struct lab *lab = device->lab;
	int64_t lasted = agent_now(lab->work->agent) - device->begun;
	const struct bisect_result result = {.id = device->run.id,
		.worker = device->run.worker,
		.position = device->run.position,
		.outcome = outcome,
		.value = value,
		.begun = device->begun,
		.lasted = lasted > 0 ? lasted : 0};

	device->running = false;
	bisect_driver_report(lab->work->driver, &result, problem);
}

static void stop(void *context, size_t worker)
{
	struct device *device = &((struct lab *)context)->devices[worker];

	if (device->running && !device->asking)
		end_run(device, BISECT_LOST, (double)NAN, "no longer needed");
}

const struct bisect_runner lab_runner = {
	.begin = begin_run, .is_busy = is_busy, .stop = stop, .keeps_runs = true};

/* Whatever the lab says of the request, its answer is what counts. */
static void sent(struct attempt *attempt, bool good, const struct error *error, void *context)
{
	struct device *device = context;
	struct lab *lab = device->lab;

	device->asking = NULL;
	device->asked = good;
	if (!good && device->running) {
		snprintf(device->problem, sizeof device->problem, "%.*s", PROBLEM_MOST - 1,
			error->text);
		device->ask_at = now_of(lab) + device->ask_again;
		device->ask_again =
			device->ask_again * 2 < ASK_MOST ? device->ask_again * 2 : ASK_MOST;
		log_event(LEVEL_WARN, "bisection lab unavailable", LOG_INT("id", lab->work->id),
			LOG_INT("run", (int64_t)device->run.id),
			LOG_TEXT("lab", lab->work->settings->lab),
			LOG_TEXT("problem", error->text));
	}
	arena_free(attempt->arena);
	bisect_work_advance(lab->work);
}

static void ask(struct device *device)
{
	const struct bisect_work *work = device->lab->work;
	const struct journal_setup *setup = work->setup;
	const struct bisect_run *run = &device->run;
	const char *external = work->config_ref->config->agent.external_url;
	const char *url = external ? external : "";
	int64_t now = agent_now(work->agent);
	size_t length = strlen(url);
	struct arena *arena = arena_new();
	struct buf text = {0}, *body = &text;

	while (length > 0 && url[length - 1] == '/')
		length--;
	buf_printf(body,
		"{\"version\": 1, \"kind\": \"bisection_run\", \"bisection\": %" PRId64
		", \"run\": %" PRIu64 ", \"change\": %" PRId64,
		work->id, run->id, work->change);
	json_put(body,
		"test: %s, metric: %s, lab: %s, repository: %s, commit: %s, position: %zu,"
		" candidates: %zu, round: %zu, worker: %zu, phase: %s, timeout_seconds: %jd "
		"seconds,"
		" answer: %s}",
		work->test, work->metric, work->settings->lab, setup->repository, device->commit,
		run->position, setup->candidates.count, run->round, run->worker + 1,
		journal_phases[run->phase], setup->timeout,
		arena_printf(arena, "%.*s/api/v1/bisections/%" PRId64 "/result", (int)length, url,
			work->id));
	device->asking = arena_alloc(arena, sizeof *device->asking);
	*device->asking = (struct attempt){.arena = arena,
		.options = work->settings->webhook,
		.destination = "",
		.key = arena_printf(arena, "bisection-%" PRId64 "-run-%" PRIu64, work->id, run->id),
		.payload = buf_keep(body, arena),
		.made = now,
		.now = now,
		.retry_after = -1};
	engine_deliver(work->agent->engine, &webhook_notifier, device->asking, sent, device);
}

bool lab_take(struct lab *lab, const struct bisection_lines *lines)
{
	bool any = false;

	for (size_t i = 0; i < lines->count; i++) {
		const struct bisection_line *line = &lines->items[i];
		size_t outcome = 0, word = strcspn(line->text, " :");
		const char *rest = line->text + word, *problem = NULL;
		double value = (double)NAN;
		char *end;

		while (lab_outcomes[outcome] &&
			(strlen(lab_outcomes[outcome]) != word ||
				strncmp(lab_outcomes[outcome], line->text, word) != 0))
			outcome++;
		if (line->kind != BISECTION_ANSWER || !lab_outcomes[outcome])
			continue;
		if (outcome != BISECT_MEASURED) {
			problem = strncmp(rest, ": ", 2) == 0 ? rest + 2 : NULL;
		} else {
			value = strtod(rest, &end);
			if (end == rest || *end || !isfinite(value))
				continue;
		}
		for (size_t at = 0; at < lab->count; at++) {
			struct device *device = &lab->devices[at];

			if (!device->running || device->asking ||
				device->run.id != (uint64_t)line->run)
				continue;
			end_run(device, (enum bisect_outcome)outcome, value, problem);
			any = true;
		}
	}
	return any;
}

static int64_t due_of(const struct device *device)
{
	if (!device->running || device->asking)
		return WHEN_NEVER;
	return device->asked || device->until < device->ask_at ? device->until : device->ask_at;
}

int64_t lab_due(const struct lab *lab)
{
	int64_t due = WHEN_NEVER;

	for (size_t i = 0; i < lab->count; i++) {
		int64_t at = due_of(&lab->devices[i]);

		due = at < due ? at : due;
	}
	return due;
}

void lab_tick(struct lab *lab)
{
	int64_t now = now_of(lab);

	for (size_t i = 0; i < lab->count; i++) {
		struct device *device = &lab->devices[i];
		char time[WHEN_TEXT], problem[PROBLEM_MOST + 40];

		if (due_of(device) > now)
			continue;
		if (device->until > now) {
			ask(device);
			continue;
		}
		if (device->asked)
			snprintf(problem, sizeof problem, "no response from the lab within %s",
				when_format_rough(lab->work->setup->timeout, time));
		else
			snprintf(problem, sizeof problem, "cannot reach the lab: %s",
				device->problem);
		end_run(device, device->asked ? BISECT_FAILED : BISECT_LOST, (double)NAN, problem);
	}
}
