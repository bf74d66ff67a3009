/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The extended transport headers: layout, parse and build of each (IBTA Vol. 1, 9.3; FETH: Annex
 * A19; CNP: Annex A17; SACKETH, HELLOETH: doc/sack.md). Which of them an opcode has is
 * rcd_opcode.def's business, what their fields mean the transport's.
 *
 * Every rcd_<header>_parse(src, len, out) returns RCD_VERDICT_OK, or RCD_VERDICT_EXT_SHORT when
 * @p len is below the header's length and @p out is untouched. Every rcd_<header>_build(dst, in)
 * writes exactly that length.
 */
#ifndef RCD_EXT_H
#define RCD_EXT_H

#include "rcd_bytes.h"
#include "rcd_id.h"
#include "rcd_psn.h"
#include "rcd_verdict.h"

/** Lengths in bytes, RCD_<header>_LEN. */
enum {
#define RCD_EXT_HEADER(symbol, field, length) RCD_##symbol##_LEN = length,
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
};

/** Dense numbers, for the flags below. */
enum rcd_ext_index {
#define RCD_EXT_HEADER(symbol, field, length) RCD_EXT_INDEX_##symbol,
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
	RCD_EXT_COUNT
};

/** Flags for sets of extended headers. */
enum rcd_ext {
#define RCD_EXT_HEADER(symbol, field, length) RCD_EXT_##symbol = 1 << RCD_EXT_INDEX_##symbol,
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
};

/** XRC extended header: the shared receive queue that the message is for. */
struct rcd_xrceth {
	uint32_t srqn; /**< 24 bits */
};

/** Datagram extended header. */
struct rcd_deth {
	struct rcd_qkey qkey;
	struct rcd_qpn src_qpn;
};

/** Flush extended header. */
struct rcd_feth {
	uint8_t placement; /**< placement type flags, 4 bits: 1 global visibility, 2 persistence */
	uint8_t selectivity; /**< 2 bits: 0 memory range, 1 memory region */
};

/** RDMA extended header: where a WRITE, READ or FLUSH goes. */
struct rcd_reth {
	uint64_t va;
	struct rcd_key rkey;
	uint32_t dma_len; /**< bytes of the whole message */
};

/** Atomic extended header. */
struct rcd_atomiceth {
	uint64_t va;
	struct rcd_key rkey;
	uint64_t swap_or_add;
	uint64_t compare;
};

/** Acknowledge extended header; rcd_aeth.h explains the syndrome. */
struct rcd_aeth {
	uint8_t syndrome;
	struct rcd_psn msn; /**< message sequence number, 24 bits like a PSN */
};

/** Atomic acknowledge extended header. */
struct rcd_atomicacketh {
	uint64_t original; /**< the remote value before the operation */
};

/** Immediate data. Applications see it in network order: the value here is in host order. */
struct rcd_immdt {
	uint32_t data;
};

/** Invalidate extended header. */
struct rcd_ieth {
	struct rcd_key rkey;
};

/** Congestion notification payload: 16 reserved bytes, sent as 0 and ignored. */
struct rcd_cnp {
	uint8_t reserved[RCD_CNP_LEN];
};

/** Selective acknowledge extended header (doc/sack.md). */
struct rcd_sacketh {
	struct rcd_psn seen; /**< the request that came last before this left */
	uint32_t delay_ns;   /**< how long ago it came */
};

/** Of a HELLO and its answer (doc/sack.md). */
struct rcd_helloeth {
	uint8_t offers; /**< RCD_CM_OFFERS_*: what the sender does */
	uint64_t nonce; /**< of a HELLO random, of an answer made of it */
};

/** Read an XRCETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_xrceth_parse(const uint8_t *src, size_t len, struct rcd_xrceth *xrceth)
{
	if (len < RCD_XRCETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	xrceth->srqn = rcd_get_be24(src + 1);
	return RCD_VERDICT_OK;
}

/** Write an XRCETH. @param dst RCD_XRCETH_LEN bytes */
static inline void
rcd_xrceth_build(uint8_t *dst, const struct rcd_xrceth *xrceth)
{
	rcd_put_be32(dst, xrceth->srqn & 0xffffff);
}

/** Read a DETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_deth_parse(const uint8_t *src, size_t len, struct rcd_deth *deth)
{
	if (len < RCD_DETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	deth->qkey.val = rcd_get_be32(src);
	deth->src_qpn.val = rcd_get_be24(src + 5);
	return RCD_VERDICT_OK;
}

/** Write a DETH. @param dst RCD_DETH_LEN bytes */
static inline void
rcd_deth_build(uint8_t *dst, const struct rcd_deth *deth)
{
	rcd_put_be32(dst, deth->qkey.val);
	rcd_put_be32(dst + 4, deth->src_qpn.val & 0xffffff);
}

/** Read a FETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_feth_parse(const uint8_t *src, size_t len, struct rcd_feth *feth)
{
	if (len < RCD_FETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	feth->placement = src[3] & 0x0f;
	feth->selectivity = src[3] >> 4 & 0x03;
	return RCD_VERDICT_OK;
}

/** Write a FETH. @param dst RCD_FETH_LEN bytes */
static inline void
rcd_feth_build(uint8_t *dst, const struct rcd_feth *feth)
{
	rcd_put_be32(dst, (feth->selectivity & 0x03u) << 4 | (feth->placement & 0x0fu));
}

/** Read a RETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_reth_parse(const uint8_t *src, size_t len, struct rcd_reth *reth)
{
	if (len < RCD_RETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	reth->va = rcd_get_be64(src);
	reth->rkey.val = rcd_get_be32(src + 8);
	reth->dma_len = rcd_get_be32(src + 12);
	return RCD_VERDICT_OK;
}

/** Write a RETH. @param dst RCD_RETH_LEN bytes */
static inline void
rcd_reth_build(uint8_t *dst, const struct rcd_reth *reth)
{
	rcd_put_be64(dst, reth->va);
	rcd_put_be32(dst + 8, reth->rkey.val);
	rcd_put_be32(dst + 12, reth->dma_len);
}

/** Read an AtomicETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_atomiceth_parse(const uint8_t *src, size_t len, struct rcd_atomiceth *atomiceth)
{
	if (len < RCD_ATOMICETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	atomiceth->va = rcd_get_be64(src);
	atomiceth->rkey.val = rcd_get_be32(src + 8);
	atomiceth->swap_or_add = rcd_get_be64(src + 12);
	atomiceth->compare = rcd_get_be64(src + 20);
	return RCD_VERDICT_OK;
}

/** Write an AtomicETH. @param dst RCD_ATOMICETH_LEN bytes */
static inline void
rcd_atomiceth_build(uint8_t *dst, const struct rcd_atomiceth *atomiceth)
{
	rcd_put_be64(dst, atomiceth->va);
	rcd_put_be32(dst + 8, atomiceth->rkey.val);
	rcd_put_be64(dst + 12, atomiceth->swap_or_add);
	rcd_put_be64(dst + 20, atomiceth->compare);
}

/** Read an AETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_aeth_parse(const uint8_t *src, size_t len, struct rcd_aeth *aeth)
{
	if (len < RCD_AETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	aeth->syndrome = src[0];
	aeth->msn = rcd_psn(rcd_get_be24(src + 1));
	return RCD_VERDICT_OK;
}

/** Write an AETH. @param dst RCD_AETH_LEN bytes */
static inline void
rcd_aeth_build(uint8_t *dst, const struct rcd_aeth *aeth)
{
	dst[0] = aeth->syndrome;
	rcd_put_be24(dst + 1, aeth->msn.val);
}

/** Read an AtomicAckETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_atomicacketh_parse(const uint8_t *src, size_t len, struct rcd_atomicacketh *atomicacketh)
{
	if (len < RCD_ATOMICACKETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	atomicacketh->original = rcd_get_be64(src);
	return RCD_VERDICT_OK;
}

/** Write an AtomicAckETH. @param dst RCD_ATOMICACKETH_LEN bytes */
static inline void
rcd_atomicacketh_build(uint8_t *dst, const struct rcd_atomicacketh *atomicacketh)
{
	rcd_put_be64(dst, atomicacketh->original);
}

/** Read immediate data. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_immdt_parse(const uint8_t *src, size_t len, struct rcd_immdt *immdt)
{
	if (len < RCD_IMMDT_LEN)
		return RCD_VERDICT_EXT_SHORT;
	immdt->data = rcd_get_be32(src);
	return RCD_VERDICT_OK;
}

/** Write immediate data. @param dst RCD_IMMDT_LEN bytes */
static inline void
rcd_immdt_build(uint8_t *dst, const struct rcd_immdt *immdt)
{
	rcd_put_be32(dst, immdt->data);
}

/** Read an IETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_ieth_parse(const uint8_t *src, size_t len, struct rcd_ieth *ieth)
{
	if (len < RCD_IETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	ieth->rkey.val = rcd_get_be32(src);
	return RCD_VERDICT_OK;
}

/** Write an IETH. @param dst RCD_IETH_LEN bytes */
static inline void
rcd_ieth_build(uint8_t *dst, const struct rcd_ieth *ieth)
{
	rcd_put_be32(dst, ieth->rkey.val);
}

/** Read a CNP's payload. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_cnp_parse(const uint8_t *src, size_t len, struct rcd_cnp *cnp)
{
	if (len < RCD_CNP_LEN)
		return RCD_VERDICT_EXT_SHORT;
	memcpy(cnp->reserved, src, RCD_CNP_LEN);
	return RCD_VERDICT_OK;
}

/** Write a CNP's payload. @param dst RCD_CNP_LEN bytes */
static inline void
rcd_cnp_build(uint8_t *dst, const struct rcd_cnp *cnp)
{
	memcpy(dst, cnp->reserved, RCD_CNP_LEN);
}

/** Read a SACKETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_sacketh_parse(const uint8_t *src, size_t len, struct rcd_sacketh *sacketh)
{
	if (len < RCD_SACKETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	sacketh->seen = rcd_psn(rcd_get_be24(src + 1));
	sacketh->delay_ns = rcd_get_be32(src + 4);
	return RCD_VERDICT_OK;
}

/** Write a SACKETH. @param dst RCD_SACKETH_LEN bytes */
static inline void
rcd_sacketh_build(uint8_t *dst, const struct rcd_sacketh *sacketh)
{
	rcd_put_be32(dst, sacketh->seen.val);
	rcd_put_be32(dst + 4, sacketh->delay_ns);
}

/** Read a HELLOETH. @return RCD_VERDICT_OK or RCD_VERDICT_EXT_SHORT */
static inline enum rcd_verdict
rcd_helloeth_parse(const uint8_t *src, size_t len, struct rcd_helloeth *helloeth)
{
	if (len < RCD_HELLOETH_LEN)
		return RCD_VERDICT_EXT_SHORT;
	helloeth->offers = src[3];
	helloeth->nonce = rcd_get_be64(src + 4);
	return RCD_VERDICT_OK;
}

/** Write a HELLOETH. @param dst RCD_HELLOETH_LEN bytes */
static inline void
rcd_helloeth_build(uint8_t *dst, const struct rcd_helloeth *helloeth)
{
	rcd_put_be32(dst, helloeth->offers);
	rcd_put_be64(dst + 4, helloeth->nonce);
}

#endif /* RCD_EXT_H */
