/*
 * Uses a signalfd. SIGPIPE and SIGXFSZ are ignored: a write to a pipe without a reader fails
 * with EPIPE, one beyond RLIMIT_FSIZE with EFBIG.
 */
#include "agent/io/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

void signals_hold_hangup(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

bool signals_catch(struct signals *signals, bool hangup, struct error *error)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (hangup)
		sigaddset(&set, SIGHUP);
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd < 0)
		return error_set(error, ERROR_STATE, "signalfd: %s", strerror(errno));
	pthread_sigmask(SIG_BLOCK, &set, &signals->before);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return true;
}

void signals_restore(struct signals *signals)
{
	if (signals->fd < 0)
		return;
	close(signals->fd);
	pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
}

int signals_take(struct signals *signals)
{
	struct signalfd_siginfo info;

	return read(signals->fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}
