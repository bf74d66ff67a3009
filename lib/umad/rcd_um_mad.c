/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The rest of libibumad: ports can't be opened for MADs, so what needs one fails; what works on a
 * buffer alone works.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <infiniband/umad_str.h>
#include <stdio.h>
#include <string.h>

int
umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	(void)ca_name, (void)portnum, (void)path, (void)max;
	return -EOPNOTSUPP;
}

int
umad_open_port(const char *ca_name, int portnum)
{
	(void)ca_name, (void)portnum;
	return -EOPNOTSUPP;
}

int
umad_close_port(int portid)
{
	(void)portid;
	return -EBADF;
}

void *
umad_get_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

size_t
umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

int
umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

ib_mad_addr_t *
umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

int
umad_set_grh_net(void *umad, void *mad_addr)
{
	struct ib_user_mad *mad = umad;
	const struct ib_mad_addr *addr = mad_addr;

	mad->addr.grh_present = addr != NULL;
	if (addr == NULL)
		return 0;
	memcpy(mad->addr.gid, addr->gid, sizeof(mad->addr.gid));
	mad->addr.flow_label = addr->flow_label;
	mad->addr.hop_limit = addr->hop_limit;
	mad->addr.traffic_class = addr->traffic_class;
	return 0;
}

int
umad_set_grh(void *umad, void *mad_addr)
{
	struct ib_mad_addr addr;

	if (mad_addr == NULL)
		return umad_set_grh_net(umad, NULL);
	addr = *(struct ib_mad_addr *)mad_addr;
	addr.flow_label = htobe32((uint32_t)addr.flow_label);
	return umad_set_grh_net(umad, &addr);
}

int
umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	struct ib_user_mad *mad = umad;

	mad->addr.qpn = dqp;
	mad->addr.lid = dlid;
	mad->addr.qkey = qkey;
	mad->addr.sl = (uint8_t)sl;
	return 0;
}

int
umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(
		umad, htobe16((uint16_t)dlid), htobe32((uint32_t)dqp), sl, htobe32((uint32_t)qkey));
}

int
umad_set_pkey(void *umad, int pkey_index)
{
	((struct ib_user_mad *)umad)->addr.pkey_index = (uint16_t)pkey_index;
	return 0;
}

int
umad_get_pkey(void *umad)
{
	return ((struct ib_user_mad *)umad)->addr.pkey_index;
}

int
umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	(void)portid, (void)agentid, (void)umad, (void)length, (void)timeout_ms, (void)retries;
	return -EBADF;
}

int
umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	(void)portid, (void)umad, (void)length, (void)timeout_ms;
	return -EBADF;
}

int
umad_poll(int portid, int timeout_ms)
{
	(void)portid, (void)timeout_ms;
	return -EBADF;
}

int
umad_get_fd(int portid)
{
	(void)portid;
	return -EBADF;
}

int
umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
	long method_mask[16 / sizeof(long)])
{
	(void)portid, (void)mgmt_class, (void)mgmt_version, (void)rmpp_version, (void)method_mask;
	return -EBADF;
}

int
umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
	long method_mask[16 / sizeof(long)])
{
	(void)portid, (void)mgmt_class, (void)rmpp_version, (void)oui, (void)method_mask;
	return -EBADF;
}

int
umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	(void)port_fd, (void)attr, (void)agent_id;
	return EBADF;
}

int
umad_unregister(int portid, int agentid)
{
	(void)portid, (void)agentid;
	return -EBADF;
}

int
umad_debug(int level)
{
	(void)level;
	return 0;
}

void
umad_addr_dump(ib_mad_addr_t *addr)
{
	printf("qpn %u qkey %#x lid %u sl %u grh %u\n", be32toh(addr->qpn), be32toh(addr->qkey),
		be16toh(addr->lid), addr->sl, addr->grh_present);
}

void
umad_dump(void *umad)
{
	struct ib_user_mad *mad = umad;

	printf("agent %u status %u timeout %u ms\n", mad->agent_id, mad->status, mad->timeout_ms);
	umad_addr_dump(&mad->addr);
}

const char *
umad_class_str(uint8_t mgmt_class)
{
	return mgmt_class == 0x07 ? "CM" : mgmt_class == 0x03 ? "SA" : "<unknown>";
}

const char *
umad_method_str(uint8_t mgmt_class, uint8_t method)
{
	(void)mgmt_class;
	switch (method) {
	case 0x01:
		return "Get";
	case 0x02:
		return "Set";
	case 0x03:
		return "Send";
	case 0x81:
		return "GetResp";
	default:
		return "<unknown>";
	}
}

const char *
umad_attribute_str(uint8_t mgmt_class, __be16 attr_id)
{
	(void)mgmt_class, (void)attr_id;
	return "<unknown>";
}

const char *
umad_common_mad_status_str(__be16 status)
{
	return status == 0 ? "Success" : "<unknown>";
}

const char *
umad_sa_mad_status_str(__be16 status)
{
	return status == 0 ? "Success" : "<unknown>";
}
