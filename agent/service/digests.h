/* The times of digests. */
#ifndef AGENT_SERVICE_DIGESTS_H
#define AGENT_SERVICE_DIGESTS_H

#include "conf/config.h"

/* The digest's last time that is not after `now`, and the first one after it. */
int64_t digests_before(const struct digest_times *times, int64_t now);
int64_t digests_after(const struct digest_times *times, int64_t now);

#endif
