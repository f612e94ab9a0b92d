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
