/*
 * A connection to the PostgreSQL database that has the state, directly or through PgBouncer in
 * transaction mode: nothing is left in a session from one transaction to the next.
 *
 * It connects when it is used, comes back by itself, and of several hosts takes the first that
 * takes writes. All functions block the calling thread, but never longer than the connection's
 * patience for an answer, or its limit for each host that is tried, whatever the network does.
 *
 * Statements are sent one after the other without waiting (connection_send), until an answer is
 * needed (connection_ask, connection_changed, connection_commit): an error of one that was sent is
 * an error of the next that waits.
 *
 * Whether a transaction was committed whose answer is lost is found out by asking: each writes its
 * number into the writer's row of the table `commits`. Asking about a number also refuses it, so
 * that what is still on its way to a server can no longer be committed.
 */
#ifndef AGENT_STORE_POSTGRESQL_CONNECTION_H
#define AGENT_STORE_POSTGRESQL_CONNECTION_H

#include "agent/base/error.h"
#include "agent/store/postgresql/values.h"

struct connection;
struct store_traffic;
struct tx;

/* The cause of the last failure. */
enum trouble {
	TROUBLE_NONE,
	TROUBLE_STATEMENT, /* the statement, or its input */
	TROUBLE_CONFLICT,  /* other transactions: it may be done again at once */
	TROUBLE_AWAY,      /* no server that takes writes, or it did not answer in time */
	TROUBLE_DOUBT,     /* the same, and whether it was committed is not known yet */
};

/* Parses the address (see agent/base/database.h) and does not connect yet. NULL and ERROR_USAGE if
 * it is malformed. */
struct connection *connection_new(const char *address, struct error *error);
void connection_free(struct connection *connection); /* accepts NULL */

/* That of a handle of the state. */
struct connection *connection_of(struct tx *tx);

/* The time limit of an answer, ms; CONNECTION_PATIENCE is the default. In a transaction for the
 * rest of it. With a longer limit waits are logged. CONNECTION_PATIENCE_LONG is for reads or writes
 * of the whole state. */
enum { CONNECTION_PATIENCE = 30000, CONNECTION_PATIENCE_LONG = 120000 };
void connection_patience(struct connection *connection, int64_t ms);

/* Transactions that write are numbered from now on; the table `commits` is there. */
void connection_number(struct connection *connection);

enum transaction {
	TRANSACTION_READS,  /* of one moment, read-only */
	TRANSACTION_WRITES, /* serializable */
	TRANSACTION_PLAIN,  /* its statements each see the latest commits; it may write, and is not
			       numbered */
};

/*
 * Nothing may be waited for, so that errors may come later. After a failure connection_rollback,
 * which accepts that no transaction is open.
 */
bool connection_begin(struct connection *connection, enum transaction kind) MUST_USE;
bool connection_commit(struct connection *connection) MUST_USE;
void connection_rollback(struct connection *connection);

/* The number of the open transaction that writes; 0: none, or not numbered. */
int64_t connection_transaction(const struct connection *connection);

/* Whether the transaction of that number, whose outcome was in doubt, was committed after all.
 * Known once another has begun. */
bool connection_has_committed(const struct connection *connection, int64_t number);

/* Sends a statement of the open transaction without waiting for its answer. The parameters are
 * copied. Outside of transactions it waits. */
bool connection_send(struct connection *connection, const char *sql,
	const struct parameters *parameters) MUST_USE;

/* Runs a statement, in the open transaction or else in one of its own, which is repeated a few
 * times on conflicts, and returns its result, for PQclear; NULL if it failed. Parameters may be
 * NULL. */
PGresult *connection_ask(struct connection *connection, const char *sql,
	const struct parameters *parameters) MUST_USE;

/* The same without a result. */
bool connection_run(struct connection *connection, const char *sql,
	const struct parameters *parameters) MUST_USE;

/* Many rows at once, in the open transaction: "COPY table (columns) FROM STDIN (FORMAT binary)",
 * then each connection_send is a row of its parameters, with exactly the columns' types. Nothing
 * else is sent until the end, which waits for the answer. */
bool connection_load_begin(struct connection *connection, const char *sql) MUST_USE;
bool connection_load_end(struct connection *connection) MUST_USE;

/* How many rows the last statement of the open transaction wrote; 0, too, if something failed. */
int64_t connection_changed(struct connection *connection);

/* Of the last failure, and its message without the address, never NULL; and that as an error with
 * it: always false. */
enum trouble connection_trouble(const struct connection *connection);
const char *connection_problem(const struct connection *connection);
bool connection_fail(const struct connection *connection, struct error *error);

/* Of all connections of the process. */
void connection_traffic(struct store_traffic *out);

/* A transaction is done again. */
void connection_retried(void);

#endif
