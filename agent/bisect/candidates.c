/* Runs one git after the other, each with the results of those before it. */
#include "agent/bisect/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/bisect/bisection.h"
#include "agent/io/engine.h"
#include "agent/io/execution.h"
#include "agent/io/git.h"

enum {
	WITHIN = 60000,        /* ms */
	MOST_BYTES = 16 << 20, /* of git's output */
	LINES = 3,
};

enum stage {
	STAGE_FOLDER,
	STAGE_GOOD,
	STAGE_BAD,
	STAGE_BASE,
	STAGE_COMMITS,
	STAGE_FILTERS,
	STAGE_STATUS,
	STAGE_END,
};

struct candidates_search {
	struct execution execution; /* must be first */
	struct engine *engine;
	struct arena *arena; /* the caller's */
	struct candidates_request request;
	candidates_done *done;
	void *context;
	enum stage stage;
	bool as_tag; /* an unknown version is tried as a tag: "v1.2" */
	bool shallow;
	const char *const *status; /* git's arguments */
	struct candidate_commits out;
	struct transfer transfer;
};

void candidates_search_free(struct candidates_search *search)
{
	if (!search)
		return;
	buf_free(&search->execution.output);
	free(search);
}

/* Its output without the final newline. */
static const char *printed(struct candidates_search *search)
{
	const struct buf *output = &search->execution.output;
	size_t length = output->length;

	while (length > 0 && output->data[length - 1] == '\n')
		length--;
	return length ? arena_strndup(search->arena, output->data, length) : "";
}

static bool is_id(const char *text, size_t length)
{
	return (length == 40 || length == CANDIDATE_ID) &&
	       strspn(text, "0123456789abcdef") >= length;
}

/* Takes a resolved end of the range; or has a version tried as a tag. */
static bool take_commit(struct candidates_search *search, bool good, const char *name,
	const char **out, struct error *error)
{
	const char *id = printed(search);

	if (good && is_id(id, strlen(id))) {
		search->as_tag = false;
		search->stage++;
		*out = id;
		return true;
	}
	if (!search->as_tag && *name >= '0' && *name <= '9' && strchr(name, '.')) {
		search->as_tag = true;
		return true;
	}
	return error_set(error, ERROR_USAGE, "%s: \"%.200s\" names no commit%s",
		search->out.repository,
		git_text(search->arena, name, name + strlen(name), CANDIDATE_TEXT),
		search->shallow ? "; this clone is shallow, git fetch --unshallow completes it"
				: "");
}

/* Of ends that lie on different lines, their merge base is the good end. */
static bool take_base(struct candidates_search *search, bool good, struct error *error)
{
	struct candidate_commits *out = &search->out;
	const char *base = printed(search);

	if (good && strcmp(base, out->good) == 0)
		return true;
	if (search->shallow)
		return error_set(error, ERROR_DATA,
			"%s: this clone is shallow and does not reach from %.12s back to %.12s; "
			"git fetch --unshallow completes it",
			out->repository, out->bad, out->good);
	if (!good || !is_id(base, strlen(base)))
		return error_set(error, ERROR_USAGE, "%s: %.12s and %.12s have no commit in common",
			out->repository, out->good, out->bad);
	if (strcmp(base, out->bad) == 0)
		return error_set(error, ERROR_USAGE,
			"the bad end %.12s is an ancestor of the good end %.12s: are they swapped?",
			base, out->good);
	out->base_of = out->good;
	out->good = base;
	return true;
}

static bool parse_one(
	struct arena *arena, const char *text, const char *end, struct candidate_commit *out)
{
	const char *lines[LINES] = {text}, *stop[LINES];

	for (size_t i = 0; i < LINES; i++) {
		stop[i] = i == LINES - 1 ? end : memchr(lines[i], '\n', (size_t)(end - lines[i]));
		if (!stop[i])
			return false;
		if (i < LINES - 1)
			lines[i + 1] = stop[i] + 1;
	}
	size_t digits = (size_t)(stop[0] - text);

	if (!is_id(text, digits))
		return false;
	out->id = arena_strndup(arena, text, digits);
	out->merge = memchr(lines[1], ' ', (size_t)(stop[1] - lines[1])) != NULL;
	out->subject = git_text(arena, lines[2], stop[2], CANDIDATE_TEXT);
	return true;
}

bool candidates_parse(struct arena *arena, const char *text, size_t length,
	struct candidate_commits *out, struct error *error)
{
	const char *end = text + length;
	size_t most = 0;

	for (const char *at = text; at < end; at++)
		most += !*at;
	if (most > BISECT_CANDIDATES_MOST)
		return error_set(error, ERROR_USAGE,
			"the range has more than %d commits: choose a smaller range, or restrict "
			"it with --paths",
			BISECT_CANDIDATES_MOST);
	out->items = arena_array(arena, most, sizeof *out->items);
	out->count = 0;
	while (text < end) {
		const char *stop = memchr(text, '\0', (size_t)(end - text));

		if (!stop || !parse_one(arena, text, stop, &out->items[out->count]))
			return error_set(
				error, ERROR_DATA, "git printed something other than commits");
		out->count++;
		text = stop + 1;
	}
	for (size_t i = 0; i < out->count / 2; i++) { /* the oldest first */
		struct candidate_commit item = out->items[i];

		out->items[i] = out->items[out->count - 1 - i];
		out->items[out->count - 1 - i] = item;
	}
	return true;
}

static const char *const status_arguments[] = {"--no-optional-locks", "status", "--porcelain",
	"--untracked-files=no", "--ignore-submodules=all", NULL};

/* Takes git's output and goes to the next stage. */
static bool next_stage(struct candidates_search *search, bool good, struct error *error)
{
	struct candidate_commits *out = &search->out;
	const struct buf *output = &search->execution.output;
	const char *shallow, *folder, *tree;

	switch (search->stage) {
	case STAGE_FOLDER:
		/* "false\n/src/app/.git\n/src/app": whether it is shallow, the git folder, and the
		 * work tree that it is in; outside of one git fails when it has printed the others.
		 */
		shallow = printed(search);
		folder = strchr(shallow, '\n');
		if (!folder || folder[1] != '/')
			return error_set(error,
				search->execution.reply.kind == REPLY_UNREACHABLE ? ERROR_DATA
										  : ERROR_USAGE,
				"%s: %s", search->request.repository,
				git_problem(search->arena, &search->execution));
		search->shallow = strncmp(shallow, "true\n", 5) == 0;
		tree = strchr(folder + 1, '\n');
		search->status = tree ? status_arguments : NULL;
		out->repository = tree ? tree + 1 : folder + 1;
		break;
	case STAGE_GOOD: return take_commit(search, good, search->request.good, &out->good, error);
	case STAGE_BAD:
		return take_commit(search, good, search->request.bad, &out->bad, error) &&
		       (!out->bad || strcmp(out->good, out->bad) != 0 ||
			       error_set(error, ERROR_USAGE,
				       "the good and the bad end are the same commit, %.12s",
				       out->good));
	case STAGE_BASE:
		if (!take_base(search, good, error))
			return false;
		break;
	case STAGE_COMMITS:
		/* The bad end is the last of them, which it is not if it touches none of the paths.
		 */
		if (!candidates_parse(search->arena, output->length ? output->data : "",
			    output->length, out, error))
			return false;
		if (out->count == 0)
			return error_set(error, ERROR_USAGE, "%s: no commit from %.12s to %.12s%s",
				out->repository, out->good, out->bad,
				search->request.paths.count > 0 ? " touches these paths" : "");
		out->bad = out->items[out->count - 1].id;
		if (!search->status)
			search->stage = STAGE_STATUS;
		break;
	case STAGE_FILTERS:
		search->status = git_without_filters(search->arena, output, search->status);
		if (!git_listed_filters(&search->execution.reply) || !search->status)
			search->stage = STAGE_STATUS;
		break;
	case STAGE_STATUS: out->dirty = good && output->length > 0; break;
	case STAGE_END: break;
	}
	search->stage++;
	return true;
}

static void step(struct candidates_search *search);

static void ended(struct execution *execution)
{
	struct candidates_search *search = (struct candidates_search *)execution;
	const struct reply *reply = &execution->reply;
	bool certain = search->stage == STAGE_FOLDER || search->stage == STAGE_FILTERS ||
		       search->stage == STAGE_STATUS;
	/* Other stages accept 1 and 128 as answers. */
	bool broken = reply->kind != REPLY_ANSWER ||
		      (search->stage == STAGE_COMMITS && reply->status != 0);
	struct candidate_commits *out;
	candidates_done *done = search->done;
	void *context = search->context;
	struct error error;
	bool good;

	if (!certain && broken)
		good = error_set(&error, ERROR_DATA, "%s: %s", search->out.repository,
			git_problem(search->arena, execution));
	else
		good = next_stage(
			search, reply->kind == REPLY_ANSWER && reply->status == 0, &error);
	if (good && search->stage != STAGE_END) {
		step(search);
		return;
	}
	out = arena_alloc(search->arena, sizeof *out);
	*out = search->out;
	candidates_search_free(search);
	if (good)
		done(context, out, NULL);
	else
		done(context, NULL, &error);
}

static void execute(struct candidates_search *search, const char *const *arguments)
{
	buf_free(&search->execution.output);
	search->transfer =
		git_transfer(search->arena, search->request.repository, arguments, false);
	search->transfer.most_output = MOST_BYTES;
	search->transfer.timeout = WITHIN;
	engine_execute(search->engine, &search->execution, &search->transfer, ended);
}

static void resolve(struct candidates_search *search, const char *name)
{
	const char *const arguments[] = {"rev-parse", "--verify", "--end-of-options",
		arena_printf(search->arena, "%s%s^{commit}", search->as_tag ? "v" : "", name),
		NULL};

	execute(search, arguments);
}

static void list_commits(struct candidates_search *search)
{
	const struct strings *paths = &search->request.paths;
	const char *const head[] = {"log", "-z", "--first-parent", "--no-color", "--no-decorate",
		"--no-notes", "--no-show-signature", "--encoding=UTF-8", "--no-patch",
		"--format=tformat:%H%n%P%n%s",
		arena_printf(search->arena, "--max-count=%d", BISECT_CANDIDATES_MOST + 1),
		"--end-of-options",
		arena_printf(search->arena, "%s..%s", search->out.good, search->out.bad), "--"};
	enum { HEAD = sizeof head / sizeof *head };
	const char **arguments =
		arena_array(search->arena, HEAD + paths->count + 1, sizeof *arguments);

	memcpy(arguments, head, sizeof head);
	for (size_t i = 0; i < paths->count; i++)
		arguments[HEAD + i] = paths->items[i];
	execute(search, arguments);
}

static void step(struct candidates_search *search)
{
	const struct candidate_commits *out = &search->out;
	const char *const folder[] = {"rev-parse", "--is-shallow-repository",
		"--path-format=absolute", "--git-common-dir", "--show-toplevel", NULL};
	const char *const base[] = {"merge-base", out->good, out->bad, NULL};

	switch (search->stage) {
	case STAGE_FOLDER: execute(search, folder); break;
	case STAGE_GOOD: resolve(search, search->request.good); break;
	case STAGE_BAD: resolve(search, search->request.bad); break;
	case STAGE_BASE: execute(search, base); break;
	case STAGE_COMMITS: list_commits(search); break;
	case STAGE_FILTERS: execute(search, git_filters); break;
	case STAGE_STATUS: execute(search, search->status); break;
	case STAGE_END: break;
	}
}

struct candidates_search *candidates_find(struct engine *engine, struct arena *arena,
	const struct candidates_request *request, candidates_done *done, void *context)
{
	struct candidates_search *search = memory_new(1, sizeof *search);

	*search = (struct candidates_search){.engine = engine,
		.arena = arena,
		.request = *request,
		.done = done,
		.context = context,
		.out.repository = request->repository};
	step(search);
	return search;
}
