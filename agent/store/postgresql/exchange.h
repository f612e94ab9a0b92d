/*
 * A connection's statements in a pipeline with their answers, and loading of rows. Private to the
 * two files of a connection: this one, and connection.c with its life and transactions.
 */
#ifndef AGENT_STORE_POSTGRESQL_EXCHANGE_H
#define AGENT_STORE_POSTGRESQL_EXCHANGE_H

#include "agent/base/buf.h"
#include "agent/store/postgresql/connection.h"
#include "agent/store/postgresql/servers.h"

enum { WRITER_TEXT = 33, CONFIRMED_KEPT = 64 };

struct connection {
	struct arena *arena; /* has secrets */
	struct servers servers;
	size_t at; /* the host to try first */
	int64_t patience_ms;
	int64_t away_until; /* monotonic */

	PGconn *link; /* NULL: none */
	bool open, committing;
	bool reads;       /* the transaction, and does not write */
	bool number_sent; /* it has a number */
	bool doomed;      /* a statement of the open transaction has failed */
	bool proven;      /* the last answer was quick */
	bool loading;     /* rows are being sent, outside of the pipeline */
	bool said;        /* that it waits for an answer */
	size_t pending;   /* statements that were sent and have no answer yet */
	size_t ignored;   /* the same, before them, whose answers nobody waits for */
	int64_t changed;
	struct buf parsed; /* the statement that the server parsed last, in the open transaction */
	struct buf rows;   /* to be loaded */
	Oid parsed_types[PARAMETERS_MOST];
	int parsed_count;
	struct error problem; /* of the last failure, and its kind: */
	enum trouble trouble;

	bool numbered;
	char writer[WRITER_TEXT];
	int64_t number;                    /* of the last transaction */
	int64_t doubtful;                  /* its number; 0: none */
	int64_t confirmed[CONFIRMED_KEPT]; /* numbers that were in doubt, and were committed */
	size_t confirmed_count;
};

/* The last failure: the first line of the text, without the password. */
void connection_note(
	struct connection *connection, enum trouble trouble, const char *state, const char *text);
void connection_note_result(struct connection *connection, const PGresult *result);

/* Gives the connection up. A commit in progress is in doubt. A transaction stays open, so that
 * nothing else of it is sent, which would be outside of it on the next connection. */
void connection_drop(struct connection *connection);

/* Gives it up with libpq's message. Always false. */
bool connection_lost(struct connection *connection);

/* It took longer than the limit of `option`. */
void connection_note_late(
	struct connection *connection, const char *what, int64_t ms, const char *option);

/* An answer has come, which took so long. */
void connection_answered(int64_t us);

enum ready { READY, NOT_YET, TOO_LATE };

/* Waits a little, at most until then (monotonic). */
enum ready exchange_wait(PGconn *link, short events, int64_t deadline);

/* A statement, whose answer comes later; parameters may be NULL. */
bool exchange_queue(
	struct connection *connection, const char *sql, const struct parameters *parameters);

/* One without parameters, after all others were answered, whose answer nobody waits for. */
bool exchange_ignore(struct connection *connection, const char *sql);

/* Waits for the answers to all that was sent; the result of the last is for PQclear. NULL: one has
 * failed, or the connection is lost. */
PGresult *exchange_drain(struct connection *connection);
bool exchange_drained(struct connection *connection); /* the same without it */

#endif
