/*
 * The answer of `why` as a document: each step with its numbers, and the verdict in words.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/decide/confirm.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "agent/monitor/why.h"
#include "agent/report/report.h"
#include "conf/known_changes.h"
#include "conf/mute.h"
#include "notifiers/text.h"

enum { NAME_CHARS = 200 };

static const char *const place_names[] = {
	"asked", "last_change", "newest", "first_of_all", "last_of_all"};

static const struct why_text {
	const char *name, *sentence;
} why_texts[WHY_ENDS] = {
	[WHY_TOLD] = {"told", "it was announced"},
	[WHY_WAITS] = {"group", "pending: waiting for its group (group_wait), its cluster, or "
				"other changes of its environment"},
	[WHY_SILENCE] = {"silence",
		"held back by a silence: announced when it ends, if the change still stands"},
	[WHY_MUTE] = {"mute_time", "held back by a mute time of the test: announced when it ends, "
				   "if the change still stands"},
	[WHY_DELIVERY] = {"delivery", "its message is queued and not delivered yet"},
	[WHY_NOBODY] = {"no_receiver", "not announced"},
	[WHY_ACCEPTED] = {"accepted", "not announced"},
	[WHY_SILENT] = {"silent", "recorded only"},
	[WHY_CANDIDATE] = {"confirmation", "a candidate"},
	[WHY_WITHDRAWN] = {"withdrawn", "withdrawn: no longer found"},
	[WHY_CLUSTER] = {"cluster",
		"announced by its cluster, together with the other series that changed"},
	[WHY_ENVIRONMENT] = {"environment", "part of a change of its environment that was "
					    "announced earlier; not announced separately"},
	[WHY_RECOVERED] = {"recovered", "recovered before it was announced"},
	[WHY_WOULD_TELL] = {"would_tell",
		"a standing change: an agent announces it as its points arrive"},
	[WHY_TOO_OLD] = {"too_old", "a standing change older than max_age: a newly started agent "
				    "records it without announcing it"},
	[WHY_ONSET] = {"onset", "no change yet"},
	[WHY_DETECTOR] = {"detector", "no change: the detector rejected the candidates there"},
	[WHY_NOTHING] = {"nothing", "no change: the detector found nothing near there"},
	[WHY_ENDED] = {"ended", "the series has ended"},
	[WHY_NO_DATA] = {"no_data", "no data: the source returned nothing for the series"},
};

/* ": silence 7 of ann until 2026-03-28 11:00:00 +0000: migration", ": nights until ..." */
static void put_quiet(struct buf *out, const struct why *why)
{
	const struct silence *silence = why->silence;
	char until[WHEN_TEXT];

	if (silence)
		buf_printf(out, ": silence %lld", (long long)silence->id);
	else
		buf_printf(out, ": %s", mute_name(why->mute));
	if (silence && (silence->owner || silence->person)) {
		buf_text(out, " of ");
		buf_clean(out, silence->owner ? silence->owner : silence->person, NAME_CHARS);
	}
	buf_printf(out, " until %s", when_format(why->quiet_until, until));
	if (silence && silence->reason) {
		buf_text(out, ": ");
		buf_clean(out, silence->reason, NAME_CHARS);
	}
}

/* "accepted as expected by ann (bigger cache) until 2026-03-28 11:00:00 +0000" */
static void put_said(struct buf *out, const struct why *why)
{
	const struct triage *said = why->said;
	char until[WHEN_TEXT];

	if (triage_is_accepted(said->state))
		buf_printf(out, "accepted as %s", triage_state_names[said->state]);
	else
		buf_text(out, said->state == TRIAGE_FIXED ? "marked as fixed" : "acknowledged");
	if (said->person) {
		buf_text(out, " by ");
		buf_clean(out, said->person, NAME_CHARS);
	}
	if (said->note) {
		buf_text(out, " (");
		buf_clean(out, said->note, NAME_CHARS);
		buf_char(out, ')');
	}
	if (said->until != 0)
		buf_printf(out, " until %s%s", when_format(said->until, until),
			why->lapsed ? ", which has passed" : "");
	if (said != &why->record->triage)
		buf_text(out, ", with its cluster");
}

static bool gives_reason(const struct why *why)
{
	return (why->end == WHY_CANDIDATE || why->end == WHY_SILENT || why->end == WHY_NOBODY) &&
	       why->reason;
}

/* The verdict in words, with what holds the change, drops it or was said of it. */
static void put_reason(struct buf *out, const struct why *why)
{
	const struct known_change *known = why->known;
	const struct tried *tried = why->culprit;
	bool one = why->onset.count_after == 1;
	char time[WHEN_TEXT];

	if (why->end == WHY_ACCEPTED && why->said) {
		put_said(out, why);
		buf_text(out, ": ");
	} else if (why->end == WHY_ACCEPTED) {
		buf_text(out, "accepted as expected by known_changes, ");
		buf_clean(out, known->file, NAME_CHARS);
		buf_printf(out, ":%d (", known->line);
		buf_clean(out, known->reason, NAME_CHARS);
		buf_char(out, ')');
		if (known->until != WHEN_NEVER)
			buf_printf(out, " until %s", when_format(known->until, time));
		buf_text(out, ": ");
	}
	buf_text(out, why_texts[why->end].sentence);
	if (gives_reason(why)) {
		buf_text(out, ": ");
		buf_clean(out, why->reason, 4 * NAME_CHARS);
	}
	if (why->end == WHY_ONSET) {
		buf_printf(out, ": %zu point%s at ", why->onset.count_after, one ? "" : "s");
		if (isfinite(why->onset.size))
			buf_printf(out, "%+.1f%%", why->onset.size);
		else
			buf_char(out, '-');
		buf_printf(out, ", a change if %s", one ? "it lasts" : "they last");
	}
	if (why->end == WHY_CANDIDATE && why->held_until != 0)
		buf_printf(out, ": until %s", when_format(why->held_until, time));
	if (why->end == WHY_SILENCE || why->end == WHY_MUTE)
		put_quiet(out, why);
	if (why->end == WHY_DETECTOR) {
		buf_printf(out, ": %s", tried_kinds[tried->fate].sentence);
		if (tried->measure && tried->fate == TRIED_WANDER)
			buf_printf(out, " of %.3g%%", tried->limit);
		else if (tried->measure && tried->fate != TRIED_STANDS)
			buf_printf(out, " (%s %.3g, limit %.3g)", tried->measure, tried->measured,
				tried->limit);
	}
	if (why->end != WHY_ACCEPTED && why->said) {
		buf_text(out, "; ");
		put_said(out, why);
	}
}

static void json_cycles(struct buf *out, const char *key, unsigned cycles)
{
	buf_printf(out, ", \"%s\": [", key);
	buf_text(out, cycles & SEASON_DAILY ? "\"day\"" : "");
	buf_text(out, cycles == (SEASON_DAILY | SEASON_WEEKLY) ? ", " : "");
	buf_text(out, cycles & SEASON_WEEKLY ? "\"week\"" : "");
	buf_char(out, ']');
}

static void json_tried(struct buf *out, const struct why *why)
{
	json_put(out, "tried: [");
	for (size_t i = 0; i < why->tried_count; i++) {
		const struct tried *tried = &why->tried[i];

		json_put(out,
			"\n{index: %zu, time: %jd time, pvalue: %g, mean_before: %g, "
			"mean_after: %g, forward_change_percent: %g, fate: %s, reason: %s, "
			"measure: %s",
			tried->index, why->series->axis->times[tried->index], tried->pvalue,
			tried->mean_before, tried->mean_after,
			100 * (tried->mean_after / tried->mean_before - 1), /* or null */
			tried_kinds[tried->fate].name, tried_kinds[tried->fate].sentence,
			tried->measure);
		if (tried->measure)
			json_put(out, "measured: %g, limit: %g", tried->measured, tried->limit);
		else
			json_put(out, "measured: null, limit: null");
		json_put(out, "detector: %s, meant: %d bool}", tried->by, tried == why->culprit);
	}
	json_put(out, "], tried_more: %zu", why->tried_more);
}

static void json_arrival(struct buf *out, const struct arrival *arrival)
{
	json_put(out,
		"points: %zu, found: %jd id, told: %jd id, lost: %jd id, pvalue: %g, "
		"held_until: %jd moment",
		arrival->seen, (int64_t)arrival->found, (int64_t)arrival->told,
		(int64_t)arrival->lost, arrival->pvalue, arrival->held_until);
}

static void json_side(struct buf *out, const char *key, const struct power_side *side)
{
	buf_printf(out, ", \"%s\": {\"smallest\": ", key);
	buf_json_number(out, side->smallest);
	json_put(out, "anyway: %d bool, cut: %d bool, sizes: [", side->anyway, side->cut);
	for (size_t i = 0; i < side->tried; i++) {
		buf_printf(out, "%s{\"size\": %.0f, ", i ? ", " : "",
			power_sizes[POWER_SIZES - 1 - i]);
		json_arrival(out, &side->tries[i]);
		buf_char(out, '}');
	}
	buf_text(out, "]}");
}

void why_put_power(struct buf *out, const struct axis *axis, const struct power *power)
{
	json_put(out,
		"{points: %d, time: %jd time, moved: %d bool, added: %d bool, "
		"evened: %d bool",
		POWER_POINTS, axis->times[power->place], power->moved, power->added, power->evened);
	json_side(out, "up", &power->up);
	json_side(out, "down", &power->down);
	buf_char(out, '}');
}

static void json_change(struct buf *out, const struct why *why)
{
	const struct announcement *item = why->change;
	const char *before, *after;
	struct buf words = {0};

	if (!item) {
		json_put(out, "change: null");
		return;
	}
	json_put(out, "change: {index: %zu, time: %jd time, forward_change_percent: %g",
		item->change.index, item->time, change_percent(&item->change));
	record_put_found(out, item);
	json_put(out, "regression: %d bool", change_is_regression(why->series, &item->change));
	announcement_put_suspects(out, &item->suspects, item->time);
	announcement_range(item, &before, &after);
	text_suspects(&words, item, &text_plain);
	json_put(out, "commit_from: %s, commit_to: %s, suspected: %s", before, after, words.data);
	buf_free(&words);
	buf_char(out, '}');
}

static void json_record(struct buf *out, const char *key, const struct change_record *record)
{
	buf_printf(out, ",\n  \"%s\": ", key);
	if (record)
		record_put_json(out, record);
	else
		buf_text(out, "null");
}

static void json_quiet(struct buf *out, const struct why *why)
{
	const struct silence *silence = why->silence;

	if (silence) {
		json_put(out,
			"silence: {id: %jd, matchers: %s, owner: %s, person: %s, "
			"reason: %s}",
			silence->id, silence->matchers, silence->owner, silence->person,
			silence->reason);
	} else {
		json_put(out, "silence: null");
	}
	json_put(out, "mute_time: %s optional", why->mute ? mute_name(why->mute) : "");
	json_put(out, "silenced_until: %jd time",
		silence || why->mute ? why->quiet_until : WHEN_NEVER);
}

static void json_environment(struct buf *out, const struct environment_event *event)
{
	struct buf words = {0};
	char time[WHEN_TEXT];

	environment_put_json(out, event);
	if (event) {
		text_environment(&words, event, &text_plain);
		buf_printf(&words, " since %s, ", when_format(event->time, time));
		text_elsewhere(&words, event);
	}
	json_put(out, "announced_in: %s", words.data);
	buf_free(&words);
}

static void json_series(struct buf *out, const struct why *why)
{
	const struct season *season = &why->findings.season;
	const struct axis *axis = why->series->axis;

	json_put(out,
		"series: %s, identity: %s, time: %jd time, index: %zu, place: %s, "
		"points: %zu, front: %jd time, hourly: %d bool, detector: %s",
		why->series->name, why->series->identity, axis->times[why->place], why->place,
		place_names[why->chosen], why->points, axis->times[why->front],
		why->series->pooled > 0, why->detection->detector->name);
	json_cycles(out, "season", season->cycles);
	json_cycles(out, "season_undecided", season->undecided);
	json_put(out, "season_explained: %g", season->cycles ? season->explained : (double)NAN);
	json_put(out, "judged_by: %s optional, proposals: [%s json]",
		why->findings.rule ? why->findings.rule->name : "", why->proposals);
	json_tried(out, why);
	json_change(out, why);
	buf_text(out, ",\n  \"arrival\": ");
	if (why->arrival.seen > 0) {
		buf_char(out, '{');
		json_arrival(out, &why->arrival);
		json_put(out, "time: %jd time}", axis->times[why->arrival_at]);
	} else {
		buf_text(out, "null");
	}
	json_record(out, "record", why->record);
	json_environment(out, why->environment);
	json_record(out, "cluster", why->cluster);
	json_record(out, "undone", why->undone);
	json_quiet(out, why);
	buf_text(out, ",\n  \"power\": ");
	if (why->has_power)
		why_put_power(out, axis, &why->power);
	else
		buf_text(out, "null");
}

static int64_t some(int64_t time)
{
	return time == WHEN_ALWAYS ? WHEN_NEVER : time;
}

void why_put_json(struct buf *out, const struct why *why)
{
	const char *word = gives_reason(why) ? confirm_word(why->reason) : NULL;
	struct buf reason = {0};

	json_put(out, "\n{test: %s", why->test->name);
	if (why->series) {
		json_series(out, why);
	} else { /* what there is of a series without data */
		json_put(out,
			"series: %s, source: %s, query: %s, answer: %s, since: %jd time, "
			"until: %jd time",
			why->absent, why->test->source->name, why->question, why->notice,
			some(why->since), why->until);
	}
	/* Reports about the test and the series, apart from changes, and the range of the points.
	 */
	json_put(out, "clusters: %p, problem: %s optional", &why->clusters,
		why->condition ? why->condition->text : "");
	json_put(out, "ended: %jd time", why->vanished ? why->vanished->ended : WHEN_NEVER);
	json_put(out, "last_point: %jd time, newest_of_test: %jd time, state: %d bool",
		some(why->last), some(why->newest), why->has_state);
	json_put(out, "verdict: %s", word ? word : why_texts[why->end].name);
	json_put(out, "dropped_by: %s optional",
		why->end == WHY_DETECTOR ? tried_kinds[why->culprit->fate].name : "");
	put_reason(&reason, why);
	json_put(out, "reason: %s", reason.data);
	buf_free(&reason);
	buf_char(out, '}');
}
