/*
 * A proposal: other settings for the detection of some metrics, as a unified diff of the files that
 * have them.
 *
 * Only the lines that must change do, so comments stay. The text is edited knowing only where its
 * YAML nodes begin, so the result is loaded and checked: the chosen metrics must have the settings,
 * and all else be as before. The places are tried from the widest, by way of templates to the tests
 * and their metrics; the file's own `detection:` comes first if most are chosen, else last.
 */
#ifndef AGENT_EVALUATE_PROPOSAL_H
#define AGENT_EVALUATE_PROPOSAL_H

#include "agent/base/buf.h"
#include "conf/config.h"

struct proposal;

/* Reads the configuration, which must be good. The proposal is empty; free it with
 * proposal_free, which accepts NULL. NULL and an error on failure. */
struct proposal *proposal_new(
	const char *path, const struct config_source *source, struct error *error);
void proposal_free(struct proposal *proposal);

/* Whether the detection of this metric of the test is chosen. */
typedef bool proposal_choice(
	void *context, const struct test *test, const struct detection *detection);

/*
 * Adds settings (of the detector, and `confirm`) for exactly the chosen metrics. False and an error
 * if no place in the files does so; the proposal is then unchanged.
 */
bool proposal_set(struct proposal *proposal, const struct setting *settings, size_t count,
	proposal_choice *chosen, void *context, struct error *error) MUST_USE;

/*
 * Appends the diff, for `patch -p0` and `git apply` in the current folder; for files elsewhere a
 * line before it names the folder. Lines of sections that may hold secrets are not shown.
 */
void proposal_put_diff(const struct proposal *proposal, struct buf *out);

#endif
