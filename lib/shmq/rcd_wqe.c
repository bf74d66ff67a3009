/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Work requests to slots and back.
 */
#include "rcd_wqe.h"

#include <string.h>

static void
wqe_put_sges(struct rcd_wqe_sge *dst, const struct rcd_sge *src, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		dst[i] = (struct rcd_wqe_sge){ src[i].addr, src[i].len, src[i].lkey.val };
}

/* The slot may change under us: each element is copied whole before a member is looked at. */
static void
wqe_get_sges(struct rcd_sge *dst, const uint8_t *src, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct rcd_wqe_sge sge;

		memcpy(&sge, src + i * sizeof(sge), sizeof(sge));
		dst[i] = (struct rcd_sge){ sge.addr, sge.len, { sge.lkey } };
	}
}

void
rcd_sq_wqe_put(void *slot, const struct rcd_send_wr *wr, enum rcd_wqe_form form)
{
	struct rcd_sq_wqe *wqe = slot;

	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->flags;
	wqe->sge_count = wr->sge_count;
	wqe->inline_len = wr->inline_len;
	wqe->imm = wr->imm;
	switch (form) {
	case RCD_WQE_REMOTE:
		wqe->key = wr->remote.rkey.val;
		wqe->va = wr->remote.va;
		wqe->arg[0] = wr->remote.compare_or_add;
		wqe->arg[1] = wr->remote.swap;
		wqe->srqn_high = (uint8_t)(wr->remote.srqn >> 16);
		wqe->srqn_low = (uint16_t)wr->remote.srqn;
		break;
	case RCD_WQE_DATAGRAM:
		wqe->key = wr->ud.ah;
		wqe->va = wr->ud.qpn.val | (uint64_t)wr->ud.qkey.val << 32;
		break;
	case RCD_WQE_BIND:
		wqe->key = wr->bind.mw.val;
		wqe->imm = wr->bind.new_rkey.val;
		wqe->va = wr->bind.addr;
		wqe->arg[0] = wr->bind.len;
		wqe->arg[1] = wr->bind.mr.val | (uint64_t)wr->bind.access << 32;
		break;
	case RCD_WQE_FLUSH:
		wqe->key = wr->flush.rkey.val;
		wqe->va = wr->flush.va;
		wqe->arg[0] = wr->flush.len;
		wqe->arg[1] = wr->flush.placement | (uint64_t)wr->flush.selectivity << 8;
		break;
	case RCD_WQE_ATOMIC_WRITE:
		wqe->key = wr->atomic_write.rkey.val;
		wqe->va = wr->atomic_write.va;
		memcpy(&wqe->arg[0], wr->atomic_write.bytes, sizeof(wr->atomic_write.bytes));
		break;
	}
	if (wr->flags & RCD_SEND_INLINE)
		memcpy(wqe + 1, wr->inline_data, wr->inline_len);
	else
		wqe_put_sges((struct rcd_wqe_sge *)(void *)(wqe + 1), wr->sges, wr->sge_count);
}

/* What a private copy of a slot says of the remote side. */
static void
wqe_get_form(const struct rcd_sq_wqe *wqe, enum rcd_wqe_form form, struct rcd_send_wr *wr)
{
	switch (form) {
	case RCD_WQE_REMOTE:
		wr->remote.rkey.val = wqe->key;
		wr->remote.va = wqe->va;
		wr->remote.compare_or_add = wqe->arg[0];
		wr->remote.swap = wqe->arg[1];
		wr->remote.srqn = (uint32_t)wqe->srqn_high << 16 | wqe->srqn_low;
		break;
	case RCD_WQE_DATAGRAM:
		wr->ud.ah = wqe->key;
		wr->ud.qpn.val = (uint32_t)wqe->va & 0xffffff;
		wr->ud.qkey.val = (uint32_t)(wqe->va >> 32);
		break;
	case RCD_WQE_BIND:
		wr->bind.mw.val = wqe->key;
		wr->bind.new_rkey.val = wqe->imm;
		wr->bind.addr = wqe->va;
		wr->bind.len = wqe->arg[0];
		wr->bind.mr.val = (uint32_t)wqe->arg[1];
		wr->bind.access = (uint32_t)(wqe->arg[1] >> 32);
		break;
	case RCD_WQE_FLUSH:
		wr->flush.rkey.val = wqe->key;
		wr->flush.va = wqe->va;
		wr->flush.len = wqe->arg[0];
		wr->flush.placement = (uint8_t)wqe->arg[1];
		wr->flush.selectivity = (uint8_t)(wqe->arg[1] >> 8);
		break;
	case RCD_WQE_ATOMIC_WRITE:
		wr->atomic_write.rkey.val = wqe->key;
		wr->atomic_write.va = wqe->va;
		memcpy(wr->atomic_write.bytes, &wqe->arg[0], sizeof(wr->atomic_write.bytes));
		break;
	}
}

void
rcd_sq_wqe_get(const void *slot, bool datagram, struct rcd_send_wr *wr)
{
	const uint8_t *tail = (const uint8_t *)slot + sizeof(struct rcd_sq_wqe);
	struct rcd_sq_wqe wqe;

	memcpy(&wqe, slot, sizeof(wqe));
	/* From here on only the copy counts, whatever the compiler would like to load again. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	wr->wr_id = wqe.wr_id;
	wr->opcode = wqe.opcode;
	wr->flags = wqe.flags;
	wr->sge_count = wqe.sge_count;
	wr->inline_len = wqe.inline_len;
	wr->imm = wqe.imm;
	wqe_get_form(&wqe, rcd_wqe_form_of(datagram, wqe.opcode), wr);
	if (wqe.flags & RCD_SEND_INLINE)
		memcpy(wr->inline_data, tail,
			wqe.inline_len < wr->inline_max ? wqe.inline_len : wr->inline_max);
	else
		wqe_get_sges(
			wr->sges, tail, wqe.sge_count < wr->sge_max ? wqe.sge_count : wr->sge_max);
}

void
rcd_rq_wqe_put(void *slot, const struct rcd_recv_wr *wr)
{
	struct rcd_rq_wqe *wqe = slot;

	wqe->wr_id = wr->wr_id;
	wqe->sge_count = wr->sge_count;
	wqe_put_sges((struct rcd_wqe_sge *)(void *)(wqe + 1), wr->sges, wr->sge_count);
}

void
rcd_rq_wqe_get(const void *slot, struct rcd_recv_wr *wr)
{
	struct rcd_rq_wqe wqe;

	memcpy(&wqe, slot, sizeof(wqe));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	wr->wr_id = wqe.wr_id;
	/* A count of 256 must not become 0. */
	wr->sge_count = wqe.sge_count > UINT8_MAX ? UINT8_MAX : (uint8_t)wqe.sge_count;
	wqe_get_sges(wr->sges, (const uint8_t *)slot + sizeof(wqe),
		wr->sge_count < wr->sge_max ? wr->sge_count : wr->sge_max);
}
