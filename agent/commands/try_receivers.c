#include "agent/commands/try_receivers.h"

#include <string.h>

#include "agent/commands/post.h"

/* The trial of all receivers. */
struct trial {
	struct cli *cli;
	struct engine *engine;
	struct tried_receivers *out;
	struct post **posts; /* of out->items; NULL: it is not sent */
};

static void fail(struct tried_receiver *tried, struct arena *arena, const struct error *error)
{
	tried->problem = arena_strdup(arena, error->text);
	tried->code = exit_code(error->kind);
}

static void failed(struct post *post, const struct error *error)
{
	fail(post->context, post->arena, error);
}

static void add(struct trial *trial, const struct receiver *receiver, const char *destination,
	const struct error *error)
{
	struct arena *arena = trial->cli->arena;
	struct tried_receivers *out = trial->out;
	struct tried_receiver *tried;
	struct post *post = NULL;

	if (!error) {
		post = arena_alloc(arena, sizeof *post);
		*post = (struct post){.engine = trial->engine,
			.arena = arena,
			.receiver = receiver,
			.destination = destination,
			.now = trial->cli->now,
			.failed = failed};
	}
	trial->posts = arena_grow(arena, trial->posts, out->count, sizeof *trial->posts);
	trial->posts[out->count] = post;
	out->items = arena_grow(arena, out->items, out->count, sizeof *out->items);
	tried = &out->items[out->count++];
	*tried = (struct tried_receiver){
		receiver->name, receiver->notifier->name, destination, NULL, EXIT_NOTHING};
	if (error)
		fail(tried, arena, error);
}

static void add_receiver(struct trial *trial, const struct receiver *receiver)
{
	struct strings destinations;
	struct error error;

	if (!notifier_destinations(notifier_find(receiver->notifier->name), receiver->options,
		    trial->cli->arena, &destinations, &error)) {
		add(trial, receiver, "", &error);
		return;
	}
	for (size_t i = 0; i < destinations.count; i++)
		add(trial, receiver, destinations.items[i], NULL);
}

static void send_all(const struct trial *trial)
{
	struct cli *cli = trial->cli;

	for (size_t i = 0; i < trial->out->count; i++) {
		struct post *post = trial->posts[i];
		struct notice notice = {.subject = "Test of hunter-c", .time = cli->now};

		if (!post)
			continue;
		post->context = &trial->out->items[i];
		notice.recovered = true;
		notice.text = arena_printf(cli->arena,
			"test message for the receiver %s: nothing has changed",
			post->receiver->name);
		post_send(post, &(struct message){.kind = MESSAGE_TEST, .notice = &notice});
	}
}

static bool prints(const struct receiver *receiver)
{
	return strcmp(receiver->notifier->name, stdout_notifier.plugin.name) == 0;
}

bool try_receivers(struct cli *cli, const struct config *config, bool silent,
	struct tried_receivers *out, struct error *error)
{
	struct trial trial = {.cli = cli, .out = out};

	*out = (struct tried_receivers){0};
	trial.engine = engine_new(&(struct engine_options){.jobs = 1}, error);
	if (!trial.engine)
		return false;
	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];

		if (!(receiver->implicit && (config->receiver_count > 1 || config->missing)) &&
			!(silent && prints(receiver)))
			add_receiver(&trial, receiver);
	}
	send_all(&trial);
	(void)engine_run(trial.engine);
	(void)engine_free(trial.engine);
	return true;
}
