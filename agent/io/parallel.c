#include "agent/io/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "agent/base/cpus.h"

enum { MOST_THREADS = 64 };

struct shift {
	void (*part)(void *argument, size_t index);
	void *argument;
	size_t count;
	atomic_size_t next;
};

static void *work(void *context)
{
	struct shift *shift = context;
	size_t index;

	while ((index = atomic_fetch_add(&shift->next, 1)) < shift->count)
		shift->part(shift->argument, index);
	return NULL;
}

/* Works with fewer threads if some cannot be started. */
static void run(
	void *context, void (*part)(void *argument, size_t index), void *argument, size_t count)
{
	const struct team *team = context;
	struct shift shift = {.part = part, .argument = argument, .count = count};
	pthread_t threads[MOST_THREADS];
	size_t started = 0;

	while (started + 1 < team->threads && started + 1 < count &&
		pthread_create(&threads[started], NULL, work, &shift) == 0)
		started++;
	work(&shift);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

struct parallel team_parallel(struct team *team)
{
	if (team->threads == 0)
		team->threads = cpus_count();
	if (team->threads > MOST_THREADS)
		team->threads = MOST_THREADS;
	return (struct parallel){run, team};
}
