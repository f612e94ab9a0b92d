/* The reference lies in the arena of its configuration, so both are freed at once. */
#include <assert.h>
#include <string.h>

#include "agent/runtime/agent.h"

struct config_ref *config_ref_new(
	struct config *config, const struct test *const *tests, size_t test_count)
{
	struct config_ref *config_ref = arena_alloc(config->arena, sizeof *config_ref);

	*config_ref = (struct config_ref){
		.config = config, .tests = tests, .test_count = test_count, .holders = 1};
	return config_ref;
}

static const struct receiver *receiver_of(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->receiver_count; i++)
		if (strcmp(config->receivers[i].name, name) == 0)
			return &config->receivers[i];
	return NULL;
}

const struct receiver *agent_receiver(const struct agent *agent, const char *name)
{
	return receiver_of(agent->config, name);
}

static bool check_receivers(const struct config *config, const char *topic, struct error *error)
{
	const struct strings *notify = config_notify(config, topic);

	for (size_t i = 0; i < notify->count; i++) {
		const char *name = notify->items[i];
		const struct receiver *receiver = receiver_of(config, name);
		struct strings destinations;

		if (!receiver)
			return error_set(error, ERROR_USAGE,
				"\"%s\": notify: \"%s\" is not configured", topic, name);
		if (!notifier_destinations(notifier_find(receiver->notifier->name),
			    receiver->options, config->arena, &destinations, error))
			return false;
	}
	return true;
}

struct config_ref *config_ref_of(
	struct config *config, const struct strings *names, struct error *error)
{
	const struct test *const *tests;
	size_t count = 0;
	bool good = false;

	if (config->missing)
		error_set(error, ERROR_USAGE, "%s", config->missing);
	else if (config->test_count == 0)
		error_set(error, ERROR_USAGE, "%s: no tests configured", config->path);
	else
		good = config_select(config, names, config->arena, &tests, &count, error);
	for (size_t i = 0; good && i < count; i++)
		good = check_receivers(config, tests[i]->name, error);
	for (size_t i = 0; good && i < config->group_count; i++)
		good = !config->groups[i].cluster ||
		       check_receivers(config, config->groups[i].name, error);
	if (good)
		return config_ref_new(config, tests, count);
	config_free(config);
	return NULL;
}

struct config_ref *config_ref_hold(struct config_ref *config_ref)
{
	config_ref->holders++;
	return config_ref;
}

void config_ref_release(struct config_ref *config_ref)
{
	if (!config_ref)
		return;
	assert(config_ref->holders > 0);
	if (--config_ref->holders == 0)
		config_free(config_ref->config);
}

static void release(void *holder)
{
	config_ref_release(holder);
}

void config_ref_hold_for(struct config_ref *config_ref, struct task *task)
{
	task->release = release;
	task->holder = config_ref_hold(config_ref);
}
