#include "agent/store/postgresql/servers.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/database.h"

enum { CONNECT_MS = 5000 };

static size_t count_of(const char *list)
{
	size_t count = 1;

	for (; list && *list; list++)
		count += *list == ',';
	return count;
}

/* Item i of a list with commas; of a list with one item that one; NULL: it is empty. */
static const char *item_of(struct arena *arena, const char *list, size_t i)
{
	size_t length;

	if (!list)
		return NULL;
	if (count_of(list) == 1)
		i = 0;
	for (; i > 0 && list; i--) {
		list = strchr(list, ',');
		list += list != NULL;
	}
	length = list ? strcspn(list, ",") : 0;
	return length > 0 ? arena_strndup(arena, list, length) : NULL;
}

static bool set_hosts(struct arena *arena, struct servers *servers, const char *names,
	const char *addresses, const char *ports, struct error *error)
{
	size_t count = count_of(addresses ? addresses : names);

	if ((names && addresses && count_of(names) != count) ||
		(count_of(ports) != 1 && count_of(ports) != count))
		return error_set(error, ERROR_USAGE,
			"state database %s: the numbers of hosts, ports and addresses differ",
			servers->shown);
	servers->hosts = arena_array(arena, count, sizeof *servers->hosts);
	servers->host_count = count;
	for (size_t i = 0; i < count; i++)
		servers->hosts[i] = (struct host){item_of(arena, names, i),
			item_of(arena, addresses, i), item_of(arena, ports, i)};
	/* It may be a piece of the password, which is not to be shown. */
	if (names && strchr(names, '@'))
		return error_set(error, ERROR_USAGE,
			"state database %s: host name contains '@'; write '@' in a password as "
			"%%40",
			servers->shown);
	return true;
}

/* The defaults detect within seconds that the other side is gone, which libpq would not do. */
static bool take_options(struct arena *arena, struct servers *servers,
	const PQconninfoOption *option, struct error *error)
{
	static const char *const defaults[][2] = {{"client_encoding", "UTF8"},
		{"fallback_application_name", "hunter-c"}, {"target_session_attrs", "read-write"},
		{"keepalives", "1"}, {"keepalives_idle", "5"}, {"keepalives_interval", "3"},
		{"keepalives_count", "3"}, {"tcp_user_timeout", "10000"}};
	const char *names = NULL, *addresses = NULL, *ports = NULL;
	long limit;

	for (; option->keyword; option++) {
		const char *key = arena_strdup(arena, option->keyword);
		const char *value = arena_strdup(arena, option->val);

		for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
			if ((!value || !*value) && strcmp(defaults[i][0], key) == 0)
				value = defaults[i][1];
		if (!value || !*value)
			continue;
		if (strcmp(key, "host") == 0) {
			names = value;
		} else if (strcmp(key, "hostaddr") == 0) {
			addresses = value;
		} else if (strcmp(key, "port") == 0) {
			ports = value;
		} else if (strcmp(key, "connect_timeout") == 0) {
			limit = strtol(value, NULL, 10);
			if (limit > 0 && limit < 3600)
				servers->connect_ms = limit * 1000;
		} else {
			if (servers->options + 2 >= OPTIONS_MOST)
				abort();
			servers->keys[servers->options] = key;
			servers->values[servers->options++] = value;
		}
	}
	return set_hosts(arena, servers, names, addresses, ports, error);
}

bool servers_parse(
	struct arena *arena, const char *address, struct servers *servers, struct error *error)
{
	char *problem = NULL;
	PQconninfoOption *options;
	bool done;

	*servers =
		(struct servers){.shown = database_shown(arena, address), .connect_ms = CONNECT_MS};
	address = database_address(arena, arena_strdup(arena, address), &servers->password_file);
	options = PQconninfoParse(address, &problem);
	if (!options) {
		/* Its words have pieces of the address, which may be a password. */
		PQfreemem(problem);
		return error_set(error, ERROR_USAGE,
			"state database %s: expected an address such as "
			"postgresql://user@host:port/database?parameter=value",
			servers->shown);
	}
	done = take_options(arena, servers, options, error);
	for (PQconninfoOption *option = options; option->keyword; option++)
		if (option->val)
			explicit_bzero(option->val, strlen(option->val));
	PQconninfoFree(options);
	return done;
}
