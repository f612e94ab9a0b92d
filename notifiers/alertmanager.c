/*
 * Prometheus' Alertmanager: an alert for each change, by its API v2, to each of its instances.
 *
 * An alert is identified by its labels, so they stay as first sent; annotations are updated. It
 * ends by itself unless it is refreshed: hence `resend`, and an agent that is gone leaves nothing
 * firing. The receipt is the time from which on the alerts fire, and for those that ended since
 * then 0 or the time from which they fire again: "1625184000000 7=0 8=1625270400000".
 *
 * The payload has a line for each alert, an object whose last member is its annotations.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/label.h"
#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "notifiers/body.h"
#include "notifiers/http_json.h"

enum { ALERTS_MAX = 1000, NAME_MOST = 200, LABEL_MOST = 1000, TEXT_MOST = 2000 };
enum { MISSED = 4 }; /* alerts end when that many repetitions are missing, as Prometheus' do */

struct alertmanager_options {
	struct endpoint endpoint;
	struct strings urls;
	struct pairs labels;
	int severity;
	int64_t resend, firing_for;
};

/* By verdict: improvement, neither, regression. */
static const char *const alert_names[] = {
	"PerformanceImprovement", "PerformanceChange", "PerformanceRegression"};
static const char *const severities[] = {"critical", "warning", "info", NULL};

static const struct field alertmanager_fields[] = {
	OPTION_LIST(struct alertmanager_options, urls,
		"addresses of all instances, instead of url; alerts are sent to each"),
	OPTION_CHOICE(struct alertmanager_options, severity, "warning", severities,
		"severity label of regressions; others are info"),
	OPTION_MAP(struct alertmanager_options, labels,
		"labels added to all alerts, like external_labels of Prometheus"),
	OPTION_DURATION(struct alertmanager_options, resend, "5m", 2e3, 3600e3,
		"interval at which open alerts are resent; an alert expires after four missed "
		"repetitions"),
	OPTION_DURATION(struct alertmanager_options, firing_for, "7d", 1e3, (double)WHEN_NEVER,
		"maximum time an alert fires; never: until its change is over"),
	{0},
};

/* Our labels, besides those of the series. */
static const char *const own_labels[] = {
	"alertname", "test", "metric", "verdict", "severity", "change", "environment", "owner"};

static bool is_own_label(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof own_labels / sizeof *own_labels; i++)
		if (strlen(own_labels[i]) == length && memcmp(own_labels[i], name, length) == 0)
			return true;
	return false;
}

static bool is_label_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

static bool check_labels(const struct pairs *labels, struct error *error)
{
	for (size_t i = 0; i < labels->count; i++) {
		const char *name = labels->items[i].key;
		size_t length = 0;

		while (is_label_char(name[length], length == 0))
			length++;
		if (length == 0 || name[length])
			return error_set(error, ERROR_USAGE,
				"labels: \"%.80s\" is not a valid label name", name);
		if (is_own_label(name, length))
			return error_set(error, ERROR_USAGE,
				"labels: \"%.80s\" is set for each alert", name);
	}
	return true;
}

static bool check(const void *context, struct error *error)
{
	const struct alertmanager_options *options = context;
	bool url = options->endpoint.url && *options->endpoint.url;

	if (url && options->urls.count > 0)
		return error_set(error, ERROR_USAGE, "urls: only one of url and urls can be given");
	if (!url && options->urls.count == 0)
		return error_set(error, ERROR_USAGE, "\"urls\" is missing");
	if (url && !http_json_check_url(&options->endpoint, error))
		return false;
	for (size_t i = 0; i < options->urls.count; i++) {
		const char *problem = transfer_url_problem(options->urls.items[i]);

		if (transfer_url_has_user(options->urls.items[i]))
			problem = "user and password are options of their own: username and "
				  "password";
		else if (!problem && strpbrk(options->urls.items[i], "?#"))
			problem = "must not contain ? or #: the API's path is appended";
		if (problem)
			return error_set(error, ERROR_USAGE, "urls: %s", problem);
	}
	return check_labels(&options->labels, error);
}

/* Its addresses; "" stands for `url`, which may hold a password. */
static bool destinations(
	const void *context, struct arena *arena, struct strings *out, struct error *error)
{
	const struct alertmanager_options *options = context;

	(void)arena, (void)error;
	if (options->urls.count > 0)
		*out = options->urls;
	return true;
}

/* The valid name that is nearest to it; a name of our own is "exported_...", as when Prometheus
 * scrapes it. */
static void label_name(struct buf *out, const char *name, size_t length)
{
	if (is_own_label(name, length))
		buf_text(out, "exported_");
	else if (!is_label_char(name[0], true) && is_label_char(name[0], false))
		buf_char(out, '_');
	for (size_t i = 0; i < length; i++)
		buf_char(out, is_label_char(name[i], false) ? name[i] : '_');
}

/* The labels in the name of a series, each once, and none of `more`; `labels` is where all begin.
 */
static void put_series_labels(
	struct buf *out, size_t labels, const struct announcement *item, const struct pairs *more)
{
	const char *at = item->members > 0 ? NULL : label_set(item->metric);
	struct label_text label;

	while (at && label_next(&at, &label)) {
		struct buf name = {0}, key = {0}, value = {0};
		bool taken;

		label_name(&name, label.key, label.key_length);
		buf_printf(&key, "\"%s\":", name.data);
		taken = strstr(out->data + labels, key.data);
		for (size_t i = 0; i < more->count; i++)
			taken = taken || strcmp(more->items[i].key, name.data) == 0;
		if (!taken && label_value(item->metric, label.key, label.key_length, &value))
			http_json_text(out, name.data, value.data, LABEL_MOST);
		buf_free(&name);
		buf_free(&key);
		buf_free(&value);
	}
}

static void put_own_labels(struct buf *out, const struct alertmanager_options *options)
{
	for (size_t i = 0; i < options->labels.count; i++)
		http_json_text(out, options->labels.items[i].key, options->labels.items[i].value,
			LABEL_MOST);
	buf_char(out, '}');
}

/* Text in braces is a part of the metric's name unless it is a set of labels. */
static void put_labels(struct buf *out, const struct announcement *item,
	const struct alertmanager_options *options)
{
	int verdict = announcement_verdict(item);
	size_t name = strcspn(item->metric, "{"), begin = out->length;
	const char *at = label_set(item->metric);
	struct label_text label;
	struct buf text = {0};

	if (!at || item->members > 0 || !label_next(&at, &label) || name == 0)
		name = strlen(item->metric);
	buf_text(out, "{\"labels\":{");
	http_json_text(out, "alertname", alert_names[1 + verdict], NAME_MOST);
	http_json_text(out, "test", item->test, LABEL_MOST);
	buf_append(&text, item->metric, name);
	http_json_text(out, "metric", text.data, LABEL_MOST);
	http_json_text(out, "verdict", change_verdict_name(verdict), NAME_MOST);
	http_json_text(
		out, "severity", verdict > 0 ? severities[options->severity] : "info", NAME_MOST);
	buf_clear(&text);
	buf_printf(&text, "%lld", (long long)item->id);
	http_json_lines(out, "change", &text);
	http_json_text(out, "environment", item->environment, LABEL_MOST);
	http_json_text(out, "owner", item->owner, LABEL_MOST);
	put_series_labels(out, begin, item, &options->labels);
	put_own_labels(out, options);
}

static void put_level(
	struct buf *out, const char *name, const struct announcement *item, double level)
{
	struct buf text = {0};

	text_level(&text, level);
	text_unit(&text, item, &text_utc);
	http_json_lines(out, name, &text);
}

/* "p99 of checkout: +24% [21, 27], regression" */
static void put_summary(struct buf *out, const struct announcement *item)
{
	int verdict = announcement_verdict(item);
	struct buf text = {0};

	if (item->members > 0)
		text_crowd(&text, item, &text_utc);
	else
		buf_clean(&text, item->metric, NAME_MOST);
	buf_text(&text, item->members > 0 ? "in " : " of ");
	buf_clean(&text, item->test, NAME_MOST);
	buf_text(&text, ": ");
	if (item->members > 0)
		text_percent(&text, &item->change);
	else
		text_size(&text, &item->change);
	text_basis(&text, item, &text_utc);
	if (verdict != 0)
		buf_printf(&text, ", %s", change_verdict_name(verdict));
	http_json_lines(out, "summary", &text);
}

/* The change's annotations; the object is left open, for `finish`. */
static void put_rest(struct buf *out, const struct message *alone, size_t left_out)
{
	const struct announcement *item = alone->items;
	const char *suspects = item->compare_url ? item->compare_url : item->commit_url;
	const char *page = item->dashboard ? item->dashboard : item->page ? item->page : suspects;
	struct buf text = {0};

	/* The API refuses invalid addresses. */
	if (page)
		http_json_text(out, "generatorURL", page, LINK_LONGEST);
	buf_text(out, ",\"annotations\":{");
	put_summary(out, item);
	body_write(&text, alone, &body_plain, 1);
	http_json_lines(out, "description", &text);
	if (item->members == 0) {
		put_level(out, "before", item, item->change.level_before);
		put_level(out, "after", item, item->change.level_after);
		text_size(&text, &item->change);
		http_json_lines(out, "size", &text);
	}
	json_put(out, "since: %jd time", item->time);
	text_commits(&text, item, &text_utc);
	http_json_lines(out, "suspects", &text);
	http_json_text(out, "suspects_url", suspects, LINK_LONGEST);
	http_json_text(out, "runbook_url", item->runbook, LINK_LONGEST);
	http_json_text(out, "dashboard", item->dashboard, LINK_LONGEST);
	http_json_text(out, "page", item->page, LINK_LONGEST);
	http_json_text(out, "status", item->status, TEXT_MOST);
	if (left_out > 0) {
		buf_printf(&text,
			"%zu more change points were found at the same time; hunter-c changes "
			"lists them",
			left_out);
		http_json_lines(out, "left_out", &text);
	}
}

/* The alert of MESSAGE_TEST, which expires. */
static void render_test(
	struct buf *out, const struct message *message, const struct alertmanager_options *options)
{
	struct buf text = {0};

	buf_text(out, "{\"labels\":{\"alertname\":\"HunterTest\",\"severity\":\"info\"");
	put_own_labels(out, options);
	buf_text(out, ",\"annotations\":{");
	body_title(&text, message);
	http_json_lines(out, "summary", &text);
	buf_text(out, "}}\n");
}

static bool render(const struct draft *draft)
{
	struct buf *out = draft->payload;
	const struct message *message = draft->message;
	size_t count;
	const struct announcement **items = message_select(message, ALERTS_MAX, &count);

	if (message->kind == MESSAGE_TEST)
		render_test(out, message, draft->options);
	for (size_t i = 0; i < count; i++) {
		struct message alone = {.kind = MESSAGE_NEW, .items = items[i], .count = 1};

		put_labels(out, items[i], draft->options);
		put_rest(out, &alone, message->count - count);
		buf_text(out, "}}\n");
	}
	free(items);
	return true;
}

/* An alert of a message that was sent. */
struct sent_alert {
	const char *labels; /* as JSON */
	int64_t id;         /* of its change */
	const struct announced_change *announced;
	bool over;
	int64_t from, last; /* ms: when it began to fire, and its latest end */
};

/* Start of firing; an alert that had ended starts again. */
static int64_t began(const struct attempt *attempt, int64_t id)
{
	const char *receipt = attempt->receipt ? attempt->receipt : "";
	const char *word = arena_printf(attempt->arena, " %lld=", (long long)id);
	const char *own = strstr(receipt, word);
	long long time = strtoll(own ? own + strlen(word) : receipt, NULL, 10);

	return time > 0 && time < attempt->now ? time : attempt->now;
}

static int64_t last_end(const struct attempt *attempt, int64_t from)
{
	const struct alertmanager_options *options = attempt->options;

	return options->firing_for < WHEN_NEVER - from ? from + options->firing_for : WHEN_NEVER;
}

/* An alert whose change is no longer in the state is over. */
static bool read_alert(
	const struct attempt *attempt, const char *line, size_t length, struct sent_alert *out)
{
	const struct follow_up *follow_up = attempt->follow_up;
	json_t *alert = json_loadb(line, length, 0, NULL);
	const json_t *labels = json_object_get(alert, "labels");
	const char *id = json_text(labels, "change");
	char *text = labels ? json_dumps(labels, JSON_COMPACT) : NULL;

	*out = (struct sent_alert){.labels = arena_strdup(attempt->arena, text)};
	if (id)
		out->id = strtoll(id, NULL, 10);
	for (size_t i = 0; i < follow_up->count && !out->announced; i++)
		if (follow_up->changes[i].item.id == out->id)
			out->announced = &follow_up->changes[i];
	out->over = !out->announced || announced_is_over(out->announced);
	out->from = began(attempt, out->id);
	out->last = last_end(attempt, out->from);
	free(text);
	json_decref(alert);
	return out->labels != NULL;
}

/* The alerts of a sent message, in the arena. */
static struct sent_alert *read_alerts(const struct attempt *attempt, size_t *count)
{
	struct sent_alert *alerts = NULL;

	*count = 0;
	for (const char *line = attempt->payload; *line;) {
		size_t length = strcspn(line, "\n");
		struct sent_alert alert;

		if (read_alert(attempt, line, length, &alert)) {
			alerts = arena_grow(attempt->arena, alerts, *count, sizeof *alerts);
			alerts[(*count)++] = alert;
		}
		line += length + (line[length] == '\n');
	}
	return alerts;
}

/* Completes an alert whose annotations are still open. */
static void finish(struct buf *out, const struct attempt *attempt, const struct sent_alert *alert)
{
	const struct alertmanager_options *options = attempt->options;
	int64_t end = attempt->now + MISSED * options->resend;
	char when[WHEN_TEXT];

	if (alert->over)
		end = attempt->now;
	else if (alert->last != WHEN_NEVER)
		buf_printf(out,
			",\"firing_until\":\"%s: then it is resolved even if the change still "
			"stands\"",
			when_format_iso(alert->last, when));
	end = end < alert->last ? end : alert->last;
	buf_char(out, '}');
	json_put(out, "startsAt: %jd time, endsAt: %jd time", alert->from,
		end > alert->from ? end : alert->from);
	buf_char(out, '}');
}

/*
 * The body of a request: all alerts of the message, in their current state. Alerts that ended by
 * `firing_for` are left alone: a later message about the same change may have started them again.
 */
static const char *alerts(const struct attempt *attempt)
{
	const struct sent_alert new = {
		.from = attempt->now, .last = last_end(attempt, attempt->now)};
	struct buf out = {0};
	size_t count = 0;
	const struct sent_alert *sent = attempt->follow_up ? read_alerts(attempt, &count) : NULL;

	buf_char(&out, '[');
	for (size_t i = 0; i < count; i++) {
		if (!sent[i].over && attempt->now >= sent[i].last)
			continue;
		buf_printf(&out, "%s{\"labels\":%s", out.length > 1 ? "," : "", sent[i].labels);
		if (sent[i].announced) {
			struct message alone =
				body_of_announced(attempt->arena, sent[i].announced, 1);

			put_rest(&out, &alone, 0);
		} else {
			buf_text(&out, ",\"annotations\":{");
		}
		finish(&out, attempt, &sent[i]);
	}
	for (const char *line = attempt->follow_up ? "" : attempt->payload; *line;) {
		size_t length = strcspn(line, "\n");

		if (length > 2) { /* without the braces that `render` wrote last */
			buf_text(&out, out.length > 1 ? "," : "");
			buf_append(&out, line, length - 2);
			finish(&out, attempt, &new);
		}
		line += length + (line[length] == '\n');
	}
	buf_char(&out, ']');
	return buf_keep(&out, attempt->arena);
}

static const char *new_receipt(const struct attempt *attempt)
{
	long long begun = attempt->receipt ? strtoll(attempt->receipt, NULL, 10) : 0;
	struct buf out = {0};
	size_t count;
	const struct sent_alert *sent;

	if (!attempt->follow_up)
		return arena_printf(attempt->arena, "%lld", (long long)attempt->now);
	if (attempt->follow_up->kind != FOLLOW_UP_AMEND)
		return attempt->receipt;
	sent = read_alerts(attempt, &count);
	buf_printf(&out, "%lld", begun);
	for (size_t i = 0; i < count; i++)
		if (sent[i].announced && (sent[i].over || sent[i].from != begun))
			buf_printf(&out, " %lld=%lld", (long long)sent[i].id,
				sent[i].over ? 0 : (long long)sent[i].from);
	return buf_keep(&out, attempt->arena);
}

/* The address of the destination; where the configuration has it no more, all that it has. */
static struct strings addresses(const struct attempt *attempt)
{
	const struct alertmanager_options *options = attempt->options;

	for (size_t i = 0; i < options->urls.count; i++)
		if (strcmp(options->urls.items[i], attempt->destination) == 0)
			return (struct strings){&options->urls.items[i], 1};
	if (options->urls.count > 0)
		return options->urls;
	return (struct strings){&options->endpoint.url, 1};
}

static bool request(struct attempt *attempt)
{
	const struct alertmanager_options *options = attempt->options;
	struct strings urls = addresses(attempt);
	struct transfer *posts = arena_array(attempt->arena, urls.count, sizeof *posts);
	const char *body = alerts(attempt);

	for (size_t i = 0; i < urls.count; i++)
		posts[i] = http_json_request(attempt, &options->endpoint, "POST",
			transfer_join_url(attempt->arena, urls.items[i], "api/v2/alerts"), body,
			(struct pairs){0});
	attempt->queue = posts;
	attempt->queued = urls.count;
	return http_json_next(attempt);
}

static enum step answer(struct attempt *attempt, const struct reply *reply)
{
	(void)reply;
	if (http_json_next(attempt))
		return STEP_TRANSFER;
	attempt->receipt = new_receipt(attempt);
	return STEP_DONE;
}

static const struct http_json shape = {.request = request, .answer = answer, .explains = true};

/* Whether all alerts that stand are past `firing_for`: Alertmanager knows since they were sent
 * last. */
static bool have_ended(const struct attempt *attempt)
{
	size_t count, standing = 0;
	const struct sent_alert *sent = read_alerts(attempt, &count);

	for (size_t i = 0; i < count; i++) {
		standing += !sent[i].over;
		if (!sent[i].over && attempt->now < sent[i].last)
			return false;
	}
	return standing > 0;
}

static enum step follow_up(struct attempt *attempt, const struct reply *last)
{
	const struct alertmanager_options *options = attempt->options;
	char duration[WHEN_TEXT];

	if (!last && attempt->follow_up->kind == FOLLOW_UP_REFRESH && have_ended(attempt)) {
		attempt->follow_up->gone = true;
		return notifier_fail(attempt, false, ERROR_DATA,
			arena_printf(attempt->arena,
				"alert resolved after firing for %s; the change still stands "
				"(firing_for)",
				when_format_duration(options->firing_for, duration)));
	}
	return http_json_step(attempt, last);
}

static int64_t refresh(const void *context)
{
	const struct alertmanager_options *options = context;

	return options->resend;
}

const struct notifier alertmanager_notifier = {
	.plugin = {.name = "alertmanager",
		.summary = "fire an alert in Prometheus' Alertmanager while a change stands",
		.fields = alertmanager_fields,
		.options_size = sizeof(struct alertmanager_options),
		.endpoint = true,
		.check = check},
	.events = MESSAGES_OF_CHANGES,
	.defaults = MESSAGES_OF_CHANGES,
	.pace = 20,
	.destinations = destinations,
	.render = render,
	.step = http_json_step,
	.shape = &shape,
	.amends = notifier_amends,
	.refresh = refresh,
	.follow_up = follow_up,
};
