/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Scatter and gather: from a part of a list of local addresses to engine memory. Every key and
 * range is checked at every use, since regions come and go while work requests are outstanding.
 */
#include <errno.h>

#include "rcd_qp_priv.h"

uint64_t
rcd_sg_len(const struct rcd_sge *sges, uint32_t count)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < count; i++)
		len += sges[i].len;
	return len;
}

int
rcd_sg_pieces(struct rcd_qp *qp, const struct rcd_sge *sges, uint32_t count, uint32_t offset,
	uint32_t len, uint32_t access, struct rcd_piece *pieces)
{
	struct rcd_mr_use use = { .pd = qp->init.pd, .qpn = qp->init.qpn.val, .access = access };
	int used = 0;

	for (uint32_t i = 0; i < count && len > 0; i++) {
		uint32_t part;
		uint8_t *base;

		if (offset >= sges[i].len) {
			offset -= sges[i].len;
			continue;
		}
		part = sges[i].len - offset;
		if (part > len)
			part = len;
		if (used == RCD_TX_PIECES_MAX)
			return -EFAULT;
		base = rcd_mr_translate(
			qp->hot.mrs, sges[i].lkey, sges[i].addr + offset, part, &use);
		if (base == NULL)
			return -EFAULT;
		pieces[used++] = (struct rcd_piece){ base, part };
		len -= part;
		offset = 0;
	}
	return len == 0 ? used : -EFAULT;
}

int
rcd_sg_scatter(struct rcd_qp *qp, const struct rcd_sge *sges, uint32_t count, uint32_t offset,
	const uint8_t *src, uint32_t len)
{
	struct rcd_piece pieces[RCD_TX_PIECES_MAX];
	int used = rcd_sg_pieces(qp, sges, count, offset, len, RCD_ACCESS_LOCAL_WRITE, pieces);

	for (int i = 0; i < used; i++) {
		if (rcd_mr_write(qp->hot.mrs, qp->hot.arg, pieces[i].base, src, pieces[i].len) != 0)
			return -EFAULT;
		src += pieces[i].len;
	}
	return used < 0 ? used : 0;
}
