/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What one thread of the engine changes while another reads it: always whole. Commands to lcores
 * (rcd_lcore_call()) are for everything else. The last header of rcd_engine_priv.h.
 */
#ifndef RCD_WHOLE_H
#define RCD_WHOLE_H

/** What an lcore counts for others to see, stored whole. */
static inline void
rcd_lcore_set_tally(uint64_t *tally, uint64_t val)
{
	__atomic_store_n(tally, val, __ATOMIC_RELAXED);
}

static inline uint64_t
rcd_lcore_tally(const uint64_t *tally)
{
	return __atomic_load_n(tally, __ATOMIC_RELAXED);
}

/** A device as any thread finds it: whole, or NULL. */
static inline struct rcd_dev *
rcd_dev_at(const struct rcd_engine *engine, uint32_t index)
{
	return __atomic_load_n(&engine->devs[index], __ATOMIC_ACQUIRE);
}

/** Let lcores find a device that is whole, or NULL: not any more. */
static inline void
rcd_dev_show(struct rcd_engine *engine, uint32_t index, struct rcd_dev *dev)
{
	__atomic_store_n(&engine->devs[index], dev, __ATOMIC_RELEASE);
}

/** Addresses of a device as they are now: an lcore may look at them until its poll ends. */
static inline const struct rcd_gid_table *
rcd_dev_gids(const struct rcd_dev *dev)
{
	return __atomic_load_n(&dev->gids, __ATOMIC_ACQUIRE);
}

/** The MAC of a device, which a netdev may change at any time. Any thread. */
static inline void
rcd_dev_mac(const struct rcd_dev *dev, uint8_t *mac)
{
	uint64_t whole = __atomic_load_n(&dev->mac_whole, __ATOMIC_RELAXED);

	memcpy(mac, &whole, RCD_MAC_LEN);
}

static inline void
rcd_dev_set_mac(struct rcd_dev *dev, const uint8_t *mac)
{
	uint64_t whole = 0;

	memcpy(&whole, mac, RCD_MAC_LEN);
	__atomic_store_n(&dev->mac_whole, whole, __ATOMIC_RELAXED);
}

#endif /* RCD_WHOLE_H */
