#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Has a netdev finish checksums and cut what is too long itself, as ethtool -K would: who reads
its frames by a packet socket sees them so.

    whole.py NETDEV
"""
import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
SET_TX_CHECKSUMS = 0x17

value = array.array('B', struct.pack('II', SET_TX_CHECKSUMS, 0))
fcntl.ioctl(socket.socket(), SIOCETHTOOL,
            struct.pack('16sP', sys.argv[1].encode(), value.buffer_info()[0]))
