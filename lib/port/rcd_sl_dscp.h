/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Tables of service levels and the DSCP that each stands for, as a link is told them.
 * Threads: any.
 */
#ifndef RCD_SL_DSCP_H
#define RCD_SL_DSCP_H

#include <stdint.h>

/**
 * The DSCP of a service level from text: "SL:DSCP, ...", as "3:26,5:46"; "" has none.
 *
 * @param sl    any number; what is no service level has no DSCP
 * @param dscp  set if the table has this level, else it stays; NULL: the text alone is looked at
 * @return NULL; else what is wrong with the text, static, and @p dscp may be set
 */
const char *
rcd_dscp_of_sl(const char *text, uint8_t sl, uint8_t *dscp);

#endif /* RCD_SL_DSCP_H */
