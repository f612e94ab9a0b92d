#include "agent/model/incident.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/model/columns.h"

const char *const incident_cause_names[INCIDENT_CAUSES] = {
	"alone", "deployment", "environment", "cluster", "label", "time"};

bool incident_parse(const char *text, int64_t *id)
{
	const char *digits = text + (*text == 'i');
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(digits, &end, 10);
	*id = (int64_t)number;
	return *digits >= '1' && *digits <= '9' && !*end && errno == 0 && number < ROWS_MOST;
}
