# SPDX-License-Identifier: BSD-3-Clause
"""Sockets of a network namespace, for a device that lives there. A socket stays in the namespace
that it was made in, so the engine, which may go nowhere, is handed some (lib/port/rcd_away.h)."""
import ctypes
import errno
import fcntl
import os
import pathlib
import re
import select
import signal
import socket
import sys

from rocade_engine import Failure

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
NS_GET_USERNS, NS_GET_NSTYPE = 0xb701, 0xb703
PR_SET_DUMPABLE = 4
NETLINK_ROUTE = 0
SO_NETNS_COOKIE, SO_SNDBUFFORCE, SO_RCVBUFFORCE = 71, 32, 33
ROOM = 8 << 20   # of a socket and direction, as the driver wants it
AWAY_FDS = 4   # of each message (lib/port/rcd_away.h)
SECONDS = 30     # until a namespace has handed over its next sockets


def path_of(name):
    """The file of a namespace: of a process, by its path, or as "ip netns" has it."""
    if re.fullmatch('[0-9]+', name):
        return f'/proc/{name}/ns/net'
    return name if '/' in name else f'/run/netns/{name}'


def open_file(name):
    """Of a namespace, and of nothing else that has such a name."""
    process = os.pidfd_open(int(name)) if re.fullmatch('[0-9]+', name) else -1
    target = os.open(path_of(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        kind = fcntl.ioctl(target, NS_GET_NSTYPE)
    except OSError:
        kind = None
    if kind != CLONE_NEWNET:
        raise Failure(f'netns: {name} is no network namespace')
    # Its number may have become another process' meanwhile.
    if process >= 0 and select.select([process], [], [], 0)[0]:
        raise Failure(f'netns: {name}: {os.strerror(errno.ESRCH)}')
    return target


def enter(name):
    """Be in that namespace from now on, by way of its user namespace if need be."""
    libc = ctypes.CDLL(None, use_errno=True)

    def join(fd, kind):
        if libc.setns(fd, kind):
            err = ctypes.get_errno()
            if err == errno.EINVAL and kind == CLONE_NEWNET:
                raise Failure(f'netns: {name} is no network namespace')
            raise OSError(err, os.strerror(err))

    # Who has rights in the user namespace could trace this process there, and take what it has.
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise Failure(f'prctl: {os.strerror(ctypes.get_errno())}')
    try:
        target = open_file(name)
        if os.path.samestat(os.fstat(target), os.stat('/proc/self/ns/net')):
            return
        try:
            join(target, CLONE_NEWNET)
        except PermissionError:
            try:
                join(fcntl.ioctl(target, NS_GET_USERNS), CLONE_NEWUSER)
            except OSError:
                raise Failure(f'netns: {name}: needs root, or the owner of its user '
                              'namespace') from None
            join(target, CLONE_NEWNET)
    except OSError as err:
        raise Failure(f'netns: {name}: {err.strerror}') from None


def apart(name, work):
    """Descriptors that some work sends from that namespace, where a child goes to do it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        # Whatever happens here, the program goes on in its parent alone.
        try:
            ours.close()
            enter(name)
            work(theirs)
        except BaseException as failure:
            theirs.send((str(failure) or type(failure).__name__).encode())
        finally:
            os._exit(0)
    theirs.close()
    ours.settimeout(SECONDS)
    try:
        while True:
            try:
                said, fds, _, _ = socket.recv_fds(ours, 4096, AWAY_FDS)
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                raise Failure(f'netns: {name} does not answer for {SECONDS} s') from None
            if said != b'four':
                if said:
                    raise Failure(said.decode())
                return
            yield fds
    finally:
        ours.close()
        os.waitpid(child, 0)


def udp(family):
    """A socket; of the other version of IP where the machine lacks this one."""
    other = socket.AF_INET if family == socket.AF_INET6 else socket.AF_INET6
    try:
        made = socket.socket(family, socket.SOCK_DGRAM)
    except OSError as err:
        if err.errno != errno.EAFNOSUPPORT:
            raise
        made = socket.socket(other, socket.SOCK_DGRAM)
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        try:
            made.setsockopt(socket.SOL_SOCKET, option, ROOM)
        except PermissionError:
            pass  # as much as anybody may have: the engine asks for that
    return made


def pair():
    return [udp(socket.AF_INET), udp(socket.AF_INET6)]


def sockets(name, queues):
    """By fours, for an engine with so many lcores. The caller closes them."""

    def work(out):
        first = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE) for _ in '12']
        for four in (first + pair(), *(pair() + pair() for _ in range(queues))):
            socket.send_fds(out, [b'four'], [sock.fileno() for sock in four])

    return apart(name, work)


def cookie(name):
    """The kernel's number of a namespace: no other ever has it."""

    def work(out):
        with socket.socket(socket.AF_UNIX) as sock:
            socket.send_fds(out, [b'four'], [sock.fileno()])

    for fds in apart(name, work):
        with socket.socket(fileno=fds[0]) as sock:
            return int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8),
                                  sys.byteorder)
    return 0


def known():
    """Names that "ip netns" has."""
    folder = pathlib.Path('/run/netns')
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
