/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Attributes of netdevs, each of the length that it has to have.
 */
#include "rcd_nl_link.h"

#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "rcd_nl_recv.h"
#include "rcd_thread.h"

#define ALLMULTI 61 /**< IFLA_ALLMULTI, of Linux 6.0 */

/* Whether a netdev has a program of XDP, in any mode. */
static bool
nl_link_has_program(const struct nlattr *nest)
{
	struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		if (rcd_nl_is(attr, IFLA_XDP_ATTACHED, sizeof(uint8_t)))
			return mnl_attr_get_u8(attr) != XDP_ATTACHED_NONE;
	}
	return false;
}

void
rcd_nl_link_read(const struct nlmsghdr *nlh, struct rcd_nl_link *link)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attr;

	RCD_ON_CONTROL();
	*link = (struct rcd_nl_link){ 0 };
	if (nlh->nlmsg_type == RTM_DELLINK)
		return;
	link->up = (info->ifi_flags & IFF_UP) && (info->ifi_flags & IFF_RUNNING);
	/* What others than its owner want is counted by kernels that tell. */
	link->has_groups = true;
	link->all_groups = (info->ifi_flags & IFF_ALLMULTI) != 0;
	mnl_attr_for_each(attr, nlh, sizeof(*info)) {
		if (rcd_nl_is(attr, IFLA_MTU, sizeof(uint32_t))) {
			link->mtu = mnl_attr_get_u32(attr);
		} else if (rcd_nl_is(attr, IFLA_PROMISCUITY, sizeof(uint32_t))) {
			link->has_promiscuity = true;
			link->promiscuous = mnl_attr_get_u32(attr) > 0;
		} else if (rcd_nl_is(attr, ALLMULTI, sizeof(uint32_t))) {
			link->all_groups |= mnl_attr_get_u32(attr) > 0;
		} else if (rcd_nl_is(attr, IFLA_ADDRESS, RCD_MAC_LEN)) {
			link->has_mac = true;
			memcpy(link->mac, mnl_attr_get_payload(attr), RCD_MAC_LEN);
		} else if (mnl_attr_get_type(attr) == IFLA_XDP) {
			link->has_xdp = true;
			link->xdp = nl_link_has_program(attr);
		}
	}
}

/* The tag that netdevs of a VLAN put on. @return -1: it is no such netdev */
static int
nl_link_read_tag(const struct nlattr *info)
{
	const struct nlattr *data = NULL;
	struct nlattr *attr;
	bool vlan = false;
	int id = -1;

	mnl_attr_for_each_nested(attr, info) {
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			vlan = mnl_attr_get_payload_len(attr) >= 4 &&
				memcmp(mnl_attr_get_payload(attr), "vlan", 4) == 0;
		else if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
			data = attr;
	}
	if (!vlan || data == NULL)
		return -1;
	mnl_attr_for_each_nested(attr, data) {
		if (rcd_nl_is(attr, IFLA_VLAN_ID, sizeof(uint16_t)))
			id = mnl_attr_get_u16(attr);
		/* NICs look at the usual tags alone. */
		else if (rcd_nl_is(attr, IFLA_VLAN_PROTOCOL, sizeof(uint16_t)) &&
			mnl_attr_get_u16(attr) != htons(ETH_P_8021Q))
			return -1;
	}
	return id;
}

bool
rcd_nl_link_read_vlan(const struct nlmsghdr *nlh, struct rcd_nl_vlan *vlan)
{
	struct nlattr *attr;
	bool elsewhere = false;
	int id = -1;

	RCD_ON_CONTROL();
	vlan->lower = 0;
	mnl_attr_for_each(attr, nlh, sizeof(struct ifinfomsg)) {
		if (rcd_nl_is(attr, IFLA_LINK, sizeof(uint32_t)))
			vlan->lower = mnl_attr_get_u32(attr);
		else if (mnl_attr_get_type(attr) == IFLA_LINKINFO)
			id = nl_link_read_tag(attr);
		/* Of its link, or of itself from now on. */
		else if (mnl_attr_get_type(attr) == IFLA_LINK_NETNSID ||
			mnl_attr_get_type(attr) == IFLA_NEW_NETNSID)
			elsewhere = true;
	}
	vlan->vlan_id = (uint16_t)id;
	return vlan->lower != 0 && id >= 0 && !elsewhere;
}
