#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes seeds for fuzz targets, one file each, named after its contents.

    make_corpus.py pkt FOLDER    packets of the kept captures
    make_corpus.py ctrl FOLDER   what honest clients say, as steps of fuzz_ctrl
    make_corpus.py segment FOLDER   likewise for fuzz_segment
    make_corpus.py udp FOLDER    what a kernel gives net_udp, and frames to be sent

Afterwards let libFuzzer minimise: fuzz_pkt -merge=1 test/fuzz/corpus/pkt FOLDER
"""
import hashlib
import pathlib
import re
import struct
import sys

HERE = pathlib.Path(__file__).parent
REQUESTS = re.findall(r'^RCD_CTRL(?:_CM)?\((\w+),',
                      (HERE.parents[1] / 'lib/ctrl/rcd_ctrl.def').read_text(), re.MULTILINE)

# Kinds of steps, as in fuzz_ctrl.c; requests are those below the first.
MALFORMED, CONNECT, CLOSE, SHUTDOWN, PASS, SCRIBBLE, MEMORY, DEAF = range(13, 21)


def packets():
    for path in sorted((HERE.parent / 'vectors').glob('kept-*.pcap')):
        data, pos = path.read_bytes(), 24
        while pos < len(data):
            caplen, = struct.unpack_from('<I', data, pos + 8)
            yield data[pos + 16:pos + 16 + caplen]
            pos += 16 + caplen


def step(who, kind, op=0, how=0, aux=0):
    # The last poke is not used, and its value chooses among descriptors.
    return struct.pack('<4B BBH BBH BBH', who, kind, op, how, 0, 0, 0, 0, 0, 0, 0, 0, aux)


def req(who, name, how=0, aux=0):
    return step(who, 0, REQUESTS.index(name), how, aux)


# Bits of a SOCKETS step, as in handed.h; what makes of 4 descriptors 0, 1, 2, 3, 5, 6, 7, 8.
QUEUE, OTHER, ADD, CHANGE = 1, 2, 0x40, 0x80
COUNTS = [4 * index for index in range(8, 16)]


def sockets(who, how, *pokes):
    """@param pokes  (place, wrong kind or change, True: a right one of the other namespace)"""
    changes = [(*poke, False)[:3] for poke in pokes]
    return struct.pack('<4B', who, 0, REQUESTS.index('SOCKETS'), how) + b''.join(
        struct.pack('<BBH', place, 0x84 if elsewhere else 0x80, kind)
        for place, kind, elsewhere in changes) + bytes(4 * (3 - len(changes)))


def queue_pair(who, kind=0):
    """@param kind 0: RC, 1: UC, 2: UD"""
    states = [req(who, 'QP_MODIFY', state) for state in (1, 2, 3)]
    return [req(who, 'PD_CREATE'), req(who, 'CHANNEL_CREATE'), req(who, 'CQ_CREATE', 1),
            req(who, 'QP_CREATE', kind), *states]


def listener(who):
    return [req(who, 'CM_CHANNEL_CREATE'), req(who, 'CM_CREATE'), req(who, 'CM_BIND', 4),
            req(who, 'CM_LISTEN')]


def connects(who):
    return [req(who, 'CM_CHANNEL_CREATE'), req(who, 'CM_CREATE'),
            req(who, 'CM_RESOLVE_ADDR', 4), step(who, PASS, 1, 3), req(who, 'CM_EVENT'),
            req(who, 'CM_RESOLVE_ROUTE'), req(who, 'CM_EVENT'), req(who, 'CM_CONNECT'),
            step(who, PASS, 1, 3)]


def clients():
    memory = [req(0, 'PD_CREATE'), req(0, 'MEM_ADD'), req(0, 'MR_REG'), req(0, 'MR_REG', 16)]
    yield memory + [req(0, 'MR_REREG'), req(0, 'MR_QUERY'), req(0, 'MR_DEREG'), req(0, 'MEM_DEL')]
    yield memory + [req(0, 'MR_REG', 8), req(0, 'MR_REG', 8 + 16), req(0, 'MR_NULL'),
                    req(0, 'MW_ALLOC', 1), req(0, 'MW_FREE')]
    device_memory = [req(0, 'PD_CREATE'), req(0, 'DM_ALLOC'), req(0, 'DM_REG')]
    yield device_memory + [req(0, 'DM_FREE'), req(0, 'DM_QUERY'), req(0, 'MR_DEREG'),
                           req(0, 'DM_FREE'), req(0, 'DM_ALLOC', 1), req(0, 'DM_REG')]
    yield device_memory + [step(0, SCRIBBLE), step(0, CLOSE)]
    # Regions of all addresses, of a client that copies, and of one that does not.
    for how in (4, 0):
        yield [step(0, CONNECT, 0, how), req(0, 'PD_CREATE'), req(0, 'MEM_ADD'),
               req(0, 'MR_REG', 0x40), req(0, 'MR_REG'), req(0, 'MR_REREG', 0x40),
               req(0, 'MR_QUERY'), req(0, 'MR_DEREG'), *queue_pair(0), step(0, CLOSE)]
    yield memory + [step(0, MEMORY, 1, 0), step(0, MEMORY, 1, 1), step(0, PASS, 2, 2)]
    for kind in range(3):
        yield queue_pair(0, kind) + [
            req(0, 'QP_QUERY'), req(0, 'SRQ_CREATE'), req(0, 'SRQ_MODIFY'),
            req(0, 'QP_CREATE', 0x40 + kind), req(0, 'SRQ_SWITCH'), req(0, 'SRQ_RESIZE'),
            req(0, 'SRQ_RESIZE'), req(0, 'SRQ_SWITCH'), req(0, 'CQ_RESIZE'), req(0, 'CQ_MODIFY'),
            req(0, 'MCAST_ATTACH'), step(0, SCRIBBLE), req(0, 'QP_DESTROY')]
    # Raw packets, by numbers that requests.c takes for such: INIT, RTR and RTS.
    raw = queue_pair(0)[:3] + [req(0, 'QP_CREATE', 0xb8)] + \
        [req(0, 'QP_MODIFY', how) for how in (190, 184, 185)]
    for kind in range(4):
        yield raw + [req(0, 'FLOW_CREATE', 0x10 * kind), req(0, 'FLOW_CREATE', 0x44 + 0x10 * kind),
                     step(0, PASS, 1, 3), req(0, 'FLOW_CREATE', 0x88), req(0, 'FLOW_READ'),
                     req(0, 'FLOW_DESTROY'), req(0, 'FLOW_READ', 1),
                     req(0, 'FLOW_DESTROY'), req(0, 'QP_DESTROY'), req(0, 'FLOW_DESTROY', 1)]
        yield raw + [req(0, 'FLOW_CREATE', 0x10 * kind), step(0, SCRIBBLE), step(0, CLOSE)]
    yield queue_pair(0) + queue_pair(1) + [step(0, CLOSE), step(1, CLOSE)]
    # A guest, and what happens when its host goes.
    guest = [step(1, CONNECT, 0, 3), req(0, 'PD_CREATE'), req(1, 'IMPORT')]
    yield guest + [req(1, 'PD_QUERY'), step(1, CLOSE), req(0, 'PD_DESTROY')]
    yield guest + [step(0, CLOSE), req(1, 'PD_QUERY'), req(1, 'PD_CREATE')]
    yield guest + queue_pair(1) + [step(0, CLOSE), step(2, CONNECT, 0, 3), req(2, 'IMPORT', 0, 1)]
    # A request that waits for a neighbour.
    yield [req(0, 'PD_CREATE'), req(0, 'AH_CREATE', 3), step(0, PASS, 4, 20), step(0, PASS, 5, 9)]
    yield [req(0, 'PD_CREATE'), req(0, 'AH_CREATE', 1), req(0, 'AH_CREATE', 2),
           req(0, 'AH_DESTROY')]
    yield [req(0, 'PD_CREATE'), req(0, 'AH_CREATE', 3), step(0, SHUTDOWN, 0, 0),
           step(0, PASS, 5, 9)]
    # Connections.
    both = listener(0) + connects(1)
    accept = [req(0, 'CM_EVENT'), req(0, 'CM_ACCEPT', 1), step(0, PASS, 1, 3)]
    yield both + accept + [req(1, 'CM_EVENT'), req(1, 'CM_ESTABLISH'), req(0, 'CM_EVENT'),
                           req(1, 'CM_QP_ATTR', 8), req(1, 'CM_DISCONNECT'), req(1, 'CM_DESTROY')]
    yield both + [req(0, 'CM_EVENT'), req(0, 'CM_REJECT', 1), step(0, PASS, 4, 4)]
    yield both + accept + [step(1, CLOSE), step(0, PASS, 4, 4)]
    yield both + [req(0, 'CM_CHANNEL_CREATE'), req(0, 'CM_MIGRATE', 4), req(0, 'CM_DESTROY')]
    yield listener(0) + [req(0, 'CM_JOIN'), req(0, 'CM_EVENT'), req(0, 'CM_LEAVE'),
                         req(0, 'CM_SET', 4), req(0, 'CM_QUERY')]
    for line in range(26):
        yield listener(0) + [req(1, 'PD_CREATE'), req(1, 'ADMIN', line)]


def handed():
    """Sockets of another network namespace, right and wrong, and what happens to them later."""
    hello = step(0, CONNECT, 0, 3)
    first, queue = sockets(0, OTHER), sockets(0, OTHER | QUEUE)
    yield [hello, first, queue, queue, req(0, 'ADMIN')]
    yield [hello, first, queue, step(0, CLOSE)]
    for text in range(4):
        yield [hello, first, queue, sockets(0x10 * text, OTHER | QUEUE | ADD)]
        yield [hello, first, sockets(0x10 * text, QUEUE | ADD)]
        yield [hello, sockets(0, 0), sockets(0x10 * text, QUEUE | ADD)]
    yield [hello, *[sockets(0, QUEUE * queued | how) for queued in range(2) for how in COUNTS]]
    for kind in range(32):
        yield [hello, *[sockets(0, OTHER, (place, kind)) for place in range(4)], first,
               *[sockets(0, OTHER | QUEUE, (place, kind)) for place in range(4)], queue]
    for place in range(4):
        yield [hello, sockets(0, OTHER, (place, 0, True)), first,
               sockets(0, OTHER | QUEUE, (place, 0, True)), sockets(0, QUEUE), queue]
    for what in range(10):
        yield [hello, first, sockets(0, CHANGE, *[(place, what) for place in range(3)]), queue,
               sockets(0, CHANGE, *[(place, what) for place in range(3)]),
               sockets(0, OTHER | QUEUE | ADD)]
        yield [hello, first, sockets(0, CHANGE, (0, what), (1, what)),
               sockets(0, CHANGE, (2, what)), sockets(0x10, OTHER | ADD),
               sockets(0, OTHER | QUEUE | ADD)]
    # More than any device takes, and than one may have.
    yield [hello, first, *[queue] * 60]


def findings():
    """What two reviews found with this engine, and what fuzz_ctrl found itself."""
    # S1: a copied region of 2^64 bytes less 511 pages.
    yield [req(0, 'PD_CREATE'),
           struct.pack('<4B BBH BBH BBH', 0x80, 0, REQUESTS.index('MR_REG'), 16,
                       4, 0x87, 511, 0, 0, 0, 0, 0, 0)]
    # S3: a guest with an identifier of its own takes its host's place.
    yield [req(0, 'PD_CREATE'), step(1, CONNECT, 0, 3), *listener(1), req(1, 'IMPORT'),
           step(0, CLOSE), *connects(2)]
    # S4: a host that waits, takes no reply and has a guest next to it; another waits too.
    yield [req(2, 'PD_CREATE'), step(1, CONNECT, 0, 3), req(0, 'PD_CREATE'), req(1, 'IMPORT'),
           req(0, 'AH_CREATE', 3), step(0, SHUTDOWN), req(2, 'AH_CREATE', 3),
           step(2, PASS, 5, 31), step(2, PASS, 5, 31)]
    # A message of no bytes, with descriptors.
    yield [req(0, 'PD_CREATE'), step(0x20, MALFORMED, 0xff, 0)]


def segments():
    for kind in range(16):
        yield [step(who, kind, op, 3) for who in range(2) for op in range(6)]


# Control messages, as in kernel_udp.c.
PKTINFO4, PKTINFO6, TOS, TCLASS, TTL, HOPLIMIT, GRO = range(7)
OTHER_LENGTH = 0xc0


def control(kind, seed=0, length=None):
    """@param length  of a value that is not of its right one"""
    return struct.pack('>B', kind) + struct.pack('>H', seed) if length is None else \
        struct.pack('>BBH', kind | OTHER_LENGTH, length, seed)


def datagram(length, *controls, flags=0, sport=4791):
    return struct.pack('>BHBHB', 4, length, 1, sport, len(controls)) + b''.join(controls) + \
        struct.pack('>B', flags)


def queue(family, *bursts, gro=True, room=0, guess=4096):
    """@param bursts  (how many are asked for, what the kernel does)"""
    how = gro | (4 if family == 4 else 2) | room << 3
    return struct.pack('>BBHH', 1, how, guess - 1, guess - 1) + b''.join(
        struct.pack('>B', 0x20 | count) + b''.join(calls) for count, *calls in bursts)


NOTHING, ERROR = b'\0', b'\2'


def kernels():
    for family, pktinfo, tclass, hops in ((4, PKTINFO4, TOS, TTL), (6, PKTINFO6, TCLASS, HOPLIMIT)):
        whole = [control(pktinfo, 7), control(tclass, 3), control(hops, 64)]

        def run(length, size, *more, **how):
            return datagram(length, *whole, control(GRO, size), *more, **how)
        # Sizes that were expected and others; runs that end in a short one, or in none.
        for size in (1, 255, 1000, 1024, 4096, 4100):
            for count in (1, 2, 5, 14):
                for last in (0, 1, size):
                    length = size * count + last
                    if length < 65536:
                        yield queue(family, (31, run(length, size), run(length, size), NOTHING),
                                    (31, run(length, size), NOTHING), guess=1024)
        # More datagrams than there may be, sizes of 0, of all and of more than is there.
        for size in (0, 1, 2, 64, 511, 512, 65535, 9000):
            for room in range(4):
                yield queue(family, (31, run(65000, size), NOTHING), (3, run(60, size), NOTHING),
                            room=room)
        # Of mixed sizes, taken a few at a time.
        yield queue(family, *[(3, run(13 * size, size)) for size in (4096, 100, 1024, 4096)],
                    *[(5, NOTHING)] * 30)
        yield queue(family, (31, *[run(9 * size, size) for size in (4096, 1000, 256, 4096, 255)],
                             datagram(0, *whole), datagram(4391, *whole), NOTHING), guess=4096)
        # All that there can be, without buffers for it.
        yield queue(family, *[(0x1f & ~0x20, run(65024, 512), NOTHING)] * 12)
        # Cut, of other lengths, for nobody, with options, fragments, of the other version.
        for flags in (0xf0, 0xff):
            yield queue(family, (9, run(100, 10, flags=flags), run(100, 10), NOTHING))
        for length in (0, 1, 3, 4, 11, 12, 19, 20, 63):
            yield queue(family, (9, *[datagram(900, *whole[:at], control(kind, 9, length),
                                               *whole[at + 1:], control(GRO, 300, length))
                                      for at, kind in enumerate((pktinfo, tclass, hops))], NOTHING))
        for kind in range(7, 16):
            yield queue(family, (9, run(100, 10, control(kind)), run(100, 10), NOTHING))
        yield queue(family, (9, datagram(100), datagram(100, control(1 - pktinfo), *whole[1:]),
                             datagram(100, *[control(pktinfo, n) for n in range(15)]), NOTHING))
        # Errors, and what is kept of them, between datagrams.
        for kept in (b'\0', b'\x37\0', b'\x2b\x25\0', b'\x35\x03\x31\x0f\0'):
            yield queue(family, (9, run(5000, 1000), ERROR, kept, run(5000, 1000), NOTHING))
        yield queue(family, (31, run(40000, 4000), NOTHING), gro=False)
    # What is longer than a datagram can be.
    yield queue(4, (9, datagram(0xffff, control(PKTINFO4), control(GRO, 4096)), NOTHING))
    for frame in packets():
        for split in (54, 100, 65535):
            yield struct.pack('>BHI', 0, split, 0x1234567) + frame
        # Lengths of IP and UDP that are not the frame's, of one alone and of both.
        for places in ((16,), (18,), (38,), (58,), (16, 38), (18, 58)):
            for more in (0x8000, 64, -64):
                wrong = bytearray(frame)
                for at in places:
                    length, = struct.unpack_from('>H', wrong, at)
                    struct.pack_into('>H', wrong, at, (length + more) & 0xffff)
                yield struct.pack('>BHI', 0, 65535, 1) + wrong


def main():
    makers = {
        'pkt': packets,
        'ctrl': lambda: (b''.join(steps) for steps in [*clients(), *handed(), *findings()]),
        'udp': kernels,
        'segment': lambda: (b''.join(steps) for steps in segments()),
    }
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for seed in makers[sys.argv[1]]():
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


main()
