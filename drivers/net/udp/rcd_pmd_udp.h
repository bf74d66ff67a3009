/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * net_udp: an Ethernet device that carries RoCEv2 over the kernel's UDP sockets. No privilege, no
 * address and no driver of its own is needed: the kernel keeps its netdev, its routes, ARP and
 * neighbour discovery.
 *
 *     --vdev net_udp0,iface=eth0
 *
 * Frames are UDP in IPv4 or IPv6, untagged, whole and without options. Of one that is to be sent,
 * the Ethernet header is not looked at; addresses, the destination's port, TOS or traffic class
 * and hop limit are the kernel's to write, as the frame has them. The source's port is the
 * device's, or, to whom was not heard yet, one that the kernel chose. The source's address must be
 * one of the machine's, or the frame is refused. What it receives has the port's MAC as its
 * destination. All else is dropped and counted.
 *
 * Runs of datagrams of one size to one peer go in one call (UDP_SEGMENT), and come in one
 * (UDP_GRO), where the kernel knows them. With icrc=1 the last four bytes of a datagram are taken
 * for RoCE's invariant CRC, which covers the identification of IPv4 and the source's port: it is
 * amended by what the kernel writes there. Received IPv4 packets have a guess for their
 * identification and the flag RCD_MBUF_FLAG_ANY_ID (rcd_mbuf_flag.h).
 *
 * Arguments:
 *   iface=NAME         the netdev; without one, any that the kernel routes to and receives from
 *   port=NUMBER        that the sockets are bound to; 4791
 *   runs=learn|all|none  to whom runs go: to who sends from the port that it is sent to, and so has
 *                      a socket, too, which minds no identification and takes runs that no NIC cut,
 *                      and by a NIC over IPv6 to anybody (learn); to all; to nobody. A NIC is a
 *                      device of PCI or USB, but no hypervisor's (virtio-net, vmxnet3): others may
 *                      hand a run on as it is
 *   gro=0|1            whether to receive runs; 1
 *   icrc=0|1           1
 *   buffer=BYTES       of each socket and direction, as far as the kernel lets; 8388608
 *   sockets=FD+FD+...  of this process, four for each queue: UDP over IPv4 and IPv6 to receive by,
 *                      and the same to send to strangers; without a port yet. They are duplicated,
 *                      and the device is in their network namespace. In place of a version of IP
 *                      that is not there stands the other. They keep the port until the device is
 *                      closed, and there are no more queues
 *
 * Extended statistics, tx_ and rx_:
 *   udp_calls, udp_runs   datagrams and runs; those that were runs
 *   udp_copied   received packets of another size than was expected
 *   udp_invalid  no UDP, or cut; received, also without a destination
 *   udp_too_long for the netdev, or for a buffer
 *   udp_refused  by the kernel: no way there, no such source, a filter, a full queue
 *   udp_full     no room in a socket: 200 ms of who was heard, 1 ms of others
 *   udp_options, udp_fragments  received with such
 *   udp_icmp     what others answered to datagrams
 * and imissed: what found no room in a socket that receives.
 *
 * Contract: a queue's sender and receiver are one thread, as they share sockets; up to 16 queues,
 * no more to send than to receive; a burst that is taken in part waits for a socket's room.
 * Buffers are written to (identification, port, ICRC) unless others have them, too. The MTU is the
 * netdev's: another is taken and not heeded. Receive interrupts: the descriptor of a queue is
 * readable while something is there, and a queue's count is 0 or 1. No secondary processes. Of two
 * devices with one port on one netdev the second does not start.
 *
 * Linux: runs need 4.18 to be sent and 5.0 to be received; iface needs 5.7 for who has not
 * CAP_NET_RAW.
 */
#ifndef RCD_PMD_UDP_H
#define RCD_PMD_UDP_H

#include "rcd_mbuf_flag.h"

/** How the names of its devices begin. */
#define RCD_PMD_UDP_NAME "net_udp"

#endif /* RCD_PMD_UDP_H */
