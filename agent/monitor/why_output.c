/*
 * The output of `why`: text for people, and JSON with all details.
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
static const char *const place_texts[] = {"", ", the last recorded change",
	", the newest point (no change recorded)", ", the first point: the given time is before it",
	", the newest point: the given time is after it"};

static const char *time_at(const struct why *why, size_t index, char out[WHEN_TEXT])
{
	return when_format(why->series->axis->times[index], out);
}

static const char *cycles_text(unsigned cycles)
{
	switch (cycles) {
	case SEASON_DAILY: return "a daily cycle";
	case SEASON_WEEKLY: return "a weekly cycle";
	case SEASON_DAILY | SEASON_WEEKLY: return "a daily and a weekly cycle";
	default: return "no cycle";
	}
}

static void put_name(struct buf *out, const struct why *why)
{
	buf_clean(out, why->test->name, NAME_CHARS);
	buf_text(out, " ");
	buf_clean(out, why->series ? why->series->name : why->absent, NAME_CHARS);
}

/* What was reported about the test and the series, apart from changes. */
static void put_health(struct buf *out, const struct why *why)
{
	char time[WHEN_TEXT];

	if (why->condition) {
		buf_text(out, "reported   ");
		buf_clean(out, why->condition->text, 4 * NAME_CHARS);
		buf_char(out, '\n');
	}
	if (why->vanished)
		buf_printf(out, "reported   the series has ended, with its last point at %s\n",
			when_format(why->vanished->ended, time));
}

static void put_clusters(struct buf *out, const struct why *why)
{
	for (size_t i = 0; i < why->clusters.count; i++) {
		buf_text(out, i > 0 ? ", " : "cluster    ");
		buf_clean(out, why->clusters.items[i], NAME_CHARS);
	}
	if (why->clusters.count > 0)
		buf_text(out, ": series that change together are announced once, not one by one\n");
}

static void put_range(struct buf *out, const struct why *why)
{
	const struct axis *axis = why->series->axis;
	char time[WHEN_TEXT];

	buf_printf(out, "points     %zu, from %s", why->points, time_at(why, why->front, time));
	buf_printf(out, ", where the windows begin, to %s\n",
		when_format(why->last != WHEN_ALWAYS ? why->last : axis->times[axis->n - 1], time));
	if (why->last < why->newest)
		buf_printf(out, "ended      the test has points until %s; this series does not\n",
			when_format(why->newest, time));
}

static void put_series(struct buf *out, const struct why *why)
{
	const struct season *season = &why->findings.season;
	char time[WHEN_TEXT];

	put_name(out, why);
	buf_printf(out, " at %s%s\n\n", time_at(why, why->place, time), place_texts[why->chosen]);
	put_range(out, why);
	if (why->series->pooled > 0)
		buf_printf(out,
			"hours      a point every %s, similar to its neighbours: hourly means are "
			"analysed\n",
			when_format_duration(why->series->pooled, time));
	buf_printf(out, "detector   %s\n", why->detection->detector->name);
	buf_printf(out, "season     %s", cycles_text(season->cycles));
	buf_text(out, season->cycles ? " removed" : " found");
	if (season->cycles)
		buf_printf(out, ", which explains %.0f%% of the variance", 100 * season->explained);
	if (season->undecided)
		buf_printf(out, "; %s possible, but too few points yet",
			cycles_text(season->undecided));
	buf_char(out, '\n');
	if (why->findings.rule) {
		buf_printf(out, "judged     %s ",
			why->findings.rule->mode == CONTROL_LOAD ? "at equal" : "relative to");
		buf_clean(out, why->findings.rule->name, NAME_CHARS);
		buf_text(out, why->findings.control.used ? "\n" : ", which explains nothing\n");
	}
	if (why->proposal)
		buf_printf(out, "proposal   %s", why->proposal);
	put_clusters(out, why);
	put_health(out, why);
}

/* For a series without data. */
static void put_absent(struct buf *out, const struct why *why)
{
	char time[WHEN_TEXT];

	put_name(out, why);
	buf_text(out, "\n\nsource     ");
	buf_clean(out, why->test->source->name, NAME_CHARS);
	if (why->question) {
		buf_text(out, "\nquery      ");
		buf_clean(out, why->question, 4 * NAME_CHARS);
	}
	if (why->since != WHEN_ALWAYS) {
		buf_printf(out, "\nrange      %s", when_format(why->since, time));
		buf_printf(out, " to %s", when_format(why->until, time));
	}
	if (why->notice) {
		buf_text(out, "\nanswer     ");
		buf_clean(out, why->notice, 4 * NAME_CHARS);
	}
	buf_text(out, "\nlast data  ");
	if (why->last != WHEN_ALWAYS)
		buf_printf(out, "%s or later, according to the agent's state",
			when_format(why->last, time));
	else
		buf_text(out, why->has_state ? "none: the agent has not read any yet"
					     : "unknown: no agent state");
	buf_char(out, '\n');
	put_clusters(out, why);
	put_health(out, why);
}

static double percent_of(const struct tried *tried)
{
	return tried->mean_before != 0 ? 100 * (tried->mean_after / tried->mean_before - 1)
				       : (double)NAN;
}

static void put_percent(struct buf *out, double percent)
{
	if (isfinite(percent))
		buf_printf(out, "%+.1f%%", percent);
	else
		buf_char(out, '-');
}

static void put_limit(struct buf *out, const struct tried *tried)
{
	if (tried->measure && tried->fate == TRIED_WANDER)
		buf_printf(out, " of %.3g%%", tried->limit);
	else if (tried->measure && tried->fate != TRIED_STANDS)
		buf_printf(out, " (%s %.3g, limit %.3g)", tried->measure, tried->measured,
			tried->limit);
}

static void put_one_tried(struct buf *out, const struct tried *tried)
{
	if (tried->by)
		buf_printf(out, "%s: ", tried->by);
	if (!isnan(tried->pvalue))
		buf_printf(out, "p %.2g, ", tried->pvalue);
	if (!isnan(tried->mean_before)) {
		text_level(out, tried->mean_before);
		buf_text(out, " -> ");
		text_level(out, tried->mean_after);
		buf_text(out, ", ");
		put_percent(out, percent_of(tried));
		buf_text(out, "  ");
	}
	buf_text(out, tried_sentences[tried->fate]);
	put_limit(out, tried);
}

static void put_tried(struct buf *out, const struct why *why)
{
	char time[WHEN_TEXT];

	buf_printf(out, "\ntried within %d points%s:\n", WHY_SHOWN,
		why->findings.season.cycles ? ", in the values without cycles" : "");
	if (why->tried_count == 0)
		buf_text(out, "  nothing\n");
	for (size_t i = 0; i < why->tried_count; i++) {
		const struct tried *tried = &why->tried[i];

		buf_printf(out, "%s %s  ", tried == why->culprit ? ">" : " ",
			time_at(why, tried->index, time));
		put_one_tried(out, tried);
		buf_char(out, '\n');
	}
	if (why->tried_more > 0)
		buf_printf(out, "  and %zu more\n", why->tried_more);
}

static void put_change(struct buf *out, const struct why *why)
{
	const struct announcement *item = why->change;
	const char *before, *after;
	struct buf suspects = {0};
	char time[WHEN_TEXT];

	if (!item)
		return;
	buf_printf(out, "\nfound: %s  ", when_format(item->time, time));
	text_levels(out, &item->change, "->");
	buf_text(out, ", ");
	text_size(out, &item->change);
	buf_printf(out, ", p %.2g", item->change.pvalue);
	buf_text(out, ", ");
	buf_printf(out, "between %s", when_format(item->place_from, time));
	buf_printf(out, " and %s\n", when_format(item->place_to, time));
	announcement_range(item, &before, &after);
	text_suspects(&suspects, item, &text_plain);
	if (after || suspects.length > 0)
		buf_text(out, "suspects: ");
	if (after) {
		buf_clean(out, before ? before : "", NAME_CHARS);
		buf_text(out, " .. ");
		buf_clean(out, after, NAME_CHARS);
		buf_text(out, suspects.length > 0 ? ", " : "");
	}
	buf_append(out, suspects.data ? suspects.data : "", suspects.length);
	buf_text(out, after || suspects.length > 0 ? "\n" : "");
	buf_free(&suspects);
}

static void put_arrival(struct buf *out, const struct why *why)
{
	const struct arrival *arrival = &why->arrival;
	char time[WHEN_TEXT];

	if (arrival->seen == 0)
		return;
	buf_printf(out, "\nreplayed from %s on: ", time_at(why, why->arrival_at, time));
	if (arrival->found == 0)
		buf_printf(out, "no change in %zu points\n", arrival->seen);
	else
		buf_printf(out, "found at point %zu (%s)", arrival->found,
			when_format(arrival->found_time, time));
	if (arrival->told > 0)
		buf_printf(out, ", to be announced at point %zu (%s)", arrival->told,
			when_format(arrival->told_time, time));
	else if (arrival->back)
		buf_text(out, ", recorded as the end of another change");
	else if (arrival->found > 0)
		buf_printf(out, ", not confirmed within %zu points", arrival->seen);
	if (arrival->held_until != 0)
		buf_printf(out, ", held until %s", when_format(arrival->held_until, time));
	if (arrival->lost > 0)
		buf_printf(out, ", gone at point %zu", arrival->lost);
	if (arrival->found > 0)
		buf_char(out, '\n');
}

static void put_history(struct buf *out, const struct change_record *record)
{
	char time[WHEN_TEXT];

	for (size_t i = 0; i < record->event_count; i++) {
		const struct event *event = &record->events[i];

		buf_printf(
			out, "  %s  %s", when_format(event->time, time), event_names[event->kind]);
		if (event->kind == EVENT_ANNOUNCED && event->actor.person) {
			buf_char(out, ' ');
			buf_clean(out, event->actor.person, NAME_CHARS);
			buf_char(out, ' ');
			buf_clean(out, event->actor.origin ? event->actor.origin : "", NAME_CHARS);
		}
		if (event->kind >= EVENT_TRIAGED && event->actor.person) {
			buf_text(out, " by ");
			buf_clean(out, event->actor.person, NAME_CHARS);
		}
		if (event->kind >= EVENT_TRIAGED && event->detail) {
			buf_text(out, ": ");
			buf_clean(out, event->detail, 4 * NAME_CHARS);
		}
		buf_char(out, '\n');
	}
}

static void put_record(struct buf *out, const struct why *why)
{
	const struct change_record *record = why->record;

	if (!why->has_state) {
		buf_text(out, "\n"
			      "no agent state: announcements unknown\n");
		return;
	}
	if (!record) {
		buf_text(out, "\n"
			      "agent state: no change recorded there\n");
		return;
	}
	buf_printf(out,
		"\n"
		"agent state: change %" PRId64 ", %s\n",
		record->item.id, change_state_names[record->state]);
	if (record->item.culprit) {
		buf_text(out, "  ");
		text_culprit(out, &record->item);
		buf_char(out, '\n');
	}
	put_history(out, record);
}

/* Another record that the verdict refers to. */
static void put_other(struct buf *out, const char *what, const struct change_record *other)
{
	char time[WHEN_TEXT];

	buf_printf(out, "%s: change %" PRId64 " of ", what, other->item.id);
	buf_clean(out, other->item.test, NAME_CHARS);
	buf_printf(out, " at %s", when_format(other->item.time, time));
	if (other->item.members > 0)
		buf_printf(out, ", %zu series", other->item.members);
	buf_printf(out, ", %s\n", change_state_names[other->state]);
	put_history(out, other);
}

static void put_environment(struct buf *out, const struct environment_event *event)
{
	char time[WHEN_TEXT];

	buf_text(out, "\nannounced as part of ");
	text_environment(out, event, &text_plain);
	buf_printf(out, " since %s, ", when_format(event->time, time));
	text_elsewhere(out, event);
	buf_char(out, '\n');
}

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

static void put_known(struct buf *out, const struct known_change *known)
{
	char until[WHEN_TEXT];

	buf_text(out, "accepted as expected by known_changes, ");
	buf_clean(out, known->file, NAME_CHARS);
	buf_printf(out, ":%d (", known->line);
	buf_clean(out, known->reason, NAME_CHARS);
	buf_char(out, ')');
	if (known->until != WHEN_NEVER)
		buf_printf(out, " until %s", when_format(known->until, until));
}

static bool gives_reason(const struct why *why)
{
	return (why->end == WHY_CANDIDATE || why->end == WHY_SILENT || why->end == WHY_NOBODY) &&
	       why->reason;
}

static void put_sentence(struct buf *out, const struct why *why)
{
	if (why->end == WHY_ACCEPTED && why->said)
		put_said(out, why);
	else if (why->end == WHY_ACCEPTED)
		put_known(out, why->known);
	if (why->end == WHY_ACCEPTED)
		buf_text(out, ": ");
	buf_text(out, why_texts[why->end].sentence);
	if (gives_reason(why)) {
		buf_text(out, ": ");
		buf_clean(out, why->reason, 4 * NAME_CHARS);
	}
	if (why->end != WHY_ONSET)
		return;
	buf_printf(out, ": %zu point%s at ", why->onset.count_after,
		why->onset.count_after == 1 ? "" : "s");
	put_percent(out, why->onset.size);
	buf_text(out,
		why->onset.count_after == 1 ? ", a change if it lasts" : ", a change if they last");
}

/* What people have said, where the sentence does not tell it. */
static void put_also(struct buf *out, const struct why *why)
{
	if (why->end == WHY_ACCEPTED || !why->said)
		return;
	buf_text(out, "; ");
	put_said(out, why);
}

static void put_end(struct buf *out, const struct why *why)
{
	char time[WHEN_TEXT];

	if (why->environment)
		put_environment(out, why->environment);
	if (why->cluster)
		put_other(out, "\nits cluster", why->cluster);
	if (why->undone)
		put_other(out,
			"\n"
			"this is the end of",
			why->undone);
	buf_text(out, "\nverdict: ");
	put_sentence(out, why);
	if (why->end == WHY_CANDIDATE && why->held_until != 0)
		buf_printf(out, ": until %s", when_format(why->held_until, time));
	if (why->end == WHY_SILENCE || why->end == WHY_MUTE)
		put_quiet(out, why);
	if (why->end == WHY_DETECTOR) {
		buf_printf(out, ": %s", tried_sentences[why->culprit->fate]);
		put_limit(out, why->culprit);
	}
	put_also(out, why);
	buf_char(out, '\n');
}

/* The sizes tried from `first` to `last`; the largest were tried first. */
static void put_sizes(struct buf *out, size_t first, size_t last)
{
	buf_printf(out, "%.0f%%", power_sizes[POWER_SIZES - 1 - last]);
	if (first < last)
		buf_printf(out, " to %.0f%%", power_sizes[POWER_SIZES - 1 - first]);
}

static void put_fortune(struct buf *out, const struct arrival *one)
{
	char time[WHEN_TEXT];

	if (one->told > 0)
		buf_printf(out, " at point %zu", one->told);
	else
		buf_printf(out, " not%s%s", one->held_until != 0 ? ": held until " : "",
			one->held_until != 0 ? when_format(one->held_until, time) : "");
}

static void put_side(struct buf *out, const char *name, const struct power_side *side)
{
	buf_printf(out, "  %-5s", name);
	if (side->anyway)
		buf_text(out, "a change is announced there without a step");
	else if (isnan(side->smallest))
		buf_printf(out, "none up to %.0f%%", power_sizes[POWER_SIZES - 1]);
	else
		buf_printf(out, "%.0f%%", side->smallest);
	for (size_t i = 0, first = 0; i < side->tried; i++) {
		const struct arrival *one = &side->tries[i];
		bool same = i + 1 < side->tried && one->told > 0 &&
			    side->tries[i + 1].told == one->told;

		if (same)
			continue;
		buf_text(out, first > 0 ? ", " : "  (");
		put_sizes(out, first, i);
		put_fortune(out, one);
		first = i + 1;
	}
	buf_text(out, side->tried > 0 ? ")" : "");
	buf_text(out, side->cut ? "; smaller changes exceed the work limit\n" : "\n");
}

static void put_power(struct buf *out, const struct why *why)
{
	const struct power *power = &why->power;
	char time[WHEN_TEXT];

	if (!why->has_power) {
		buf_text(out, "\n"
			      "too few points to measure the smallest change announced\n");
		return;
	}
	buf_printf(out,
		"\n"
		"smallest change that would be announced within %d points from %s on%s:\n",
		POWER_POINTS, time_at(why, power->place, time),
		power->moved ? " (moved back to have enough points after it)" : "");
	put_side(out, "up", &power->up);
	put_side(out, "down", &power->down);
	if (power->added)
		buf_text(out,
			"  in percent of the mean absolute value, since the level is near 0\n");
	if (power->evened)
		buf_text(out, "  after a change near there was removed from the values\n");
}

void why_put_text(struct buf *out, const struct why *why)
{
	if (!why->series) {
		put_absent(out, why);
		put_end(out, why);
		return;
	}
	put_series(out, why);
	put_tried(out, why);
	put_change(out, why);
	put_arrival(out, why);
	put_record(out, why);
	put_end(out, why);
	put_power(out, why);
}

static void json_cycles(struct buf *out, const char *key, unsigned cycles)
{
	buf_printf(out, ", \"%s\": [", key);
	buf_text(out, cycles & SEASON_DAILY ? "\"day\"" : "");
	buf_text(out, cycles == (SEASON_DAILY | SEASON_WEEKLY) ? ", " : "");
	buf_text(out, cycles & SEASON_WEEKLY ? "\"week\"" : "");
	buf_char(out, ']');
}

static void json_count(struct buf *out, const char *key, size_t count)
{
	buf_printf(out, ", \"%s\": ", key);
	if (count > 0)
		buf_printf(out, "%zu", count);
	else
		buf_text(out, "null");
}

static void json_tried(struct buf *out, const struct why *why)
{
	buf_text(out, ",\n  \"tried\": [");
	for (size_t i = 0; i < why->tried_count; i++) {
		const struct tried *tried = &why->tried[i];

		buf_printf(out, "%s{\"index\": %zu", i ? ",\n    " : "\n    ", tried->index);
		json_put_time(out, "time", why->series->axis->times[tried->index]);
		json_put_number(out, "pvalue", tried->pvalue);
		json_put_number(out, "mean_before", tried->mean_before);
		json_put_number(out, "mean_after", tried->mean_after);
		json_put_number(out, "forward_change_percent", percent_of(tried));
		json_put_text(out, "fate", tried_names[tried->fate]);
		json_put_text(out, "reason", tried_sentences[tried->fate]);
		json_put_text(out, "measure", tried->measure);
		json_put_number(out, "measured", tried->measure ? tried->measured : (double)NAN);
		json_put_number(out, "limit", tried->measure ? tried->limit : (double)NAN);
		json_put_text(out, "detector", tried->by);
		json_put_bool(out, "meant", tried == why->culprit);
		buf_char(out, '}');
	}
	buf_printf(out, "],\n  \"tried_more\": %zu", why->tried_more);
}

static void json_arrival(struct buf *out, const struct arrival *arrival)
{
	buf_printf(out, "\"points\": %zu", arrival->seen);
	json_count(out, "found", arrival->found);
	json_count(out, "told", arrival->told);
	json_count(out, "lost", arrival->lost);
	json_put_number(out, "pvalue", arrival->pvalue);
	json_put_time(
		out, "held_until", arrival->held_until != 0 ? arrival->held_until : WHEN_NEVER);
}

static void json_side(struct buf *out, const char *key, const struct power_side *side)
{
	buf_printf(out, ", \"%s\": {\"smallest\": ", key);
	buf_json_number(out, side->smallest);
	json_put_bool(out, "anyway", side->anyway);
	json_put_bool(out, "cut", side->cut);
	buf_text(out, ", \"sizes\": [");
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
	buf_printf(out, "{\"points\": %d", POWER_POINTS);
	json_put_time(out, "time", axis->times[power->place]);
	json_put_bool(out, "moved", power->moved);
	json_put_bool(out, "added", power->added);
	json_put_bool(out, "evened", power->evened);
	json_side(out, "up", &power->up);
	json_side(out, "down", &power->down);
	buf_char(out, '}');
}

static void json_change(struct buf *out, const struct why *why)
{
	const struct announcement *item = why->change;

	buf_text(out, ",\n  \"change\": ");
	if (!item) {
		buf_text(out, "null");
		return;
	}
	buf_printf(out, "{\"index\": %zu", item->change.index);
	json_put_time(out, "time", item->time);
	json_put_number(out, "forward_change_percent", change_percent(&item->change));
	record_put_found(out, item);
	json_put_bool(out, "regression", change_is_regression(why->series, &item->change));
	buf_text(out, ", ");
	announcement_put_suspects(out, &item->suspects, item->time);
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

/* What was reported about the test and the series, apart from changes, and how far the points
 * reach. */
static void json_health(struct buf *out, const struct why *why)
{
	buf_text(out, ",\n  \"clusters\": [");
	for (size_t i = 0; i < why->clusters.count; i++) {
		buf_text(out, i ? ", " : "");
		buf_json_text(out, why->clusters.items[i]);
	}
	buf_char(out, ']');
	json_put_text(out, "problem", why->condition ? why->condition->text : NULL);
	json_put_time(out, "ended", why->vanished ? why->vanished->ended : WHEN_NEVER);
	json_put_time(out, "last_point", why->last != WHEN_ALWAYS ? why->last : WHEN_NEVER);
	json_put_time(out, "newest_of_test", why->newest != WHEN_ALWAYS ? why->newest : WHEN_NEVER);
}

static void json_quiet(struct buf *out, const struct why *why)
{
	const struct silence *silence = why->silence;

	buf_text(out, ",\n  \"silence\": ");
	if (silence) {
		buf_printf(out, "{\"id\": %lld", (long long)silence->id);
		json_put_text(out, "matchers", silence->matchers);
		json_put_text(out, "owner", silence->owner);
		json_put_text(out, "person", silence->person);
		json_put_text(out, "reason", silence->reason);
		buf_char(out, '}');
	} else {
		buf_text(out, "null");
	}
	json_put_text(out, "mute_time", why->mute ? mute_name(why->mute) : NULL);
	json_put_time(out, "silenced_until", silence || why->mute ? why->quiet_until : WHEN_NEVER);
}

static void json_verdict(struct buf *out, const struct why *why)
{
	const char *word = gives_reason(why) ? confirm_word(why->reason) : NULL;
	struct buf reason = {0};

	buf_text(out, ",\n  \"verdict\": ");
	buf_json_text(out, word ? word : why_texts[why->end].name);
	json_put_text(out, "dropped_by",
		why->end == WHY_DETECTOR ? tried_names[why->culprit->fate] : NULL);
	put_sentence(&reason, why);
	put_also(&reason, why);
	json_put_text(out, "reason", reason.data);
	buf_free(&reason);
}

/* The same keys as for a series, where they apply. */
static void json_absent(struct buf *out, const struct why *why)
{
	buf_text(out, "{\"test\": ");
	buf_json_text(out, why->test->name);
	json_put_text(out, "series", why->absent);
	json_put_text(out, "source", why->test->source->name);
	json_put_text(out, "query", why->question);
	json_put_text(out, "answer", why->notice);
	json_put_time(out, "since", why->since != WHEN_ALWAYS ? why->since : WHEN_NEVER);
	json_put_time(out, "until", why->until);
	json_health(out, why);
	json_put_bool(out, "state", why->has_state);
	json_verdict(out, why);
	buf_text(out, "}\n");
}

void why_put_json(struct buf *out, const struct why *why)
{
	const struct season *season = &why->findings.season;
	const struct axis *axis;

	if (!why->series) {
		json_absent(out, why);
		return;
	}
	axis = why->series->axis;
	buf_text(out, "{\"test\": ");
	buf_json_text(out, why->test->name);
	json_put_text(out, "series", why->series->name);
	json_put_text(out, "identity", why->series->identity);
	json_put_time(out, "time", axis->times[why->place]);
	buf_printf(out, ", \"index\": %zu", why->place);
	json_put_text(out, "place", place_names[why->chosen]);
	buf_printf(out, ",\n  \"points\": %zu", why->points);
	json_put_time(out, "front", axis->times[why->front]);
	json_put_bool(out, "hourly", why->series->pooled > 0);
	json_put_text(out, "detector", why->detection->detector->name);
	json_cycles(out, "season", season->cycles);
	json_cycles(out, "season_undecided", season->undecided);
	json_put_text(out, "judged_by", why->findings.rule ? why->findings.rule->name : NULL);
	buf_printf(out, ", \"proposals\": [%s]", why->proposal_json ? why->proposal_json : "");
	json_put_bool(out, "traced", true);
	json_tried(out, why);
	json_change(out, why);
	buf_text(out, ",\n  \"arrival\": {");
	json_arrival(out, &why->arrival);
	json_put_time(out, "time", axis->times[why->arrival_at]);
	buf_char(out, '}');
	json_put_bool(out, "state", why->has_state);
	json_record(out, "record", why->record);
	buf_text(out, ", ");
	environment_put_json(out, why->environment);
	json_record(out, "cluster", why->cluster);
	json_record(out, "undone", why->undone);
	json_health(out, why);
	json_quiet(out, why);
	json_verdict(out, why);
	buf_text(out, ",\n  \"power\": ");
	if (why->has_power)
		why_put_power(out, axis, &why->power);
	else
		buf_text(out, "null");
	buf_text(out, "}\n");
}
