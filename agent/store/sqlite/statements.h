/*
 * SQLite's words for statements and tables. Only SQLite has triggers that count the changes by
 * state, so that a start need not scan a million rows. The version of the tables is its
 * user_version.
 */
#ifndef AGENT_STORE_SQLITE_STATEMENTS_H
#define AGENT_STORE_SQLITE_STATEMENTS_H

#include "agent/store/sql/schema.h"

enum { STORE_APPLICATION = 0x48554e54 };

extern const struct sql_words sqlite_words;

#endif
