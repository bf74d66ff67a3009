#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: engines reach each other, and the kernel, over every attachment.

Method: two engines, each of its own, on

  veth   namespace A [rocade va]==veth==[vb rocade] namespace B     AF_PACKET, AF_XDP, UDP sockets
  memif  engine A [memif server]==shared memory==[memif client] engine B
  tap    engine [net_tap]--tap device--kernel, which pings it

and a program with one client on each that compares all data.

    test_links.py ROCADED PAIR
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from netns import NAME, ROCADED, Engine, Veth, need_root, pair, run, stop_all  # noqa: E402


def on_veth(mode, mtu, test, lines=''):
    veth = Veth(mtu)
    engines = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for space, dev in ((veth.a, 'va'), (veth.b, 'vb')):
                engines.append(Engine(
                    folder, dev, f'{lines}[device roce_{dev}]\ntype = netdev\nnetdev = {dev}\n'
                    f'mode = {mode}\n', space))
            try:
                test(veth, *engines)
            finally:
                stop_all(engines)
    finally:
        veth.close()


def packet_traffic(_, a, b):
    tap.true(a.up() and b.up(), a.log.read_text() + b.log.read_text())
    for version in ('4', '6'):
        pair(a, 'roce_va', b, 'roce_vb', version, '3')


@tap.test
def veth_af_packet():
    on_veth('packet', 1500, packet_traffic)


@tap.test
def veth_af_packet_jumbo():
    def test(veth, a, b):
        tap.true('active_mtu 4096' in a.admin('-d', 'link'), 'path MTU')
        packet_traffic(veth, a, b)
    on_veth('packet', 9000, test)


def until(engine, condition):
    """The kernel tells of a link's state with up to a second's delay."""
    try:
        tap.wait_until('the link', lambda: condition(engine.admin('-d', 'link')))
    except AssertionError as err:
        raise AssertionError(f'{err}: {engine.admin("-d", "link")}') from err


def counters(engine, dev):
    return json.loads(engine.admin('-j', 'statistic', 'show', 'link', dev))[0]['counters']


@tap.test
def marks_are_told_and_heeded():
    """The kernel marks what may be marked, as a switch does, and counts CNPs by their DSCP."""
    def test(veth, a, b):
        for space, *rule in ((veth.a, 'POSTROUTING', '-m', 'tos', '--tos', '2/3', '-j', 'TOS',
                              '--set-tos', '3/3'),
                             (veth.b, 'OUTPUT', '-m', 'dscp', '--dscp', '48', '-j', 'RETURN')):
            try:
                run('ip', 'netns', 'exec', space, 'iptables', '-t', 'mangle', '-A', *rule)
            except AssertionError as err:
                raise tap.Skip(f'nothing that marks packets: {err}') from err
        # The rate stays low for a second, whatever this machine does before there is more to send.
        a.admin('link', 'set', 'roce_va', 'cc', 'dcqcn,line=5000,floor=500,timer=1000000')
        pair(a, 'roce_va', b, 'roce_vb', '4', '3')
        told = counters(b, 'roce_vb')
        heard = counters(a, 'roce_va')
        tap.true(told['rx_ecn_marked'] >= told['tx_cnp'] > 0, told)
        # Answers of b are not marked: it has no algorithm, and says so.
        tap.true(heard['cnp_handled'] > 0, heard)
        tap.equal(heard['rx_ecn_marked'], 0, heard)
        tap.true(heard['cc_pacing_limited'] > 0, heard)
        listed = run('ip', 'netns', 'exec', veth.b, 'iptables', '-t', 'mangle', '-nvxL', 'OUTPUT')
        sent = int(re.search(r'^ *(\d+) .*RETURN', listed, re.M).group(1))
        tap.true(sent > 0, listed)
    on_veth('udp', 9000, test)


@tap.test
def addresses_follow_the_netdev():
    def test(veth, a, b):
        tap.true('192.168.7.1' not in a.admin('-d', 'link'), 'address too early')
        run('ip', '-n', veth.a, 'addr', 'add', '192.168.7.1/24', 'dev', 'va')
        run('ip', '-n', veth.a, 'link', 'set', 'va', 'mtu', '2500')
        until(a, lambda text: '192.168.7.1' in text and 'active_mtu 2048' in text)
        run('ip', '-n', veth.a, 'addr', 'del', '192.168.7.1/24', 'dev', 'va')
        run('ip', '-n', veth.b, 'link', 'set', 'vb', 'down')
        until(a, lambda text: '192.168.7.1' not in text and 'state DOWN' in text)
        run('ip', '-n', veth.b, 'link', 'set', 'vb', 'up')
        run('ip', '-n', veth.b, 'addr', 'add', 'fd01::2/64', 'dev', 'vb', 'nodad', check=False)
        for engine in (a, b):
            until(engine, lambda text: 'state ACTIVE' in text and 'fd01::' in text)
        packet_traffic(veth, a, b)
    on_veth('packet', 9000, test)


@tap.test
def what_was_lost_is_asked_for():
    """The kernel tells more than there is room for, and an address goes meanwhile."""
    def test(veth, a, _):
        tap.true(a.up(), a.log.read_text())
        for number in range(20, 24):
            run('ip', '-n', veth.a, 'addr', 'add', f'192.168.1.{number}/24', 'dev', 'va')
        until(a, lambda text: '192.168.1.23' in text)
        a.process.send_signal(signal.SIGSTOP)
        try:
            flaps = '\n'.join(f'addr {what} 10.9.{number // 250}.{number % 250 + 1}/32 dev va'
                              for number in range(2000) for what in ('add', 'del'))
            run('sh', '-c', f'ip -n {veth.a} -batch - <<EOF\n{flaps}\nEOF')
            for number in (20, 23):
                run('ip', '-n', veth.a, 'addr', 'del', f'192.168.1.{number}/24', 'dev', 'va')
            run('ip', '-n', veth.a, 'addr', 'add', '192.168.1.30/24', 'dev', 'va')
        finally:
            a.process.send_signal(signal.SIGCONT)
        until(a, lambda text: '192.168.1.30' in text and '192.168.1.21' in text and
              '192.168.1.20' not in text and '192.168.1.23' not in text and '10.9.' not in text)
    on_veth('packet', 1500, test)


@tap.test
def a_mac_that_changes_reaches_the_neighbours():
    """Two netdevs of one engine, between which nothing leaves it, and their first address."""
    def test(veth, a, _):
        run('ip', '-n', veth.a, 'link', 'add', 'vc', 'type', 'veth', 'peer', 'name', 'vd')
        for dev in ('vc', 'vd'):
            run('ip', '-n', veth.a, 'link', 'set', dev, 'up')
        run('ip', '-n', veth.a, 'addr', 'add', '192.168.2.1/24', 'dev', 'vc')
        a.admin('link', 'add', 'roce_vc', 'type', 'netdev', 'vc')
        until(a, lambda text: '192.168.2.1' in text)
        pair(a, 'roce_va', a, 'roce_vc', '4', '1',
             f'ip -n {veth.a} link set vc address 02:00:00:12:34:56')
        until(a, lambda text: 'fe80::ff:fe12:3456' in text)
    on_veth('packet', 1500, test)


@tap.test
def no_port_unreachable():
    def test(veth, a, b):
        before = run('ip', 'netns', 'exec', veth.b, 'cat', '/proc/net/snmp')
        packet_traffic(veth, a, b)
        after = run('ip', 'netns', 'exec', veth.b, 'cat', '/proc/net/snmp')

        def unreachable(text):
            names, values = [line.split() for line in text.splitlines()
                             if line.startswith('Icmp:')]
            return int(values[names.index('OutDestUnreachs')])
        tap.equal(unreachable(after), unreachable(before), 'ICMP unreachable sent')
    on_veth('packet', 1500, test)


@tap.test
def veth_af_xdp():
    def test(veth, a, b):
        packet_traffic(veth, a, b)
        if 'net_af_xdp' not in a.admin('-d', 'link'):
            tap.true('no AF_XDP on va' in a.log.read_text(), 'the fallback is not logged')
            raise tap.Skip('the kernel or the driver has no AF_XDP here')
    # On a machine that others use as well the driver of DPDK 22.11 stops receiving now and then,
    # for good (doc/engine.md): who meets that begins again.
    for tries in (1, 2, 3):
        try:
            on_veth('xdp', 1500, test)
            return
        except AssertionError as err:
            if tries == 3 or 'node_wait' not in str(err):
                raise
            print(f'# AF_XDP stopped, try {tries}', flush=True)


def polls(engine):
    return sum(lcore['polls'] for lcore in json.loads(engine.admin('-j', 'engine'))['lcores'])


def rests(engine):
    """An lcore that looks at its ports again and again polls thousands of times in a second."""
    before = polls(engine)
    time.sleep(1)
    return polls(engine) - before < 500


def ends_a_sleep(mode, idle):
    """Packets do, and nothing else: who is not woken answers after a second."""
    def test(veth, a, b):
        if mode == 'xdp' and 'net_af_xdp' not in a.admin('-d', 'link'):
            return
        tap.true(a.up() and b.up(), a.log.read_text() + b.log.read_text())
        tap.wait_until(f'{mode}, {idle}: a sleep', lambda: rests(a))
        packet_traffic(veth, a, b)
        # A netdev that was down leaves its socket an error, which would end each sleep.
        run('ip', '-n', veth.a, 'link', 'set', 'va', 'down')
        until(a, lambda text: 'state DOWN' in text)
        run('ip', '-n', veth.a, 'link', 'set', 'va', 'up')
        until(a, lambda text: 'state ACTIVE' in text)
        tap.wait_until(f'{mode}, {idle}: a sleep after a flap', lambda: rests(a))
        # No driver keeps it, either: an lcore that sleeps looks about once a second.
        before = polls(a)
        tap.wait_until(f'{mode}: a poll after a flap', lambda: polls(a) != before)
    on_veth(mode, 1500, test, f'idle = {idle}\n')


@tap.test
def packets_end_a_sleep():
    """Sockets are waited for."""
    for mode in ('packet', 'xdp', 'udp'):
        ends_a_sleep(mode, 'sleep')


@tap.test
def who_need_not_sleep_does_in_the_end():
    for mode in ('packet', 'udp'):
        ends_a_sleep(mode, 'auto')


@tap.test
def who_would_not_be_woken_does_not_sleep():
    """net_impair has no descriptor: an lcore with auto goes on looking."""
    def test(_veth, a, _b):
        tap.true(a.up(), a.log.read_text())
        a.admin('link', 'add', 'roce_w0', 'type', 'wire', 'peer', 'roce_w1', 'impair', 'seed=1')
        time.sleep(0.5)
        tap.wait_until('polls', lambda: not rests(a), 60)
        a.admin('link', 'del', 'roce_w0')
        tap.wait_until('a sleep without it', lambda: rests(a))
    on_veth('packet', 1500, test, 'idle = auto\n')


@tap.test
def xdp_falls_back():
    """Jumbo frames do not fit the kernel's buffers for XDP."""
    def test(veth, a, b):
        tap.true('no AF_XDP on va' in a.log.read_text(), 'the fallback is not logged')
        tap.true('net_af_packet' in a.admin('-d', 'link'), 'driver')
        packet_traffic(veth, a, b)
    on_veth('xdp', 9000, test)


def holds_ports(space, *ports):
    """A program that has ports for all netdevs, and ends with its input."""
    program = subprocess.Popen(
        ['ip', 'netns', 'exec', space, sys.executable, '-c',
         'import socket, sys\n'
         'held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in sys.argv[1:]]\n'
         'for sock, port in zip(held, sys.argv[1:]):\n'
         '    sock.bind(("", int(port)))\n'
         'print(flush=True)\n'
         'sys.stdin.read()', *map(str, ports)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    return program


@tap.test
def auto_takes_sockets_of_udp():
    """On a netdev without hardware, if nobody else has the port."""
    def test(veth, a, b):
        packet_traffic(veth, a, b)
        tap.true('net_udp' in a.admin('-d', 'link'), a.log.read_text())
        a.admin('link', 'del', 'roce_va')
        with holds_ports(veth.a, 4791):
            try:
                a.admin('link', 'add', 'roce_va', 'type', 'netdev', 'va')
                raise RuntimeError('a port of somebody else was taken')
            except AssertionError as err:
                tap.true('UDP port 4791 of va is taken' in str(err), str(err))
        a.admin('link', 'add', 'roce_va', 'type', 'netdev', 'va')
        packet_traffic(veth, a, b)
    on_veth('auto', 1500, test)


@tap.test
def auto_falls_back_to_packets():
    """The port is free, but none is left to send by to who was not heard: no sockets of UDP."""
    def test(veth, a, b):
        a.admin('link', 'del', 'roce_va')
        run('ip', 'netns', 'exec', veth.a, 'sysctl', '-qw',
            'net.ipv4.ip_local_port_range=40000 40001')
        with holds_ports(veth.a, 40000, 40001):
            a.admin('link', 'add', 'roce_va', 'type', 'netdev', 'va')
            tap.true('net_af_packet' in a.admin('-d', 'link'), a.log.read_text())
            said = re.findall('roce_va: no UDP sockets on va [(](.*)[)]; trying AF_PACKET',
                              a.log.read_text())
            tap.true(len(said) == 1 and said[0], a.log.read_text())
            # Whoever has no socket gets no runs.
            packet_traffic(veth, a, b)
        # It is not for good.
        a.admin('link', 'del', 'roce_va')
        a.admin('link', 'add', 'roce_va', 'type', 'netdev', 'va')
        tap.true('net_udp' in a.admin('-d', 'link'), a.log.read_text())
        packet_traffic(veth, a, b)
    on_veth('auto', 1500, test)


@tap.test
def links_at_run_time():
    """What takes rights is done when the engine has few, with neighbours and all."""
    veth = Veth(1500)
    engines = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for space, dev in ((veth.a, 'va'), (veth.b, 'vb')):
                engines.append(Engine(folder, dev, '', space))
            try:
                for mode in ('packet', 'xdp'):
                    for engine, dev in zip(engines, ('va', 'vb')):
                        engine.admin('link', 'add', f'roce_{dev}', 'type', 'netdev', dev, 'mode',
                                     mode)
                    if mode == 'packet' or 'net_af_xdp' in engines[0].admin('-d', 'link'):
                        pair(engines[0], 'roce_va', engines[1], 'roce_vb', '4', '1')
                    for engine, dev in zip(engines, ('va', 'vb')):
                        engine.admin('link', 'del', f'roce_{dev}')
            finally:
                stop_all(engines)
            for engine in engines:
                tap.equal(engine.process.returncode, 0, engine.log.read_text())
    finally:
        veth.close()


def has_xdp_program(space):
    return 'prog/xdp' in run('ip', '-n', space, '-d', 'link', 'show', 'va')


def bpf_objects(engine):
    """Descriptors of programs, maps and their types that the engine has."""
    pid = json.loads(engine.admin('-j', 'engine'))['pid']
    names = []
    for entry in os.listdir(f'/proc/{pid}/fd'):
        try:
            names.append(os.readlink(f'/proc/{pid}/fd/{entry}'))
        except FileNotFoundError:
            pass  # a command's connection that ends
    return [name for name in names if re.search('bpf|btf', name)]


def need_xdp(space):
    """Asks the kernel, not the engine, which is what is tested."""
    if not (pathlib.Path(ROCADED).parent / 'rocade_xdp.o').exists():
        raise tap.Skip('no clang made the program')
    probe = pathlib.Path(__file__).parent / 'can_xdp.py'
    done = subprocess.run(['ip', 'netns', 'exec', space, sys.executable, str(probe), 'va'],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise tap.Skip(done.stderr.strip())


def add_by_xdp(engine):
    """A queue is free a little after its socket was closed: who is early tries again."""
    def added():
        engine.admin('link', 'add', 'x0', 'type', 'netdev', 'va', 'mode', 'xdp')
        if 'net_af_xdp' in engine.admin('-d', 'link'):
            return True
        engine.admin('link', 'del', 'x0')
        return False
    try:
        tap.wait_until('a link of AF_XDP', added)
    except AssertionError as err:
        raise AssertionError(f'{err}:\n{engine.log.read_text()}') from err


def with_engines(test):
    """On a netdev of their own: a function that begins one in its namespace."""
    veth = Veth(1500)
    engines = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)

            def begin(program=ROCADED):
                engines.append(Engine(folder, f'e{len(engines)}', '', veth.a, program))
                return engines[-1]
            test(veth.a, begin)
    finally:
        try:
            stop_all(engines)
        finally:
            veth.close()


def xdp_goes_as_a_whole():
    def test(space, begin):
        need_xdp(space)
        engine = begin()
        add_by_xdp(engine)
        for _ in range(2):
            tap.true(has_xdp_program(space) and bpf_objects(engine), 'no program')
            engine.admin('link', 'del', 'x0')
            tap.true(not has_xdp_program(space), 'a program without the link')
            tap.equal(bpf_objects(engine), [], 'what is left')
            add_by_xdp(engine)
        tap.equal(engine.stop(), 0, engine.log.read_text())
        tap.true(not has_xdp_program(space), 'a program without the engine')
    with_engines(test)


tap.add('X1 an AF_XDP link goes as a whole, and can be added again', xdp_goes_as_a_whole)


def xdp_ends_with_the_engine():
    def test(space, begin):
        need_xdp(space)
        engine = begin()
        add_by_xdp(engine)
        engine.process.kill()
        engine.process.wait()
        tap.wait_until('the program to go', lambda: not has_xdp_program(space))
        engine = begin()
        add_by_xdp(engine)
    with_engines(test)


tap.add('X2 no program of an engine that was killed stays', xdp_ends_with_the_engine)


def xdp_is_found_where_it_is_installed():
    def test(_, begin):
        made = pathlib.Path(ROCADED).parent / 'rocade_xdp.o'
        if not made.exists():
            raise tap.Skip('no clang made the program')
        with tempfile.TemporaryDirectory() as prefix:
            for path in (prefix, f'{prefix}/sbin', f'{prefix}/lib', f'{prefix}/lib/rocade'):
                os.makedirs(path, exist_ok=True)
                os.chmod(path, 0o755)
            shutil.copy(made, f'{prefix}/lib/rocade')
            engine = begin(shutil.copy(ROCADED, f'{prefix}/sbin'))
            engine.admin('link', 'add', 'x0', 'type', 'netdev', 'va', 'mode', 'xdp')
            tap.true('No such file' not in engine.log.read_text(), engine.log.read_text())
            engine.stop()
    with_engines(test)


tap.add('X4 an installed daemon finds its program', xdp_is_found_where_it_is_installed)


def xdp_of_others_stays():
    def test(space, begin):
        need_xdp(space)
        engine = begin()
        program = pathlib.Path(ROCADED).parent / 'rocade_xdp.o'
        add_by_xdp(engine)
        engine.admin('link', 'del', 'x0')
        if subprocess.run(['ip', '-n', space, 'link', 'set', 'va', 'xdp', 'obj', str(program),
                           'sec', 'xdp'], capture_output=True, check=False).returncode:
            raise tap.Skip('ip puts no program on a netdev here')
        engine.admin('link', 'add', 'x0', 'type', 'netdev', 'va', 'mode', 'xdp')
        tap.true('net_af_packet' in engine.admin('-d', 'link'), 'driver')
        engine.admin('link', 'del', 'x0')
        tap.true(has_xdp_program(space), 'the program has gone')
        tap.true('has an XDP program already' in engine.log.read_text(), 'why')
    with_engines(test)


tap.add("X3 somebody else's program on a netdev stays", xdp_of_others_stays)


@tap.test
def memif():
    with tempfile.TemporaryDirectory() as folder:
        engines = [Engine(folder, role, f'[device m0]\ntype = port\ndevargs = net_memif0,'
                          f'role={role},socket={folder}/memif.sock,socket-abstract=no,'
                          f'bsize=8192,rsize=9,mac=02:00:00:00:00:0{number}\n'
                          f'address = 10.5.0.{number}/24, fd05::{number}/64\n')
                   for number, role in enumerate(('server', 'client'), 1)]
        try:
            tap.true(all(engine.up() for engine in engines),
                     ''.join(engine.log.read_text() for engine in engines))
            for engine in engines:
                until(engine, lambda text: 'state ACTIVE' in text)
            for version in ('4', '6'):
                pair(engines[0], 'm0', engines[1], 'm0', version, '3')
        finally:
            stop_all(engines)


def talk(path):
    """A program that connects to a memif's socket; None when nobody listens."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(10)
    try:
        peer.connect(path)
    except OSError:
        peer.close()
        return None
    return peer


def memif_leaves_nobody_listening():
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/memif.sock'
        # What a killed engine left behind is no hindrance.
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
            left.bind(path)
        engine = Engine(folder, 'server', ''.join(
            f'[device m{number}]\ntype = port\ndevargs = net_memif{number},role=server,id={number},'
            f'socket={path},socket-abstract=no\n' for number in range(2)))
        try:
            tap.true(engine.up(), engine.log.read_text())
            # The one that is left keeps the socket.
            engine.admin('link', 'del', 'm1')
            early = talk(path)
            tap.true(early is not None, 'nobody listens')
            tap.true(early.recv(256) != b'', 'no greeting')
            engine.admin('link', 'del', 'm0')
            # Neither who was there before it went nor who comes after has anybody to talk to.
            tap.equal(early.recv(256), b'', 'the channel of a device that went')
            tap.true(talk(path) is None, 'the socket of a device that went')
            early.close()
        finally:
            engine.stop()
        tap.true('memif_listener_handler' not in engine.log.read_text(), engine.log.read_text())


tap.add('M1 a memif that went leaves no socket behind', memif_leaves_nobody_listening)


@tap.test
def kernel_pings_the_engine():
    need_root()
    dev = NAME[:12] + 't'
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder, 'tap', f'[device t0]\ntype = port\n'
                        f'devargs = net_tap0,iface={dev}\naddress = 10.6.0.1/24, fd06::1/64\n')
        try:
            if not engine.up():
                raise tap.Skip('no TAP device here: ' +
                               engine.log.read_text().strip().splitlines()[-1])
            run('ip', 'addr', 'add', '10.6.0.2/24', 'dev', dev)
            run('ip', 'addr', 'add', 'fd06::2/64', 'dev', dev, 'nodad')
            time.sleep(0.2)
            for size in ('56', '1400'):
                run('ping', '-c', '3', '-i', '0.2', '-W', '2', '-s', size, '10.6.0.1')
                run('ping', '-6', '-c', '3', '-i', '0.2', '-W', '2', '-s', size, 'fd06::1')
        finally:
            engine.stop()


if __name__ == '__main__':
    sys.exit(tap.run())
