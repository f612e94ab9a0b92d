/*
 * One change and what is related to it; used by work.c.
 */
#ifndef AGENT_STORE_SQL_STORY_H
#define AGENT_STORE_SQL_STORY_H

#include "agent/store/sql/driver.h"

bool story_load(struct store_file *file, struct store_story *call, struct error *error) MUST_USE;

#endif
