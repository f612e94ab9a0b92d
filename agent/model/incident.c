#include "agent/model/incident.h"

const char *const incident_cause_names[INCIDENT_CAUSES] = {
	"alone", "deployment", "environment", "cluster", "label", "time"};
