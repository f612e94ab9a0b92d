/*
 * Fields of CSV, as all commands print it.
 */
#ifndef AGENT_CSV_H
#define AGENT_CSV_H

#include <stdio.h>

/* A field of RFC 4180: quoted where it must be; always on one line. NULL is an empty one. */
void csv_put_text(const char *text, FILE *out);

/* A comma and the number, with 17 digits where it needs them. */
void csv_put_number(double value, FILE *out);

#endif
