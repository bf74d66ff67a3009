#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: selective acknowledgements say on a real link what doc/sack.md says, and what looks at them
shows it.

Method: perftest connects by address over a veth pair whose ends lose, repeat and reorder what they
send. What arrives at either end is captured (the kernel shows nobody what packet sockets send), and
put in the order of time. tshark, with the dissector in Lua, tells what was asked for and
acknowledged, and each SACK is compared with the packets before and behind it; rocade-dump tells of
ICRCs.

    test_sack.py ROCADED LIBIBVERBS veth ROCADE_DUMP
"""
import collections
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys

from ends import ENDS, FOLDER, LIMIT, address, all_gone, counters, on, pair, run, start, stop, tap

DUMP = sys.argv[4]
LUA = pathlib.Path(__file__).parents[2] / 'usertools/rocade.lua'
CAPTURE = f'{FOLDER}/sack.pcap'
PSNS = 1 << 24
SACK, LAST_REQUEST = 0xc1, 0x0b
# Local CA GUIDs of who tells and hears SACKs.
OFFER, OFFERS = 0x0252434400000001, 0xffffffff00000001
END = b'that is all'
# To a port of nobody: not one of RoCE, and seen by who captures.
SEND_END = f'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto({END}, ' \
           '("{}", 9))'
FIELDS = {'src': 'ip.src', 'opcode': 'infiniband.bth.opcode',
          'qpn': 'infiniband.bth.destqp', 'psn': 'infiniband.bth.psn',
          'req_id': 'infiniband.cm.req', 'req_qpn': 'infiniband.cm.req.localqpn',
          'req_guid': 'infiniband.cm.req.localcaguid', 'req_psn': 'infiniband.cm.req.startpsn',
          'rep_id': 'infiniband.cm.rep.remotecommid', 'rep_qpn': 'infiniband.cm.rep.localqpn',
          'rep_guid': 'infiniband.cm.rep.localcaguid', 'rep_psn': 'infiniband.cm.rep.startpsn',
          'expected': 'rocade.sack.expected', 'seen': 'rocade.sack.seen',
          'kept': 'rocade.sack.kept'}
Packet = collections.namedtuple('Packet', ('place', *FIELDS))


class Direction:
    """Requests to one queue pair, and what it told of them."""

    def __init__(self, first, offered):
        self.first, self.offered = first, offered
        self.copies, self.sacks, self.checked = {}, [], 0

    def distance(self, psn):
        return (psn - self.first) % PSNS

    def came_before(self, sack, psn):
        return psn in self.copies and self.copies[psn].place < sack.place


def kept(text):
    """PSNs, of the dissector's words."""
    for word in text.split():
        first, _, last = word.partition('-')
        yield from ((int(first) + i) % PSNS
                    for i in range((int(last or first) - int(first)) % PSNS + 1))


def packets():
    done = subprocess.run(
        ['tshark', '-n', '-X', f'lua_script:{LUA}', '-r', CAPTURE, '-Y', 'infiniband', '-T',
         'fields', '-E', 'occurrence=f', *(word for name in FIELDS.values()
                                           for word in ('-e', name))],
        capture_output=True, text=True, timeout=LIMIT, check=False)
    tap.equal(done.returncode, 0, done.stderr)
    for place, line in enumerate(done.stdout.splitlines()):
        fields = dict(zip(FIELDS, line.split('\t')))
        for name, value in fields.items():
            if name not in ('src', 'kept'):
                fields[name] = int(value, 0) if value else None
        yield Packet(place, **fields)


def directions():
    """Of all connections of the capture, by (address of who asks, queue pair that is asked)."""
    asked, found = {}, {}
    peer = {}
    for packet in packets():
        if packet.req_id is not None:
            asked[packet.req_id] = packet
        elif packet.rep_id in asked:
            req = asked[packet.rep_id]
            offered = all(guid & OFFERS == OFFER for guid in (req.req_guid, packet.rep_guid))
            to_server, to_client = (req.src, packet.rep_qpn), (packet.src, req.req_qpn)
            # Each side names the PSN that the other begins with (IBTA Vol. 1, 12.7.31).
            found.setdefault(to_server, Direction(packet.rep_psn, offered))
            found.setdefault(to_client, Direction(req.req_psn, offered))
            peer[to_client], peer[to_server] = to_server, to_client
        elif packet.opcode == SACK:
            found[peer[packet.src, packet.qpn]].sacks.append(packet)
        elif packet.opcode <= LAST_REQUEST:
            found[packet.src, packet.qpn].copies.setdefault(packet.psn, packet)
    return found


def check(way, sack):
    """One SACK. Returns how many it says are missing that were not there before, and came then."""
    where = f'SACK {sack}'
    tap.true(way.offered, f'{where}: nobody agreed')
    for distance in range(way.checked, way.distance(sack.expected)):
        tap.true(way.came_before(sack, (way.first + distance) % PSNS), f'{where}: {distance}')
        way.checked = distance + 1
    tap.true(way.came_before(sack, sack.seen), f'{where}: seen')
    psns = set(kept(sack.kept))
    for psn in psns:
        tap.true(way.came_before(sack, psn), f'{where}: kept {psn}')
    ahead = max((psn - sack.expected) % PSNS for psn in psns) if psns else 0
    holes = {(sack.expected + i) % PSNS for i in range(ahead)} - psns
    return {psn for psn in holes if not way.came_before(sack, psn) and psn in way.copies}


@tap.test
def engines_start():
    for program in ('tshark', 'mergecap', 'tcpdump'):
        if shutil.which(program) is None:
            raise tap.Skip(f'no {program} here')
    start(veth_lines='impair = drop=1%,duplicate=1%,reorder=1%,seed=6\n')


@contextlib.contextmanager
def captured(end, peer, path):
    """What arrives at an end while something runs. All of it fits, whoever is late to read it."""
    tcpdump = subprocess.Popen(
        [*end.prefix, 'tcpdump', '-Z', 'root', '-i', end.netdev, '-s', '0', '-B', '131072', '-U',
         '--immediate-mode', '--time-stamp-precision=nano', '-w', path,
         'udp port 4791 or udp port 9'], stderr=subprocess.PIPE)
    try:
        tap.true(b'listening' in tcpdump.stderr.readline(), 'tcpdump')
        yield

        def is_whole():
            on(peer, sys.executable, '-c', SEND_END.format(end.address))
            return END in pathlib.Path(path).read_bytes()[-200:]
        tap.wait_until('the end of the capture', is_whole)
    finally:
        tcpdump.terminate()
        said = tcpdump.communicate(timeout=tap.PATIENCE)[1].decode()
    tap.true('\n0 packets dropped by kernel' in said, said)


@tap.test
def conversation_is_captured():
    words = ['ib_write_bw', '-R', '-F', '-n', '300']
    halves = [f'{CAPTURE}.{end.device}' for end in ENDS]
    with captured(*ENDS, halves[0]), captured(*reversed(ENDS), halves[1]):
        pair(words, [*words, address(2)])
        all_gone()
    tap.true(counters(ENDS[0])['sack_repair'] > 0, 'nothing was sent again')
    tap.equal(run('mergecap', '-w', CAPTURE, *halves).returncode, 0, 'mergecap')


@tap.test
def tshark_shows_what_the_packets_say():
    if not len(ENDS):
        raise tap.Skip('no engines')
    sacks, repaired = 0, set()
    for key, way in directions().items():
        sacks += len(way.sacks)
        for sack in way.sacks:
            repaired |= {(key, psn) for psn in check(way, sack)}
    tap.true(len(repaired) > 5, f'{sacks} SACKs, {len(repaired)} packets that came behind them')
    print(f'# {sacks} SACKs, {len(repaired)} packets that came behind them')


@tap.test
def rocade_dump_finds_the_same():
    if not len(ENDS):
        raise tap.Skip('no engines')
    done = subprocess.run([DUMP, '--json', CAPTURE], capture_output=True, text=True, timeout=LIMIT,
                          check=False)
    tap.equal(done.returncode, 0, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    tap.equal([lines[-1]['totals'][name] for name in ('icrc_bad', 'malformed')], [0, 0], lines[-1])
    ours = [(line['bth']['psn'], line['sacketh']['seen']) for line in lines if 'sacketh' in line]
    tap.equal(ours, [(packet.expected, packet.seen) for packet in packets()
                     if packet.opcode == SACK], 'SACKs')


@tap.test
def nothing_is_left():
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
