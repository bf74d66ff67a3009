#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: one engine serves network namespaces that have equal addresses, each by devices of its own,
and no client of one reaches, names or learns of a device of another.

Method: an engine outside, and pods (pods.py) in which unmodified programs run, whose sockets the
command line hands over, or the daemon has made at its start, by its configuration: as root, for an
engine that became another user; and as an ordinary user, in user namespaces, with no right
anywhere. Attacks speak the control protocol.

    test_netns.py ROCADED LIBIBVERBS
"""
import contextlib
import errno
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from pods import DEVICES, NOT_ROOT, PINGPONG, PYTHON, ROCADE, WIRE, Place  # noqa: E402

sys.dont_write_bytecode = True
sys.path.insert(1, str(ROCADE.parent))
from rocade_engine import OP_SOCKETS, Engine, Failure  # noqa: E402


def each_to_its_own(place):
    for pod in DEVICES:
        tap.equal(place.devices(pod), {pod}, f'devices in {pod}')
    tap.equal(place.devices(None), WIRE, 'devices outside')
    # Both at once, by the same addresses and ports.
    for server, client in (
            (('rping', '-s', '-a', '10.9.0.2', '-C', '9', '-V'),
             ('rping', '-c', '-a', '10.9.0.2', '-C', '9', '-V')),
            (('rping', '-s', '-C', '9', '-V'), ('rping', '-c', '-a', '10.9.0.2', '-C', '9', '-V')),
            (PINGPONG, (*PINGPONG, '10.9.0.2'))):
        before = {name: place.counts(name) for name in DEVICES}
        with place.servers({f'{pod}2': server for pod in 'ab'}):
            for pod in 'ab':
                place.reach(pod, *client)
        for name in DEVICES:
            after = place.counts(name)
            tap.true(after['rx_packets'] > before[name]['rx_packets'], f'{client}: {name} idle')
            tap.equal(after['tx_loopback'], 0, f'packets of {name} that did not leave')
    # One alone: nothing of it comes to the other.
    before = place.counts('b2')['rx_packets']
    with place.servers({'a2': PINGPONG}):
        place.reach('a', *PINGPONG, '10.9.0.2')
    tap.equal(place.counts('b2')['rx_packets'], before, 'packets at the other')


@tap.test
def equal_addresses():
    with Place() as place:
        place.add()
        each_to_its_own(place)


@tap.test
def equal_addresses_without_a_right():
    with Place(NOT_ROOT) as place:
        place.add()
        with open(f'/proc/{place.pid}/status', encoding='utf-8') as file:
            rights = [line.split() for line in file if line.startswith('Cap')]
        # What is bound is what a program could get by its file, which it can't (no_new_privs).
        tap.equal({int(right, 16) for name, right in rights if name != 'CapBnd:'}, {0}, 'rights')
        each_to_its_own(place)


LINK = 'type = udp\nnetdev = eth0\nnetns = {}'


@tap.test
def by_the_configuration():
    """Whoever starts the engine may go there: root, before it became another user."""
    for who, config in ((None, LINK), (NOT_ROOT, LINK.format('/proc/{}/ns/net'))):
        with Place(who, config=config) as place:
            each_to_its_own(place)
            # Nobody is left who could.
            tap.wait_until('the end of who made the sockets', lambda: not place.children())
            place.rocade('link', 'del', 'a')
            place.add('a')


def refused(who, netns, why):
    """An engine does not start that is to have a link there."""
    try:
        with Place(who, config=LINK.format(netns)):
            pass
    except AssertionError as failure:
        tap.true('rocaded: netns: ' in str(failure) and why in str(failure), f'{netns}: {failure}')
    else:
        tap.true(False, f'{netns} is taken')


@tap.test
def wrong_configurations():
    for netns, why in (('rcd-none', 'rcd-none: No such file'),
                       ('/etc/passwd', '/etc/passwd: no network namespace'),
                       ('/proc/self/ns/user', '/proc/self/ns/user: no network namespace'),
                       ('/proc/self/ns/net', "the engine's own")):
        refused(None, netns, why)


@tap.test
def without_permission():
    """Who may not go there adds nothing."""
    name = f'rcdns{os.getpid()}'
    with contextlib.ExitStack() as stack:
        subprocess.run(['ip', 'netns', 'add', name], check=True)
        stack.callback(subprocess.run, ['ip', 'netns', 'del', name], check=True)
        root = subprocess.Popen(['unshare', '-n', 'sleep', '900'])
        stack.callback(root.wait)
        stack.callback(root.kill)
        refusals = ((name, 'needs root, or the owner of its user namespace'),
                    (str(root.pid), os.strerror(errno.EACCES)))
        with Place(NOT_ROOT) as place:
            before = place.descriptors()
            for netns, why in refusals:
                out = place.rocade('link', 'add', 'x', 'type', 'udp', 'lo', 'netns', netns,
                                   status=1)
                tap.equal(out, f'rocade: netns: {netns}: {why}\n', 'what it says')
            links = json.loads(place.rocade('-j', 'link'))
            tap.equal({link['ifname'] for link in links}, WIRE, 'links')
            tap.wait_until('descriptors closed', lambda: place.descriptors() == before)
        # Nor does an engine of his, by its configuration.
        for netns, why in refusals:
            refused(NOT_ROOT, netns, f'netns: {netns}: {why}')


@tap.test
def several_lcores():
    with Place(lcores='0@(0-1),1@0,2@1') as place:
        place.add('a', 'a2')
        with place.servers({'a2': PINGPONG}):
            place.reach('a', *PINGPONG, '10.9.0.2')
        # One that shares a port with what is there would take a part of its packets.
        out = place.rocade('link', 'add', 'again', 'type', 'udp', 'eth0', 'netns', place.pods['a'],
                           status=1)
        tap.true(os.strerror(errno.EADDRINUSE) in out, out)


@tap.test
def shown_by_namespace():
    with Place() as place:
        place.add()
        shown = json.loads(place.rocade('-j', 'dev', 'show'))
        cookies = [dev.get('netns_cookie', 0) for dev in shown]
        tap.equal(cookies, sorted(cookies), 'order')
        tap.equal({dev['ifname']: dev.get('netns') for dev in shown},
                  {**place.pods, 'roce0': None, 'roce1': None}, 'namespaces')
        only = json.loads(place.rocade('-j', 'dev', 'show', 'netns', place.pods['b']))
        tap.equal([dev['ifname'] for dev in only], ['b'], 'of one')
        tap.true(f'b: ' in (out := place.rocade('dev')) and f'netns {place.pods["b"]}' in out, out)
        tap.true('netns' in (out := place.rocade('link', 'show', 'b')), out)


# What a client may try, by the control protocol: prints one line for each answer.
CLIENT = '''
import os, struct, sys
sys.path.insert(1, sys.argv[1])
from rocade_engine import OP_ADMIN, OP_SOCKETS, Engine, Failure
def call(engine, what, *args):
    try:
        engine.call(*args)
        print(what, 'ok')
    except Failure as failure:
        print(what, failure)
engine = Engine(sys.argv[2])
for index in range(4):
    call(engine, f'device {index}', 1, struct.pack('=2I', index, 0))
for serial in range(1, 12):
    call(Engine(sys.argv[2]), f'open {serial}', 2, struct.pack('=2I', serial, 0))
call(engine, 'admin', OP_ADMIN, b'{"op": "dev"}'.ljust(1024, b'\\0'))
call(engine, 'sockets', OP_SOCKETS, struct.pack('=2I', 0, 0), [0, 0, 0, 0])
'''


def answers(place, pod):
    lines = place.run(pod, PYTHON, '-c', CLIENT, ROCADE.parent, place.socket).splitlines()
    return {' '.join(line.split()[:2]) if line[0] in 'do' else line.split()[0]:
            line.split(' ', 2 if line[0] in 'do' else 1)[-1] for line in lines}


@tap.test
def devices_of_others_are_not_there():
    with Place() as place:
        place.add()
        serials = {dev['ifname']: dev['ifindex'] for dev in json.loads(place.rocade('-j', 'dev'))}
        told = answers(place, 'a')
        nothing, gone = os.strerror(errno.ENOENT), os.strerror(errno.ENODEV)
        tap.equal([told[f'device {i}'] for i in range(4)], ['ok', *[nothing] * 3], 'its list')
        for serial in range(1, 12):
            tap.equal(told[f'open {serial}'], 'ok' if serial == serials['a'] else gone,
                      f'open {serial}')
        # Though it is root, or who started the engine, by its number.
        tap.true(told['admin'].startswith('not allowed'), told['admin'])
        tap.equal(told['sockets'], os.strerror(errno.EPERM), 'its sockets')
        # An address of another's, to bind, to listen on and to go to; and another's wildcard.
        for words in (('-s', '-a', '10.9.7.7', '-C', '1'), ('-c', '-a', '10.9.7.7', '-C', '1'),
                      ('-s', '-a', '10.77.0.1', '-C', '1'), ('-c', '-a', '10.77.0.1', '-C', '1')):
            out = place.run(*place.program('a', 'timeout', '20', 'rping', *words), status=None)
            call = 'rdma_bind_addr' if words[0] == '-s' else 'rdma_resolve_addr'
            tap.true(call in out and 'ping data' not in out, f'rping {words}: {out}')


@tap.test
def modes():
    for mode, outside in (('shared', WIRE), ('exclusive', set())):
        with Place(mode=mode) as place:
            tap.equal(place.devices('a'), outside, f'{mode}: without one of its own')
            # As ever, where nobody is kept apart.
            told = answers(place, 'a')['admin']
            tap.equal(told.startswith('not allowed'), mode == 'exclusive', f'{mode}: {told}')
            place.add('a')
            tap.equal(place.devices('a'), {'a'}, f'{mode}: with one')
            tap.equal(place.devices('b'), outside, f'{mode}: others')
            tap.equal(place.devices(None), WIRE, f'{mode}: outside')
            place.rocade('link', 'del', 'a')
            tap.equal(place.devices('a'), outside, f'{mode}: afterwards')
            for pod in 'ab':
                told = answers(place, pod)['admin']
                tap.true(told.startswith('not allowed'), f'{mode}: root of {pod}: {told}')


def four_of(*kinds):
    """Descriptors of this process, by what they are."""
    made = []
    for kind in kinds:
        if kind == 'netlink':
            made.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
        elif kind == 'uevent':
            made.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15))
        elif kind == 'bound netlink':
            made.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
            made[-1].bind((0, 0))
        elif kind in ('udp', 'bound udp', 'connected udp'):
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            if kind == 'bound udp':
                made[-1].bind(('127.0.0.1', 0))
            elif kind == 'connected udp':
                made[-1].connect(('127.0.0.1', 9))
        elif kind == 'tcp':
            made.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        elif kind == 'raw':
            made.append(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP))
        elif kind == 'unix':
            made.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        elif kind == 'file':
            made.append(open('/etc/passwd', 'rb'))
        elif kind == 'pipe':
            reading, writing = os.pipe()
            os.close(writing)
            made.append(os.fdopen(reading, 'rb', buffering=0))
        else:
            made.append(open('/proc/self/ns/net', 'rb'))
    return made


@tap.test
def wrong_descriptors():
    first = ('netlink', 'netlink', 'udp', 'udp')
    with Place() as place:
        place.add('b')
        before = place.descriptors()

        def give(engine, four):
            """@return why they are not taken"""
            with contextlib.ExitStack() as stack:
                made = [stack.enter_context(one) for one in four_of(*four)]
                try:
                    engine.call(OP_SOCKETS, struct.pack('=2I', 0, 0),
                                [one.fileno() for one in made])
                except Failure as failure:
                    return str(failure)
            return ''

        def given(*fours, op='link_add', expect=errno.EINVAL, why=None):
            """All but the last four are taken; what becomes of that, and of a link afterwards."""
            with contextlib.closing(Engine(place.socket)) as engine:
                for four in fours[:-1]:
                    tap.equal(give(engine, four), '', f'{four} of {fours}')
                tap.equal(give(engine, fours[-1]), os.strerror(expect) if expect else '',
                          f'{fours[-1]}, the last of {fours}')
                try:
                    engine.ask(op, name='x', type='udp', netdev='lo', netns='x')
                    said = ''
                except Failure as failure:
                    said = str(failure)
                taken = len(fours) > 1 or expect == 0
                expected = why or ("the engine's own" if taken else 'its sockets come with it')
                tap.true(expected in said, f'{fours}: {op}: {said}')
            tap.equal({link['ifname'] for link in json.loads(place.rocade('-j', 'link'))},
                      WIRE | {'b'}, 'links')

        for wrong in ('uevent', 'bound netlink', 'udp', 'tcp', 'unix', 'file', 'pipe', 'netns'):
            for at in range(2):
                given(tuple(wrong if i == at else kind for i, kind in enumerate(first)))
        for wrong in ('netlink', 'bound udp', 'connected udp', 'tcp', 'raw', 'unix', 'file', 'pipe',
                      'netns'):
            given(tuple(wrong if i == 3 else kind for i, kind in enumerate(first)))
            given(first, ('udp', wrong, 'udp', 'udp'))
        # None, too few; more than four, which are as four; more fours than any engine has lcores.
        for kinds in ((), first[:1], first[:3]):
            given(kinds, expect=errno.EPROTO)
        given((*first, 'udp', 'file', 'pipe'), expect=0)
        given(first, *[('udp',) * 4] * 16, ('udp',) * 4, expect=errno.ENOSPC)
        # Of the engine's own namespace, which has no need of them; for no link; and then gone.
        given(first, ('udp',) * 4, expect=0)
        given(first, ('udp',) * 4, op='dev', expect=0, why='knows no name')
        engine = Engine(place.socket)
        made = four_of(*first)
        engine.call(OP_SOCKETS, struct.pack('=2I', 0, 0), [one.fileno() for one in made])
        os.kill(place.pid, 0)
        engine.close()
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before, 60)
        tap.equal(place.devices('b'), {'b'}, 'devices in b')


# Has a port of a version of IP in its network namespace until its input ends.
HOLD = '''
import socket, sys
with socket.socket(int(sys.argv[1]), socket.SOCK_DGRAM) as sock:
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind(('', 4791))
    print('bound', flush=True)
    sys.stdin.read()
'''


@tap.test
def port_taken():
    """Over one version of IP alone: then there is no link that is deaf by that one."""
    for lcores in (None, '0@(0-1),1@0,2@1'):
        with Place(lcores=lcores) as place:
            before = place.descriptors()
            for family in (socket.AF_INET, socket.AF_INET6):
                with subprocess.Popen(
                        ['nsenter', '-t', place.pods['a'], '-n', PYTHON, '-c', HOLD,
                         str(int(family))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        text=True) as holder:
                    tap.equal(holder.stdout.readline(), 'bound\n', 'the port')
                    out = place.rocade('link', 'add', 'a', 'type', 'udp', 'eth0', 'netns',
                                       place.pods['a'], status=1)
                    tap.true(os.strerror(errno.EADDRINUSE) in out, out)
            tap.wait_until('descriptors closed', lambda: place.descriptors() == before)
            place.add('a')


# Adds a link with sockets of a namespace and keeps them; what it is told is done with them.
KEEPER = '''
import fcntl, os, socket, sys
sys.path.insert(1, sys.argv[1])
import rocade_netns
from rocade_engine import Engine
engine = Engine(sys.argv[2])
fours = []
for four in rocade_netns.sockets(sys.argv[3], len(engine.ask('engine')['lcores'])):
    engine.give(four)
    fours.append(four)
engine.ask('link_add', name='a', type='udp', netdev='eth0', netns=sys.argv[3])
def wait_in_calls():
    for fd in sum(fours, []):
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
def ask():
    """A list by each of its sockets of rtnetlink, which nobody but the engine reads."""
    for fd in fours[0][:2]:
        with socket.socket(fileno=os.dup(fd)) as sock:
            sock.sendto(bytes.fromhex('1100000012000103070000000000000000'), (0, 0))
print('added', flush=True)
for line in sys.stdin:
    {'wait': wait_in_calls, 'ask': ask}[line.strip()]()
    print('done', flush=True)
'''


@tap.test
def sockets_that_are_kept():
    """Who made them has them, too: that stops nobody, neither while there is a link nor behind."""
    with Place() as place:
        ip = ['nsenter', '-t', place.pods['a'], '-n', 'ip']

        def ticks():
            with open(f'/proc/{place.pid}/stat', encoding='utf-8') as file:
                return sum(map(int, file.read().rsplit(')', 1)[1].split()[11:13]))

        def quiet():
            before = ticks()
            time.sleep(1)
            return ticks() - before <= 5

        def tell(word):
            keeper.stdin.write(word + '\n')
            keeper.stdin.flush()
            tap.equal(keeper.stdout.readline(), 'done\n', word)

        def change(address):
            subprocess.run([*ip, 'addr', 'add', f'{address}/24', 'dev', 'eth0'], check=True)

        with subprocess.Popen([PYTHON, '-c', KEEPER, ROCADE.parent, place.socket,
                               place.pods['a']], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as keeper:
            tap.equal(keeper.stdout.readline(), 'added\n', 'the link')
            tell('wait')
            change('10.9.5.5')
            tap.wait_until('the address',
                           lambda: '10.9.5.5' in place.rocade('-d', 'link', 'show', 'a'))
            tell('ask')
            change('10.9.6.6')
            tap.wait_until('another address',
                           lambda: '10.9.6.6' in place.rocade('-d', 'link', 'show', 'a'))
            place.rocade('link', 'del', 'a')
            change('10.9.7.7')
            place.rocade('engine')
            # What wakes it for ever takes all that it gets of a core: 100 ticks.
            tap.wait_until('an engine with nothing to do', quiet, 20)


@tap.test
def of_two_namespaces():
    """Sockets that do not belong together are no device's."""
    with Place() as place:
        script = ('import socket, sys; sys.path.insert(1, sys.argv[1])\n'
                  'import rocade_netns, struct\nfrom rocade_engine import Engine, Failure\n'
                  'engine = Engine(sys.argv[2])\n'
                  'fours = [list(rocade_netns.sockets(pod, 1)) for pod in sys.argv[3:5]]\n'
                  'engine.give(fours[0][0])\n'
                  'try:\n    engine.give(fours[1][1])\nexcept Failure as failure:\n'
                  '    print(failure)\n')
        out = place.run(None, PYTHON, '-c', script, ROCADE.parent, place.socket, place.pods['a'],
                        place.pods['b'])
        tap.true(os.strerror(errno.EINVAL) in out, out)


@tap.test
def how_they_end():
    with Place() as place:
        before = place.descriptors()
        for _ in range(3):
            place.add()
            for name in DEVICES:
                place.rocade('link', 'del', name)
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before, 60)
        for words, why in ((('udp', 'none0', 'netns', place.pods['a']), 'no netdev none0'),
                           (('udp', 'eth0', 'netns', '/etc/passwd'), 'no network namespace'),
                           (('udp', 'eth0', 'netns', 'rcd-none'), 'No such file'),
                           (('netdev', 'lo', 'netns', place.pods['a']), 'type udp'),
                           (('udp', 'lo', 'netns', str(os.getpid())), "the engine's own")):
            out = place.rocade('link', 'add', 'x', *words, status=1)
            tap.true(why in out, out)
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before, 60)

        def state(name):
            return json.loads(place.rocade('-j', 'link', 'show', name))[0]['state']

        # By its address; the netdev's changes are followed there, and a netdev that goes is down.
        # Those of the other pod have the same numbers.
        place.add('b')
        place.rocade('link', 'add', 'a', 'type', 'udp', '10.9.0.1', 'netns', place.pods['a'])
        nsenter = ['nsenter', '-t', place.pods['a'], '-n', 'ip']
        subprocess.run([*nsenter, 'addr', 'add', '10.9.5.5/24', 'dev', 'eth0'], check=True)
        tap.wait_until('the address', lambda: '10.9.5.5' in place.rocade('-d', 'link', 'show', 'a'))
        tap.true('10.9.5.5' not in place.rocade('-d', 'link', 'show', 'b'), 'of another')
        subprocess.run([*nsenter, 'link', 'del', 'eth0'], check=True)
        tap.wait_until('the link to be down', lambda: state('a') == 'DOWN')
        tap.equal(state('b'), 'ACTIVE', 'the other')
        # A namespace lives for as long as sockets of it do.
        os.kill(int(place.pods['b']), signal.SIGTERM)
        tap.equal(state('b'), 'ACTIVE', 'without a process')
        for name in 'ab':
            place.rocade('link', 'del', name)
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before, 60)


if __name__ == '__main__':
    sys.exit(tap.run())
