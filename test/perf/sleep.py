#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What sleep costs and saves on ports that a file descriptor wakes: processor time of an engine
with nothing to do, and how long who comes then waits, with idle = poll, sleep and auto.

    A  [engine]==[va] ----- [vb]==[kernel, or an engine that sleeps]  B

Of a port the engine answers ping itself: round trips, 20 ms apart. On a netdev the kernel does
that: the time of a SEND then (bench_wake) from the engine in B, --pause apart. The engine that is
measured has the last core; the other one and who waits have the first. In rounds, each way in turn;
medians are printed.

    sleep.py BUILD [--rounds N] [--pause MS] [--ways WORD] [--keep FILE]

Needs root. Records, never gates.
"""
import argparse
import contextlib
import pathlib
import sys
import tempfile
import time

from rounds import CPUS, Engine, Veth, busy_cores, kept, sh, table, wait_until

OWN, PEER = '10.99.0.1', '10.99.0.2'
KEYS = {'idle_percent': 'idle, % of a core', 'ping_us': 'ping, us',
        'send_us': 'SEND of 64 bytes, us'}
PORT = 'net_af_packet0,iface=va'
# {name: (type of the link, mode, driver)}
WAYS = {
    'port, AF_PACKET': ('port', '', 'net_af_packet'),
    'netdev, AF_PACKET': ('netdev', 'packet', 'net_af_packet'),
    'netdev, AF_XDP': ('netdev', 'xdp', 'net_af_xdp'),
    'netdev, UDP sockets': ('netdev', 'udp', 'net_udp'),
}


def one(args, kind, mode, driver, idle):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        veth = Veth(stack, 1500)
        sh('ip', '-n', veth.b, 'addr', 'add', f'{PEER}/24', 'dev', 'vb')
        engine = Engine(veth, stack, args.build, folder, veth.a, '-o', f'idle={idle}')
        if kind == 'port':
            engine.admin('link', 'add', 'r0', 'type', 'port', PORT, 'address', f'{OWN}/24')
        else:
            sh('ip', '-n', veth.a, 'addr', 'add', f'{OWN}/24', 'dev', 'va')
            engine.admin('link', 'add', 'r0', 'type', 'netdev', 'va', 'mode', mode)
        wait_until('the link', lambda: 'ACTIVE' in engine.admin('link'))
        if f'driver {driver}' not in engine.admin('-d', 'link'):
            raise RuntimeError(f'no {driver} here: {engine.admin("-d", "link")}')
        time.sleep(1)
        before = engine.ticks()
        time.sleep(args.seconds)
        found = {'idle_percent': (engine.ticks() - before) / args.seconds}
        if kind == 'port':
            found['ping_us'] = veth.ping_us(veth.b, OWN, 100, 0.02)
        else:
            peer = Engine(veth, stack, args.build, folder, veth.b, '-o', 'idle=sleep', at=0)
            peer.admin('link', 'add', 'r0', 'type', 'netdev', 'vb', 'mode',
                       'udp' if mode == 'udp' else 'packet')
            found['send_us'] = float(sh(
                'taskset', '-c', CPUS[0], args.build / 'test/perf/bench_wake', peer.socket, 'r0',
                engine.socket, 'r0', max(10, 1500 // args.pause),
                args.pause * 1000).split()[0])
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('build', type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=int, default=5, help='without work')
    parser.add_argument('--pause', type=int, default=5, help='between messages, ms')
    parser.add_argument('--ways', default='', help='those that have it in their name')
    parser.add_argument('--keep', help='figures of earlier runs, which these are added to')
    args = parser.parse_args()
    figures = []
    for _ in range(args.rounds):
        which = f'{time.time():.6f}'
        for name, about in WAYS.items():
            if args.ways not in name:
                continue
            for idle in ('poll', 'sleep', 'auto'):
                way = f'{name}, idle = {idle}'
                try:
                    figures.append({'way': way, 'round': which, 'others': busy_cores(),
                                    **one(args, *about, idle)})
                except RuntimeError as why:
                    print(f'# {way}: {why}', file=sys.stderr)
    print(table(kept(args.keep, figures), KEYS))


if __name__ == '__main__':
    main()
