/*
 * Links made from templates: the page of a commit, the comparison of two, the dashboard of a
 * series.
 *
 *     https://example.com/app/compare/{before}...{after}
 *     https://grafana.example/d/shop?var-region={label.region}&from={from}&to={to}
 *
 * A template comes from the configuration, the values from data; values are percent-encoded, so the
 * link always leads to the template's host.
 */
#ifndef AGENT_BASE_URL_TEMPLATE_H
#define AGENT_BASE_URL_TEMPLATE_H

#include "agent/base/arena.h"
#include "agent/base/error.h"

enum { LINK_LONGEST = 1000 }; /* bytes */

/* Templates, or NULL; all but the owner are URLs. */
struct url_templates {
	const char *commit_url, *compare_url, *dashboard, *runbook, *owner;
};

/* The commit is the first with the change; from and to are times around it, ms since 1970; the
 * series is its identity, whose labels are {label.NAME}. NULL or empty: unknown. */
struct url_values {
	const char *commit, *before, *after;
	const char *test, *metric, *from, *to;
	const char *series;
};

/* Whether the template is valid; an empty one is, and makes no links. Fails with ERROR_USAGE. */
bool url_template_check(const char *option, const char *template, struct error *error) MUST_USE;

/* The same for a template of plain text, such as a name or a team. */
bool url_template_check_text(
	const char *option, const char *template, struct error *error) MUST_USE;

/* NULL if there is no template, a value is unknown, or the link would be too long. `encode`: it is
 * a URL, whose values are percent-encoded. */
const char *url_template_expand(
	struct arena *arena, const char *template, const struct url_values *values, bool encode);

#endif
