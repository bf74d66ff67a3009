/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Finds capture files for tests that run once per file.
 */
#ifndef RCD_CAPTURES_H
#define RCD_CAPTURES_H

#include "rcd_tap.h"

/** Most captures of a run. */
#define RCD_CAPTURES_MAX 256

/**
 * Run a test once for every .pcap file under the folders, each named after its path.
 *
 * @param folders  paths, NULL at the end
 * @param func     called once per file, with its path from rcd_captures_path()
 * @return exit status for main(): 2 when there is no capture
 */
int
rcd_captures_run(const char *suite, char **folders, void (*func)(void));

/** The file that the running test is about. */
const char *
rcd_captures_path(void);

#endif /* RCD_CAPTURES_H */
