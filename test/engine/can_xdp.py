#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Says whether AF_XDP works on a netdev of this namespace: what it takes, tried by nobody but this
program. Exits with 0, or with a line that says what is missing.

    can_xdp.py NETDEV
"""
import ctypes
import ctypes.util
import os
import platform
import socket
import struct
import sys

AF_XDP, SOL_XDP = 44, 283
RX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 2, 4, 5, 6
XDP_COPY = 2
PROG_LOAD, PROG_TYPE_XDP = 5, 6
BPF_CALL = {'x86_64': 321, 'aarch64': 280}
LEN = 64 * 4096


def bind(libc, netdev, memory):
    with socket.socket(AF_XDP, socket.SOCK_RAW) as sock:
        sock.setsockopt(SOL_XDP, UMEM_REG, struct.pack('QQIIQ', memory, LEN, 4096, 0, 0))
        for ring in (FILL_RING, COMPLETION_RING, RX_RING):
            sock.setsockopt(SOL_XDP, ring, struct.pack('I', 64))
        addr = struct.pack('HHIII', AF_XDP, XDP_COPY, socket.if_nametoindex(netdev), 0, 0)
        if libc.bind(sock.fileno(), addr, len(addr)):
            raise OSError(ctypes.get_errno(), 'bind')


def load(libc):
    """A program that lets everything pass."""
    code = ctypes.create_string_buffer(struct.pack('BBhi', 0xb7, 0, 0, 2) +
                                       struct.pack('BBhi', 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b'BSD')
    attr = struct.pack('IIQQ', PROG_TYPE_XDP, 2, ctypes.addressof(code),
                       ctypes.addressof(licence)).ljust(128, b'\0')
    number = BPF_CALL.get(platform.machine())
    if number is None:
        return
    fd = libc.syscall(number, PROG_LOAD, attr, len(attr))
    if fd < 0:
        raise OSError(ctypes.get_errno(), 'bpf')
    os.close(fd)


def main():
    if ctypes.util.find_library('rte_net_af_xdp') is None:
        return 'DPDK has no driver for AF_XDP here'
    libc = ctypes.CDLL(None, use_errno=True)
    libc.aligned_alloc.restype = ctypes.c_void_p
    try:
        bind(libc, sys.argv[1], libc.aligned_alloc(4096, LEN))
        load(libc)
    except OSError as err:
        return f'the kernel has no AF_XDP here: {err}'
    return 0


if __name__ == '__main__':
    sys.exit(main())
