#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the engine is heard, and hears, by a port whose driver filters VLANs or multicast groups,
asked for or not, with room for all of them or not.

Method: net_impair has such filters before a port (nic_node.py); programs and the kernel tell what
they hear of it (nic_heard.py).

    test_filters.py ROCADED PAIR LISTEN
"""
import json
import pathlib
import select
import struct
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from netns import pair, run  # noqa: E402
from nic_heard import GROUP, GROUP6, NOBODYS, Listener, hear_tag, inside, ping, send_and_see, \
    send_frames, tags_of_the_kernels, talk_in_a_vlan  # noqa: E402
from nic_node import OWN, OWN6, leave, on  # noqa: E402

# Who hears everything hears tags, too.
FILTERS = 'vlans=8,groups=64,promiscuous=0'


def a_filter_of_tags(there):
    """It lets those in that addresses of the engine have, from the beginning and later; also when
    the port was set up anew."""
    talk_in_a_vlan(there)
    there.impair('reset=1')
    tap.wait_until('the reset', lambda: 'asks for a reset' in there.log())
    pair(there.engine, 'r0', there.peer, 'peer', '4')
    there.engine.admin('link', 'del', 'r0')
    there.engine.admin('link', 'add', 'r0', 'type', 'port', there.port, 'mtu', '1500', 'impair',
                       FILTERS, 'address', '192.168.5.1/24@5')
    pair(there.engine, 'r0', there.peer, 'peer', '4')
    # What no address has does not come at all.
    there.engine.admin('addr', 'del', '192.168.5.1/24@5', 'dev', 'r0')
    before = there.counter('rx_other_ethertype')
    tagged = b'\xff' * 6 + bytes.fromhex('020000000077' '81000005' '88b5') + bytes(1000)
    send_and_see(there, *[tagged] * 100, tagged[:12] + tagged[16:])
    tap.true(0 < there.counter('rx_other_ethertype') - before < 50, 'frames of a VLAN that went')


def let_in(there, *tags):
    """Those of some VLANs whose frames come: questions for an address that is in none of them are
    counted."""
    found = []
    for tag in tags:
        before = there.counter('rx_drop_vlan')
        send_and_see(there, b'\xff' * 6 + bytes.fromhex('020000000077') + struct.pack(
            '>HH', 0x8100, tag) + bytes.fromhex('0806' '0001080006040001' '020000000077' 'c0a80107')
            + bytes(6) + bytes([192, 168, 1, 1]) + bytes(20))
        found += [tag] if there.counter('rx_drop_vlan') > before else []
    return found


def has_vlan(there, verb, tag):
    there.engine.admin('addr', verb, f'192.168.{tag}.1/24@{tag}', 'dev', 'r0')


def a_filter_without_room(off):
    """It has what it took, or is switched off; who goes makes room, and leaves nothing behind."""
    def test(there):
        for tag in (5, 6):
            has_vlan(there, 'add', tag)
        tap.equal(let_in(there, 5, 6, 7), [5, 6], 'with room')
        has_vlan(there, 'add', 7)
        tap.true("the port's filter does not take VLAN 7" in there.log(), 'log')
        tap.equal(let_in(there, 5, 6, 7, 8), [5, 6, 7, 8] if off else [5, 6], 'without')
        for version in '46':
            pair(there.engine, 'r0', there.peer, 'peer', version)
        has_vlan(there, 'del', 5)
        tap.equal(let_in(there, 5, 6, 7, 8), [6, 7], 'with room again')
        for address in (OWN, OWN6):
            ping(there.b, address)
    return test


for off, name in ((0, ''), (1, '_that_can_be_switched_off')):
    tap.add(f'a_filter_without_room{name}',
            on(f'vlans=2,vlans_off={off},groups=64,promiscuous=0', a_filter_without_room(off),
               kernel=False))
tap.add('a_filter_of_tags', on(FILTERS, a_filter_of_tags, kernel=False))


def comes_to_the_kernel(there, tag):
    """Whether a frame of a VLAN does, before one without that follows it."""
    mark = f'mark of {tag} '.encode()
    macs = bytes.fromhex(there.link()['mac'].replace(':', '') + '020000000002')
    with hear_tag(there.a, 'r0k', mark) as listener:
        tap.equal(listener.stdout.readline(), 'ready\n', tag)
        for between in (struct.pack('>HH', 0x8100, tag), b''):
            send_frames(there.b, 'vb', macs + between + b'\x88\xb5' + bytes(70) + mark)
        return f'tag {tag} ' in listener.stdout.readline()


def set_up_anew(there):
    there.impair('reset=1')
    tap.wait_until('the reset', lambda: 'asks for a reset' in there.log())
    there.traffic()


def a_filter_that_is_on_unasked(there):
    """The kernel's VLANs are not the engine's to know: all are let in."""
    tags_of_the_kernels(there)
    set_up_anew(there)
    tap.true(comes_to_the_kernel(there, 9), 'after a reset')


NEWLINK, LINK, LINKINFO = 16, 5, 18


def attribute(kind, data):
    return struct.pack('HH', 4 + len(data), kind) + data + bytes(-len(data) % 4)


def somebody_says(there, tag):
    """That there is a netdev of a VLAN, to all who listen, as the kernel would (rtnetlink(7))."""
    index = json.loads(run('ip', '-n', there.a, '-j', 'link', 'show', 'r0k'))[0]['ifindex']
    body = struct.pack('BxHiII', 0, 1, 9999, 0, 0) + attribute(LINK, struct.pack('I', index))
    body += attribute(LINKINFO, attribute(1, b'vlan\0') + attribute(2, attribute(
        1, struct.pack('H', tag)) + attribute(5, struct.pack('>H', 0x8100))))
    message = struct.pack('IHHII', 16 + len(body), NEWLINK, 0, 0, 0) + body
    run('ip', 'netns', 'exec', there.a, sys.executable, '-c', textwrap.dedent(f'''
        import socket
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        sock.sendto(bytes.fromhex('{message.hex()}'), (0, 1))  # RTMGRP_LINK
        '''))


def a_filter_that_stays_on(there):
    """It is told the VLANs that the kernel has netdevs of, by the kernel and by nobody else."""
    tap.true(not comes_to_the_kernel(there, 5), 'a VLAN that nobody has')
    somebody_says(there, 5)
    # What the kernel says behind that was heard.
    run('ip', '-n', there.a, 'addr', 'add', '192.168.77.1/24', 'dev', 'r0k')
    tap.wait_until('an address', lambda: '192.168.77.1' in there.engine.admin('-d', 'link'))
    tap.true(not comes_to_the_kernel(there, 5), 'a VLAN that somebody told of')
    set_up_anew(there)
    tap.true(not comes_to_the_kernel(there, 5), 'after a reset')


def a_filter_and_netdevs(there):
    try:
        run('ip', '-n', there.a, 'link', 'add', 'link', 'r0k', 'name', 'r0k.5', 'type', 'vlan',
            'id', '5')
    except AssertionError as err:
        tap.true('Unknown device type' in str(err), err)
        raise tap.Skip('the kernel has no netdevs of VLANs') from None
    tap.wait_until('VLAN 5', lambda: comes_to_the_kernel(there, 5))
    tap.true(not comes_to_the_kernel(there, 6), 'a VLAN that nobody has')
    run('ip', '-n', there.a, 'link', 'del', 'r0k.5')
    tap.wait_until('no VLAN 5', lambda: not comes_to_the_kernel(there, 5))


tap.add('a_filter_that_is_on_unasked',
        on(f'{FILTERS},vlans_off=1', a_filter_that_is_on_unasked))
tap.add('a_filter_that_stays_on', on(FILTERS, a_filter_that_stays_on))
tap.add('a_filter_and_netdevs', on(FILTERS, a_filter_and_netdevs))


# A filter of multicast groups.

def kernel_hears(space, dev, group, port):
    return inside(space, f'''
        import socket, struct
        v4 = '.' in '{group}'
        sock = socket.socket(socket.AF_INET if v4 else socket.AF_INET6, socket.SOCK_DGRAM)
        sock.bind(('', {port}))
        index = socket.if_nametoindex('{dev}')
        if v4:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                            socket.inet_aton('{group}') + struct.pack('4si', bytes(4), index))
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                            socket.inet_pton(socket.AF_INET6, '{group}') + struct.pack('i', index))
        sock.settimeout({tap.PATIENCE})
        print('ready', flush=True)
        while True:
            print(sock.recv(64).decode(), flush=True)
        ''')


def kernel_says(space, dev, group, port, what):
    run('ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
        import socket, struct
        v4 = '.' in '{group}'
        sock = socket.socket(socket.AF_INET if v4 else socket.AF_INET6, socket.SOCK_DGRAM)
        index = socket.if_nametoindex('{dev}')
        if v4:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                            struct.pack('4s4si', bytes(4), bytes(4), index))
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sock.sendto({what!r}, ('{group}', {port}))
        '''))


def kernel_groups(there, port):
    """Those that sockets have joined are heard, when the port is told: within a second or so."""
    for group in (GROUP, GROUP6):
        with kernel_hears(there.a, 'r0k', group, port) as listener:
            tap.equal(listener.stdout.readline(), 'ready\n', group)

            def heard(listener=listener, group=group):
                kernel_says(there.b, 'vb', group, port, b'hello')
                return select.select([listener.stdout], [], [], 0.2)[0]
            tap.wait_until(f'{group} to be heard', heard)
            said = listener.stdout.readline()
            listener.kill()
            tap.equal(said, 'hello\n', group)


def groups_are_told(there):
    tap.equal(there.link()['multicast'], 'listed', 'how groups are heard')
    # Neighbours of IPv6 are asked for by groups.
    for address in (OWN, OWN6):
        ping(there.b, address)
    there.traffic()
    kernel_groups(there, 4001)
    # What nobody listens to does not come: the kernel would get it otherwise.
    before = there.counter('to_kernel')
    send_and_see(there, *[bytes.fromhex('01005e090909020000000002' '88b5') + bytes(50)] * 100)
    tap.true(there.counter('to_kernel') - before < 50, 'groups that nobody has joined')
    # A port that is stopped, or reset, forgets them.
    run('ip', '-n', there.a, 'link', 'set', 'r0k', 'mtu', '1400')
    tap.wait_until('the MTU', lambda: there.link()['mtu'] == 1400)
    run('ip', '-n', there.b, 'neigh', 'flush', 'dev', 'vb')
    ping(there.b, OWN6)
    there.impair('reset=1')
    tap.wait_until('the reset', lambda: 'asks for a reset' in there.log())
    run('ip', '-n', there.b, 'neigh', 'flush', 'dev', 'vb')
    ping(there.b, OWN6)


def roce_groups(there):
    """Joined by programs, here and at the other end; of either version."""
    for version, group in (('4', GROUP), ('6', GROUP6)):
        with Listener(there.engine, 'r0', 2, version, group) as here:
            with Listener(there.peer, 'peer', 1, version) as other:
                other.send(group, 100)
                here.expect('datagram 0 100', 'datagram 1 100')
                with Listener(there.engine, 'r0', 1, version, NOBODYS) as late:
                    other.send(NOBODYS if version == '4' else group, 200)
                    if version == '4':
                        late.expect('datagram 0 200')
                    else:
                        here.expect('datagram 0 200', 'datagram 1 200')
                        tap.true(late.said.empty(), 'a group that it has not joined')


def groups_of_ours(there):
    tap.equal(there.link()['multicast'], 'listed', 'how groups are heard')
    for address in (OWN, OWN6):
        ping(there.b, address)
    there.engine.admin('addr', 'add', 'fd01::77/64', 'dev', 'r0')
    ping(there.b, 'fd01::77')
    for version in '46':
        pair(there.engine, 'r0', there.peer, 'peer', version)
    roce_groups(there)


def groups_that_are_too_many(there):
    """All is heard then; and when there is room again no more than is asked for."""
    tap.wait_until('the list', lambda: there.link()['multicast'] == 'listed')
    with Listener(there.engine, 'r0', 1, '4', *(f'239.7.7.{number}' for number in range(8))):
        tap.equal(there.link()['multicast'], 'promiscuous', 'with too many')
        for address in (OWN, OWN6):
            ping(there.b, address)
    tap.wait_until('the list', lambda: there.link()['multicast'] == 'listed')
    roce_groups(there)


def groups_without_a_way(there):
    """The port has no room and can't hear all: what it hears it goes on to hear, it is known how
    much is missing, and what goes makes room."""
    def unheard():
        return there.link()['multicast_unheard']

    first, late = ([f'239.{number}.7.{k}' for k in range(4)] for number in (7, 1))
    with Listener(there.peer, 'peer', 1, '4') as other:
        # Four are the port's own.
        with Listener(there.engine, 'r0', 1, '4', *first) as early:
            tap.equal(unheard(), 0, 'with room for all')
            with Listener(there.engine, 'r0', 1, '4', *late) as others:
                tap.wait_until('the count', lambda: unheard() == 4)
                tap.equal(there.link()['multicast'], 'listed', 'with too many')
                tap.equal(there.log().count('no room for more groups'), 1, 'log')
                for group in first:
                    other.send(group, 100)
                    early.expect('datagram 0 100')
                early.__exit__()
                tap.wait_until('room', lambda: unheard() == 0)
                for group in late:
                    other.send(group, 200)
                    others.expect('datagram 0 200')
        ping(there.b, OWN6)


def groups_beyond_any_list(there):
    """As many as a user may join, and MACs that come first in any order: they take nothing from
    who is heard."""
    first = [f'239.127.7.{k}' for k in range(4)]
    many = [f'239.1.{k // 256}.{k % 256}' for k in range(508)]
    with Listener(there.peer, 'peer', 1, '4') as other, \
            Listener(there.engine, 'r0', 1, '4', *first) as early, \
            Listener(there.engine, 'r0', 1, '4', *many):
        tap.wait_until('the count', lambda: there.link()['multicast_unheard'] == 508)
        for group in first:
            other.send(group, 100)
            early.expect('datagram 0 100')


def all_groups(there):
    """Wanted by the netdev's owner, who has that told, or by a socket, of which nobody is told."""
    wants_all = """
        import socket, struct, sys
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.setsockopt(263, 1, struct.pack('iHH8s', socket.if_nametoindex('r0k'), 2, 0, b''))
        print('ready', flush=True)
        sys.stdin.read()
        """
    def hears(how):
        tap.wait_until(how, lambda: there.link()['multicast'] == how)
        mark = b'to whom it may concern'
        with hear_tag(there.a, 'r0k', mark) as listener:
            tap.equal(listener.stdout.readline(), 'ready\n', how)
            for what in (bytes.fromhex('01005e090909'), b'\xff' * 6):
                send_frames(there.b, 'vb', what + bytes.fromhex('020000000002' '88b5') + mark +
                           bytes(what[0] + 60))
            length = int(listener.stdout.readline().split()[2])
            tap.equal(length < 200, how == 'promiscuous', 'a group that nobody has joined comes')

    hears('listed')
    for _ in range(2):
        run('ip', '-n', there.a, 'link', 'set', 'r0k', 'allmulticast', 'on')
        hears('promiscuous')
        run('ip', '-n', there.a, 'link', 'set', 'r0k', 'allmulticast', 'off')
        hears('listed')
    with inside(there.a, wants_all, stdin=subprocess.PIPE) as program:
        tap.equal(program.stdout.readline(), 'ready\n', 'a socket')
        hears('promiscuous')
        program.stdin.close()
    hears('listed')


tap.add('groups_are_told', on('groups=64,promiscuous=0,busy=1', groups_are_told))
tap.add('groups_of_programs', on('groups=64,promiscuous=0', roce_groups))
tap.add('groups_of_ours', on('groups=64,promiscuous=0', groups_of_ours, kernel=False))
tap.add('groups_that_are_too_many', on('groups=8', groups_that_are_too_many, kernel=False))
tap.add('all_groups', on('groups=64', all_groups))
tap.add('groups_without_a_way',
        on('groups=8,promiscuous=0', groups_without_a_way, kernel=False))
tap.add('groups_beyond_any_list',
        on('groups=8,promiscuous=0', groups_beyond_any_list, kernel=False))
tap.add('the_engines_end_well', leave)

if __name__ == '__main__':
    sys.exit(tap.run())
