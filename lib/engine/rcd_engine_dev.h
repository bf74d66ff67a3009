/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as host of its devices: whom they tell, and what ends with them.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ENGINE_DEV_H
#define RCD_ENGINE_DEV_H

#include "rcd_ports.h"

/** The host's operations; their argument is a struct rcd_engine. */
extern const struct rcd_ports_ops rcd_engine_dev_ops;

#endif /* RCD_ENGINE_DEV_H */
