/*
 * Sent messages that are to be edited or read; used by work.c.
 */
#ifndef AGENT_STORE_SQL_FOLLOW_UPS_H
#define AGENT_STORE_SQL_FOLLOW_UPS_H

#include "agent/store/sql/driver.h"

bool follow_ups_read(
	struct store_file *file, struct store_follow_ups *call, struct error *error) MUST_USE;
/* The names as a JSON array. */
const char *follow_ups_names(struct arena *arena, const struct strings *names);

bool follow_ups_amended(
	struct store_file *file, struct store_amended *call, struct error *error) MUST_USE;
bool follow_ups_send_anew(
	struct store_file *file, struct store_send_anew *call, struct error *error) MUST_USE;

#endif
