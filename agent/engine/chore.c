/*
 * Those that may block have the lane for that, so a folder on a disk that hangs costs one thread
 * there.
 */
#include "agent/engine/chore.h"

#include <stdlib.h>

#include "agent/core/arena.h"

struct chore {
	struct job job;
	struct chores *owner;
	engine_call *work, *done;
	void *context;
	struct chore *next;
};

static struct chore *chore_of_job(struct job *job)
{
	return (struct chore *)((char *)job - offsetof(struct chore, job));
}

static void run(struct job *job, struct scratch *scratch)
{
	struct chore *chore = chore_of_job(job);

	(void)scratch;
	chore->work(chore->context);
}

static void ended(struct job *job)
{
	struct chore *chore = chore_of_job(job), kept = *chore;
	struct chore **link = &chore->owner->live;

	while (*link != chore)
		link = &(*link)->next;
	*link = chore->next;
	chore->owner->count--;
	free(chore);
	kept.done(kept.context);
}

void chores_begin(struct chores *chores, enum pool_lane lane, engine_call *work, engine_call *done,
	void *context)
{
	struct chore *chore = memory_new(1, sizeof *chore);

	*chore = (struct chore){.job = {.run = run, .done = ended},
		.owner = chores,
		.work = work,
		.done = done,
		.context = context,
		.next = chores->live};
	chores->live = chore;
	chores->count++;
	pool_submit(chores->pool, lane, &chore->job);
}

void chores_free(struct chores *chores)
{
	for (struct chore *chore = chores->live, *next; chore; chore = next) {
		next = chore->next;
		free(chore);
	}
	chores->live = NULL;
}
