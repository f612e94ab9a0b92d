/*
 * Files that are watched (`watch: true`): a test whose file has been written is run at once.
 *
 * The kernel is asked about the files' folders, since a file may be replaced by another of its name
 * and need not be there yet. A burst of writes is one run, when nothing was written for a moment. A
 * network file system tells nothing of what other machines write, and symbolic links are not
 * followed: what is written to their targets, or seen elsewhere as one on the way is moved (as
 * Kubernetes does with ..data), is not heard of. There, as for all tests, the schedule remains.
 */
#ifndef AGENT_SERVICE_FILE_TRIGGER_H
#define AGENT_SERVICE_FILE_TRIGGER_H

#include "agent/monitor/scheduler.h"

struct file_trigger;

/* NULL after a warning if the kernel has no room for it; all functions accept that. */
struct file_trigger *file_trigger_new(struct agent *agent, struct scheduler *watch);
void file_trigger_free(struct file_trigger *files);

/* Watches what the agent's generation says, and no longer what it does not. */
void file_trigger_follow(struct file_trigger *files);

#endif
