/*
 * The second half of a run, of a test or a cluster: what is known of it is read, what was found is
 * matched with that on a worker, and the difference is written. In between the run owns the calls;
 * while the store has one, it frees it.
 */
#include "agent/base/when.h"
#include "agent/fleet/tests.h"
#include "agent/monitor/expected.h"
#include "agent/monitor/scheduled_job.h"

static void recorded(struct store_record *request)
{
	struct recording *recording = request->call.context;

	recording->news = request;
	if (!request->call.failed) {
		expected_note(recording->job->context->expected, &request->records);
		agent_recorded(recording->job->context->agent, request);
	}
	recording->done(recording, request->call.failed ? &request->call : NULL);
}

/* On the loop: writes if there is anything to write, and the results are still wanted. */
static void write_news(void *context)
{
	struct recording *recording = context;
	struct store_record *request = recording->news;
	const struct agent *agent = recording->job->context->agent;

	if (scheduled_job_dropped(recording->job) && recording->unwanted(recording))
		return;
	if (request->records.count + request->update_count + request->checkpoints.count == 0 &&
		!request->seen) {
		recording->done(recording, NULL);
		return;
	}
	request->test = recording->name;
	if (recording->job->kind->of_test)
		fleet_fence_test(agent, &request->call, recording->name);
	else
		fleet_fence(agent, &request->call, recording->job->shard);
	if (request->seen) /* else what an earlier run saw could be written after it */
		test_job_forget_seen(recording->job);
	recording->news = NULL;
	store_client_call(recording->job->context->agent, &request->call);
}

static void known_read(struct store_known *known)
{
	struct recording *recording = known->call.context;

	recording->known = known;
	if (known->call.failed)
		recording->done(recording, &known->call);
	else if (!recording->unwanted(recording))
		engine_compute(recording->job->context->agent->engine, recording->match, write_news,
			recording);
}

void recording_begin(struct recording *recording, bool first, bool quiet)
{
	struct agent *agent = recording->job->context->agent;
	int64_t now = agent_now(agent), max_age = agent->config->agent.max_age;
	struct store_known *known;

	recording->news = store_record_new(recorded, recording);
	recording->clock = (struct news_clock){.now = now,
		/* What a simulation finds first was found before, by an agent that was running. */
		.oldest = agent->simulation && first ? WHEN_NEVER
			  : max_age == WHEN_NEVER    ? WHEN_ALWAYS
						     : now - max_age,
		.ahead = agent->clock_ahead};
	if (quiet) {
		recording->match(recording);
		write_news(recording);
		return;
	}
	known = store_known_new(known_read, recording);
	known->test = recording->name;
	store_client_call(agent, &known->call);
}

void recording_free(struct recording *recording)
{
	if (recording->known)
		store_call_free(&recording->known->call);
	if (recording->news)
		store_call_free(&recording->news->call);
}
