/*
 * Watches files (`watch: true`): a test runs as soon as its file has been written.
 *
 * inotify watches the files' folders, since a file may be replaced by another of its name and
 * need not exist yet. A burst of writes causes one run, after a short quiet period. Not noticed:
 * writes by other machines on a network file system, writes to the target of a symbolic link,
 * and a link on the path being replaced (as Kubernetes does with ..data). There the schedule
 * applies, as for all tests.
 */
#ifndef AGENT_SERVICE_FILE_TRIGGER_H
#define AGENT_SERVICE_FILE_TRIGGER_H

#include "agent/monitor/scheduler.h"

struct file_trigger;

/* Watches the files of the configuration in use, from HINT_LOOK on. NULL after a warning if inotify
 * is exhausted. */
struct file_trigger *file_trigger_new(struct agent *agent, struct scheduler *scheduler);
void file_trigger_free(struct file_trigger *files); /* accepts NULL */

#endif
