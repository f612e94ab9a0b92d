/*
 * The protocol is one datagram of KEY=VALUE lines to the socket named by NOTIFY_SOCKET; a leading @
 * stands for the abstract namespace. Datagrams are not retried: systemd either receives one or is
 * not running.
 */
#include "agent/service/systemd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/clock.h"

struct systemd {
	struct agent *agent;
	int fd;
	struct sockaddr_un address;
	socklen_t size;
	int64_t pulse; /* ms between watchdog notifications, 0: no watchdog */
	bool alive;    /* watchdog notifications have started */
	bool asked;    /* waiting for the store's answer */
	char *problem; /* of the last reload, if it failed */
};

static bool set_address(struct systemd *systemd, const char *path)
{
	size_t length = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || length < 2 ||
		length >= sizeof systemd->address.sun_path)
		return false;
	systemd->address.sun_family = AF_UNIX;
	memcpy(systemd->address.sun_path, path, length);
	if (path[0] == '@')
		systemd->address.sun_path[0] = '\0';
	systemd->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	return true;
}

struct systemd *systemd_new(struct agent *agent, config_env *env, void *env_context)
{
	const char *path = env(env_context, "NOTIFY_SOCKET");
	const char *timeout = env(env_context, "WATCHDOG_USEC");
	const char *process = env(env_context, "WATCHDOG_PID"); /* for which it is meant */
	struct systemd *systemd;

	if (!path)
		return NULL;
	systemd = memory_new(1, sizeof *systemd);
	*systemd = (struct systemd){.agent = agent, .fd = -1};
	if (set_address(systemd, path))
		systemd->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	else
		errno = EINVAL;
	if (systemd->fd < 0) {
		log_event(LEVEL_WARN, "cannot notify systemd", LOG_TEXT("NOTIFY_SOCKET", path),
			LOG_TEXT("problem", strerror(errno)));
		free(systemd);
		return NULL;
	}
	if (timeout && (!process || strtoll(process, NULL, 10) == getpid()))
		systemd->pulse = strtoll(timeout, NULL, 10) / 1000 / 2;
	return systemd;
}

void systemd_free(struct systemd *systemd)
{
	if (!systemd)
		return;
	close(systemd->fd);
	free(systemd->problem);
	free(systemd);
}

static void send_state(const struct systemd *systemd, struct buf *text)
{
	if (sendto(systemd->fd, text->data, text->length, MSG_NOSIGNAL,
		    (const struct sockaddr *)&systemd->address, systemd->size) < 0)
		log_event(
			LEVEL_DEBUG, "cannot notify systemd", LOG_TEXT("problem", strerror(errno)));
	buf_free(text);
}

/* The status line of `systemctl status`. */
static void put_status(const struct systemd *systemd, struct buf *text)
{
	const struct agent *agent = systemd->agent;
	const char *problem = agent->store_error.text;
	size_t tests = 0;

	if (agent->store_error.kind != ERROR_NONE) {
		buf_printf(text, "STATUS=not ready: %.*s\n", (int)strcspn(problem, "\n"), problem);
		return;
	}
	for (size_t i = 0; i < agent->config_ref->test_count; i++)
		tests += !agent->config_ref->tests[i]->unsupported;
	buf_printf(text, "STATUS=monitoring %zu tests", tests);
	problem = systemd->problem;
	if (problem)
		buf_printf(text, ", reload failed, previous configuration in use: %.*s",
			(int)strcspn(problem, "\n"), problem);
	buf_char(text, '\n');
}

static void answered(struct store_known *known)
{
	struct systemd *systemd = known->call.context;
	struct buf text = {0};

	store_call_free(&known->call);
	systemd->asked = false;
	buf_text(&text, "WATCHDOG=1\n");
	put_status(systemd, &text);
	send_state(systemd, &text);
}

/*
 * The answer comes through the loop, so it proves that loop and store are alive. It bypasses the
 * store client: a successful read does not prove that the store can be written.
 */
static void ask(void *context)
{
	struct systemd *systemd = context;
	struct store_known *known;

	engine_after(systemd->agent->engine, systemd->pulse, ask, systemd);
	if (systemd->asked)
		return;
	systemd->asked = true;
	known = store_known_new(answered, systemd);
	known->test = "";
	store_submit(systemd->agent->store, &known->call);
}

void systemd_ready(struct systemd *systemd)
{
	struct buf text = {0};

	if (!systemd)
		return;
	buf_text(&text, "READY=1\n");
	put_status(systemd, &text);
	send_state(systemd, &text);
	if (systemd->pulse > 0 && !systemd->alive)
		ask(systemd);
	systemd->alive = true;
}

void systemd_reloaded(struct systemd *systemd, const char *problem)
{
	if (!systemd)
		return;
	free(systemd->problem);
	systemd->problem = problem ? memory_strdup(problem) : NULL;
	systemd_ready(systemd);
}

void systemd_reloading(struct systemd *systemd)
{
	struct buf text = {0};

	if (!systemd)
		return;
	buf_printf(&text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n", clock_monotonic_ns() / 1000);
	send_state(systemd, &text);
}

void systemd_stopping(struct systemd *systemd)
{
	struct buf text = {0};

	if (!systemd)
		return;
	buf_text(&text, "STOPPING=1\nSTATUS=finishing deliveries in progress\n");
	send_state(systemd, &text);
}
