/*
 * Links made from templates: the page about a commit, about what lies between two, the dashboard of
 * a series.
 *
 *     https://example.com/app/compare/{before}...{after}
 *     https://grafana.example/d/shop?var-region={label.region}&from={from}&to={to}
 *
 * A template comes from the configuration, the values from data; values are percent-encoded, so
 * whatever they hold, the link leads to the template's host.
 */
#ifndef CORE_LINK_H
#define CORE_LINK_H

#include "agent/core/arena.h"
#include "agent/core/error.h"

enum { LINK_LONGEST = 1000 }; /* bytes */

/* Templates, or NULL; all but the owner are addresses. */
struct url_templates {
	const char *commit_url, *compare_url, *dashboard, *runbook, *owner;
};

/* The commit is the one after the change; from and to are times around it, ms since 1970; the
 * series is its identity, whose labels are {label.NAME}. NULL or empty: not known. */
struct url_values {
	const char *commit, *before, *after;
	const char *test, *metric, *from, *to;
	const char *series;
};

/* Whether the template can be used; the empty one can, and makes no links. Fails with ERROR_USAGE.
 */
bool url_template_check(const char *option, const char *template, struct error *error) MUST_USE;

/* The same of a template that is text, as a name or a team, and no address. */
bool url_template_check_text(
	const char *option, const char *template, struct error *error) MUST_USE;

/* NULL where there is no template, where it names a value that is not known, and where the link
 * would be too long. */
const char *url_template_expand(
	struct arena *arena, const char *template, const struct url_values *values);

/* The same with the values as they are. */
const char *url_template_expand_text(
	struct arena *arena, const char *template, const struct url_values *values);

#endif
