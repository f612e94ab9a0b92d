/*
 * Checks passwords against bcrypt hashes, which takes a good part of a second, on a worker. One
 * that was right is remembered, as a keyed hash over name, password and the bcrypt hash: it is
 * right at once as long as the user has that hash. For the loop's thread.
 */
#ifndef AGENT_HTTP_PASSWORDS_H
#define AGENT_HTTP_PASSWORDS_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct passwords;
struct password_check;

struct password_claim {
	const char *user, *password;
	const char *hash; /* NULL: no such user; still costs `cost` */
	int cost;
	uint64_t origin; /* stands for an address, which has a share of the queue */
};

enum password_result { PASSWORD_RIGHT, PASSWORD_CHECKING, PASSWORD_BUSY /* the queue is full */ };

typedef void password_done(void *context, bool right);

struct passwords *passwords_new(struct engine *engine);
void passwords_free(struct passwords *passwords); /* after the engine's workers; accepts NULL */

/* Whether the password was right before. */
bool passwords_know(const struct passwords *passwords, const struct password_claim *claim);

/* With PASSWORD_CHECKING *check is set and `done` follows, unless the check is abandoned. */
enum password_result passwords_check(struct passwords *passwords,
	const struct password_claim *claim, password_done *done, void *context,
	struct password_check **check);
void passwords_abandon(struct password_check *check);

#endif
