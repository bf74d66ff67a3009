#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: examples/graph-router ends RoCE for one address, with nothing lost and with 1 % of the
packets lost, while it forwards datagrams of hosts that have its addresses as gateways.

Method: what hosts send is echoed, and compared byte for byte; meanwhile unmodified programs run
between a daemon and the router's engine.

    programs - rocaded [net_impair] [memif]==[memif] graph-router - programs
                                                      |        |
                           sender [veth]==[af_packet]-+        +-[af_packet]==[veth] echo

    test_router.py ROCADED LIBIBVERBS GRAPH_ROUTER
"""
import contextlib
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'system'))
from ends import (ENDS, End, ENV, FOLDER, LIMIT, ROCADED, all_gone, both,  # noqa: E402
                  leash, pair, rocade_on, run, tap, veth)

ROUTER = os.path.abspath(sys.argv[3])
BARE = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
EAL = ['--no-huge', '-m', '512', '--no-pci', '--no-telemetry']
STACK = contextlib.ExitStack()
SPACES = [f'rcdgr{os.getpid()}{letter}' for letter in 'ab']
MAC = '02:00:00:00:0c:0{}'
SO_NO_CHECK = 11  # The kernel leaves checksums to a veth, which computes none.
running = {}
hosts = []

# Echoes; or sends until it is told to end, as many datagrams at a time as come back for sure.
HOST = f'''
import os, signal, socket, sys
# The kernel's veth keeps the order of what one CPU sends, not of a program that wanders.
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, {SO_NO_CHECK}, 1)
if sys.argv[1] == 'echo':
    sock.bind(('10.3.0.2', 9000))
    print('ready', flush=True)
    while True:
        sock.sendto(*sock.recvfrom(2048))
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
sock.settimeout(5)
# Once neighbours are known: what waited for one may leave on another CPU than what follows.
for _ in range(10):
    try:
        sock.sendto(b'the first', ('10.3.0.2', 9000))
        sock.recv(2048)
        break
    except TimeoutError:
        pass
print('ready', flush=True)
count = again = odd = 0
texts = [b'the first']
while not told:
    before = texts
    texts = [os.urandom(20 + (count + i) * 37 % 1400) for i in range(16)]
    left, tries, latest, overtaken = list(texts), 0, 0, 0
    while left:
        for text in left:
            sock.sendto(text, ('10.3.0.2', 9000))
        try:
            while left:
                text = sock.recv(2048)
                if text in before:
                    continue
                if text not in texts:
                    sys.exit('another datagram than was sent')
                # One may be lost, none overtakes another.
                overtaken |= text in left and texts.index(text) < latest and not tries
                latest = max(latest, texts.index(text))
                left = [one for one in left if one != text]
        except TimeoutError:
            # Sockets of packets lose some on a busy machine.
            again += len(left)
            tries += 1
            if tries == 10:
                sys.exit(f'{{len(left)}} datagrams do not come back')
    count += len(texts)
    odd += overtaken
print(count, again, odd)
'''


def begin(name, *command):
    log = open(f'{FOLDER}/{name}.log', 'w', encoding='utf-8')
    running[name] = subprocess.Popen(command, env=BARE, stdout=log, stderr=log)
    leash.leash(running[name].pid)


def said(name):
    return pathlib.Path(f'{FOLDER}/{name}.log').read_text(encoding='utf-8')


def done(*command):
    result = run(*command)
    if result.returncode:
        raise tap.Skip(f'{" ".join(command)}: {result.stderr}')


def make_hosts():
    """Two, each in a network of its own, behind a port of the router."""
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    for number, space in enumerate(SPACES):
        net = f'10.{number + 2}.0'
        done('ip', 'netns', 'add', space)
        STACK.callback(run, 'ip', 'netns', 'del', space)
        done('ip', 'link', 'add', f'gr{number}', 'type', 'veth', 'peer', 'name', 'host', 'netns',
             space)
        STACK.callback(run, 'ip', 'link', 'del', f'gr{number}')
        # What a host says of IPv6 by itself is dropped, and would be counted.
        without = 'echo 1 > /proc/sys/net/ipv6/conf/{}/disable_ipv6'
        done('sh', '-c', without.format(f'gr{number}'))
        done('ip', 'netns', 'exec', space, 'sh', '-c', without.format('host'))
        done('ip', 'link', 'set', f'gr{number}', 'up')
        for words in (f'link set host address {MAC.format(number)} up',
                      f'addr add {net}.2/24 dev host', f'route add default via {net}.1'):
            done('ip', '-n', space, *words.split())
        veth.wait(None, f'gr{number}')
        veth.wait(space, 'host')


def start_engine():
    config = pathlib.Path(FOLDER) / 'far.conf'
    config.write_text(
        f'[engine]\nsocket = {FOLDER}/far.sock\n[device m0]\ntype = port\nimpair = seed=5\n'
        f'devargs = net_memif0,role=server,socket={FOLDER}/memif.sock,socket-abstract=no,'
        'bsize=8192,rsize=10,mac=02:00:00:00:0d:01\naddress = 10.1.0.2/24\n', encoding='utf-8')
    begin('far', ROCADED, '--file-prefix', f'far{os.getpid()}', '--no-huge', '-m', '512',
          '--no-telemetry', '--', '--config', config)
    tap.wait_until('a server', pathlib.Path(f'{FOLDER}/memif.sock').exists)


def start_router():
    """With a worker, which walks its graph; the main lcore runs the engine's control thread.

    The worker stays on a CPU, and is not that of the hosts: see HOST."""
    memif = f'net_memif0,role=client,socket={FOLDER}/memif.sock,socket-abstract=no,bsize=8192,' \
            'rsize=10,mac=02:00:00:00:0d:02'
    begin('router', ROUTER, *EAL, '--lcores', '0@(0-1),1@1', '--file-prefix',
          f'router{os.getpid()}', '--vdev', memif, '--vdev', 'net_af_packet1,iface=gr0',
          '--vdev', 'net_af_packet2,iface=gr1', '--',
          '--socket', f'{FOLDER}/router.sock', '--address', '0,10.1.0.1/24',
          '--address', '1,10.2.0.1/24', '--address', '2,10.3.0.1/24',
          '--route', f'10.2.0.0/24,1,{MAC.format(0)}', '--route', f'10.3.0.0/24,2,{MAC.format(1)}')
    return [End('m0', {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/far.sock'}),
            End('router0', {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/router.sock'})]


def start_host(space, what):
    host = subprocess.Popen(['ip', 'netns', 'exec', space, sys.executable, '-c', HOST, what],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    leash.leash(host.pid)
    hosts.append(host)
    tap.equal(host.stdout.readline(), 'ready\n', what)


@tap.test
def begins():
    make_hosts()
    start_engine()
    both_ends = start_router()

    def up():
        for name, process in running.items():
            tap.equal(process.poll(), None, said(name))
        return all(f'link {end.device}/1 state ACTIVE' in rocade_on(end, 'link').stdout
                   for end in both_ends)
    tap.wait_until('links', up)
    ENDS.extend(both_ends)
    start_host(SPACES[1], 'echo')
    start_host(SPACES[0], 'send')


@tap.test
def nothing_lost():
    both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '200', '-c')
    both('ibv_ud_pingpong', '-g', '1', '-n', '200')
    both('ib_write_bw', '-x', '1', '-F', '-s', '65536', '-n', '500')
    pair(['rping', '-s', '-a', '10.1.0.1', '-v', '-V', '-C', '100'],
         ['rping', '-c', '-a', '10.1.0.1', '-v', '-V', '-C', '100'])


@tap.test
def one_in_a_hundred_lost():
    result = rocade_on(ENDS[0], 'link', 'set', 'm0', 'impair', 'drop=1%,seed=5')
    tap.equal(result.returncode, 0, result.stderr)
    both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '200', '-c')
    both('ib_write_bw', '-x', '1', '-F', '-s', '65536', '-n', '300')
    both('ib_read_bw', '-x', '1', '-F', '-s', '65536', '-n', '100')
    pair(['rping', '-s', '-a', '10.1.0.1', '-v', '-V', '-C', '100', '-S', '4000'],
         ['rping', '-c', '-a', '10.1.0.1', '-v', '-V', '-C', '100', '-S', '4000'])


@tap.test
def others_went_through():
    """All came back, from their beginning to this end."""
    if not hosts:
        raise tap.Skip('no hosts')
    sender = hosts[-1]
    if sender.poll() is not None:
        raise AssertionError(sender.communicate())
    sender.send_signal(signal.SIGTERM)
    out, err = sender.communicate(timeout=LIMIT)
    tap.equal((sender.returncode, err), (0, ''), err)
    count, again, odd = map(int, out.split())
    tap.true(count >= 160, out)
    # A kernel that looks for a neighbour anew may do it; a router that does, does it always.
    tap.true(odd * 160 <= count, f'{odd} of {count // 16} times not in order')
    STACK.callback(print, f'# {count} datagrams there and back, {again} sent again, {odd} of '
                          f'{count // 16} times not in order')


def sends(frame):
    """From the sender's network, by a program that makes frames itself."""
    done('ip', 'netns', 'exec', SPACES[0], sys.executable, '-c',
         'import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); '
         f's.bind(("host", 0)); s.send(bytes.fromhex("{frame.hex()}"))')


def datagram(to_mac, to, ttl=64):
    """IPv4 and UDP, without a sum of the latter."""
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 48, 0, 0, ttl, 17, 0, bytes((10, 2, 0, 2)), to)
    total = sum(struct.unpack('>10H', ip))
    total = (total & 0xffff) + (total >> 16)
    return bytes.fromhex(to_mac.replace(':', '') + MAC.format(0).replace(':', '') + '0800') + \
        ip[:10] + struct.pack('>H', 0xffff - total) + ip[12:] + \
        struct.pack('>HHHH', 9, 9, 28, 0) + bytes(20)


@tap.test
def what_is_not_to_be_forwarded():
    """Frames for other MACs are none of its business; what is for its addresses, no RoCE, ends."""
    def forwarded():
        before = said('router').count('rocade_poll')
        running['router'].send_signal(signal.SIGUSR1)
        tap.wait_until('a table', lambda: said('router').count('rocade_poll') > before)
        objs = objects(said('router'))
        # Nodes that did nothing yet are not in it.
        return objs.get('ip4_rewrite', 0), objs.get('pkt_drop', 0)

    ENDS.check()
    router = run('ip', 'netns', 'exec', SPACES[0], 'ip', '-j', 'neigh', 'show', '10.2.0.1').stdout
    mac = json.loads(router)[0]['lladdr']
    before = forwarded()
    for to in ((10, 3, 0, 1), (10, 2, 0, 1)):
        sends(datagram(mac, bytes(to)))
    tap.wait_until('two dropped', lambda: forwarded()[1] >= before[1] + 2)
    for _ in range(3):
        sends(datagram('02:00:00:00:0c:77', bytes((10, 3, 0, 9))))
    # Nor does it pass on what no router does, whole or not.
    right = datagram(mac, bytes((10, 3, 0, 9)))
    wrong = [datagram('ff:ff:ff:ff:ff:ff', bytes((10, 3, 0, 9))),
             datagram('01:00:5e:00:00:fb', bytes((10, 3, 0, 9))), right[:14], right[:33],
             right[:14] + b'\x41' + right[15:], right[:24] + b'\x00\x01' + right[26:],
             right[:16] + b'\x23\x28' + right[18:], datagram(mac, bytes((10, 3, 0, 9)), ttl=1)]
    wrong += [datagram(mac, bytes(to)) for to in (
        (224, 0, 0, 251), (255, 255, 255, 255), (240, 0, 0, 1), (127, 0, 0, 1), (0, 0, 0, 1))]
    for frame in wrong:
        sends(frame)
    tap.wait_until('all dropped', lambda: forwarded()[1] >= before[1] + 2 + len(wrong))
    # Nobody has that address: no answer comes back.
    sends(datagram(mac, bytes((10, 3, 0, 9))))
    tap.wait_until('one forwarded', lambda: forwarded()[0] > before[0])
    tap.equal(forwarded()[0], before[0] + 1, 'forwarded')


def objects(text):
    """Of the last table: by node."""
    rows = [line.split('|') for line in text.splitlines() if line.startswith('|')]
    return {row[1].strip(): int(row[3]) for row in rows if row[3].strip().isdigit()}


@tap.test
def what_the_nodes_did():
    ENDS.check()
    running['router'].send_signal(signal.SIGUSR1)
    tap.wait_until('a table', lambda: 'rocade_poll' in said('router'))
    objs = objects(said('router'))
    tap.true(objs['rocade_rx-0'] > 1000 and objs['rocade_tx-0'] > 1000, objs)
    tap.equal(objs['ethdev_rx-0-0'], objs['rocade_classify-0'], objs)
    tap.true(objs['ip4_rewrite'] >= 320, objs)
    # Each host asked who the router is, and heard.
    tap.true(objs['rocade_rx-1'] >= 1 and objs['rocade_tx-1'] >= 1, objs)


@tap.test
def ends():
    ENDS.check()
    all_gone()
    for name, process in reversed(running.items()):
        process.send_signal(signal.SIGTERM)
        tap.equal(process.wait(timeout=LIMIT), 0, said(name))


@tap.test
def what_it_refuses():
    for status, what, *options in (
            (2, 'see the comment', 'more'), (2, 'see the comment', '--address', '99,10.0.0.1/24'),
            (2, 'a list of ADDRESS', '--address', '0,x'), (2, 'see the', '--route', '10.0.0.0/8,0'),
            (1, 'no such port', '--address', '5,10.0.0.1/24'),
            (2, 'see the comment', '--route', '10.0.0.0/40,0,02:00:00:00:00:01'),
            (2, 'see the comment', '--route', '10.0.0.0/264,0,02:00:00:00:00:01'),
            (1, 'no such port or prefix', '--route', '10.0.0.0/8,3,02:00:00:00:00:01')):
        result = subprocess.run(
            [ROUTER, *EAL, '-l', '0', '--no-shconf', '--vdev', 'net_null0', '--', '--socket',
             f'{FOLDER}/refused.sock', *options], env=BARE, capture_output=True, text=True,
            timeout=LIMIT, check=False)
        tap.equal((result.returncode, what in result.stderr), (status, True),
                  f'{options}: {result.stderr}')


status = tap.run()
for one in hosts:
    one.kill()
    one.wait()
for one in running.values():
    one.kill()
    one.wait()
STACK.close()
sys.exit(status)
