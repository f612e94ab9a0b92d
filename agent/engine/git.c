/*
 * The environment is above any configuration: no protocol is allowed, and a commit that a partial
 * clone lacks is not asked for (a git that does not know that variable is refused the protocol).
 * What the variables hold would be masked where git says it, so it is no figure.
 */
#include "agent/engine/git.h"

#include <string.h>

#include "agent/core/arena.h"
#include "agent/core/utf8.h"
#include "agent/engine/execution.h"

struct transfer git_transfer(
	struct arena *arena, const char *folder, const char *const *arguments, bool fetches)
{
	const char *const head[] = {"git", "-C", folder, "--no-pager", "-c",
		"log.showSignature=false", "-c", "core.fsmonitor=false", "-c",
		"core.hooksPath=/dev/null"};
	static const struct pair alone[] = {{"GIT_TERMINAL_PROMPT", "false"},
		{"GIT_ALLOW_PROTOCOL", ""}, {"GIT_NO_LAZY_FETCH", "true"}};
	enum { HEAD = sizeof head / sizeof *head };
	size_t count = 0;
	const char **command;

	while (arguments[count])
		count++;
	command = arena_array(arena, HEAD + count + 1, sizeof *command);
	memcpy(command, head, sizeof head);
	memcpy(command + HEAD, arguments, count * sizeof *command);
	return (struct transfer){.kind = TRANSFER_EXEC,
		.command = command,
		.body = "",
		.environment = {alone, fetches ? 1 : sizeof alone / sizeof *alone}};
}

const char *git_problem(struct arena *arena, const struct execution *execution)
{
	const struct reply *reply = &execution->reply;
	const char *said = reply->problem ? reply->problem : "it failed";

	if (reply->kind == REPLY_UNREACHABLE && reply->status == EXECUTION_NOT_FOUND)
		return "git is not installed";
	if (reply->kind == REPLY_ANSWER && strncmp(said, "fatal: ", 7) == 0)
		said += 7;
	return arena_printf(arena, "git: %s", git_text(arena, said, said + strlen(said), 200));
}

const char *git_text(struct arena *arena, const char *text, const char *end, size_t most)
{
	struct buf out = {0};
	size_t characters = 0;

	while (text < end && characters++ < most) {
		size_t size = utf8_length(text, (size_t)(end - text));

		if (size == 0 || utf8_is_control(text, size))
			buf_text(&out, "\xEF\xBF\xBD");
		else
			buf_append(&out, text, size);
		text += size ? size : 1;
	}
	if (text < end)
		buf_text(&out, "\xE2\x80\xA6");
	return buf_keep(&out, arena);
}
