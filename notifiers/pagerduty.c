/*
 * PagerDuty, by its Events API v2: a message is an incident, identified by a dedup_key made of its
 * first change. Triggered again, resolved or acknowledged twice, it stays one incident, so a
 * request whose answer is missing is simply repeated.
 *
 * The payload is the event without its routing key, which is a secret.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/secret.h"
#include "agent/model/json_put.h"
#include "notifiers/body.h"
#include "notifiers/http_json.h"

/* SUMMARY_MOST characters are taken by PagerDuty, which refuses events of more than 512 KB. A byte
 * of text is six at most as JSON. */
enum { SUMMARY_MOST = 1024, NAME_MOST = 200, BODY_MOST = 60000, LINKS_MOST = 20 };

/* Of a test message, which is resolved at once. */
static const char test_key[] = "hunter-c test";

static const char events_api[] = "https://events.pagerduty.com/v2/enqueue";

struct pagerduty_options {
	struct endpoint endpoint;
	const char *routing_key, *routing_key_file;
	int severity;
};

static const char *const severities[] = {"critical", "error", "warning", "info", NULL};

static const struct field pagerduty_fields[] = {
	OPTION_SECRET(struct pagerduty_options, routing_key,
		"integration key of a service's Events API v2"),
	OPTION_STRING(struct pagerduty_options, routing_key_file, NULL,
		"file with the key, read at each use"),
	OPTION_CHOICE(struct pagerduty_options, severity, "error", severities,
		"severity of regressions; others are info"),
	{0},
};

static bool check(const void *context, struct error *error)
{
	const struct pagerduty_options *options = context;

	if (!options->routing_key && !options->routing_key_file)
		return error_set(error, ERROR_USAGE, "\"routing_key\" is missing");
	return !options->endpoint.url || http_json_check_url(&options->endpoint, error);
}

/* "hunter-c 17 3f1a...": two programs that report to one service count their changes from 1, and a
 * change that is announced once more is another incident: each is over with its own message. */
static void put_key(struct buf *out, const struct message *message)
{
	const struct announcement *first = &message->items[0];
	uint64_t hash;

	for (size_t i = 1; i < message->count; i++)
		if (message->items[i].id < first->id)
			first = &message->items[i];
	hash = hash_add(HASH_START, first->test, strlen(first->test) + 1);
	hash = hash_add(hash, first->metric, strlen(first->metric) + 1);
	hash = hash_add(hash, message->key, strlen(message->key));
	buf_printf(out, ",\"dedup_key\":\"hunter-c %lld %016llx\"", (long long)first->id,
		(unsigned long long)hash);
}

static void put_links(struct buf *out, const struct announcement *const *items, size_t count)
{
	struct buf links = {0}, href = {0}, text = {0};
	size_t shown = 0;

	for (size_t i = 0; i < count; i++) {
		const struct announcement *item = items[i];
		const struct pair pages[] = {{"runbook", item->runbook}, {"details", item->page},
			{"dashboard", item->dashboard}, {"suspects", item->compare_url},
			{"commit", item->commit_url}};

		for (size_t k = 0; k < sizeof pages / sizeof *pages && shown < LINKS_MOST; k++) {
			if (!pages[k].value)
				continue;
			buf_clear(&href);
			buf_text(&href, "{\"href\":");
			buf_json_text(&href, pages[k].value); /* with its closing quotation mark */
			if (shown > 0 && strstr(links.data, href.data))
				continue;
			buf_printf(&links, "%s%s", shown++ > 0 ? "," : "", href.data);
			buf_printf(&text, "%s of ", pages[k].key);
			buf_clean(&text, item->test, NAME_MOST);
			http_json_lines(&links, "text", &text);
			buf_char(&links, '}');
		}
	}
	if (shown > 0)
		buf_printf(out, ",\"links\":[%s]", links.data);
	buf_free(&links);
	buf_free(&href);
}

static void put_change(struct buf *out, const struct announcement *item)
{
	struct buf text = {0};

	http_json_text(out, "test", item->test, NAME_MOST);
	http_json_text(out, "metric", item->metric, NAME_MOST);
	if (item->members == 0) {
		text_levels(&text, &item->change, "→");
		text_unit(&text, item, &text_utc);
		http_json_lines(out, "levels", &text);
		text_size(&text, &item->change);
	} else {
		text_percent(&text, &item->change);
	}
	http_json_lines(out, "size", &text);
	http_json_text(out, "environment", item->environment, NAME_MOST);
	http_json_text(out, "owner", item->owner, NAME_MOST);
}

/* The event but for its routing key; `key`: as it was sent first, or NULL. The worst change stands
 * for all of them, which `changes` lists. */
static void put_event(struct buf *out, const struct message *message, const char *key,
	const struct pagerduty_options *options)
{
	static const char *const classes[] = {
		"performance improvement", "performance change", "performance regression"};
	const struct announcement **items = message_by_weight(message);
	const struct announcement *worst = message->count > 0 ? message->items : NULL;
	int verdict = 0;
	struct buf text = {0};

	buf_text(out, "{\"event_action\":\"trigger\",\"client\":\"hunter-c\"");
	if (worst) {
		worst = items[0];
		verdict = announcement_verdict(worst);
	}
	if (!key && worst)
		put_key(out, message);
	else
		http_json_text(out, "dedup_key", key ? key : test_key, NAME_MOST);
	body_title(&text, message);
	buf_text(out, ",\"payload\":{");
	http_json_text(out, "summary", text.data, SUMMARY_MOST - 1);
	buf_clear(&text);
	http_json_text(out, "source",
		!worst               ? "hunter-c"
		: worst->environment ? worst->environment
				     : worst->test,
		NAME_MOST);
	http_json_text(
		out, "severity", verdict > 0 ? severities[options->severity] : "info", NAME_MOST);
	if (worst) {
		json_put(out, "timestamp: %jd time", worst->time);
		http_json_text(out, "component", worst->test, NAME_MOST);
		http_json_text(out, "class", classes[1 + verdict], NAME_MOST);
	}
	buf_text(out, ",\"custom_details\":{");
	if (worst)
		put_change(out, worst);
	body_fit(&text, message, &body_plain, BODY_MOST);
	http_json_lines(out, "changes", &text);
	buf_text(out, "}}");
	put_links(out, items, message->count);
	buf_char(out, '}');
	free(items);
}

static bool render(const struct draft *draft)
{
	put_event(draft->payload, draft->message, NULL, draft->options);
	return true;
}

/* The events of an attempt, one request each. */
struct state {
	const char *key; /* dedup_key */
	const char *routing_key;
	struct transfer posts[2];
};

/* `event`: without its routing key. */
static void enqueue(struct attempt *attempt, const char *event)
{
	const struct pagerduty_options *options = attempt->options;
	struct state *state = attempt->state;
	struct buf body = {0};

	buf_text(&body, "{\"routing_key\":");
	buf_json_string(&body, state->routing_key, secret_length(state->routing_key));
	buf_printf(&body, ",%s", event + 1);
	attempt->queue = state->posts;
	state->posts[attempt->queued++] = http_json_request(attempt, &options->endpoint, "POST",
		options->endpoint.url ? options->endpoint.url : events_api,
		buf_keep(&body, attempt->arena), (struct pairs){0});
}

static void enqueue_action(struct attempt *attempt, const char *name)
{
	const struct state *state = attempt->state;
	struct buf out = {0};

	buf_printf(&out, "{\"event_action\":\"%s\"", name);
	http_json_text(&out, "dedup_key", state->key, NAME_MOST);
	buf_char(&out, '}');
	enqueue(attempt, out.data);
	buf_free(&out);
}

/* The last state sent for an incident, from the receipt: "open 7 8", "acknowledged 7", "over"; with
 * "*" for the changes of the message that triggered it. */
static const char *const outside_names[] = {"over", "acknowledged", "open"};
enum outside { OUTSIDE_OVER, OUTSIDE_ACKNOWLEDGED, OUTSIDE_OPEN };

static const char all_open[] = "open *";

/* Acknowledged: all its open changes are acknowledged. */
static enum outside wanted(const struct follow_up *follow_up)
{
	enum outside wanted = OUTSIDE_OVER;

	for (size_t i = 0; i < follow_up->count; i++) {
		const struct announced_change *change = &follow_up->changes[i];

		if (announced_is_over(change))
			continue;
		if (change->triage.state != TRIAGE_ACKNOWLEDGED)
			return OUTSIDE_OPEN;
		wanted = OUTSIDE_ACKNOWLEDGED;
	}
	return wanted;
}

/* Whether a change has become open: an incident resolved by hand is not triggered again for a
 * change that only moved. */
static bool opens(const struct attempt *attempt)
{
	const struct follow_up *follow_up = attempt->follow_up;
	const char *receipt = arena_printf(attempt->arena, "%s ", attempt->receipt);

	if (strchr(receipt, '*'))
		return false;
	for (size_t i = 0; i < follow_up->count; i++) {
		const struct announced_change *change = &follow_up->changes[i];

		if (!announced_is_over(change) &&
			!strstr(receipt,
				arena_printf(attempt->arena, " %lld ", (long long)change->item.id)))
			return true;
	}
	return false;
}

static const char *receipt_of(const struct attempt *attempt)
{
	const struct follow_up *follow_up = attempt->follow_up;
	struct buf out = {0};

	buf_text(&out, outside_names[wanted(follow_up)]);
	for (size_t i = 0; i < follow_up->count; i++)
		if (!announced_is_over(&follow_up->changes[i]))
			buf_printf(&out, " %lld", (long long)follow_up->changes[i].item.id);
	return buf_keep(&out, attempt->arena);
}

static void enqueue_follow_up(struct attempt *attempt)
{
	const struct state *state = attempt->state;
	const struct follow_up *follow_up = attempt->follow_up;
	enum outside now = wanted(follow_up);
	struct message message =
		body_of_announced(attempt->arena, follow_up->changes, follow_up->count);
	struct buf event = {0};

	/* An open change triggers an acknowledged incident again. */
	if (now == OUTSIDE_OPEN || (now == OUTSIDE_ACKNOWLEDGED && opens(attempt))) {
		put_event(&event, &message, state->key, attempt->options);
		enqueue(attempt, event.data);
		buf_free(&event);
	}
	if (now != OUTSIDE_OPEN)
		enqueue_action(attempt, now == OUTSIDE_OVER ? "resolve" : "acknowledge");
}

static bool request(struct attempt *attempt)
{
	const struct pagerduty_options *options = attempt->options;
	struct state *state = arena_alloc(attempt->arena, sizeof *state);
	json_t *event = json_loads(attempt->payload, 0, NULL);
	const char *key = json_text(event, "dedup_key");

	attempt->state = state;
	state->key = arena_strdup(attempt->arena, key ? key : "");
	json_decref(event);
	if (!secret_pick(attempt->arena, options->routing_key, "routing_key_file",
		    options->routing_key_file, &state->routing_key, attempt->error))
		return false;
	if (attempt->follow_up) {
		enqueue_follow_up(attempt);
	} else {
		enqueue(attempt, attempt->payload);
		if (strcmp(state->key, test_key) == 0)
			enqueue_action(attempt, "resolve");
	}
	return http_json_next(attempt);
}

/* A page of a proxy would be another success. */
static enum step answer(struct attempt *attempt, const struct reply *reply)
{
	if (reply->status != 202) {
		attempt->maybe_delivered = MAYBE_DELIVERED_CHECK;
		return notifier_fail(attempt, true, ERROR_DATA, "the answer is not PagerDuty's");
	}
	if (http_json_next(attempt))
		return STEP_TRANSFER;
	attempt->receipt = attempt->follow_up ? receipt_of(attempt) : all_open;
	return STEP_DONE;
}

/* A 400 is about the event, or about the routing key. */
static enum step refusal(struct attempt *attempt, const struct reply *reply)
{
	const struct state *state = attempt->state;
	const struct strings secrets = {&state->routing_key, 1};
	const char *words = http_json_words(attempt->arena, reply, &secrets);

	if (reply->status >= 500)
		attempt->maybe_delivered = MAYBE_DELIVERED_CHECK;
	if (reply->status != 400 || !words)
		return http_json_refused(attempt, reply);
	return notifier_fail(
		attempt, false, strcasestr(words, "routing") ? ERROR_USAGE : ERROR_DATA, words);
}

/* Triggering again does no harm, but a trigger that may have arrived must be remembered. */
static const struct http_json shape = {
	.request = request, .answer = answer, .refusal = refusal, .doubt = MAYBE_DELIVERED_CHECK};

static enum step follow_up(struct attempt *attempt, const struct reply *last)
{
	const char *now = outside_names[wanted(attempt->follow_up)];

	if (!attempt->receipt)
		attempt->receipt = all_open;
	if (!last && strncmp(attempt->receipt, now, strlen(now)) == 0 && !opens(attempt)) {
		attempt->receipt = receipt_of(attempt);
		return STEP_DONE;
	}
	return http_json_step(attempt, last);
}

const struct notifier pagerduty_notifier = {
	.plugin = {.name = "pagerduty",
		.summary = "trigger and resolve incidents of PagerDuty",
		.fields = pagerduty_fields,
		.options_size = sizeof(struct pagerduty_options),
		.endpoint = true,
		.check = check},
	.events = MESSAGES_OF_CHANGES,
	.defaults = MESSAGES_OF_CHANGES,
	.pace = 500, /* 120 events a minute are allowed */
	.render = render,
	.step = http_json_step,
	.shape = &shape,
	.amends = notifier_amends,
	.follow_up = follow_up,
};
