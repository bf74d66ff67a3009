#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: an engine on a bound NIC, with the kernel's network on it, and whoever is on the same
Ethernet understand each other: a Linux kernel's rdma_rxe, or another such engine.

Method: lab.py's guest has the engine on a NIC that DPDK drives; the peer is the guest of the kit
rxe-peer (test/interop has more of that one), or a second guest with such a NIC. Unmodified programs
run on both sides, in both roles. Their own TCP connection goes by the kernel's netdev of the port.

    test_peers.py ROCADED LIBIBVERBS LOSSES MODEL rxe|rocade [--mtu 1500] [--short]
        [--only PATTERN]

Where there is no such machine to be had it says why and skips.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent),
                str(pathlib.Path(__file__).parents[1] / 'interop')]
import cm  # noqa: E402
import lab  # noqa: E402
from peer import GUEST, OURS, NoPeer, Peer  # noqa: E402
from lab import HOST, LIMIT, NIC, tap  # noqa: E402
from talk import FAMILIES, KEPT, Talk, start_server  # noqa: E402

ARGS = argparse.ArgumentParser()
ARGS.add_argument('rocaded')
ARGS.add_argument('library')
ARGS.add_argument('losses')
ARGS.add_argument('model')
ARGS.add_argument('peer', choices=('rxe', 'rocade'))
ARGS.add_argument('--mtu', type=int, default=1500)
ARGS.add_argument('--short', action='store_true')
ARGS.add_argument('--only', help='tests whose names have this pattern')
ARGS = ARGS.parse_args()
RXE = ARGS.peer == 'rxe'
ROLES = ('server', 'client') if RXE else ('server',)
LARGEST = 4096 if ARGS.mtu >= 4200 else 1024
DAMAGE = 'drop=1%,seed=3'
COUNT = 2000  # of messages of which some are sure to be lost
LOSSES = os.path.abspath(ARGS.losses)
TAGGED = '10.79.0.100', '10.79.0.1'
BESIDE = 20   # seconds

net = lab.Net(f'rcdp{os.getpid()}')
node = lab.Node(net, 'a', ARGS.model, ARGS.rocaded, ARGS.library)
if RXE:
    peer = Peer('6.12', ARGS.mtu, net.name, limit=LIMIT)
else:
    peer = lab.Node(net, 'b', ARGS.model, ARGS.rocaded, ARGS.library)
nodes = [node] if RXE else [node, peer]


@contextlib.contextmanager
def way(_role, _program):
    yield OURS, GUEST


@contextlib.contextmanager
def kept_way(_role, _program):
    """By the NIC that the guest's kernel keeps."""
    yield '10.56.0.2', '10.56.0.9' if RXE else '10.56.0.3'


talk = Talk(node, peer, way, LIMIT)
booted = False
lossy = False


def add(name, func, *args):
    def test():
        if not booted:
            raise tap.Skip('no guests')
        try:
            talk.attempt(func, args)
        except AssertionError as err:
            # Those programs that can't be told how long an answer may take give up early.
            if not KEPT.search(str(err)):
                raise
            print('# an answer came too late, or an end got lost; once more', flush=True)
            talk.attempt(func, args)
    if ARGS.only is None or re.search(ARGS.only, name):
        tap.add(name, test)


def boots():
    """All of the kernels at once."""
    global booted
    lab.need_kit('8021q')
    if RXE:
        try:
            peer.check()
        except NoPeer as why:
            raise tap.Skip(why) from None
    net.start(ARGS.mtu)
    for each in nodes:
        each.guest.boot()
    if RXE:
        peer.boot()
    for each in nodes:
        each.start(ARGS.mtu)
    print('# ' + node.rocade('-d', 'link').stdout.replace('\n', '\n# '), flush=True)
    booted = True


def pings():
    """The kernels, by way of the engine; also frames as long as the Ethernet takes."""
    for address in (GUEST, 'fd77::1', HOST):
        node.must(f'ping -q -c 3 -i 0.5 -W 5 {address}')
    for address in (OURS, 'fd77::100'):
        peer.must(f'ping -c 3 -W 5 {address}')
    node.must(f'ping -q -c 3 -i 0.5 -W 5 -M do -s {ARGS.mtu - 28} {GUEST}')


def reliable(role, program, gid):
    """Of perftest, as it can be told that an answer may take half a second: three emulated machines
    share this one's processors."""
    talk.both(role, program, '-x', gid, '-F', '-m', LARGEST, '-s', 65536, '-n', 20, '-u', 17)


def beside(role):
    """RoCE, and what the kernel has to say by the same NIC, at once."""
    if shutil.which('iperf3') is None:
        raise tap.Skip('no iperf3')
    server = start_server(['ip', 'netns', 'exec', net.name, 'iperf3', '-s', '-1'], lab.ENV)
    before = node.counters()
    kernels = [subprocess.Popen(node.guest.command(words), stdout=subprocess.PIPE, env=lab.ENV)
               for words in (f'iperf3 -J -c {HOST} -t {BESIDE} --connect-timeout 30000',
                             f'ping -q -i 0.2 -w {BESIDE} {GUEST}')]
    try:
        rounds = 0
        while kernels[0].poll() is None or not rounds:
            for gid, program in (('1', 'ib_write_bw'), ('2', 'ib_read_bw')):
                reliable(role, program, gid)
            rounds += 1
        tcp, echoes = (process.communicate(timeout=LIMIT)[0].decode() for process in kernels)
    finally:
        for process in (server, *kernels):
            process.kill()
            process.wait()
    sent = json.loads(tcp)['end']['sum_received']['bytes']
    lost = float(re.search(r'([\d.]+)% packet loss', echoes)[1])
    after = node.counters()
    said = f'{rounds} rounds of RoCE, {sent} bytes by TCP, {lost} % of echoes lost'
    for key in ('to_kernel', 'from_kernel', 'from_kernel_csum', 'to_kernel_drop',
                'from_kernel_drop'):
        said += f', {key} {after[key] - before[key]}'
    print(f'# {said}', flush=True)
    tap.true(sent > 1 << 20 and lost < 20, f'{said}\n{echoes}')


def begin_losses():
    """From here on each side loses one in a hundred of the packets that it sends."""
    global lossy
    for each in nodes:
        each.unlink()
    try:
        for each in nodes:
            each.link('impair', DAMAGE, mtu=ARGS.mtu)
    except AssertionError as err:
        if 'net_impair' not in str(err):
            raise
        for each in nodes:
            each.link(mtu=ARGS.mtu)
        raise tap.Skip('this build has no net_impair') from None
    if RXE:
        peer.put(LOSSES, '/usr/bin/losses')
        peer.must('modprobe sch_netem; tc qdisc replace dev eth0 root netem loss 1%')
    lossy = True


def end_losses():
    global lossy
    need_losses()
    lossy = False
    if RXE:
        peer.run('tc qdisc del dev eth0 root')
    for each in nodes:
        each.unlink()
        each.link(mtu=ARGS.mtu)


def need_losses():
    if not lossy:
        raise tap.Skip('nothing is lost')


def dropped(side):
    if side is peer and RXE:
        return int(re.search(r'dropped (\d+)', peer.must('tc -s qdisc show dev eth0'))[1])
    return side.counters()['tx_impair_drop']


def under_loss(role, gid):
    """RC: all of it arrives."""
    need_losses()
    before = [dropped(side) for side in (node, peer)]
    talk.damaged(role, 100, gid)
    for side, count in zip((node, peer), before):
        tap.true(dropped(side) > count, 'nothing was lost')


def connects_under_loss(role, family):
    need_losses()
    plan = cm.Plan(node, peer, add, LIMIT, LIMIT)
    for server, client in (('rping -s -v -V -C 50 -a {}', 'rping -c -v -V -C 50 -a {}'),
                           ('ucmatose -b {} -c 5', 'ucmatose -s {} -c 5')):
        plan.pair(role, family, server, client)


def losses(role, service, gid):
    """UC and UD: what is lost is lost, and counted; the rest is what was sent, and whole."""
    options = [gid, service, COUNT]
    packets = COUNT if service == 'ud' else COUNT * 3 // 2
    need_losses()
    sender, receiver = (peer, node) if role == 'server' else (node, peer)
    before = dropped(sender), [side.counters() for side in nodes]
    server, client, text = talk.exchange(
        role, [LOSSES, node.device, *options],
        ['/usr/bin/losses' if RXE else LOSSES, peer.device, *options])
    after = dropped(sender), [side.counters() for side in nodes]
    tap.equal((server, client), (0, 0), text)
    moved = [{key: now[key] - then[key] for key in ('sent_pkts', 'rcvd_pkts')}
             for then, now in zip(before[1], after[1])]
    got, damaged, twice, longer = map(int, re.search(
        r'received (\d+) damaged (\d+) twice (\d+) long (\d+)', text).groups())
    lost = after[0] - before[0]
    said = f'{service}, {packets} packets, {lost} lost on the way: {text} {moved}'
    print('# ' + said.replace('\n', ' '), flush=True)
    tap.equal((damaged, twice), (0, 0), said)
    tap.true(lost > 0 and COUNT * 9 // 10 < got < COUNT, said)
    tap.true(service == 'ud' or 0 < longer < COUNT // 4, said)
    if sender in nodes:
        tap.equal(moved[nodes.index(sender)]['sent_pkts'], packets, said)
    if receiver in nodes:
        missing = packets - moved[nodes.index(receiver)]['rcvd_pkts']
        # A message of three goes with any of them.
        tap.true(got == COUNT - missing if service == 'ud' else
                 COUNT - missing <= got <= COUNT - (missing + 2) // 3, said)


def raw(use):
    """Have raw packets on both sides. Returns their MACs."""
    for side in nodes:
        side.rocade_must('link', 'set', 'roce0', 'raw', use)
    return [json.loads(side.rocade_must('-j', 'link', 'show'))[0]['mac'] for side in nodes]


def raw_words(side, role, macs, program, *options):
    """@param macs  its own and the other's"""
    return side.command(program, '-F', *options, f'--{role}', '-d', 'roce0', '-B', macs[0], '-E',
                        macs[1])


def raw_until(program, options, macs, send):
    """A server that ends when it has what it waits for; nothing tells who sends when to begin, so
    that is done until then, or until it says that it is all."""
    def flows():
        pairs = json.loads(peer.rocade_must('-j', 'resource', 'show', 'qp'))
        return any(pair.get('flows') and pair['rq_posted'] for pair in pairs)

    server = start_server(raw_words(peer, 'server', macs[::-1], program, *options), lab.ENV)
    try:
        tap.wait_until('a flow', lambda: server.poll() is not None or flows(), LIMIT)
        tap.wait_until('the frames', lambda: send() or server.poll() is not None, LIMIT)
        said = server.communicate(timeout=LIMIT)[0].decode(errors='replace')
    finally:
        server.kill()
        server.wait()
    tap.equal(server.returncode, 0, said)


def raw_packets(use, program, *options):
    """Frames of any kind, from NIC to NIC."""
    macs = raw(use)

    def send():
        done = subprocess.run(raw_words(node, 'client', macs, program, *options), check=False,
                              capture_output=True, text=True, env=lab.ENV)
        tap.equal(done.returncode, 0, done.stdout + done.stderr)

    raw_until(program, options, macs, send)


def raw_answers(program, count, *options):
    """Frames that are answered: a second client would wait for ever for a server that has ended."""
    macs = raw('on')

    def send():
        client = start_server(raw_words(node, 'client', macs, program, '-n', str(count), *options),
                              lab.ENV)
        try:
            tap.wait_until('answers', lambda: client.poll() is not None, LIMIT + 20)
        finally:
            client.kill()
            said = client.communicate()[0].decode(errors='replace')
        tap.equal(client.returncode, 0, said)
        return True

    raw_until(program, ('-n', str(count), *options), macs, send)


def sniffed(program, *options):
    """RoCE, which no other flow has, is what a sniffer ends by."""
    raw_until(program, options, raw('sniff'),
              lambda: reliable('client', 'ib_send_lat', '1'))


def flow_rate(program, *options):
    """How fast flows come and go, with no frame: of either side, as they go to its own NIC."""
    macs = raw('on')
    for side, own in zip(nodes, (macs, macs[::-1])):
        done = subprocess.run(raw_words(side, 'server', own, program, *options), check=False,
                              capture_output=True, text=True, env=lab.ENV)
        tap.equal(done.returncode, 0, done.stdout + done.stderr)


def vlan_of_the_kernel():
    """A tagged netdev on the port's: the kernel's traffic."""
    netdevs = [(node, 'r0k', TAGGED[0]), (peer, 'eth0' if RXE else 'r0k', TAGGED[1])]
    for side, netdev, address in netdevs:
        side.must(f'ip link show vlan5 || {{ modprobe 8021q; ip link add link {netdev} name vlan5 '
                  f'type vlan id 5 && ip addr add {address}/24 dev vlan5 && '
                  f'ip link set vlan5 up; }}')
    node.must(f'ping -q -c 3 -i 0.5 -W 5 {TAGGED[1]}')
    node.must(f'ping -q -c 3 -i 0.5 -W 5 -M do -s {ARGS.mtu - 28} {TAGGED[1]}')
    reliable('client', 'ib_send_lat', '1')


@contextlib.contextmanager
def tagged():
    """The engine has the address, and a tag with it: no kernel on the port."""
    for side, address in zip(nodes, TAGGED):
        side.unlink()
        side.rocade_must('link', 'add', 'roce0', 'type', 'port', NIC, 'address',
                         f'{address}/24@5', 'mtu', str(ARGS.mtu))
        tap.wait_until('ACTIVE', lambda side=side: 'state ACTIVE' in side.rocade('link').stdout)
    if RXE:
        peer.run('ip addr add 10.56.0.9/24 dev eth0')
    try:
        yield
    finally:
        for side in nodes:
            side.unlink()
            side.link(mtu=ARGS.mtu)


def gid_index(side, address):
    """Of an address, as its programs list it."""
    text = side.must(f'{side.variables() if side in nodes else ""} ibv_devinfo -v -d {side.device}')
    found = re.search(rf'GID\[ *(\d+)\]:.*{re.escape(address)}', text)
    tap.true(found, f'{address}: {text}')
    return found[1]


def tagged_roce():
    tagged_talk = Talk(node, peer, kept_way, LIMIT)
    plan = cm.Plan(node, peer, add, LIMIT, LIMIT)
    with tagged():
        indices = [gid_index(side, address) for side, address in zip((node, peer), TAGGED)]
        before = node.counters()
        for role in ROLES:
            for service, size in (('rc', 4096), ('uc', 1024), ('ud', 1024)):
                words = [[f'ibv_{service}_pingpong', '-d', side.device, '-g', index, '-s', size,
                          '-n', 100] for side, index in zip((node, peer), indices)]
                server, client, text = tagged_talk.exchange(role, *words)
                tap.equal((server, client), (0, 0), f'{service}, Rocade is {role}: {text}')
            address = TAGGED[0 if role == 'server' else 1]
            plan.pair(role, '4', f'rping -s -v -V -C 5 -a {address}',
                      f'rping -c -v -V -C 5 -a {address}')
        after = node.counters()
        tap.equal(after['rx_drop_vlan'], before['rx_drop_vlan'], 'packets with another tag')
        # Without it nothing would have come.
        tap.true(after['rcvd_pkts'] - before['rcvd_pkts'] > 600, after)


def unplugged():
    """QEMU asks for the NIC while programs use it, and plugs it in again."""
    watch = f'{node.variables()} ibv_asyncwatch -d roce0'
    guest = node.guest
    guest.must(f'({watch}) >/run/lab/events 2>&1 </dev/null &')
    tap.wait_until('a watch', lambda: 'event' in guest.run('cat /run/lab/events').stdout, LIMIT)

    def start(side, words, errors):
        return subprocess.Popen(side.command(words), stdout=subprocess.DEVNULL, stderr=errors,
                                env=lab.ENV)

    def client():
        return start(guest, f'{node.variables()} ib_write_bw -d roce0 -x 1 -F -D 60 {GUEST}',
                     subprocess.PIPE)

    def moves():
        """It moves data; one that came before its server comes again."""
        if traffic[1].poll() is not None:
            traffic[1].communicate()
            traffic[1] = client()
        return node.counters()['sent_pkts'] > sent + 1000

    traffic = [start(peer, f'ib_write_bw -d {peer.device} -x 1 -F -D 60', subprocess.DEVNULL)]
    try:
        sent = node.counters()['sent_pkts']
        traffic.append(client())
        tap.wait_until('traffic', moves, LIMIT)
        guest.monitor('device_del', id='nic0')
        tap.wait_until('no NIC', lambda: guest.run(f'test -e /sys/bus/pci/devices/{NIC}'
                                                   ).returncode == 1, LIMIT)
        tap.true('DEVICE_FATAL' in guest.run('cat /run/lab/events').stdout,
                 guest.run('cat /run/lab/events').stdout + node.log())
        tap.equal(node.rocade('link').stdout, '', 'links')
        _, said = traffic[1].communicate(timeout=LIMIT)
        tap.true(traffic[1].returncode != 0, said)
    finally:
        for process in traffic:
            process.kill()
            process.wait()
    options = {option: True for option in lab.options_of(ARGS.model)}
    guest.monitor('device_add', driver=ARGS.model, netdev='n0', id='nic0', bus='slot0',
                  mac='52:54:00:55:01:02', **options)
    tap.wait_until('the NIC', lambda: guest.run(f'test -e /sys/bus/pci/devices/{NIC}'
                                                ).returncode == 0, LIMIT)
    node.rocade_must('node', 'bind', NIC)
    node.link(mtu=ARGS.mtu)
    reliable('client', 'ib_send_lat', '1')


def kernels_again():
    """Unbound: the kernel has the NIC, its driver and the network, as before."""
    node.unlink()
    node.rocade_must('node', 'unbind', NIC)
    tap.equal(len(node.before.split()), 4, f'driver, netdev, MAC and MTU: {node.before}')
    with contextlib.suppress(AssertionError):
        tap.wait_until('a netdev', lambda: node.kernels() == node.before, LIMIT)
    tap.equal(node.kernels(), node.before, 'what the kernel has of the NIC')
    netdev = node.before.split()[1]
    node.must(f'ip addr add {OURS}/24 dev {netdev} && ip link set {netdev} up')
    node.must(f'ping -q -c 10 -i 0.5 -W 5 {GUEST}')


def plan_programs():
    for role in ROLES:
        for gid in ('1', '2'):
            for program in ('ib_send_lat', 'ib_write_bw', 'ib_read_bw'):
                add(f'{program}, {FAMILIES[gid]}, Rocade {role}', reliable, role, program, gid)
            for service, size in (('uc', 4096), ('ud', 1024)):
                add(f'{service}_pingpong, {FAMILIES[gid]}, Rocade {role}', talk.pingpong, role,
                    service, gid, size, LARGEST)


def plan_connections():
    plan = cm.Plan(node, peer, add, LIMIT, LIMIT)
    if RXE and not ARGS.short:
        plan.make(False)
        return
    for role in ROLES:
        for family in ('4', '6'):
            add(f'rping, IPv{family}, Rocade {role}', plan.pair, role, family,
                'rping -s -v -V -C 50 -a {}', 'rping -c -v -V -C 50 -a {}')


def plan_raw():
    """rxe has no such queue pairs."""
    udp = ('-j', '10.9.0.1', '-J', '10.9.0.2', '-k', '5000', '-K', '6000')
    for use, name, *options in (
            ('on', 'raw_ethernet_bw', '-n', '100', '-s', '1024'),
            ('on', 'raw_ethernet_bw', '-n', '100', '-s', '512', *udp),
            ('sniff', 'raw_ethernet_bw', '-n', '100', '-s', '1024', '--sniffer')):
        add(' '.join((name, *options)), raw_packets, use, name, *options)
    add('raw_ethernet_lat', raw_answers, 'raw_ethernet_lat', 20, '-s', '64')
    # Without these options it refuses its own limit, and waits for completions that never come.
    add('raw_ethernet_burst_lat', raw_answers, 'raw_ethernet_burst_lat', 100, '-s', '64',
        '--rate_limit', '10', '-Q', '1')
    add('raw_ethernet_bw --sniffer beside RoCE', sniffed, 'raw_ethernet_bw', '-n', '100', '-s',
        '1500', '--sniffer')
    add('raw_ethernet_fs_rate', flow_rate, 'raw_ethernet_fs_rate', '-n', '20')


def plan_more():
    add('1 % is lost each way', begin_losses)
    for role in ROLES:
        for gid, family in (('1', '4'), ('2', '6')):
            add(f'1 % lost, RC, {FAMILIES[gid]}, Rocade {role}', under_loss, role, gid)
            add(f'1 % lost, connections by address, IPv{family}, Rocade {role}',
                connects_under_loss, role, family)
        for service, gid in (('uc', '1'), ('ud', '1'), ('uc', '2'), ('ud', '2')):
            add(f'1 % lost, {service}, {FAMILIES[gid]}, Rocade {role}', losses, role, service, gid)
    add('nothing is lost', end_losses)
    add('a VLAN of the kernel\'s', vlan_of_the_kernel)
    add('RoCE with a tag', tagged_roce)


def main():
    # Killed or not, nothing is left.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    tap.add('boots', boots)
    add('ping', pings)
    plan_programs()
    plan_connections()
    for role in ROLES:
        add(f'RoCE beside iperf3 and ping, Rocade {role}', beside, role)
    if not RXE:
        plan_raw()
    if not ARGS.short:
        plan_more()
    add('the NIC is unplugged in use, and plugged in', unplugged)
    add('unbound', kernels_again)
    try:
        return tap.run()
    finally:
        node.stop()
        if RXE:
            peer.end()
        else:
            peer.stop()
        net.stop()


if __name__ == '__main__':
    sys.exit(main())
