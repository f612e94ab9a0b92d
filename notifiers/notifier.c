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

const char *const message_kind_names[MESSAGE_KINDS] = {[MESSAGE_NEW] = "new",
	[MESSAGE_UPDATED] = "updated",
	[MESSAGE_RECOVERED] = "recovered",
	[MESSAGE_WITHDRAWN] = "withdrawn",
	[MESSAGE_TRIAGED] = "triaged",
	[MESSAGE_REMINDER] = "reminder",
	[MESSAGE_DIGEST] = "digest",
	[MESSAGE_NOTICE] = "notice",
	[MESSAGE_HEARTBEAT] = "heartbeat",
	[MESSAGE_TEST] = "test"};

const struct notifier *notifier_find(const char *name)
{
	return (const struct notifier *)plugin_find(notifiers, name);
}

bool announced_is_over(const struct announced_change *change)
{
	return change->state != ANNOUNCED_STANDS || triage_is_accepted(change->triage.state) ||
	       change->triage.state == TRIAGE_FIXED;
}
