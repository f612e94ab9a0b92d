/* The key of a message identifies this run, the receiver and the destination. */
#include "agent/commands/post.h"

#include <inttypes.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/log.h"
#include "agent/decide/retry.h"

static void carry(void *context);

const struct receiver *post_receiver(
	const struct config *config, const char *kind, const char *option, struct error *error)
{
	const struct receiver *found = NULL;

	for (size_t i = 0; i < config->receiver_count + config->idle_count; i++) {
		const struct receiver *receiver =
			i < config->receiver_count ? &config->receivers[i]
						   : &config->idle[i - config->receiver_count];

		if (strcmp(receiver->notifier->name, kind) == 0 &&
			(!found || strcmp(receiver->name, kind) == 0))
			found = receiver;
	}
	if (!found && config->missing)
		error_set(error, ERROR_USAGE, "%s: %s", option, config->missing);
	else if (!found)
		error_set(error, ERROR_USAGE, "%s: the configuration has no section %s", option,
			kind);
	return found;
}

static void failed(struct post *post, const struct attempt *attempt, const struct error *error)
{
	struct failed_attempt setback = {.kind = error->kind,
		.retry = attempt->retry,
		.maybe_delivered = attempt->maybe_delivered,
		.retry_after = attempt->retry_after,
		.tries = ++post->tries,
		.once = true};
	struct decision decision = retry_decide(&setback);

	if (decision.verdict == PASS)
		engine_after(post->engine, decision.until, carry, post);
	else
		post->error = *error;
}

static void carried(struct attempt *attempt, bool done, const struct error *error, void *context)
{
	struct post *post = context;

	if (attempt->notice)
		log_message(LEVEL_WARN, attempt->notice);
	if (attempt->receipt)
		post->receipt = arena_strdup(post->arena, attempt->receipt);
	post->maybe_delivered = attempt->maybe_delivered;
	if (!done) {
		failed(post, attempt, error);
	} else if (attempt->more) {
		post->tries = 0;
		engine_after(post->engine, notifier_find(post->receiver->notifier->name)->spacing,
			carry, post);
	}
	arena_free(attempt->arena);
}

static void carry(void *context)
{
	struct post *post = context;

	post->attempt = (struct attempt){.arena = arena_new(),
		.options = post->receiver->options,
		.destination = post->destination,
		.key = post->key,
		.payload = post->payload,
		.made = post->now,
		.now = post->now,
		.maybe_delivered = post->maybe_delivered,
		.receipt = post->receipt,
		.retry_after = -1};
	engine_deliver(post->engine, notifier_find(post->receiver->notifier->name), &post->attempt,
		carried, post);
}

/* Renders the message. */
static bool render(struct post *post)
{
	const char *name = post->receiver->name;
	uint64_t sum = hash_add(HASH_START, name, strlen(name) + 1);
	struct message keyed = *post->message;
	struct buf payload = {0};

	sum = hash_add(sum, post->destination, strlen(post->destination) + 1);
	sum = hash_add(sum, &post->now, sizeof post->now);
	post->key = keyed.key = arena_printf(post->arena, "%016" PRIx64, sum);
	if (notifier_render(notifier_find(post->receiver->notifier->name), &keyed,
		    post->receiver->options, post->destination, &payload, &post->error))
		post->payload = arena_strndup(post->arena, payload.data, payload.length);
	buf_free(&payload);
	return post->payload != NULL;
}

void post_all(struct post *posts, size_t count, struct arena *arena, int64_t now)
{
	struct error error;
	struct engine *engine = engine_new(&(struct engine_options){.jobs = 1}, &error);

	for (size_t i = 0; i < count; i++) {
		struct post *post = &posts[i];

		post->engine = engine;
		post->arena = arena;
		post->now = now;
		if (!engine)
			post->error = error;
		if (post->error.kind == ERROR_NONE && (post->payload || render(post)))
			carry(post);
	}
	if (engine) {
		(void)engine_run(engine);
		(void)engine_free(engine);
	}
}
