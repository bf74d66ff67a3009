#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: who is in a network namespace makes a device for it by himself, with no right and nobody's
help, where the engine lets him; and does nothing else by that, to nobody, and not without end.

Method: an engine and pods (pods.py), in which the command line runs as a user without a capability.
Attacks speak the control protocol, and come from namespaces without end.

    test_netns_guest.py ROCADED LIBIBVERBS
"""
import errno
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from pods import (DEVICES, GUEST, LIMIT, NOT_ROOT, PINGPONG, PYTHON, ROCADE, WIRE,  # noqa: E402
                  Place)

sys.dont_write_bytecode = True

ADD = ('type', 'udp', 'eth0')
NOT_ALLOWED = 'not allowed'
NET_ADMIN, SYS_ADMIN = 12, 21   # capabilities


def links(place):
    """{name: link} of those that are no wire's."""
    return {link['ifname']: link for link in json.loads(place.rocade('-j', 'link'))
            if link['ifname'] not in WIRE}


def plain(place):
    return sorted(name.split('@')[0] for name in links(place))


@tap.test
def by_themselves():
    """In all pods by the same name, and each has its own; root of a pod is a guest as any other."""
    for who in (None, NOT_ROOT):
        with Place(who, links=1) as place:
            before = place.descriptors()
            for pod in DEVICES:
                place.guest(pod, 'add', 'r0', *ADD, uid=0 if pod == 'b' else GUEST)
                tap.equal(place.devices(pod), {'r0'}, f'devices in {pod}')
            tap.equal(place.devices(None), WIRE, 'devices outside')
            for pod in 'ab':
                with place.servers({f'{pod}2': PINGPONG}):
                    place.reach(pod, *PINGPONG, '10.9.0.2')
            # Who makes sockets has given up what that does not take.
            [maker] = place.children()
            with open(f'/proc/{maker}/status', encoding='utf-8') as file:
                rights = dict(line.split(':', 1) for line in file)
            for kind in ('CapPrm', 'CapEff'):
                tap.equal(int(rights[kind], 16), 0 if who else 1 << NET_ADMIN | 1 << SYS_ADMIN,
                          f'{kind} of who makes sockets')
            made = links(place)
            cookies = {link['netns_cookie'] for link in made.values()}
            tap.equal(len(cookies), 4, 'namespaces')
            for name, link in made.items():
                tap.equal(name, f'r0@{link["netns_cookie"]}', 'its name')
                tap.equal(link['netns'], f'@{link["netns_cookie"]}', 'its namespace')
            if not who:
                tap.equal(sorted(link['uid'] for link in made.values()), [0] + 3 * [GUEST], 'users')
            # Who made it, and who administers.
            place.guest('a', 'del', 'r0')
            place.rocade('link', 'del', next(name for name in made if name in links(place)))
            tap.equal(len(links(place)), 2, 'links that are left')
            place.guest('a', 'add', 'r0', *ADD)
            for name in links(place):
                place.rocade('link', 'del', name)
            tap.wait_until('descriptors closed', lambda: place.descriptors() == before)


@tap.test
def who_may_not():
    with Place() as place:
        out = place.guest('a', 'add', 'r0', *ADD, status=1)
        tap.true(NOT_ALLOWED in out and 'netns_links' in out, out)
        tap.equal(links(place), {}, 'links')
    try:
        with Place(mode='shared', links=1):
            pass
    except AssertionError as failure:
        tap.true('netns_links: needs netns = exclusive' in str(failure), failure)
    else:
        tap.true(False, 'an engine that has both')


@tap.test
def nothing_else():
    """What administers is for nobody in a pod, before the first link and behind it."""
    with Place(links=2) as place:
        for done in (False, True):
            for words in (('show',), ('set', 'roce0', 'down'), ('set', 'r0', 'down')):
                tap.true(NOT_ALLOWED in (out := place.guest('a', *words, uid=0, status=1)), out)
            for words in (('dev',), ('engine',), ('addr', 'add', '10.1.1.1/24', 'dev', 'roce0'),
                          ('resource', 'show', 'quota'), ('down',)):
                tap.true(NOT_ALLOWED in (out := place.rocade(*words, pod='a', status=1)), out)
            for words in (('type', 'netdev', 'eth0'), ('type', 'netdev', 'eth0', 'mode', 'udp'),
                          ('type', 'wire', 'y'), ('type', 'port', 'net_null0'),
                          (*ADD, 'impair', 'drop=1%'), (*ADD, 'state', 'down'),
                          (*ADD, 'mode', 'udp')):
                out = place.guest('a', 'add', 'x', *words, status=1)
                tap.true('links of type udp alone' in out, out)
            for name in ('x@1', 'x' * 41, 'a b', 'ä'):
                tap.true('name' in (out := place.guest('a', 'add', name, *ADD, status=1)), out)
            for name in ('roce0', 'x', f'r0@{1 << 63}'):
                out = place.guest('a', 'del', name, status=1)
                tap.true('there is no link' in out, out)
            tap.equal(plain(place), ['r0'] if done else [], 'links')
            if not done:
                place.guest('a', 'add', 'r0', *ADD, 'mtu', '1500')
        tap.equal(next(iter(links(place).values()))['mtu'], 1500, 'its MTU')


@tap.test
def others_links():
    """Of the operator, of another user, of another namespace: their names are nothing to know."""
    with Place(links=2) as place:
        place.add('b')
        place.guest('a', 'add', 'b', *ADD)
        tap.equal(place.devices('a'), {'b'}, 'devices in a')
        place.guest('b', 'del', 'b', status=1)
        place.guest('a', 'del', 'b', uid=GUEST + 1, status=1)
        place.guest('a2', 'del', 'b', status=1)
        place.guest('a2', 'del', 'b', uid=0, status=1)
        tap.equal(plain(place), ['b', 'b'], 'links')
        for pod, name in (('b', 'b'), ('a', 'b')):
            out = place.guest(pod, 'add', name, 'type', 'udp', 'lo', status=1)
            tap.true('there is a device of this name' in out, out)
        # Nor does the operator make two of one name in one namespace.
        out = place.rocade('link', 'add', 'b', 'type', 'udp', 'lo', 'netns', place.pods['a'],
                           status=1)
        tap.true('there is a device of this name' in out, out)
        # Root keeps order in his namespace, but what the operator made is the operator's.
        place.guest('b', 'del', 'b', uid=0, status=1)
        place.guest('a', 'del', 'b', uid=0)
        tap.equal(plain(place), ['b'], 'links')


@tap.test
def no_more_than_allowed():
    with Place(links=1) as place:
        place.guest('a', 'add', 'r0', *ADD)
        before = place.descriptors()
        out = place.guest('a', 'add', 'r1', 'type', 'udp', 'lo', uid=GUEST + 1, status=1)
        tap.true('netns_links: this network namespace has' in out, out)
        # The operator's do not count, nor does the namespace's limit hold him up.
        place.rocade('link', 'add', 'op', 'type', 'udp', 'lo', 'netns', place.pods['a'])
        place.rocade('link', 'del', 'op')
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before)
        tap.equal(plain(place), ['r0'], 'links')


# A namespace after another, of one user: each wants a link, and lives on by its sockets.
FLOOD = '''
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
    unshare -n sh -c 'ip link set lo up && exec "$0" "$@"' "$@" || :
done
'''


@tap.test
def whose_rules_are_his_own():
    """Who made the user namespace of a network namespace makes rules there, which would take the
    time of an lcore that sends: such a one is refused, but for him who started the engine."""
    made = 'unshare', '-Urn', PYTHON, ROCADE, 'link', 'add', 'r0', 'udp', 'lo'
    for who in (None, NOT_ROOT):
        with Place(who, links=2) as place:
            if subprocess.run(['setpriv', f'--reuid={GUEST}', '--clear-groups', 'unshare', '-Urn',
                               'true'], check=False).returncode:
                raise tap.Skip('no user namespaces for users here')
            before = place.descriptors()
            process = subprocess.run(
                ['setpriv', f'--reuid={GUEST}', f'--regid={GUEST}', '--clear-groups', *made],
                env=place.env, cwd='/', text=True, check=False, timeout=tap.PATIENCE,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            tap.true(process.returncode == 1 and 'of a user namespace' in process.stdout,
                     process.stdout)
            tap.equal(links(place), {}, 'links')
            tap.wait_until('descriptors closed', lambda: place.descriptors() == before)
            if who:
                place.run(None, *made)
                tap.equal(plain(place), ['r0'], 'links of who started it')


@tap.test
def namespaces_without_end():
    """Of one user: others have a part all the same, and the operator half of the engine."""
    with Place(links=1) as place:
        before = place.descriptors()

        def flood(uid):
            return place.run(None, 'sh', '-c', FLOOD, 'sh', 'setpriv', f'--reuid={uid}',
                             f'--regid={uid}', '--clear-groups', PYTHON, ROCADE, 'link', 'add',
                             'r0', 'udp', 'lo')
        out = flood(GUEST)
        made = links(place)
        tap.equal(len(made), 12, f'links of one user: {out}')
        tap.true('netns_links: this user has' in out, out)
        flood(GUEST + 1)
        place.guest('a', 'add', 'r0', *ADD, uid=GUEST + 2)
        tap.equal(sorted(link['uid'] for link in links(place).values()),
                  12 * [GUEST] + 3 * [GUEST + 1] + [GUEST + 2], 'users')
        place.guest('b', 'add', 'r0', *ADD, uid=GUEST + 3, status=1)
        place.add('b')
        for name in links(place):
            place.rocade('link', 'del', name)
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before)


# What a client may say is its namespace: prints one line for each, and then asks for a link.
SAYS = '''
import errno, os, socket, struct, sys
sys.path.insert(1, sys.argv[1])
from rocade_engine import OP_NETNS, OP_SOCKETS, Engine, Failure
pods = [open(f'/proc/{pid}/ns/net', 'rb') for pid in sys.argv[3:]]
own = open('/proc/self/ns/net', 'rb')
def say(what, op, *files):
    engine = Engine(sys.argv[2])
    status = errno.EAGAIN
    while status == errno.EAGAIN:
        try:
            engine.call(op, struct.pack('=2I', 0, 0), [file.fileno() for file in files])
            status = 0
        except Failure as failure:
            status = failure.status
    print(what, errno.errorcode.get(status, status), end=' ')
    try:
        engine.ask('link_add', name='x', type='udp', netdev='lo')
        print('added')
    except Failure as failure:
        print(failure)
for index, pod in enumerate(pods):
    say(f'pod{index}', OP_NETNS, pod)
say('user', OP_NETNS, open('/proc/self/ns/user', 'rb'))
say('file', OP_NETNS, open('/etc/passwd', 'rb'))
say('likely', OP_NETNS, os.fdopen(os.memfd_create('net:[1]'), 'rb'))
say('socket', OP_NETNS, socket.socket())
say('none', OP_NETNS)
say('two', OP_NETNS, own, own)
udp = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in '12']
rtnl = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) for _ in '12']
say('sockets', OP_SOCKETS, *rtnl, *udp)
'''


@tap.test
def what_is_no_namespace_of_his():
    with Place(links=2) as place:
        before = place.descriptors()
        out = place.run('a', PYTHON, '-c', SAYS, ROCADE.parent, place.socket, place.pods['b'],
                        str(os.getpid()))
        told = {line.split()[0]: line.split()[1] for line in out.splitlines()}
        tap.equal(told, {'pod0': 'EXDEV', 'pod1': 'EXDEV', 'user': 'EINVAL', 'file': 'EINVAL',
                         'likely': 'EINVAL', 'socket': 'EINVAL',
                         'none': 'EPROTO', 'two': 'EPROTO', 'sockets': 'EPERM'}, 'answers')
        tap.equal(out.count('ask for sockets first'), len(told), out)
        tap.equal(links(place), {}, 'links')
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before)


# Asks for sockets of its namespace, and when that took too long of another's.
LATE = '''
import errno, struct, sys
sys.path.insert(1, sys.argv[1])
from rocade_engine import OP_NETNS, Engine, Failure
engine = Engine(sys.argv[2])
def ask(path, *again):
    status = again[0]
    while status in again:
        with open(path) as file:
            try:
                engine.call(OP_NETNS, struct.pack('=2I', 0, 0), [file.fileno()])
                status = 0
            except Failure as failure:
                status = failure.status
        if status != errno.EAGAIN:
            print(errno.errorcode.get(status, status), flush=True)
ask('/proc/self/ns/net', errno.EAGAIN)
ask(f'/proc/{sys.argv[3]}/ns/net', errno.EAGAIN, errno.ETIMEDOUT)
'''


@tap.test
def answers_that_come_late():
    """They are of their request: not of the next one, which may be of another namespace."""
    with Place(links=2) as place:
        before = place.descriptors()
        [maker] = place.children()
        os.kill(maker, signal.SIGSTOP)
        try:
            process = place.begin('a', PYTHON, '-c', LATE, ROCADE.parent, place.socket,
                                  place.pods['b'])
            for which in ('the first', 'one of another namespace'):
                tap.equal(process.stdout.readline(), 'ETIMEDOUT\n', which)
        finally:
            os.kill(maker, signal.SIGCONT)
        told = process.communicate(timeout=LIMIT)[0].split()
        tap.equal(told[-1:], ['EXDEV'], 'the end')
        tap.equal(set(told[:-1]) - {'ETIMEDOUT'}, set(), 'before it')
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before)


# Users ask for sockets, each once, who makes them does not answer, and they go.
PUSH = '''
import errno, os, socket, struct, sys
sys.path.insert(1, sys.argv[1])
from rocade_engine import OP_NETNS, Engine
own = open('/proc/self/ns/net', 'rb')
engines = []
for uid in range(65001, 65021):
    os.seteuid(uid)
    engines.append(Engine(sys.argv[2], 300))
    os.seteuid(0)
for engine in engines:
    socket.send_fds(engine.sock, [struct.pack('=IIiIII', OP_NETNS, 0, 0, 0, 0, 0)],
                    [own.fileno()])
for engine in engines:
    status = -struct.unpack_from('=IIi', engine.sock.recv(4096))[2]
    print(errno.errorcode.get(status, status))
'''


@tap.test
def who_goes_before_they_come():
    with Place(links=2) as place:
        before = place.descriptors()
        [maker] = place.children()
        os.kill(maker, signal.SIGSTOP)
        try:
            out = place.run('a', PYTHON, '-c', PUSH, ROCADE.parent, place.socket)
        finally:
            os.kill(maker, signal.SIGCONT)
        tap.equal(out.split(), 20 * ['ETIMEDOUT'], 'requests that were begun')
        place.guest('b', 'add', 'r0', *ADD)
        place.rocade('link', 'del', *links(place))
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before)


def has_ended(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return file.read().rpartition(')')[2].split()[0] == 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return True


@tap.test
def how_they_end():
    """A netdev that goes takes its link along, but for the operator's."""
    with Place(links=2) as place:
        before = place.descriptors()
        place.guest('a', 'add', 'r0', *ADD)
        place.guest('b', 'add', 'r0', *ADD)
        place.add('a2')
        # One pair of veth has both ends of a pod and of its other.
        subprocess.run(['nsenter', '-t', place.pods['a'], '-n', 'ip', 'link', 'del', 'eth0'],
                       check=True)
        tap.wait_until('the link to go', lambda: plain(place) == ['a2', 'r0'])
        # A namespace without a process lives by its sockets.
        os.kill(int(place.pods['b']), signal.SIGTERM)
        tap.wait_until('its end', lambda: has_ended(place.pods['b']))
        tap.equal(plain(place), ['a2', 'r0'], 'without a process')
        subprocess.run(['nsenter', '-t', place.pods['b2'], '-n', 'ip', 'link', 'del', 'eth0'],
                       check=True)
        tap.wait_until('the link to go', lambda: plain(place) == ['a2'])
        place.rocade('link', 'del', 'a2')
        tap.wait_until('descriptors closed', lambda: place.descriptors() == before)


@tap.test
def no_room_for_descriptors():
    """Of who makes sockets: whoever asks then is told so, and who asks later has a link."""
    with Place(links=2) as place:
        [maker] = place.children()
        limits = resource.prlimit(maker, resource.RLIMIT_NOFILE)
        last = max(map(int, os.listdir(f'/proc/{maker}/fd')))
        for room in (1, 3):   # for no descriptor of a namespace; for that, and not four sockets
            resource.prlimit(maker, resource.RLIMIT_NOFILE, (last + room, limits[1]))
            out = place.guest('a', 'add', 'r0', *ADD, status=1)
            tap.true(os.strerror(errno.EMFILE) in out, out)
        resource.prlimit(maker, resource.RLIMIT_NOFILE, limits)
        place.guest('a', 'add', 'r0', *ADD)
        tap.equal(plain(place), ['r0'], 'links')


@tap.test
def without_who_makes_sockets():
    """It ended: links can't be made, and the engine goes on."""
    with Place(links=2) as place:
        place.guest('a', 'add', 'r0', *ADD)
        for child in place.children():
            os.kill(child, signal.SIGKILL)
        out = place.guest('b', 'add', 'r0', *ADD, status=1)
        tap.true(os.strerror(errno.EPIPE) in out, out)
        tap.equal(place.devices('a'), {'r0'}, 'devices in a')
        place.guest('a', 'del', 'r0')
        tap.equal(place.devices(None), WIRE, 'devices outside')


if __name__ == '__main__':
    sys.exit(tap.run())
