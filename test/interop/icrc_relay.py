#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Relays frames between two netdevs of its network namespace, and translates what the kernel's rxe
has for an ICRC of FLUSHes: up to Linux 6.12 at least it is computed over their transport headers
twice, for want of an entry in a table, and so only rxe understands rxe. Everything else of a packet
goes as it came. In the end it prints how many FLUSHes went each way, and how many of the kernel's
had another ICRC than that.

    icrc_relay.py OURS THEIRS    until SIGTERM
"""
import selectors
import signal
import socket
import struct
import sys
import zlib

FLUSH = 0x1c
ETHERTYPES = {0x0800: (20, (1, 8, 10, 11)), 0x86dd: (40, (1, 2, 3, 7))}
PACKET_OUTGOING = 4


def icrcs(packet, ip_len, hidden):
    """As it should be, and as rxe has it, of an IP packet without its ICRC."""
    masked = bytearray(packet)
    for at in hidden:
        masked[at] = 0xff
    if ip_len == 40:
        masked[0] = 0x6f  # the version stays
    masked[ip_len + 6] = masked[ip_len + 7] = 0xff  # checksum of UDP
    masked[ip_len + 12] = 0xff  # reserved part of the BTH
    right = zlib.crc32(b'\xff' * 8 + bytes(masked))
    return right, zlib.crc32(packet[ip_len + 8:], right)


def translated(frame, to_kernel, count):
    """The frame with the ICRC that its receiver expects."""
    ip_len, hidden = ETHERTYPES.get(struct.unpack('>H', frame[12:14])[0], (0, ()))
    packet = frame[14:]
    if ip_len == 0 or len(packet) < ip_len + 8 + 12 + 4:
        return frame
    udp = packet[ip_len:]
    protocol = packet[9] if ip_len == 20 else packet[6]
    length = struct.unpack('>H', udp[4:6])[0]
    if protocol != 17 or udp[2:4] != b'\x12\xb7' or udp[8] != FLUSH or len(udp) < length:
        return frame
    end = ip_len + length - 4
    right, kernels = icrcs(packet[:end], ip_len, hidden)
    found = struct.unpack('<I', packet[end:end + 4])[0]
    if found != (right if to_kernel else kernels):
        count['other'] += 1
        return frame
    count['to kernel' if to_kernel else 'from kernel'] += 1
    return frame[:14 + end] + struct.pack('<I', kernels if to_kernel else right)


def main():
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    count = {'to kernel': 0, 'from kernel': 0, 'other': 0}
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2)]
    selector = selectors.DefaultSelector()
    for i, name in enumerate(sys.argv[1:3]):
        ends[i].bind((name, 0))
        # SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC
        ends[i].setsockopt(263, 1, struct.pack('iHH8s', socket.if_nametoindex(name), 1, 0, b''))
        selector.register(ends[i], selectors.EVENT_READ, i)
    print('relays', flush=True)
    try:
        while True:
            for key, _ in selector.select():
                frame, address = ends[key.data].recvfrom(65536)
                if address[2] != PACKET_OUTGOING:
                    ends[1 - key.data].send(translated(frame, key.data == 0, count))
    finally:
        print(', '.join(f'{val} {name}' for name, val in count.items()), flush=True)


main()
