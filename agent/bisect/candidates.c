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
	LONGEST_NAME = 1000,
	LINES = 5,
};

enum stage {
	STAGE_FOLDER,
	STAGE_GOOD,
	STAGE_BAD,
	STAGE_BASE,
	STAGE_COMMITS,
	STAGE_FILTERS,
	STAGE_STATUS,
};

struct candidates_search {
	struct engine *engine;
	struct arena *arena; /* the caller's */
	struct candidates_request request;
	candidates_done *done;
	void *context;
	enum stage stage;
	bool as_tag; /* an unknown version is tried as a tag: "v1.2" */
	bool shallow, has_tree;
	const char *const *status; /* git's arguments */
	struct candidate_commits out;
	struct transfer transfer;
	struct execution execution;
};

static void step(struct candidates_search *search);

static struct strings copy_strings(struct arena *arena, const struct strings *strings)
{
	const char **items = arena_array(arena, strings->count, sizeof *items);

	for (size_t i = 0; i < strings->count; i++)
		items[i] = arena_strdup(arena, strings->items[i]);
	return (struct strings){items, strings->count};
}

void candidates_search_free(struct candidates_search *search)
{
	if (!search)
		return;
	buf_free(&search->execution.output);
	free(search);
}

static void finish(struct candidates_search *search, const struct error *error)
{
	struct candidate_commits *out = arena_alloc(search->arena, sizeof *out);
	candidates_done *done = search->done;
	void *context = search->context;

	*out = search->out;
	candidates_search_free(search);
	done(context, error ? NULL : out, error);
}

static void fail(struct candidates_search *search, enum error_kind kind, const char *text)
{
	struct error error;

	error_set(&error, kind, "%s", text);
	finish(search, &error);
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

/* "false\n/src/app/.git\n/src/app": whether it is shallow, the git folder, and the work tree that
 * it is in; outside of one git fails when it has printed the others. */
static bool take_folder(struct candidates_search *search)
{
	const char *shallow = printed(search), *tree;
	const char *folder = strchr(shallow, '\n');

	if (!folder || folder[1] != '/')
		return false;
	search->shallow = strncmp(shallow, "true\n", 5) == 0;
	tree = strchr(folder + 1, '\n');
	search->has_tree = tree != NULL;
	search->out.repository = tree ? tree + 1 : folder + 1;
	return true;
}

static bool is_version(const char *text)
{
	return *text >= '0' && *text <= '9' && strchr(text, '.');
}

static void unknown_commit(struct candidates_search *search, const char *name)
{
	fail(search, ERROR_USAGE,
		arena_printf(search->arena, "%s: \"%.200s\" names no commit%s",
			search->out.repository,
			git_text(search->arena, name, name + strlen(name), CANDIDATE_TEXT),
			search->shallow ? "; this clone is shallow, git fetch --unshallow "
					  "completes it"
					: ""));
}

/* Takes a resolved end of the range. False: it failed, or another name is tried. */
static bool take_commit(
	struct candidates_search *search, bool good, const char *name, const char **out)
{
	const char *id = printed(search);

	if (good && is_id(id, strlen(id))) {
		search->as_tag = false;
		*out = id;
		return true;
	}
	if (!search->as_tag && is_version(name)) {
		search->as_tag = true;
		step(search);
	} else {
		unknown_commit(search, name);
	}
	return false;
}

static void no_ancestor(struct candidates_search *search)
{
	const char *good = search->out.good, *bad = search->out.bad;

	if (search->shallow)
		fail(search, ERROR_DATA,
			arena_printf(search->arena,
				"%s: this clone is shallow and does not reach from %.12s back to "
				"%.12s; "
				"git fetch --unshallow completes it",
				search->out.repository, bad, good));
	else
		fail(search, ERROR_USAGE,
			arena_printf(search->arena, "%s: %.12s and %.12s have no commit in common",
				search->out.repository, good, bad));
}

/* Of ends that lie on different lines, their merge base is the good end. */
static bool take_base(struct candidates_search *search, bool good)
{
	const char *base = printed(search);

	if (good && strcmp(base, search->out.good) == 0)
		return true;
	if (!good || !is_id(base, strlen(base)) || search->shallow) {
		no_ancestor(search);
		return false;
	}
	if (strcmp(base, search->out.bad) == 0) {
		fail(search, ERROR_USAGE,
			arena_printf(search->arena,
				"the bad end %.12s is an ancestor of the good end %.12s: are they "
				"swapped?",
				base, search->out.good));
		return false;
	}
	search->out.base_of = search->out.good;
	search->out.good = base;
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
	size_t digits = (size_t)(stop[0] - text), figures = (size_t)(stop[3] - lines[3]);

	if (!is_id(text, digits) || figures == 0 || figures > 12 ||
		strspn(lines[3], "0123456789") != figures)
		return false;
	out->id = arena_strndup(arena, text, digits);
	out->merge = memchr(lines[1], ' ', (size_t)(stop[1] - lines[1])) != NULL;
	out->author = git_text(arena, lines[2], stop[2], CANDIDATE_TEXT);
	out->time = 1000 * strtoll(arena_strndup(arena, lines[3], figures), NULL, 10);
	out->subject = git_text(arena, lines[4], stop[4], CANDIDATE_TEXT);
	return true;
}

static void reverse(struct candidate_commit *items, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct candidate_commit item = items[i];

		items[i] = items[count - 1 - i];
		items[count - 1 - i] = item;
	}
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
	reverse(out->items, out->count);
	return true;
}

/* The bad end is the last of them, which it is not if it touches none of the paths. */
static bool take_commits(struct candidates_search *search)
{
	const struct buf *output = &search->execution.output;
	struct candidate_commits *out = &search->out;
	struct error error;

	if (!candidates_parse(search->arena, output->length ? output->data : "", output->length,
		    out, &error)) {
		finish(search, &error);
		return false;
	}
	if (out->count > 0) {
		out->bad = out->items[out->count - 1].id;
		return true;
	}
	fail(search, ERROR_USAGE,
		arena_printf(search->arena, "%s: no commit from %.12s to %.12s%s", out->repository,
			out->good, out->bad,
			search->request.paths.count > 0 ? " touches these paths" : ""));
	return false;
}

static const char *const status_arguments[] = {"--no-optional-locks", "status", "--porcelain",
	"--untracked-files=no", "--ignore-submodules=all", NULL};

/* Goes to the next stage; false: it has ended, or continues elsewhere. */
static bool next_stage(struct candidates_search *search, bool good)
{
	struct candidate_commits *out = &search->out;

	switch (search->stage) {
	case STAGE_FOLDER:
		if (!take_folder(search)) {
			fail(search,
				search->execution.reply.kind == REPLY_UNREACHABLE ? ERROR_DATA
										  : ERROR_USAGE,
				arena_printf(search->arena, "%s: %s", search->request.repository,
					git_problem(search->arena, &search->execution)));
			return false;
		}
		break;
	case STAGE_GOOD:
		if (!take_commit(search, good, search->request.good, &out->good))
			return false;
		break;
	case STAGE_BAD:
		if (!take_commit(search, good, search->request.bad, &out->bad))
			return false;
		if (strcmp(out->good, out->bad) == 0) {
			fail(search, ERROR_USAGE,
				arena_printf(search->arena,
					"the good and the bad end are the same commit, %.12s",
					out->good));
			return false;
		}
		break;
	case STAGE_BASE:
		if (!take_base(search, good))
			return false;
		break;
	case STAGE_COMMITS:
		if (!take_commits(search))
			return false;
		if (!search->has_tree) {
			finish(search, NULL);
			return false;
		}
		break;
	case STAGE_FILTERS:
		search->status = git_without_filters(
			search->arena, &search->execution.output, status_arguments);
		if (!git_listed_filters(&search->execution.reply) || !search->status) {
			finish(search, NULL);
			return false;
		}
		break;
	case STAGE_STATUS:
		out->dirty = good && search->execution.output.length > 0;
		finish(search, NULL);
		return false;
	}
	search->stage++;
	return true;
}

static void ended(struct execution *execution)
{
	struct candidates_search *search =
		(struct candidates_search *)((char *)execution -
					     offsetof(struct candidates_search, execution));
	const struct reply *reply = &execution->reply;
	bool certain = search->stage == STAGE_FOLDER || search->stage == STAGE_FILTERS ||
		       search->stage == STAGE_STATUS;
	/* Other stages accept 1 and 128 as answers. */
	bool broken = reply->kind != REPLY_ANSWER ||
		      (search->stage == STAGE_COMMITS && reply->status != 0);

	if (!certain && broken)
		fail(search, ERROR_DATA,
			arena_printf(search->arena, "%s: %s", search->out.repository,
				git_problem(search->arena, execution)));
	else if (next_stage(search, reply->kind == REPLY_ANSWER && reply->status == 0))
		step(search);
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
		"--format=tformat:%H%n%P%n%an%n%at%n%s",
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
	}
}

static void refuse_name(void *context)
{
	struct candidates_search *search = context;

	fail(search, ERROR_USAGE, "a commit name is empty or too long");
}

static bool is_name(const char *name)
{
	return *name && strlen(name) <= LONGEST_NAME;
}

struct candidates_search *candidates_find(struct engine *engine, struct arena *arena,
	const struct candidates_request *request, candidates_done *done, void *context)
{
	struct candidates_search *search = memory_new(1, sizeof *search);

	*search = (struct candidates_search){.engine = engine,
		.arena = arena,
		.request = {arena_strdup(arena, request->repository),
			arena_strdup(arena, request->good), arena_strdup(arena, request->bad),
			copy_strings(arena, &request->paths)},
		.done = done,
		.context = context};
	search->out.repository = search->request.repository;
	if (is_name(request->good) && is_name(request->bad))
		step(search);
	else
		engine_after(engine, 0, refuse_name, search);
	return search;
}
