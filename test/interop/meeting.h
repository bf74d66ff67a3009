/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Two programs that drive verbs against each other: how they meet by TCP and tell each other what
 * it takes. What goes wrong ends the program.
 */
#ifndef MEETING_H
#define MEETING_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/** Print a name and errno's text, and end. */
void
die(const char *what);

/** @return the device of this name, opened */
struct ibv_context *
meeting_device(const char *name);

/** @param address  of who listens (IPv4); NULL: here. @return a connection */
int
meeting_open(const char *address, uint16_t port);

/** Both say something, and both wait for it. */
void
meeting_tell(int tcp, const void *mine, void *theirs, size_t size_bytes);

#endif
