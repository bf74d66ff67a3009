/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: of a netdev is read what its message says, and an attribute of any other length says
 * nothing. Method: each attribute with each length up to eight bytes, in memory that ends behind
 * it, so that a reader that goes on is seen by the sanitizer.
 */
#include "rcd_nl_link.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_nl_recv.h"
#include "rcd_tap.h"

#define ROOM     256
#define ALLMULTI 61 /**< IFLA_ALLMULTI, of Linux 6.0 */

static const uint8_t ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };

/** What somebody sent, and a copy of it that ends where it does. */
struct message {
	_Alignas(struct nlmsghdr) char bytes[ROOM];
	struct nlmsghdr *nlh;
};

static void
begin(struct message *message)
{
	struct ifinfomsg *info;

	memset(message, 0, sizeof(*message));
	message->nlh = mnl_nlmsg_put_header(message->bytes);
	message->nlh->nlmsg_type = RTM_NEWLINK;
	info = mnl_nlmsg_put_extra_header(message->nlh, sizeof(*info));
	info->ifi_flags = IFF_UP | IFF_RUNNING;
}

static struct nlmsghdr *
exact(const struct message *message)
{
	struct nlmsghdr *nlh = malloc(message->nlh->nlmsg_len);

	CU_ASSERT_PTR_NOT_NULL_FATAL(nlh);
	memcpy(nlh, message->bytes, message->nlh->nlmsg_len);
	return nlh;
}

static void
attributes_of_other_lengths_say_nothing(void)
{
	static const struct {
		uint16_t type;
		size_t len;
	} rows[] = {
		{ IFLA_MTU, 4 },
		{ IFLA_PROMISCUITY, 4 },
		{ ALLMULTI, 4 },
		{ IFLA_ADDRESS, RCD_MAC_LEN },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t len = 0; len <= sizeof(ones); len++) {
			struct message message;
			struct rcd_nl_link link;
			struct nlmsghdr *nlh;
			bool whole = len == rows[i].len;

			begin(&message);
			mnl_attr_put(message.nlh, rows[i].type, len, ones);
			nlh = exact(&message);
			rcd_nl_link_read(nlh, &link);
			free(nlh);
			CU_ASSERT(link.up);
			CU_ASSERT_EQUAL(link.mtu, i == 0 && whole ? 0x01010101u : 0u);
			CU_ASSERT_EQUAL(link.has_promiscuity, i == 1 && whole);
			CU_ASSERT_EQUAL(link.promiscuous, i == 1 && whole);
			CU_ASSERT_EQUAL(link.all_groups, i == 2 && whole);
			CU_ASSERT_EQUAL(link.has_mac, i == 3 && whole);
		}
	}
}

static void
programs(void)
{
	for (size_t len = 0; len <= sizeof(ones); len++) {
		struct message message;
		struct rcd_nl_link link;
		struct nlmsghdr *nlh;
		struct nlattr *nest;

		begin(&message);
		nest = mnl_attr_nest_start(message.nlh, IFLA_XDP);
		mnl_attr_put(message.nlh, IFLA_XDP_ATTACHED, len, ones);
		mnl_attr_nest_end(message.nlh, nest);
		nlh = exact(&message);
		rcd_nl_link_read(nlh, &link);
		free(nlh);
		CU_ASSERT(link.has_xdp);
		CU_ASSERT_EQUAL(link.xdp, len == 1);
	}
}

static void
vlans(void)
{
	static const struct {
		size_t lower_len, id_len;
		uint16_t elsewhere; /**< type of an attribute that says so; 0: none */
		const char *kind;
		uint16_t protocol;
		bool is;
	} rows[] = {
		{ 4, 2, 0, "vlan", ETH_P_8021Q, true },
		{ 3, 2, 0, "vlan", ETH_P_8021Q, false },
		{ 0, 2, 0, "vlan", ETH_P_8021Q, false },
		{ 8, 2, 0, "vlan", ETH_P_8021Q, false },
		{ 4, 1, 0, "vlan", ETH_P_8021Q, false },
		{ 4, 0, 0, "vlan", ETH_P_8021Q, false },
		{ 4, 4, 0, "vlan", ETH_P_8021Q, false },
		{ 4, 2, IFLA_LINK_NETNSID, "vlan", ETH_P_8021Q, false },
		{ 4, 2, IFLA_NEW_NETNSID, "vlan", ETH_P_8021Q, false },
		{ 4, 2, 0, "vlan", ETH_P_8021AD, false },
		{ 4, 2, 0, "vxlan", ETH_P_8021Q, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct message message;
		struct rcd_nl_vlan vlan;
		struct nlattr *info, *data;
		struct nlmsghdr *nlh;

		begin(&message);
		mnl_attr_put(message.nlh, IFLA_LINK, rows[i].lower_len, ones);
		if (rows[i].elsewhere != 0)
			mnl_attr_put_u32(message.nlh, rows[i].elsewhere, 1);
		info = mnl_attr_nest_start(message.nlh, IFLA_LINKINFO);
		mnl_attr_put_strz(message.nlh, IFLA_INFO_KIND, rows[i].kind);
		data = mnl_attr_nest_start(message.nlh, IFLA_INFO_DATA);
		mnl_attr_put(message.nlh, IFLA_VLAN_ID, rows[i].id_len, ones);
		mnl_attr_put_u16(message.nlh, IFLA_VLAN_PROTOCOL, htons(rows[i].protocol));
		mnl_attr_nest_end(message.nlh, data);
		mnl_attr_nest_end(message.nlh, info);
		nlh = exact(&message);
		CU_ASSERT_EQUAL(rcd_nl_link_read_vlan(nlh, &vlan), rows[i].is);
		free(nlh);
		if (rows[i].is)
			CU_ASSERT(vlan.lower == 0x01010101 && vlan.vlan_id == 0x0101);
	}
}

static void
headers(void)
{
	for (uint32_t len = sizeof(struct nlmsghdr); len < 64; len++) {
		struct nlmsghdr nlh = { .nlmsg_len = len };

		CU_ASSERT_EQUAL(rcd_nl_has(&nlh, sizeof(struct ifinfomsg)),
			len >= sizeof(nlh) + sizeof(struct ifinfomsg));
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(attributes_of_other_lengths_say_nothing),
		RCD_TEST(programs),
		RCD_TEST(vlans),
		RCD_TEST(headers),
	};

	return rcd_tap_run("nl_link", tests, sizeof(tests) / sizeof(tests[0]));
}
