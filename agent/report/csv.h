/*
 * CSV fields, as printed by all commands.
 */
#ifndef AGENT_REPORT_CSV_H
#define AGENT_REPORT_CSV_H

#include <stdbool.h>
#include <stdio.h>

#include "agent/model/change.h"

struct attribution;

#define CSV_FORMULAS_HELP                                                                          \
	"print CSV cells that begin with =, +, - or @ unchanged; by default an apostrophe is put " \
	"before them, since spreadsheets run them as formulas"

/* A field of RFC 4180: quoted if necessary, always on one line. NULL is an empty field. Unless
 * `formulas`, text that a spreadsheet would take for a formula, and that is no number, gets an
 * apostrophe in front. */
void csv_put_text(const char *text, bool formulas, FILE *out);
/* The same after a comma; and a time, ms, empty for 0. */
void csv_put_next(const char *text, bool formulas, FILE *out);
void csv_put_time(int64_t ms, FILE *out);

/* The columns CSV_SUSPECTS, each with its comma: how many there are, and their range; empty if
 * unknown. */
#define CSV_SUSPECTS "suspects,suspects_from,suspects_to"
void csv_put_suspects(const struct attribution *suspects, bool formulas, FILE *out);

/* A comma and the number, with up to 17 digits. */
void csv_put_number(double value, FILE *out);

/* The columns CSV_MEANS and CSV_LEVELS, each with its comma. */
#define CSV_MEANS                                                                                  \
	"forward_change_percent,magnitude,mean_before,mean_after,stddev_before,stddev_after,"      \
	"pvalue"
#define CSV_LEVELS "kind,level_before,level_after,size,size_low,size_high"
void csv_put_means(const struct change *change, FILE *out);
void csv_put_levels(const struct change *change, FILE *out);

#endif
