/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory regions, memory windows and their keys: from a key and an address to engine memory, with
 * protection domain, access rights and range checked on every use (IBTA Vol. 1, 10.6).
 *
 * A region is one contiguous range of engine memory, whatever it was in the application. How
 * application memory becomes engine memory is not here.
 *
 * Keys: a table slot's number and generation, sent through a keyed permutation of 32 bits. Whoever
 * does not know the secret can do no better than try keys, and lookup stays a few arithmetic
 * operations and one load. The low 8 bits are the part that the owner of a type 2 window chooses.
 *
 * A table belongs to one thread at a time; the caller sees to that.
 */
#ifndef RCD_MR_H
#define RCD_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_id.h"
#include "rcd_number.h"

/** What a table slot holds. */
enum rcd_mr_kind {
	RCD_MR_FREE,
	RCD_MR_REGION,
	RCD_MR_WINDOW_1, /**< memory window type 1: bound for its whole protection domain */
	RCD_MR_WINDOW_2, /**< type 2B: bound for one queue pair, can be invalidated remotely */
};

/** Type 2 windows that are bound through one queue pair. All zero: none. */
struct rcd_mw_list {
	uint32_t first; /**< slot plus 1; 0: none */
};

/** A region or a window. Read it; change it only through the functions below. */
struct rcd_mr {
	uint32_t key;             /**< the valid key; 0 when there is none */
	uint16_t access;          /**< RCD_ACCESS_* */
	uint8_t kind : 4;         /**< enum rcd_mr_kind */
	bool bound : 1;           /**< window: refers to a region */
	bool cut : 1;             /**< region: nobody reaches it any more */
	uint8_t generation;       /**< of the slot: differs from one use to the next */
	uint32_t pd;              /**< number of the protection domain */
	uint32_t qpn;             /**< type 2 window: the queue pair that bound it */
	uint64_t start;           /**< first address as peers and work requests name it */
	uint64_t len;             /**< bytes */
	uint8_t *base;            /**< engine memory of the first byte */
	uint32_t windows;         /**< region: windows bound to it */
	uint32_t region;          /**< window: slot of its region; free slot: the next free one */
	uint32_t next;            /**< window in a list: slot plus 1 of the next; 0: none */
	uint32_t prev;            /**< likewise */
	struct rcd_mw_list *list; /**< window: that it is in; NULL: none */
};

struct rcd_mr_table;

/**
 * Create a table.
 *
 * @param capacity_log2  slots as a power of two, 1..20
 * @param secret         random bits for the keys; never shown to anyone
 * @return the table; NULL when memory is short or the capacity is out of range
 */
struct rcd_mr_table *
rcd_mr_table_create(unsigned int capacity_log2, uint64_t secret);

/** Slots of a table. Any thread. */
uint32_t
rcd_mr_capacity(const struct rcd_mr_table *table);

/**
 * The number of the slot that a key would have, by which others keep what belongs to a region.
 * Any thread.
 *
 * @return less than the capacity, or UINT32_MAX: the key is of no slot
 */
uint32_t
rcd_mr_slot(const struct rcd_mr_table *table, struct rcd_key key);

/** Destroy a table and all it holds. NULL is allowed. */
void
rcd_mr_table_destroy(struct rcd_mr_table *table);

/** An atomic operation on eight bytes. */
struct rcd_mr_atomic {
	bool add;         /**< fetch and add; else compare and swap */
	uint64_t operand; /**< to add, or to store */
	uint64_t compare;
};

/**
 * How to reach memory that the engine can't address: regions whose base lies in a window of
 * addresses that nobody dereferences, or above all that there are (RCD_MR_ALL_BYTES). Such memory
 * may be reached later than it is asked for: who provides this sees to it that nothing leaves the
 * queue pair, and nothing of it completes, before what it wrote is in place.
 */
struct rcd_mr_foreign {
	uintptr_t start; /**< first address of the window */
	size_t len;      /**< bytes; 0: there is no such memory */
	void *arg;

	/** Copy out of the region, now. @return 0, or -EFAULT where that can't be */
	int (*read)(void *arg, uint8_t *dst, const uint8_t *base, size_t len);

	/**
	 * Copy into the region, now or later; @p src may go at once. What fails later is told by
	 * rcd_qp_copy_failed().
	 *
	 * @param user  of the queue pair: its struct rcd_qp_init's arg
	 * @return 0 or -EFAULT
	 */
	int (*write)(void *arg, void *user, uint8_t *base, const uint8_t *src, size_t len);

	/**
	 * Carry out an atomic, now or later. A result that comes later is told by
	 * rcd_qp_atomic_done().
	 *
	 * @return 0 with @p original set if it was done now; or -EFAULT
	 */
	int (*atomic)(void *arg, void *user, uint8_t *base, const struct rcd_mr_atomic *what,
		uint64_t *original);

	/**
	 * Whether eight bytes can be changed at once: of any memory, foreign or not.
	 *
	 * @return as rcd_mr_atomic_order()
	 */
	int (*order)(void *arg, void *user, const uint8_t *base);
};

/* rcd_mr_copy.c */

/** Say how to reach foreign memory. @param foreign copied; NULL: there is none */
void
rcd_mr_table_set_foreign(struct rcd_mr_table *table, const struct rcd_mr_foreign *foreign);

/** Who reaches a table's foreign memory: its struct rcd_mr_foreign's arg. */
void *
rcd_mr_foreign_arg(const struct rcd_mr_table *table);

/**
 * Have somebody told when a copy into the memory of applications begins and ends: who measures.
 *
 * @param watch  NULL: nobody
 */
void
rcd_mr_table_watch(struct rcd_mr_table *table, void (*watch)(void *arg, bool begins), void *arg);

/** Whether translated memory is foreign, and so must not be dereferenced. */
bool
rcd_mr_is_foreign(const struct rcd_mr_table *table, const uint8_t *base);

/** Copy out of translated memory, whichever can be read now. @return 0 or -EFAULT */
int
rcd_mr_read(const struct rcd_mr_table *table, uint8_t *dst, const uint8_t *base, size_t len);

/**
 * Copy into translated memory, whichever it is; foreign memory perhaps later. Eight bytes to where
 * they are aligned are one store, but for foreign memory.
 *
 * @param user  whose queue pair writes, for struct rcd_mr_foreign
 * @return 0 or -EFAULT
 */
int
rcd_mr_write(const struct rcd_mr_table *table, void *user, uint8_t *base, const uint8_t *src,
	size_t len);

/**
 * Whether an atomic or an ATOMIC WRITE of translated memory can be carried out now.
 *
 * @param user  as for rcd_mr_write()
 * @return 0; -EAGAIN while it would overtake what its queue pair wrote to foreign memory; -EFAULT
 *         where the eight bytes lie in two pieces of that
 */
int
rcd_mr_atomic_order(const struct rcd_mr_table *table, void *user, const uint8_t *base);

/** An atomic on foreign memory. @return as the operation of struct rcd_mr_foreign */
int
rcd_mr_atomic_foreign(const struct rcd_mr_table *table, void *user, uint8_t *base,
	const struct rcd_mr_atomic *what, uint64_t *original);

/* rcd_mr.c */

/** Slots in use. */
uint32_t
rcd_mr_table_used(const struct rcd_mr_table *table);

/** Show every region and window to somebody, in no order: who checks or counts. */
void
rcd_mr_table_each(const struct rcd_mr_table *table, void (*fn)(void *arg, const struct rcd_mr *mr),
	void *arg);

/** What a region is to be. */
struct rcd_mr_attr {
	uint32_t pd;
	uint32_t access; /**< RCD_ACCESS_*; remote write and atomic need local write */
	uint64_t start;  /**< address in the application; 0 with RCD_ACCESS_ZERO_BASED */
	uint64_t len;    /**< bytes */
	uint8_t *base;   /**< engine memory or foreign, len bytes, owned by the caller */
};

/**
 * Register a region.
 *
 * @param key  set to its key, which is L_Key and R_Key in one
 * @return 0; -EINVAL for rights that contradict each other, unknown bits or a range that wraps;
 *         -EOPNOTSUPP for RCD_ACCESS_FLUSH_PERSISTENT, which no memory here can hold to;
 *         -ENOMEM when the table is full
 */
int
rcd_mr_register(struct rcd_mr_table *table, const struct rcd_mr_attr *attr, struct rcd_key *key);

/**
 * Change a region in place. It keeps its key (IBTA Vol. 1, 11.2.8.5 allows either).
 *
 * @return 0; -ENOENT for an unknown key, -EBUSY while windows are bound to it, -EINVAL as above
 */
int
rcd_mr_reregister(struct rcd_mr_table *table, const struct rcd_mr_attr *attr, struct rcd_key key);

/** Let nobody reach a region's memory any more, nor by windows. It stays until it is removed. */
void
rcd_mr_cut(struct rcd_mr_table *table, struct rcd_key key);

/** Remove a region. @return 0; -ENOENT for an unknown key, -EBUSY while windows are bound */
int
rcd_mr_deregister(struct rcd_mr_table *table, struct rcd_key key);

/**
 * Allocate a window.
 *
 * @param kind  RCD_MR_WINDOW_1 or RCD_MR_WINDOW_2
 * @return 0, -EINVAL, or -ENOMEM when the table is full
 */
int
rcd_mw_alloc(struct rcd_mr_table *table, enum rcd_mr_kind kind, uint32_t pd, struct rcd_key *key);

/** Free a window, bound or not. @param key with any variant @return 0 or -ENOENT */
int
rcd_mw_free(struct rcd_mr_table *table, struct rcd_key key);

/** What a window is to be bound to. */
struct rcd_mw_bind {
	uint32_t pd;              /**< of the queue pair that binds */
	uint32_t qpn;             /**< likewise */
	struct rcd_key mw;        /**< the window */
	uint8_t variant;          /**< low 8 bits of the new key, of the caller's choice */
	struct rcd_key mr;        /**< a region with RCD_ACCESS_MW_BIND */
	uint64_t addr;            /**< in the region's addresses */
	uint64_t len;             /**< bytes; 0 unbinds a type 1 window */
	uint32_t access;          /**< remote rights, and RCD_ACCESS_ZERO_BASED */
	struct rcd_mw_list *list; /**< that a type 2 window joins while it is bound; NULL: none */
};

/**
 * Bind a window (IBTA Vol. 1, 10.6.7). A type 1 window may be bound again, a type 2 window only
 * after it was invalidated.
 *
 * @param key  set to the window's new key
 * @return 0; -EINVAL for rights that the region does not grant, a range outside it, another
 *         protection domain, a region that allows no windows, or a window in the wrong state;
 *         -ENOENT for unknown keys
 */
int
rcd_mw_bind(struct rcd_mr_table *table, const struct rcd_mw_bind *bind, struct rcd_key *key);

/**
 * Invalidate a type 2 window: by a local work request, or because a peer's SEND asks for it.
 *
 * @param qpn  the queue pair through which; it must be the one that bound the window
 * @return 0; -ENOENT for an unknown key, -EINVAL when the key is not a bound type 2 window of
 *         this queue pair and protection domain
 */
int
rcd_mw_invalidate(struct rcd_mr_table *table, struct rcd_key key, uint32_t pd, uint32_t qpn);

/**
 * Unbind the windows of a queue pair that is gone or was reset: nobody else can invalidate them,
 * and their regions stay in use.
 *
 * @param budget  how many at most
 * @return whether there are more
 */
bool
rcd_mw_unbind_some(struct rcd_mr_table *table, struct rcd_mw_list *list, uint32_t budget);

/** Who wants to use a key, and for what. */
struct rcd_mr_use {
	uint32_t pd;
	uint32_t qpn;
	uint32_t access; /**< all of these are needed; 0 for a local read */
	bool remote;     /**< by a peer: windows count. Not set: as an L_Key, regions only */
	bool whole;      /**< all of the region is meant, whatever the range is */
};

/**
 * From a key and a range to engine memory.
 *
 * A range of no bytes needs no valid key (IBTA Vol. 1, 9.7.4.1): the result is then a pointer
 * that must not be dereferenced. Where the whole is meant it does need one, and the result is the
 * first byte of that, of which there may be none.
 *
 * @return first byte of @p len bytes of engine memory; NULL when key, protection domain, rights
 *         or range forbid it
 */
uint8_t *
rcd_mr_translate(struct rcd_mr_table *table, struct rcd_key key, uint64_t addr, uint64_t len,
	const struct rcd_mr_use *use);

#endif /* RCD_MR_H */
