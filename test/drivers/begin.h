/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * EAL for tests of drivers: small, without devices of the machine's, alone.
 *
 * Threads: one.
 */
#ifndef BEGIN_H
#define BEGIN_H

/** Start EAL. @param name  of the test. @return 0 or -1 */
int
begin_eal(const char *name);

#endif /* BEGIN_H */
