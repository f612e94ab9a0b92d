/* A transaction, through which the files of this folder read and write. */
#ifndef AGENT_STORE_TX_H
#define AGENT_STORE_TX_H

#include "agent/store/store.h"

struct store_backend;  /* see agent/store/backend.h */
struct statement_slot; /* see agent/store/sql/statements.c */

/*
 * Values read in it lie in its arena. After a failure `error` is set and nothing more runs:
 * statements do nothing, there are no rows, and numbers are 0. So a function checks `failed` only
 * before other effects; the owner of the transaction checks it, and rolls back.
 */
struct tx {
	const struct store_backend *backend;
	const char *path;
	const char *label; /* "state file /var/lib/hunter-c/state.db": how errors begin */
	struct arena *arena;
	struct store_call *call; /* the one that is run, if it is one */
	struct error *error;
	bool failed;
	struct statement_slot *slots; /* the statements that were prepared; NULL: none */
};

/* Defines STORE_CALL(name): its constructor, and its work, with these other members. The body of
 * the function follows: of the transaction `tx`, and the struct store_NAME `call`. */
#define STORE_DEFINE(name, ...)                                                                    \
	static void perform_##name(struct tx *tx, struct store_##name *call);                      \
                                                                                                   \
	static void run_##name(struct tx *tx, void *call)                                          \
	{                                                                                          \
		perform_##name(tx, call);                                                          \
	}                                                                                          \
                                                                                                   \
	static void reply_##name(struct store_call *call)                                          \
	{                                                                                          \
		if (call->client)                                                                  \
			((void (*)(struct store_##name *))call->client)(                           \
				(struct store_##name *)call);                                      \
		else                                                                               \
			store_call_free(call);                                                     \
	}                                                                                          \
                                                                                                   \
	struct store_##name *store_##name##_new(                                                   \
		void (*client)(struct store_##name * name), void *context)                         \
	{                                                                                          \
		struct store_##name *typed = store_call_new(                                       \
			sizeof *typed, &store_##name##_work, reply_##name, context);               \
                                                                                                   \
		typed->call.client = (void (*)(void))client;                                       \
		return typed;                                                                      \
	}                                                                                          \
                                                                                                   \
	const struct store_work store_##name##_work = {.run = run_##name, __VA_ARGS__};            \
                                                                                                   \
	static void perform_##name(struct tx *tx, struct store_##name *call)

/* Sets the error, unless something has failed before. Always false. */
bool tx_fail(struct tx *tx, enum error_kind kind, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
