/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What --version says.
 */
#ifndef VERSION_H
#define VERSION_H

/**
 * Print a program's version, and which DPDK and rdma-core it was built with and meets here.
 *
 * @param program  its name
 * @param dpdk     rte_version(), or NULL of a program that does without DPDK
 */
void
version_print(const char *program, const char *dpdk);

#endif /* VERSION_H */
