/*
 * Those that may block have the lane for that, so a folder on a disk that hangs costs one thread
 * there.
 */
#include "agent/engine/background.h"

#include <stdlib.h>

#include "agent/core/arena.h"

struct background_call {
	struct job job;
	struct background *owner;
	engine_call *work, *done;
	void *context;
	struct background_call *next;
};

static struct background_call *chore_of_job(struct job *job)
{
	return (struct background_call *)((char *)job - offsetof(struct background_call, job));
}

static void run(struct job *job, struct scratch *scratch)
{
	struct background_call *call = chore_of_job(job);

	(void)scratch;
	call->work(call->context);
}

static void ended(struct job *job)
{
	struct background_call *call = chore_of_job(job), kept = *call;
	struct background_call **link = &call->owner->live;

	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	call->owner->count--;
	free(call);
	kept.done(kept.context);
}

void background_begin(struct background *background, enum pool_lane lane, engine_call *work,
	engine_call *done, void *context)
{
	struct background_call *call = memory_new(1, sizeof *call);

	*call = (struct background_call){.job = {.run = run, .done = ended},
		.owner = background,
		.work = work,
		.done = done,
		.context = context,
		.next = background->live};
	background->live = call;
	background->count++;
	pool_submit(background->pool, lane, &call->job);
}

void background_free(struct background *background)
{
	for (struct background_call *call = background->live, *next; call; call = next) {
		next = call->next;
		free(call);
	}
	background->live = NULL;
}
