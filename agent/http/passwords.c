/*
 * The lane for blocking calls is used, so that a sign-in does not wait for detection. Each check
 * owns copies of its input and wipes them.
 */
#include "agent/http/passwords.h"

#include <crypt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/secret.h"
#include "agent/base/sha256.h"
#include "agent/io/engine.h"

enum {
	AT_ONCE = 2,
	QUEUE = 16,
	OF_ONE_ORIGIN = 4, /* of the queue */
	REMEMBERED = 256,
	BCRYPT_TEXT = 64,
};

struct password_check {
	struct passwords *passwords;
	struct password_check *next, **link; /* all, in the order in which they came */
	char *user, *password;
	char hash[BCRYPT_TEXT];
	bool known, running, right;
	uint64_t origin;
	password_done *done; /* NULL: abandoned */
	void *context;
};

struct passwords {
	struct engine *engine;
	struct password_check *first, **last;
	size_t running;
	unsigned char key[SHA256_BYTES];
	unsigned char codes[REMEMBERED][SHA256_BYTES];
	size_t remembered; /* ever */
};

struct passwords *passwords_new(struct engine *engine)
{
	struct passwords *passwords = memory_new(1, sizeof *passwords);

	passwords->engine = engine;
	passwords->last = &passwords->first;
	if (getentropy(passwords->key, sizeof passwords->key) != 0)
		abort(); /* cannot fail for so few bytes */
	return passwords;
}

static void free_text(char *text)
{
	explicit_bzero(text, strlen(text));
	free(text);
}

static void drop(struct password_check *check)
{
	*check->link = check->next;
	if (check->next)
		check->next->link = check->link;
	else
		check->passwords->last = check->link;
	free_text(check->user);
	free_text(check->password);
	free(check);
}

void passwords_free(struct passwords *passwords)
{
	while (passwords && passwords->first)
		drop(passwords->first);
	if (passwords)
		explicit_bzero(passwords, sizeof *passwords);
	free(passwords);
}

static void code_of(const struct passwords *passwords, const char *user, const char *password,
	const char *hash, unsigned char code[SHA256_BYTES])
{
	struct buf text = {.secret = true};

	buf_append(&text, user, strlen(user) + 1);
	buf_append(&text, password, strlen(password) + 1);
	buf_text(&text, hash);
	sha256_hmac(passwords->key, sizeof passwords->key, text.data, text.length, code);
	buf_free(&text);
}

static bool is_remembered(
	const struct passwords *passwords, const char *user, const char *password, const char *hash)
{
	unsigned char code[SHA256_BYTES];
	size_t count = passwords->remembered < REMEMBERED ? passwords->remembered : REMEMBERED;
	bool found = false;

	code_of(passwords, user, password, hash, code);
	for (size_t i = 0; i < count; i++)
		found |= secret_same(passwords->codes[i], code, SHA256_BYTES);
	return found;
}

/* On a worker. */
static void work(void *context)
{
	struct password_check *check = context;
	struct crypt_data *data = memory_new(1, sizeof *data);
	const char *made = crypt_r(check->password, check->hash, data);

	check->right = made && strlen(made) == strlen(check->hash) &&
		       secret_same(made, check->hash, strlen(made)) && check->known;
	explicit_bzero(data, sizeof *data);
	free(data);
}

static void start_next(struct passwords *passwords);

static void finish(struct password_check *check, bool right)
{
	password_done *done = check->done;
	void *context = check->context;

	drop(check);
	if (done)
		done(context, right);
}

static void worked(void *context)
{
	struct password_check *check = context;
	struct passwords *passwords = check->passwords;

	passwords->running--;
	if (check->right && !is_remembered(passwords, check->user, check->password, check->hash))
		code_of(passwords, check->user, check->password, check->hash,
			passwords->codes[passwords->remembered++ % REMEMBERED]);
	finish(check, check->right);
	start_next(passwords);
}

/* Starts the next check; one that an earlier check has answered needs no work. */
static void start_next(struct passwords *passwords)
{
	struct password_check *check = passwords->first, *next;

	for (; check && passwords->running < AT_ONCE; check = next) {
		next = check->next;
		if (check->running)
			continue;
		if (check->known &&
			is_remembered(passwords, check->user, check->password, check->hash)) {
			finish(check, true);
			next = passwords->first; /* `done` may have changed the queue */
			continue;
		}
		check->running = true;
		passwords->running++;
		engine_run_blocking(passwords->engine, work, worked, check);
	}
}

/* Whether the queue, or the origin's share of it, is full. */
static bool is_full(const struct passwords *passwords, uint64_t origin)
{
	size_t all = 0, own = 0;

	for (const struct password_check *check = passwords->first; check; check = check->next) {
		all++;
		own += check->origin == origin;
	}
	return all >= QUEUE || own >= OF_ONE_ORIGIN;
}

bool passwords_know(const struct passwords *passwords, const struct password_claim *claim)
{
	return claim->hash && is_remembered(passwords, claim->user, claim->password, claim->hash);
}

enum password_result passwords_check(struct passwords *passwords,
	const struct password_claim *claim, password_done *done, void *context,
	struct password_check **out)
{
	struct password_check *check;

	if (passwords_know(passwords, claim))
		return PASSWORD_RIGHT;
	if (is_full(passwords, claim->origin))
		return PASSWORD_BUSY;
	check = memory_new(1, sizeof *check);
	*check = (struct password_check){.passwords = passwords,
		.link = passwords->last,
		.user = memory_strdup(claim->user),
		.password = memory_strdup(claim->password),
		.known = claim->hash != NULL,
		.origin = claim->origin,
		.done = done,
		.context = context};
	if (claim->hash)
		snprintf(check->hash, sizeof check->hash, "%s", claim->hash);
	else
		snprintf(check->hash, sizeof check->hash, "$2b$%02d$%.53s", claim->cost,
			"nobodynobodynobodynobOnobodynobodynobodynobodynobodyno");
	*passwords->last = check;
	passwords->last = &check->next;
	*out = check;
	start_next(passwords);
	return PASSWORD_CHECKING;
}

void passwords_abandon(struct password_check *check)
{
	check->done = NULL;
	if (!check->running)
		drop(check);
}
