/*
 * Mail: submits a message to an SMTP server by libcurl.
 *
 * libcurl waits for the answers to the end of a message and to QUIT without returning control, even
 * with its multi interface. So this call blocks and is for a worker.
 */
#ifndef AGENT_IO_MAIL_H
#define AGENT_IO_MAIL_H

#include "agent/base/arena.h"
#include "agent/base/transfer.h"

/*
 * Blocks for up to the endpoint's timeout, plus seconds for QUIT. The reply is in the arena;
 * without an answer, REPLY_AMBIGUOUS: a part of the message was sent. libcurl must have been made
 * ready (transfers_prepare).
 */
void mail_send(const struct transfer *transfer, struct arena *arena, struct reply *reply);

/* "Subject: ..." with line breaks before blanks, so that lines have at most 76 characters where
 * possible; into the arena. */
const char *mail_fold(struct arena *arena, const char *name, const char *value);

#endif
