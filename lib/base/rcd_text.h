/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Values of keys, as a configuration or a command has them.
 * Threads: any.
 */
#ifndef RCD_TEXT_H
#define RCD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Copy a text. @return false, and nothing is copied: no room for it and its end */
bool
rcd_text_take(char *dst, size_t size, const char *text);

/** One of some words. @return its index in the list; -1: none of them */
int
rcd_text_find(const char *const *words, int count, const char *text);

/** Whether it can be shown to people, in logs and on terminals: it has no control characters. */
bool
rcd_text_printable(const char *text);

/** Room for a value of rcd_text_pair(), with its end. */
#define RCD_TEXT_VALUE_LEN 16

/**
 * Take the first "NUMBER:VALUE" of a list, whose members stand apart by commas or blanks.
 *
 * @param text    not at its end; set to the next member, or to the end
 * @param most    the largest number, less than 2^28
 * @param number  decimal
 * @param value   set, never empty
 * @return false: it is none, or the value has no room, or nothing follows a comma; then all of it
 *     may be set
 */
bool
rcd_text_pair(const char **text, uint32_t most, uint32_t *number, char value[RCD_TEXT_VALUE_LEN]);

#endif /* RCD_TEXT_H */
