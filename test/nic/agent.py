#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Commands for a guest of the lab: served there, called from here. What a command prints and how it
ends are as if it ran here; who hangs up ends it.

    agent.py serve ADDRESS
    agent.py call ADDRESS SECONDS COMMAND        124: it took longer; 125: nobody answers

An answer is made of frames: a letter (o, e: output; x: status), four bytes of length, as many
bytes. Standard library only.
"""
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

PORT = 7701
HEAD = struct.Struct('>cI')


def answer(connection):
    """One command, from its line to its status."""
    with connection, connection.makefile('rb') as lines:
        asked = json.loads(lines.readline())
        process = subprocess.Popen(['bash', '-c', asked['command']], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            pass_on(connection, process)
            data = struct.pack('>i', process.wait())
            connection.sendall(HEAD.pack(b'x', len(data)) + data)
        except OSError:
            # What it left in the background on purpose, as a daemon, has a session of its own.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def pass_on(connection, process):
    """Until both outputs end, or the caller does."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        for letter, pipe in ((b'o', process.stdout), (b'e', process.stderr)):
            selector.register(pipe, selectors.EVENT_READ, letter)
        while len(selector.get_map()) > 1:
            for key, _ in selector.select():
                if key.data is None:
                    if not connection.recv(1):
                        raise ConnectionResetError
                    continue
                data = os.read(key.fd, 65536)
                if data:
                    connection.sendall(HEAD.pack(key.data, len(data)) + data)
                else:
                    selector.unregister(key.fileobj)


def serve(address):
    with socket.create_server((address, PORT)) as server:
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def take(connection, count, deadline):
    data = b''
    while len(data) < count:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionResetError('the guest hung up')
        data += more
    return data


def call(address, seconds, command):
    deadline = time.monotonic() + seconds
    try:
        with socket.create_connection((address, PORT), 10) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(json.dumps({'command': command}).encode() + b'\n')
            while True:
                letter, size = HEAD.unpack(take(connection, HEAD.size, deadline))
                data = take(connection, size, deadline)
                if letter == b'x':
                    status = struct.unpack('>i', data)[0]
                    return status if status >= 0 else 128 - status
                out = sys.stdout if letter == b'o' else sys.stderr
                out.buffer.write(data)
                out.buffer.flush()
    except TimeoutError:
        print(f'no end within {seconds} seconds: {command}', file=sys.stderr)
        return 124 if time.monotonic() >= deadline else 125
    except OSError as err:
        print(f'{address}: {err}', file=sys.stderr)
        return 125


if __name__ == '__main__':
    if sys.argv[1] == 'serve':
        serve(sys.argv[2])
    sys.exit(call(sys.argv[2], float(sys.argv[3]), sys.argv[4]))
