#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel's network is worth on a port that is not the kernel's: the engine's exception path
beside a plain TAP (tap_relay), and beside two drivers of DPDK's in testpmd, its TAP and virtio-user
with the kernel's vhost-net. All of them carry between a packet socket on a veth and a netdev r0k.

    A  kernel [r0k]==[engine, tap_relay or testpmd]==[va] ----- [vb kernel]  B

In rounds, each way in turn: round trips of ping, one stream of TCP either way, and how many cores
of the machine were busy with that. Medians are printed, and ratios to the plain TAP of the same
round. A way that this machine does not have is left out, and why is said.

    exception.py BUILD [--rounds N] [--keep FILE] [--lab KIT]

--lab measures in the virtual machine of the kit nic-lab, whose kernel has vhost-net. Its processor
is emulated: only ratios say something. Needs root, iperf3 and dpdk-testpmd. Records, never gates.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from rounds import CPUS, MAC, Engine, Veth, busy_cores, busy_seconds, kept, sh, table, wait_until

OWN, PEER = '10.99.0.1', '10.99.0.2'
KEYS = {'ping_us': 'ping, us', 'in_mbit': 'TCP to the kernel, Mbit/s',
        'out_mbit': 'TCP from the kernel, Mbit/s', 'cores': 'cores busy'}
RATIOS = {key: head for key, head in KEYS.items() if key != 'cores'}
PLAIN = 'plain TAP'
PORT = 'net_af_packet0,iface=va,framesz=9216,blocksz=36864,framecnt=512'


class NotHere(Exception):
    """A way that this machine does not have."""


class Place:
    """The namespaces, and what is being measured in them."""

    def __init__(self, stack, build, folder, mtu, seconds):
        self.stack, self.build, self.folder, self.seconds = stack, build, folder, seconds
        self.veth = veth = Veth(stack, mtu)
        self.mtu = mtu
        sh('ip', '-n', veth.b, 'addr', 'add', f'{PEER}/24', 'dev', 'vb')
        # A's own kernel hears the frames too, as it would not with a NIC that is bound.
        for name, val in (('ipv6/conf/va/disable_ipv6', 1), ('ipv4/conf/va/arp_ignore', 1),
                          ('ipv4/conf/va/rp_filter', 1)):
            veth.inside(veth.a, 'sh', '-c', f'echo {val} > /proc/sys/net/{name}')

    def begin(self, *words):
        log = self.stack.enter_context(open(f'{self.folder}/way.log', 'w', encoding='utf-8'))
        return self.veth.begin(self.stack, self.veth.a, log, *words)

    def relay(self):
        self.begin(self.build / 'test/perf/tap_relay', 'va', 'r0k')

    def rocade(self, *options):
        engine = Engine(self.veth, self.stack, self.build, self.folder, self.veth.a, *options)
        engine.admin('link', 'add', 'r0', 'type', 'port', PORT, 'kernel', 'r0k')

    def testpmd(self, netdev):
        self.begin('dpdk-testpmd', '--lcores', f'0@({CPUS[0]}-{CPUS[-1]}),1@{CPUS[-1]}',
                   '--no-huge', '-m', '384', '--no-pci', '--no-telemetry', '--file-prefix',
                   f'{self.veth.a}pmd', '--vdev', PORT, '--vdev', netdev, '--',
                   '--total-num-mbufs=4096', '--mbuf-size=9728', '--forward-mode=io')

    def vhost(self):
        if not os.path.exists('/dev/vhost-net'):
            raise NotHere('this kernel has no vhost-net')
        self.testpmd('net_virtio_user0,path=/dev/vhost-net,queues=1,queue_size=1024,iface=r0k,'
                     f'mac={MAC}')

    def is_there(self):
        """The netdev is, and a ping gets through."""
        a, b = self.veth.a, self.veth.b
        wait_until('r0k', lambda: 'r0k' in sh('ip', '-n', a, 'link'))
        sh('ip', '-n', a, 'link', 'set', 'r0k', 'address', MAC, 'mtu', self.mtu, 'up')
        sh('ip', '-n', a, 'addr', 'add', f'{OWN}/24', 'dev', 'r0k')
        wait_until('a ping', lambda: not subprocess.run(
            ['ip', 'netns', 'exec', b, 'ping', '-c', '1', '-W', '1', OWN], capture_output=True,
            check=False).returncode)

    def tcp_mbit(self, server, address, client):
        with contextlib.ExitStack() as stack:
            self.veth.begin(stack, server, subprocess.DEVNULL, 'iperf3', '-s', '-1')
            time.sleep(0.5)
            said = self.veth.inside(client, 'iperf3', '-c', address, '-t', self.seconds, '-J')
        return json.loads(said)['end']['sum_received']['bits_per_second'] / 1e6

    def measure(self):
        a, b = self.veth.a, self.veth.b
        found = {'ping_us': self.veth.ping_us(b, OWN, 200, 0.005)}
        busy, begin = busy_seconds(), time.monotonic()
        found['in_mbit'] = self.tcp_mbit(a, OWN, b)
        found['out_mbit'] = self.tcp_mbit(b, PEER, a)
        found['cores'] = (busy_seconds() - busy) / (time.monotonic() - begin)
        return found


WAYS = {
    PLAIN: Place.relay,
    'engine': Place.rocade,
    'engine, idle = sleep': lambda place: place.rocade('-o', 'idle=sleep'),
    "DPDK's TAP": lambda place: place.testpmd(f'net_tap0,iface=r0k,mac={MAC}'),
    'virtio-user, vhost-net': Place.vhost,
}


def one(args, name):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        place = Place(stack, args.build, folder, args.mtu, args.seconds)
        try:
            WAYS[name](place)
            place.is_there()
            return place.measure()
        except NotHere as why:
            print(f'# {name}: left out, {why}', file=sys.stderr)
        except RuntimeError as why:
            log = pathlib.Path(folder) / 'way.log'
            print(f'# {name}: {why}\n{log.read_text()[-1000:] if log.exists() else ""}',
                  file=sys.stderr)
    return None


def measured(args):
    figures = []
    for _ in range(args.rounds):
        which = f'{time.time():.6f}'
        for name in WAYS:
            others = busy_cores()
            found = one(args, name)
            if found:
                figures.append({'way': name, 'round': which, 'others': others, **found})
    return figures


def in_lab(args):
    """The same by this script in the guest, one round for each boot."""
    figures = []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory(prefix='rcdlab') as folder:
            script = pathlib.Path(folder) / 'script.sh'
            script.write_text(
                f'cd /tmp && exec {sys.executable} {pathlib.Path(__file__).resolve()} {args.build} '
                f'--rounds 1 --seconds {args.seconds} --mtu {args.mtu} --raw\n')
            done = subprocess.run(
                [args.lab / 'run', script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors='replace', check=False,
                env={**os.environ, 'NIC_LAB_NS': f'rcdperf{os.getpid()}', 'NIC_LAB_LIMIT': '600'})
        found = [json.loads(line) for line in re.findall(r'^figures (.*)$', done.stdout, re.M)]
        print('\n'.join(re.findall(r'^#.*$', done.stdout, re.M)) or '# a round', file=sys.stderr)
        if not found:
            raise RuntimeError(done.stdout[-3000:])
        figures += found
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('build', type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=int, default=2, help='of each stream of TCP')
    parser.add_argument('--mtu', type=int, default=1500)
    parser.add_argument('--keep', help='figures of earlier runs, which these are added to')
    parser.add_argument('--lab', type=lambda path: pathlib.Path(path).resolve(), metavar='KIT')
    parser.add_argument('--raw', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    figures = in_lab(args) if args.lab else measured(args)
    if args.raw:
        print('\n'.join(f'figures {json.dumps(entry)}' for entry in figures))
        return
    figures = kept(args.keep, figures)
    print(table(figures, KEYS) + '\n\n' + table(figures, RATIOS, PLAIN))


if __name__ == '__main__':
    main()
