/*
 * The registry of notifiers, in the order of the documentation.
 */
#include "notifiers/notifier.h"

const struct plugin *const notifiers[] = {
	&slack_notifier.plugin,
	&webhook_notifier.plugin,
	&stdout_notifier.plugin,
	&alertmanager_notifier.plugin,
	&discord_notifier.plugin,
	&email_notifier.plugin,
	&exec_notifier.plugin,
	&github_notifier.plugin,
	&gitlab_notifier.plugin,
	&grafana_notifier.plugin,
	&jira_notifier.plugin,
	&mattermost_notifier.plugin,
	&msteams_notifier.plugin,
	&pagerduty_notifier.plugin,
	NULL,
};

const struct notifier *notifier_find(const char *name)
{
	return (const struct notifier *)plugin_find(notifiers, name);
}

bool notifier_destinations(const struct notifier *notifier, const void *options,
	struct arena *arena, struct strings *out, struct error *error)
{
	static const char *const one[] = {""};

	*out = (struct strings){one, 1};
	return !notifier->destinations || notifier->destinations(options, arena, out, error);
}

bool notifier_render(const struct notifier *notifier, const struct message *message,
	const void *options, const char *destination, struct buf *payload, struct error *error)
{
	return notifier->render(
		&(struct draft){notifier, message, options, destination, payload, error});
}

enum step notifier_step(const struct notifier *notifier, struct attempt *attempt,
	const struct reply *last, struct transfer *next, struct error *error)
{
	attempt->notifier = notifier;
	attempt->next = next;
	attempt->error = error;
	attempt->retry = attempt->more = false;
	attempt->retry_after = last ? last->retry_after : -1;
	return (attempt->follow_up && notifier->follow_up ? notifier->follow_up : notifier->step)(
		attempt, last);
}

enum step notifier_fail(struct attempt *attempt, bool retry, enum error_kind kind, const char *what)
{
	attempt->retry = retry;
	error_set(attempt->error, kind, "%s: %s", attempt->notifier->plugin.name, what);
	return STEP_FAILED;
}

bool notifier_gathers(const struct notifier *notifier, const void *options)
{
	return notifier->gathers && !(notifier->amends && notifier->amends(options));
}

bool notifier_amends(const void *options)
{
	(void)options;
	return true;
}

bool notifier_threads(const struct notifier *notifier, const void *options)
{
	return notifier->threads || (notifier->amends && notifier->amends(options));
}
