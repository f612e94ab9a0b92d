/* Pictures of changes and series, for rows of the page, wikis and tickets: SVG and PNG. */
#ifndef AGENT_WEB_PICTURES_H
#define AGENT_WEB_PICTURES_H

#include "agent/http/server.h"

/* For http_start, whose context is a struct pages that has an api. */
extern const struct route picture_routes[];

#endif
