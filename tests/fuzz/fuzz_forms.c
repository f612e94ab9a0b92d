/*
 * Parameters of triage and silences of any text, a line each: what is accepted is text without
 * control characters, ids in order, times ahead; and what is written of it is JSON.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/web/forms.h"

enum { LINES = 16 };

#define NOW INT64_C(1774958400000)
#define MOST INT64_C(2592000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct lines {
	char *items[LINES];
	size_t count;
};

static void check(bool good)
{
	if (!good)
		abort();
}

/* The first of its name. */
static const char *get(void *context, const char *name)
{
	const struct lines *lines = context;
	size_t length = strlen(name);

	for (size_t i = 0; i < lines->count; i++)
		if (strncmp(lines->items[i], name, length) == 0 && lines->items[i][length] == '=')
			return lines->items[i] + length + 1;
	return NULL;
}

static void check_text(const char *text, size_t most)
{
	check(!text || strlen(text) <= most);
	for (; text && *text; text++)
		check((unsigned char)*text >= ' ' || *text == '\n');
}

static void check_json(struct buf *text)
{
	json_t *document = json_loadb(text->data, text->length, JSON_REJECT_DUPLICATES, NULL);

	check(document != NULL);
	json_decref(document);
	buf_free(text);
}

static void check_triage(struct store_triage *call)
{
	const struct triage *triage = &call->triage;
	struct change_record record = {.item = {.id = 1}, .series = "", .branch = ""};
	struct buf text = {0};

	check(triage->state < TRIAGE_STATES && call->version >= -1);
	check(triage->until == -1 || triage->until == 0 || triage->until > NOW);
	check_text(triage->owner, 200);
	check_text(triage->note, 4000);
	check_text(triage->link, 2000);
	for (size_t i = 0; i < call->range_count; i++)
		check(call->ranges[i].from > (i > 0 ? call->ranges[i - 1].to : 0) &&
			call->ranges[i].from <= call->ranges[i].to);
	record.item.test = record.item.metric = "x";
	record.state = CHANGE_CONFIRMED;
	record.triage = *triage;
	record.triage.person = triage->owner;
	call->records = (struct record_rows){&record, 1};
	call->conflict = true;
	triage_form_answer(&text, NULL, call);
	check_json(&text);
}

static void try_triage(struct lines *lines)
{
	struct store_triage *call = store_triage_new(NULL, NULL);
	struct form form = {.get = get, .context = lines, .arena = call->call.arena, .now = NOW};

	call->now = NOW;
	if (triage_form_read(&form, call))
		check_triage(call);
	else
		check(form.error.kind == ERROR_USAGE && *form.error.text);
	store_call_free(&call->call);
}

static void try_silence(struct lines *lines)
{
	struct store_silence *call = store_silence_new(NULL, NULL);
	struct buf text = {0};
	struct form form = {.get = get, .context = lines, .arena = call->call.arena, .now = NOW};

	call->now = NOW;
	call->actor = (struct actor){"ann", "fuzz"};
	if (silence_form_read(&form, MOST, call)) {
		check(call->silence.from >= NOW && call->silence.until > call->silence.from);
		check(call->silence.until - call->silence.from <= MOST);
		check_text(call->silence.owner, 200);
		check_text(call->silence.reason, 4000);
		silence_put_json(&text, &call->silence, NOW);
		check_json(&text);
	} else {
		check(form.error.kind == ERROR_USAGE && *form.error.text);
	}
	store_call_free(&call->call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *line;
	struct lines lines = {0};

	check(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	while (lines.count < LINES && (line = strsep(&rest, "\n")))
		lines.items[lines.count++] = line;
	try_triage(&lines);
	try_silence(&lines);
	free(text);
	return 0;
}
