/*
 * Known changes: changes accepted in review, as text in version control. An entry covers the
 * changes of a test that come from a commit, or that lie at a time. Neither an agent nor a state
 * file is needed for it.
 *
 * Entries stand under `known_changes:` in the configuration, or in files of their own in the same
 * form, which `known_changes_files:` names.
 */
#ifndef CONF_KNOWN_CHANGES_H
#define CONF_KNOWN_CHANGES_H

#include "agent/base/field.h"
#include "agent/model/known_change.h"

/* The keys of an entry. */
extern const struct field known_change_fields[];

/*
 * Appends to *out the YAML document with the entries added at the end of its `known_changes:`;
 * comments and layout stay. `file` is its name in errors. Only the fields of an entry that have a
 * key in the file are used.
 */
bool known_changes_insert(const char *file, const char *text, size_t length,
	const struct known_change *entries, size_t count, struct buf *out,
	struct error *error) MUST_USE;

/*
 * The same with a file, which is created or replaced as a whole; entries that it has already are
 * left out. *added is the number of new ones; with a `count` of 0 the file is only checked, also
 * whether it can be written. A folder is made only if it is named .hunter. ERROR_USAGE if it is
 * neither a file of known changes nor a configuration, or fails that check, ERROR_DATA if it cannot
 * be read or written.
 */
bool known_changes_write(const char *path, const struct known_change *entries, size_t count,
	size_t *added, struct error *error) MUST_USE;

#endif
