/*
 * Fingerprints: whether a test or a receiver is the same in two configurations.
 *
 * They hash the values of the option tables, so a new option is covered without being named here.
 * Secrets are part of a fingerprint, which is never shown, but not of config->hash, which is: a
 * short password could be found by trial. For the same reason that has `${X}` instead of its value.
 */
#include <string.h>

#include "agent/base/hash.h"
#include "conf/load.h"
#include "detectors/combine.h"

/* Both hashes; `shown` goes into config->hash. */
struct hashes {
	const struct config *config;
	uint64_t *whole, *shown;
	bool closed; /* of an address only the host is hashed into it: the path may be a key */
};

static void add_whole(struct hashes hashes, const void *bytes, size_t length)
{
	if (hashes.whole)
		*hashes.whole = hash_add(*hashes.whole, bytes, length);
}

static void add_bytes(struct hashes hashes, const void *bytes, size_t length)
{
	add_whole(hashes, bytes, length);
	*hashes.shown = hash_add(*hashes.shown, bytes, length);
}

/* Includes the end of the text, so that "ab", "c" differs from "a", "bc", and NULL from "". */
static void add_text(struct hashes hashes, const char *text, bool secret)
{
	const char *written = config_written(hashes.config, text);

	add_bytes(hashes, text ? "+" : "-", 1);
	if (text)
		add_whole(hashes, text, strlen(text) + 1);
	if (text && !secret)
		*hashes.shown = hash_add(*hashes.shown, written, strlen(written) + 1);
}

/* An address may contain a name and a password: what follows them is shown; of a closed one the
 * host only. */
static void add_address(struct hashes hashes, const char *text)
{
	const char *host = text ? strstr(text, "//") : NULL, *at;
	size_t size = !host ? 0 : hashes.closed ? 2 + strcspn(host + 2, "/?#") : strlen(host);

	at = host ? memrchr(host, '@', size) : NULL;
	add_text(hashes, text, at || (hashes.closed && host));
	if (hashes.closed || at)
		*hashes.shown = hash_add(
			*hashes.shown, at ? at : host, size - (at ? (size_t)(at - host) : 0));
}

static void add_list(struct hashes hashes, const struct strings *list)
{
	add_bytes(hashes, &list->count, sizeof list->count);
	for (size_t i = 0; i < list->count; i++)
		add_text(hashes, list->items[i], false);
}

/* For maps, headers among them. */
static void add_map(struct hashes hashes, const struct pairs *map)
{
	add_bytes(hashes, &map->count, sizeof map->count);
	for (size_t i = 0; i < map->count; i++) {
		add_text(hashes, map->items[i].key, false);
		add_text(hashes, map->items[i].value, true);
	}
}

static void add_field(struct hashes hashes, const struct field *field, const void *value)
{
	switch (field->type) {
	case FIELD_BOOL: add_bytes(hashes, value, sizeof(bool)); break;
	case FIELD_INT:
	case FIELD_DURATION:
	case FIELD_BYTES: add_bytes(hashes, value, sizeof(int64_t)); break;
	case FIELD_DOUBLE: add_bytes(hashes, value, sizeof(double)); break;
	case FIELD_CHOICE: add_bytes(hashes, value, sizeof(int)); break;
	case FIELD_STRING: add_address(hashes, *(const char *const *)value); break;
	case FIELD_SECRET: add_text(hashes, *(const char *const *)value, true); break;
	case FIELD_LIST: add_list(hashes, value); break;
	case FIELD_MAP: add_map(hashes, value); break;
	}
}

static struct hashes hashes_of(struct loader *loader, uint64_t *fingerprint)
{
	return (struct hashes){
		.config = loader->config, .whole = fingerprint, .shown = &loader->config->hash};
}

static void add_fields(struct hashes hashes, const struct field *fields, const void *options)
{
	for (const struct field *field = fields; field && field->name; field++)
		add_field(hashes, field, (const char *)options + field->offset);
}

void fingerprint_fields(struct loader *loader, uint64_t *fingerprint, const struct field *fields,
	const void *options)
{
	add_fields(hashes_of(loader, fingerprint), fields, options);
}

void fingerprint_text(struct loader *loader, uint64_t *fingerprint, const char *text)
{
	add_text(hashes_of(loader, fingerprint), text, false);
}

void fingerprint_list(struct loader *loader, uint64_t *fingerprint, const struct strings *list)
{
	add_list(hashes_of(loader, fingerprint), list);
}

static void add_detection(
	struct loader *loader, uint64_t *fingerprint, const struct detection *detection)
{
	struct hashes hashes = hashes_of(loader, fingerprint);
	struct detection members[COMBINE_MOST];
	const char *texts[DETECTION_BELIEFS];
	const struct holidays *holidays = &detection->holidays;

	add_text(hashes, detection->detector ? detection->detector->name : NULL, false);
	if (!detection->detector)
		return;
	add_fields(hashes, detection->detector->fields, detection->options);
	detection_beliefs(detection, loader->arena, texts);
	for (size_t i = 0; i < DETECTION_BELIEFS; i++)
		add_text(hashes, texts[i], false);
	if (holidays->count > 0)
		add_bytes(hashes, holidays->days, holidays->count * sizeof *holidays->days);
	size_t count = combine_members(loader->source->schema, detection, members);
	uint64_t need = combine_need(detection);
	for (size_t i = 0; i < count; i++)
		add_detection(loader, fingerprint, &members[i]);
	if (count > 0)
		add_bytes(hashes, &need, sizeof need);
}

void fingerprint_test(struct loader *loader, struct test *test)
{
	struct hashes hashes = hashes_of(loader, &test->fingerprint);
	const struct server *server = test->server;

	add_text(hashes, test->name, false);
	add_text(hashes, test->unsupported, false);
	add_text(hashes, test->source ? test->source->name : NULL, false);
	if (test->source)
		add_fields(hashes, test->source->fields, test->options);
	if (server) {
		add_text(hashes, server->name, false);
		add_fields(hashes, server->source->server_fields, server->options);
		if (server->source->endpoint)
			add_fields(
				hashes, loader->source->schema->endpoint_fields, server->options);
	}
	add_list(hashes, &test->notify);
	add_detection(loader, &test->fingerprint, &test->detection);
	for (size_t i = 0; i < test->metric_count; i++) {
		add_text(hashes, test->metrics[i].name, false);
		add_detection(loader, &test->fingerprint, &test->detections[i]);
	}
}

void fingerprint_receiver(struct loader *loader, struct receiver *receiver)
{
	const struct plugin *plugin = receiver->notifier;

	struct hashes hashes = hashes_of(loader, &receiver->fingerprint);

	hashes.closed = true;
	receiver->fingerprint = HASH_START;
	add_text(hashes, receiver->name, false);
	add_fields(hashes, plugin->fields, receiver->options);
	if (plugin->endpoint)
		add_fields(hashes, loader->source->schema->endpoint_fields, receiver->options);
}
