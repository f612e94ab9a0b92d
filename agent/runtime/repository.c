/* One git process for each requested pair of commits, a few at a time. */
#include "agent/runtime/repository.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/io/execution.h"
#include "agent/io/git.h"

enum {
	MOST_RUNNING = 2,
	MOST_KEPT = 64,
	MOST_BYTES = 512 << 10, /* of git's output */
	WITHIN = 10000,         /* ms */
	KEPT_FOR = 600000,      /* ms */
	FAILED_FOR = 15000,     /* ms: the clone may be fetched at any time */
	LONGEST_NAME = 200,
};

struct asker {
	repository_done *done;
	void *context;
	struct asker *next;
};

enum lookup_state { LOOKUP_QUEUED, LOOKUP_RUNNING, LOOKUP_READY };

struct lookup {
	struct repositories *all;
	struct lookup *next; /* requested earlier */
	struct arena *arena;
	const char *path, *from, *to;
	enum lookup_state state;
	bool as_tags; /* versions that git does not know are tried as tags: "v1.2" */
	struct transfer transfer;
	struct execution execution;
	struct commits commits;
	int64_t until; /* engine_now */
	struct asker *askers;
};

struct repositories {
	struct agent *agent;
	struct lookup *first;
	size_t running;
};

static void lookup_free(struct lookup *lookup)
{
	buf_free(&lookup->execution.output);
	arena_free(lookup->arena);
	free(lookup);
}

struct repositories *repositories_new(struct agent *agent)
{
	struct repositories *all = memory_new(1, sizeof *all);

	*all = (struct repositories){.agent = agent};
	return all;
}

/* A commit, tag or branch, and nothing that git would take for an option or an expression. */
static bool is_name(const char *text)
{
	size_t length = strlen(text);

	return length > 0 && length <= LONGEST_NAME && *text != '-' &&
	       strspn(text,
		       "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._/+-") ==
		       length &&
	       !strstr(text, "..");
}

static bool is_version(const char *text)
{
	return text && *text >= '0' && *text <= '9' && strchr(text, '.');
}

static bool parse_one(struct arena *arena, const char *text, const char *end, struct commit *out)
{
	const char *lines[4] = {text}, *stop[4];

	for (size_t i = 0; i < 4; i++) {
		stop[i] = i == 3 ? end : memchr(lines[i], '\n', (size_t)(end - lines[i]));
		if (!stop[i])
			return false;
		if (i < 3)
			lines[i + 1] = stop[i] + 1;
	}
	size_t digits = (size_t)(stop[0] - text), figures = (size_t)(stop[2] - lines[2]);

	if ((digits != 40 && digits != 64) || figures == 0 || figures > 12)
		return false;
	out->id = arena_strndup(arena, text, digits);
	out->author = git_text(arena, lines[1], stop[1], COMMIT_SUBJECT);
	out->subject = git_text(arena, lines[3], stop[3], COMMIT_SUBJECT);
	out->time = 1000 * strtoll(arena_strndup(arena, lines[2], figures), NULL, 10);
	return strspn(out->id, "0123456789abcdef") == digits;
}

bool repository_parse(struct arena *arena, const char *text, size_t length, struct commits *out)
{
	struct commit *items = arena_array(arena, COMMITS_MOST, sizeof *items);
	const char *end = text + length;

	*out = (struct commits){.items = items};
	while (text < end) {
		const char *stop = memchr(text, '\0', (size_t)(end - text));

		out->more = out->count == COMMITS_MOST || !stop; /* cut */
		if (out->more)
			return true;
		if (!parse_one(arena, text, stop, &items[out->count]))
			return false;
		out->count++;
		text = stop + 1;
	}
	return true;
}

/* Drops expired entries, and the oldest ones beyond the limit. */
static void forget_old(struct repositories *all)
{
	int64_t now = engine_now(all->agent->engine);
	size_t count = 0;

	for (struct lookup **link = &all->first; *link;) {
		struct lookup *lookup = *link;

		if (lookup->state == LOOKUP_READY &&
			(lookup->until <= now || ++count > MOST_KEPT)) {
			*link = lookup->next;
			lookup_free(lookup);
		} else {
			link = &lookup->next;
		}
	}
}

static void tell(struct lookup *lookup)
{
	struct asker *askers = lookup->askers;

	lookup->askers = NULL;
	while (askers) {
		struct asker *next = askers->next;

		askers->done(askers->context, &lookup->commits);
		free(askers);
		askers = next;
	}
}

void repositories_free(struct repositories *all)
{
	while (all && all->first) {
		struct lookup *lookup = all->first;

		all->first = lookup->next;
		lookup->commits = (struct commits){.problem = "the agent is stopping"};
		tell(lookup);
		lookup_free(lookup);
	}
	free(all);
}

static void start_next(struct repositories *all);

static void begin(struct lookup *lookup);

static void ended(struct execution *execution)
{
	struct lookup *lookup =
		(struct lookup *)((char *)execution - offsetof(struct lookup, execution));
	struct repositories *all = lookup->all;
	bool good = execution->reply.kind == REPLY_ANSWER && execution->reply.status == 0;

	all->running--;
	if (execution->reply.kind == REPLY_ANSWER && !good && !lookup->as_tags &&
		(is_version(lookup->from) || is_version(lookup->to))) {
		buf_free(&execution->output);
		lookup->as_tags = true;
		begin(lookup);
		return;
	}
	if (!good)
		lookup->commits =
			(struct commits){.problem = git_problem(lookup->arena, &lookup->execution)};
	else if (!repository_parse(lookup->arena, execution->output.data, execution->output.length,
			 &lookup->commits))
		lookup->commits =
			(struct commits){.problem = "unexpected output of git: expected commits"};
	buf_free(&execution->output);
	lookup->state = LOOKUP_READY;
	lookup->until =
		engine_now(all->agent->engine) + (lookup->commits.problem ? FAILED_FOR : KEPT_FOR);
	tell(lookup);
	start_next(all);
	forget_old(all);
}

static const char *revision(const struct lookup *lookup, const char *name)
{
	return lookup->as_tags && is_version(name) ? arena_printf(lookup->arena, "v%s", name)
						   : name;
}

static void begin(struct lookup *lookup)
{
	const char *range = revision(lookup, lookup->to);
	const char *const arguments[] = {"log", "-z", "--no-color", "--no-decorate", "--no-notes",
		"--no-show-signature", "--encoding=UTF-8", "--no-patch",
		"--format=tformat:%H%n%an%n%at%n%s",
		lookup->from ? arena_printf(lookup->arena, "--max-count=%d", COMMITS_MOST + 1)
			     : "--max-count=1",
		"--end-of-options",
		lookup->from ? arena_printf(lookup->arena, "%s..%s", revision(lookup, lookup->from),
				       range)
			     : range,
		"--", NULL};

	lookup->transfer = git_transfer(lookup->arena, lookup->path, arguments, false);
	lookup->transfer.most_output = MOST_BYTES;
	lookup->transfer.timeout = WITHIN;
	lookup->state = LOOKUP_RUNNING;
	lookup->all->running++;
	engine_execute(lookup->all->agent->engine, &lookup->execution, &lookup->transfer, ended);
}

/* The one that has waited longest is the last in the list. */
static void start_next(struct repositories *all)
{
	struct lookup *next = NULL;

	for (struct lookup *lookup = all->first; lookup; lookup = lookup->next)
		if (lookup->state == LOOKUP_QUEUED)
			next = lookup;
	if (next && all->running < MOST_RUNNING)
		begin(next);
}

static const char *refusal(const char *from, const char *to)
{
	if (!to)
		return "the commit of the change is unknown";
	if ((from && !is_name(from)) || !is_name(to))
		return "the commit attribute of the points is not a commit";
	return NULL;
}

void repository_commits(struct repositories *all, const char *path, const char *from,
	const char *to, repository_done *done, void *context)
{
	const char *problem = refusal(from, to);
	struct lookup *lookup = NULL;
	struct asker *asker;

	if (problem) {
		done(context, &(struct commits){.problem = problem});
		return;
	}
	forget_old(all);
	for (struct lookup *at = all->first; at && !lookup; at = at->next)
		if (order_same(at->path, path) && order_same(at->from, from) &&
			order_same(at->to, to))
			lookup = at;
	if (lookup && lookup->state == LOOKUP_READY) {
		done(context, &lookup->commits);
		return;
	}
	if (!lookup) {
		struct arena *arena = arena_new();

		lookup = memory_new(1, sizeof *lookup);
		*lookup = (struct lookup){.all = all,
			.next = all->first,
			.arena = arena,
			.path = arena_strdup(arena, path),
			.from = arena_strdup(arena, from),
			.to = arena_strdup(arena, to)};
		all->first = lookup;
	}
	asker = memory_new(1, sizeof *asker);
	*asker = (struct asker){done, context, lookup->askers};
	lookup->askers = asker;
	start_next(all);
}
