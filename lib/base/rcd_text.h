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

/** Copy a text. @return false, and nothing is copied: no room for it and its end */
bool
rcd_text_take(char *dst, size_t size, const char *text);

/** One of some words. @return its index in the list; -1: none of them */
int
rcd_text_find(const char *const *words, int count, const char *text);

/** Whether it can be shown to people, in logs and on terminals: it has no control characters. */
bool
rcd_text_printable(const char *text);

#endif /* RCD_TEXT_H */
