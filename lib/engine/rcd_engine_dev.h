/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as host of its devices: whom they tell, and what ends with them.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ENGINE_DEV_H
#define RCD_ENGINE_DEV_H

#include <stddef.h>
#include <stdint.h>

#include "rcd_ports.h"

struct rcd_engine;

/** The host's operations; their argument is a struct rcd_engine. */
extern const struct rcd_ports_ops rcd_engine_dev_ops;

/**
 * As rcd_engine_dev_add(). Any thread, likewise.
 *
 * @param index, serial  set: what lcores know the device by; serial 0: an end of a wire that waits
 *                       for the other
 */
int
rcd_engine_dev_add_place(struct rcd_engine *engine, const struct rcd_dev_conf *conf,
	uint32_t *index, uint32_t *serial, char *error, size_t error_len);

/**
 * Set the MTU of a device whose port is moved by others, and is not told. Any thread.
 *
 * @return 0; -EINVAL: no MTU that a device may have; -ENODEV
 */
int
rcd_engine_dev_set_mtu_serial(struct rcd_engine *engine, uint32_t serial, uint32_t mtu);

/** As rcd_engine_dev_del(), of this device and no other of its name. Any thread. */
int
rcd_engine_dev_del_serial(struct rcd_engine *engine, uint32_t serial);

#endif /* RCD_ENGINE_DEV_H */
