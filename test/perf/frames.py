#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Raw packets beside testpmd: frames a second that leave one end of a veth pair by packet sockets
(net_af_packet), and that come to a program at the other. raw_ethernet_bw sends and receives by an
engine at each end; testpmd does by its txonly and rxonly. In turns, round by round; medians over
the rounds are printed, and the ratio of both.

    frames.py ROCADED LIBIBVERBS [--rounds N] [--bytes N]

Needs root. Records, never gates.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ARGS = argparse.ArgumentParser()
ARGS.add_argument('rocaded')
ARGS.add_argument('library')
ARGS.add_argument('--rounds', type=int, default=5)
ARGS.add_argument('--bytes', type=int, default=1024, help='of a frame')
ARGS = ARGS.parse_args()
ROUNDS, BYTES = ARGS.rounds, ARGS.bytes
sys.argv[1:] = [ARGS.rocaded, ARGS.library, 'veth']
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'system'))
import ends  # noqa: E402
import tap  # noqa: E402
import veth  # noqa: E402
from rounds import busy_cores  # noqa: E402

SECONDS = 4


def asked(end, *words):
    return json.loads(ends.rocade_on(end, '-j', *words).stdout)


def of_programs():
    """Sent and received a second, by what the engines count while both programs run."""
    ends.start()
    try:
        ours, theirs = ends.ENDS
        macs = []
        for end in (ours, theirs):
            ends.rocade_on(end, 'link', 'set', end.device, 'raw', 'on')
            links = asked(end, 'link', 'show')
            macs.append(next(link['mac'] for link in links if link['ifname'] == end.device))
        command = ['raw_ethernet_bw', '-F', '-s', str(BYTES), '-D', str(3 * SECONDS)]
        server = ends.begin(theirs, *command, '--server', '-d', theirs.device, '-B', macs[1], '-E',
                            macs[0])
        tap.wait_until('a flow', lambda: any(
            pair.get('flows') for pair in asked(theirs, 'resource', 'show', 'qp')))
        client = ends.begin(ours, *command, '--client', '-d', ours.device, '-B', macs[0], '-E',
                            macs[1])
        try:
            tap.wait_until('frames', lambda: ends.counters(theirs)['rdma_recvs'] > 0)
            return rate(lambda: (ends.counters(ours)['sent_pkts'],
                                 ends.counters(theirs)['rdma_recvs']))
        finally:
            ends.kill(client)
            ends.kill(server)
    finally:
        ends.stop()
        ends.ENDS.clear()


def rate(look):
    before, began = look(), time.monotonic()
    time.sleep(SECONDS)
    after, passed = look(), time.monotonic() - began
    return [(b - a) / passed for a, b in zip(before, after)]


def of_testpmd():
    """Sent, and counted by the receiver."""
    spaces = [f'rcdframes{os.getpid()}{end}' for end in 'ab']
    with contextlib.ExitStack() as stack:
        for space in spaces:
            subprocess.run(['ip', 'netns', 'add', space], check=True)
            stack.callback(subprocess.run, ['ip', 'netns', 'del', space], check=True)
        subprocess.run(['ip', 'link', 'add', 'p0', 'netns', spaces[0], 'type', 'veth', 'peer',
                        'name', 'p0', 'netns', spaces[1]], check=True)
        for space in spaces:
            subprocess.run(['ip', '-n', space, 'link', 'set', 'p0', 'up'], check=True)
        for space in spaces:
            veth.wait(space, 'p0')
        outs = []
        for space, mode in zip(reversed(spaces), ('rxonly', 'txonly')):
            command = ['ip', 'netns', 'exec', space, 'timeout', '-s', 'INT', str(3 * SECONDS),
                       'dpdk-testpmd', '--no-huge', '-m', '256', '--no-pci', '--lcores',
                       '0@(0-1),1@(0-1)', '--file-prefix', f'{space}{mode}', '--vdev',
                       'net_af_packet0,iface=p0,blocksz=65536,framesz=2048,framecnt=512', '--',
                       f'--forward-mode={mode}', f'--txpkts={BYTES}', '--auto-start',
                       '--stats-period', '1', '--total-num-mbufs', '8191']
            outs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                         stderr=subprocess.STDOUT, text=True))
        received, sent = (process.communicate()[0] for process in outs)
    return [pps(sent, 'Tx'), pps(received, 'Rx')]


def pps(text, way):
    rates = [int(rate) for rate in re.findall(rf'{way}-pps:\s+(\d+)', text)]
    rates = [one for one in rates if one > 0]
    tap.true(rates, f'no frames by testpmd\n{text[-2000:]}')
    return statistics.median(rates)


def main():
    print(f'{busy_cores():.1f} cores busy with other work', flush=True)
    found = {of_programs: [], of_testpmd: []}
    for _ in range(ROUNDS):
        for way, rates in found.items():
            rates.append(way())
    both = [[statistics.median(column) for column in zip(*rates)] for rates in found.values()]
    for name, (sent, received) in zip(('raw_ethernet_bw', 'testpmd'), both):
        print(f'{name:16} {BYTES} bytes: sent {sent / 1000:8.1f} thousand frames/s, received '
              f'{received / 1000:8.1f}')
    print(f'ratio            sent {both[0][0] / both[1][0]:.2f}, received '
          f'{both[0][1] / both[1][1]:.2f}')


if __name__ == '__main__':
    main()
