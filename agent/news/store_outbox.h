/*
 * The outbox apart from filling it: payloads when they are needed, and deliveries that have lost
 * their receiver.
 */
#ifndef AGENT_STORE_OUTBOX_H
#define AGENT_STORE_OUTBOX_H

#include "agent/news/store_file.h"

bool store_payloads(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;
bool store_reopen(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;

#endif
