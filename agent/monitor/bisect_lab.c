#include "agent/monitor/bisect_lab.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/json_put.h"
#include "notifiers/notifier.h"

const char *const lab_outcomes[] = {"measured", "untestable", "failed", NULL};

static const char *const phases[] = {[BISECT_ENDS] = "ends",
	[BISECT_SEARCH] = "search",
	[BISECT_VERIFY] = "verify",
	[BISECT_OVER] = "over"};

void lab_request_put(struct buf *out, const struct lab_request *request)
{
	const struct bisect_run *run = &request->run;
	const char *url = request->external_url ? request->external_url : "";
	size_t length = strlen(url);
	struct buf answer = {0};

	buf_printf(out,
		"{\"version\": 1, \"kind\": \"bisection_run\", \"bisection\": %" PRId64
		", \"run\": %" PRIu64 ", \"change\": %" PRId64,
		request->bisection, run->id, request->change);
	json_put_text(out, "test", request->test);
	json_put_text(out, "metric", request->metric);
	json_put_text(out, "lab", request->lab);
	json_put_text(out, "repository", request->repository);
	json_put_text(out, "commit", request->commit);
	buf_printf(out, ", \"position\": %zu, \"candidates\": %zu, \"round\": %zu, \"worker\": %zu",
		run->position, request->candidates, run->round, run->worker + 1);
	json_put_text(out, "phase", phases[run->phase]);
	json_put_seconds(out, "timeout_seconds", request->timeout);
	while (length > 0 && url[length - 1] == '/')
		length--;
	buf_append(&answer, url, length);
	buf_printf(&answer, "/api/v1/bisections/%" PRId64 "/result", request->bisection);
	json_put_text(out, "answer", answer.data);
	buf_char(out, '}');
	buf_free(&answer);
}

bool lab_answer_parse(const char *text, struct lab_answer *out)
{
	size_t word = strcspn(text, " :");
	size_t outcome = 0;
	const char *rest = text + word;
	char *end;

	*out = (struct lab_answer){.value = (double)NAN};
	while (lab_outcomes[outcome] && (strlen(lab_outcomes[outcome]) != word ||
						strncmp(lab_outcomes[outcome], text, word) != 0))
		outcome++;
	if (!lab_outcomes[outcome])
		return false;
	out->outcome = (enum bisect_outcome)outcome;
	if (out->outcome != BISECT_MEASURED) {
		out->problem = strncmp(rest, ": ", 2) == 0 ? rest + 2 : NULL;
		return true;
	}
	out->value = strtod(rest, &end);
	return end > rest && !*end && isfinite(out->value);
}

_Static_assert(BISECT_MEASURED == 0 && BISECT_UNTESTABLE == 1 && BISECT_FAILED == 2,
	"lab_outcomes has them in this order");

struct lab_asking {
	struct attempt attempt;
	struct config_ref *config_ref;
	uint64_t run;
	lab_asked *done;
	void *context;
};

static void delivered(struct attempt *attempt, bool sent, const struct error *error, void *context)
{
	struct lab_asking *asking = context;

	(void)attempt;
	asking->done(asking->context, asking->run, sent ? NULL : error);
	lab_asking_free(asking);
}

void lab_asking_free(struct lab_asking *asking)
{
	if (!asking)
		return;
	config_ref_release(asking->config_ref);
	arena_free(asking->attempt.arena);
}

struct lab_asking *lab_ask(struct agent *agent, struct config_ref *config_ref, const void *webhook,
	const struct lab_request *request, lab_asked *done, void *context)
{
	struct arena *arena = arena_new();
	struct lab_asking *asking = arena_alloc(arena, sizeof *asking);
	struct buf body = {0};

	lab_request_put(&body, request);
	*asking = (struct lab_asking){.config_ref = config_ref_hold(config_ref),
		.run = request->run.id,
		.done = done,
		.context = context,
		.attempt = {.arena = arena,
			.options = webhook,
			.destination = "",
			.key = arena_printf(arena, "bisection-%" PRId64 "-run-%" PRIu64,
				request->bisection, request->run.id),
			.payload = buf_keep(&body, arena),
			.made = agent_now(agent),
			.now = agent_now(agent),
			.retry_after = -1}};
	engine_deliver(agent->engine, &webhook_notifier, &asking->attempt, delivered, asking);
	return asking;
}
