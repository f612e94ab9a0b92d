/*
 * libpq gives a connection's failure as text only, so that is where words are looked for; the
 * program never leaves the C locale, and a server that speaks another language costs the advice and
 * nothing else. Failures of statements have SQLSTATE.
 */
#include "sources/postgres/errors.h"

#include <string.h>

#include "agent/core/secret.h"
#include "agent/core/utf8.h"

enum { LINE_SHOWN = 400 };

struct advice {
	const char *sign, *text;
};

const char *postgres_place(struct arena *arena, const PGconn *connection)
{
	const char *host = PQhost(connection), *port = PQport(connection), *db = PQdb(connection);
	return arena_printf(arena, "%s:%s/%s", host && *host ? host : "localhost",
		port && *port ? port : "5432", db && *db ? db : "");
}

const char *postgres_first_line(const struct session *session, const char *text)
{
	const char *password = PQpass(session->connection);
	const struct strings secrets = {&password, password ? 1 : 0};
	if (!text)
		return "";
	char *line = arena_strndup(session->query->arena, text, strcspn(text, "\r\n"));
	secret_mask(line, strlen(line), &secrets);
	line[utf8_cut(line, LINE_SHOWN)] = '\0';
	utf8_blank(line, ' ');
	return line;
}

/* Where a host has several addresses, libpq lists each attempt; the last tells most. */
static const char *last_attempt(const char *text)
{
	static const char attempt[] = "connection to server ";
	for (const char *at = text; (at = strstr(at, attempt)); at++)
		if (at == text || at[-1] == '\n')
			text = at;
	return text;
}

static const char *find_advice(const struct advice *advice, const char *text)
{
	for (; advice->sign; advice++)
		if (strstr(text, advice->sign))
			return advice->text;
	return "";
}

bool postgres_fail_connect(const struct session *session, struct error *error)
{
	static const struct advice known[] = {
		{"no password supplied", ": set password or password_file"},
		{"password authentication failed", ": check username and password"},
		{"no pg_hba.conf entry",
			": the server's pg_hba.conf lets nobody in from this host as this user to "
			"this database; if it says \"no encryption\", set sslmode: require"},
		{"pg_hba.conf rejects",
			": the server's pg_hba.conf keeps this user, host or database out"},
		{"Connection refused", ": is a server running there? check hostname and port"},
		{"could not translate host name", ": check hostname"},
		{"server does not support SSL", ": it has no TLS; sslmode asks for it"},
		{"root certificate file",
			": set sslrootcert to the certificate of the authority that signed the "
			"server's"},
		{"certificate verify failed",
			": the server's certificate is not signed by one of sslrootcert"},
		{"does not match host name",
			": hostname must be a name that is in the server's certificate, or use "
			"sslmode: verify-ca"},
		{"requires a valid client certificate", ": set sslcert and sslkey"},
		{"remaining connection slots", ": it has too many connections"},
		{"too many clients", ": it has too many connections"},
		{"No such file or directory",
			": no server has its socket there; set hostname to reach it by TCP"},
		{"expected authentication request", ": what listens there is not PostgreSQL"},
		{"received invalid response", ": what listens there is not PostgreSQL"},
		{"database \"", ": check database"},
		{"role \"", ": check username"},
		{NULL, NULL},
	};
	const char *text = last_attempt(PQerrorMessage(session->connection));
	return error_set(error, ERROR_DATA, "%s: %s%s", session->place,
		postgres_first_line(session, text), find_advice(known, text));
}

bool postgres_fail_lost(const struct session *session, struct error *error)
{
	return error_set(error, ERROR_DATA, "%s: the connection broke: %s", session->place,
		postgres_first_line(session, PQerrorMessage(session->connection)));
}

static bool fail_status(const struct session *session, const PGresult *result, struct error *error)
{
	switch ((int)PQresultStatus(result)) {
	case PGRES_COPY_IN:
	case PGRES_COPY_OUT:
	case PGRES_COPY_BOTH:
		return error_set(error, ERROR_USAGE,
			"%s: COPY is not possible here: the statement must be a SELECT",
			session->place);
	case PGRES_EMPTY_QUERY:
		return error_set(error, ERROR_USAGE, "%s: the statement is empty", session->place);
	default: return postgres_fail_lost(session, error);
	}
}

bool postgres_fail_result(
	const struct session *session, const PGresult *result, struct error *error)
{
	static const struct advice known[] = {
		{"25006", ": reading happens in a read-only transaction; the query must not write"},
		{"57014", ": it took longer than timeout or statement_timeout; narrow the query "
			  "down, "
			  "or raise them"},
		{"42501", ": grant the user what it needs (SELECT to read)"},
		{"42P01", ": check the table's name, its schema (search_path) and database"},
		{"42P18", ": give the placeholder a type, like %{BRANCH}::text"},
		{"42883", ": if it is about a placeholder, cast it: %{BRANCH}::text"},
		{NULL, NULL},
	};
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	if (!said)
		return fail_status(session, result, error);
	if (!state)
		state = "";
	const char *advice = find_advice(known, state);
	if (strstr(said, "multiple commands"))
		advice = ": one statement is possible, without a second one behind a semicolon";
	else if (!*advice && hint)
		advice = arena_printf(
			session->query->arena, " (%s)", postgres_first_line(session, hint));
	return error_set(error, ERROR_DATA, "%s: SQLSTATE %s: %s%s", session->place, state,
		postgres_first_line(session, said), advice);
}
