# SPDX-License-Identifier: BSD-3-Clause
"""A connection to a running engine: its control socket, which is asked and answers in JSON. What
can be asked is the engine's business (lib/engine/rcd_admin.c)."""
import errno
import json
import os
import socket
import struct
import time

SOCKET = '/run/rocade/rocade.sock'

# The control protocol's greeting, and its one request for people (lib/ctrl/rcd_ctrl.h).
MAGIC, VERSION, ABI = 0x6c746352, 9, 2
OP_HELLO, OP_ADMIN, OP_SOCKETS, OP_NETNS = 0, 31, 59, 71
ADMIN_LEN = 1024
MESSAGE_MAX = 4096
TURN_SECONDS = 30   # until it is the turn of a client of another network namespace


class Failure(Exception):
    """Something to say to the user, without a trace."""

    status = 0   # of a request that the engine refuses: a number of errno


class Own(str):
    """The place of the user's own engine, found and not named: nobody else may answer there."""


def is_ours(sock):
    """Whether a connection leads to this user's engine or to root's: names may lead elsewhere."""
    size = struct.calcsize('3i')
    uid = struct.unpack('3i', sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1]
    return uid in (os.geteuid(), 0)


# Of what was asked for, only the answer can be of another form than we know.
STRANGE = (json.JSONDecodeError, UnicodeDecodeError, KeyError, AttributeError, TypeError,
           struct.error)
STRANGE_TEXT = 'the engine answers something else than this command knows: is it of another ' \
    'version?'
FOREIGN = 'netns: the engine does not go into this network namespace: it is of a user namespace ' \
    'that is neither its own nor of the user who started it'


class Engine:
    """A connection to a running engine."""

    def __init__(self, path, seconds=30):
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(seconds)
        try:
            self.greet()
        except BaseException:
            self.close()
            raise

    def greet(self):
        path = self.path
        try:
            self.sock.connect(path)
        except PermissionError:
            raise Failure(f'not allowed to use {path}: are you in its group?') from None
        except OSError:
            raise Failure(f'no engine answers on {path}: start one with "rocade up"') from None
        if isinstance(path, Own) and not is_ours(self.sock):
            raise Failure(f'{path} is of another user')
        self.call(OP_HELLO, struct.pack('=4I', MAGIC, VERSION, ABI, 0))

    def close(self):
        self.sock.close()

    def call(self, op, body, given=()):
        socket.send_fds(self.sock, [struct.pack('=IIiI', op, 0, 0, 0) + body], list(given))
        data, fds, _, _ = socket.recv_fds(self.sock, MESSAGE_MAX, 1)
        if len(data) < 16:
            raise Failure('the engine closed the connection')
        status = struct.unpack_from('=IIiI', data)[2]
        if op == OP_HELLO and len(data) >= 24:
            theirs = struct.unpack_from('=2I', data, 16)
            if theirs != (VERSION, ABI):
                raise Failure(f'the engine speaks version {theirs[0]}, ABI {theirs[1]}; this '
                              f'command speaks version {VERSION}, ABI {ABI}')
        if op == OP_ADMIN and status == -errno.EPERM:
            raise Failure('not allowed: root administers the engine, who started it, and whom its '
                          'configuration names (admin_user, admin_group); if it serves other '
                          'network namespaces, from its own alone; others make and delete links of '
                          'type udp for theirs, where netns_links lets them')
        if status:
            failure = Failure(os.strerror(-status))
            failure.status = -status
            raise failure
        return fds

    def call_in_turn(self, op, body, given=()):
        """As call(); again, where the engine says that it is others' turn."""
        end = time.monotonic() + TURN_SECONDS
        while True:
            try:
                return self.call(op, body, given)
            except Failure as failure:
                again = failure.status in (errno.EAGAIN, errno.ETIMEDOUT)
                if not again or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def give(self, fds):
        """Sockets of another network namespace, for the link that is added next."""
        try:
            self.call(OP_SOCKETS, struct.pack('=2I', 0, 0), fds)
        except Failure as failure:
            raise Failure(f'netns: the engine does not take sockets of it: {failure}') from None

    def ask_for_sockets(self):
        """Have it make sockets in this process's network namespace, for the link that is added
        next; unless that is its own, or it leaves such links to those who administer."""
        try:
            namespace = os.open('/proc/self/ns/net', os.O_RDONLY)
        except OSError as error:
            raise Failure(f'netns: {error.filename}: {error.strerror}') from None
        try:
            self.call_in_turn(OP_NETNS, struct.pack('=2I', 0, 0), [namespace])
        except Failure as failure:
            if failure.status in (errno.EALREADY, errno.EPERM):
                return
            if failure.status == errno.EACCES:
                raise Failure(FOREIGN) from None
            raise Failure('netns: the engine can not make sockets in this network namespace: '
                          f'{failure}') from None
        finally:
            os.close(namespace)

    def ask(self, op, **members):
        """The answer to a request; its members are texts."""
        request = json.dumps({'op': op, **members}, ensure_ascii=False).encode()
        if len(request) >= ADMIN_LEN:
            raise Failure('too long a command')
        fds = self.call_in_turn(OP_ADMIN, request.ljust(ADMIN_LEN, b'\0'))
        if not fds:
            raise Failure(STRANGE_TEXT)
        with os.fdopen(fds[0], encoding='utf-8') as file:
            file.seek(0)
            answer = json.load(file)
        if isinstance(answer, dict) and 'error' in answer:
            # One that takes words yet has read ours as one.
            if answer['error'].startswith('no such command: {'):
                raise Failure('the engine is of an older version than this command')
            raise Failure(answer['error'])
        return answer


def printable(text):
    """As a terminal may see it: a client chooses its own name."""
    return ''.join(char if char.isprintable() or char == '\n' else '?' for char in text)
