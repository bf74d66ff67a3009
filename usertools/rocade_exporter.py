# SPDX-License-Identifier: BSD-3-Clause
"""rocade exporter: the metrics of rocade_metrics.py by HTTP. One thread; each request gets one
answer. Connections, their bytes and their time are limited, and the engine is asked once a second
at most, whoever asks how often."""
import contextlib
import os
import re
import selectors
import signal
import socket
import stat
import sys
import time

import rocade_metrics as metrics
from rocade_engine import Failure

CONNECTIONS_MOST = 64
REQUEST_BYTES = 8192
# Of what comes behind a request: read, so that the answer is not lost with it, and dropped.
REST_BYTES = 65536
SECONDS = 5
FRESH_SECONDS = 1

PAGE = '<!DOCTYPE html><title>Rocade</title><p>Rocade: <a href="/metrics">metrics</a>\n'


def qualities(accept):
    """Of an Accept header: {media type: weight}."""
    found = {}
    for part in accept.split(','):
        kind, *params = (word.strip().lower() for word in part.split(';'))
        weight = 1.0
        for param in params:
            match = re.fullmatch(r'q=([01](?:\.\d{0,3})?)', param)
            if match:
                weight = float(match.group(1))
        found[kind] = max(weight, found.get(kind, 0))
    return found


def wants_openmetrics(accept):
    """Whether who asks would have that rather than the older text."""
    weights = qualities(accept)
    ours = weights.get('application/openmetrics-text', 0)
    return ours > 0 and ours >= max(weights.get(kind, 0)
                                    for kind in ('text/plain', 'text/*', '*/*'))


class Source:
    """The metrics, asked for when they are wanted and no longer fresh."""

    def __init__(self, path):
        self.path = path
        self.until = 0
        self.families, self.trouble = None, None

    def text(self, openmetrics):
        if time.monotonic() >= self.until:
            families, trouble = metrics.collect(self.path)
            # Once for each change: a log is no place for what is asked every few seconds.
            if trouble != (self.trouble or ''):
                print(f'rocade: {trouble or "the engine answers again"}', file=sys.stderr,
                      flush=True)
            self.families, self.trouble = families, trouble
            self.until = time.monotonic() + FRESH_SECONDS
        return metrics.render(self.families, openmetrics)


def answer(request, source):
    """The answer to the head of a request, as bytes."""
    lines = request.decode('latin-1').splitlines()
    words = lines[0].split(' ') if lines else []
    if len(words) != 3 or not words[2].startswith('HTTP/1.'):
        return reply('400 Bad Request', 'this is not a request of HTTP/1\n')
    if words[0] not in ('GET', 'HEAD'):
        return reply('405 Method Not Allowed', 'GET or HEAD\n', more='Allow: GET, HEAD\r\n')
    head = words[0] == 'HEAD'
    path = words[1].split('?')[0]
    if path == '/':
        return reply('200 OK', PAGE, 'text/html; charset=utf-8', head)
    if path != '/metrics':
        return reply('404 Not Found', 'the metrics are at /metrics\n', head=head)
    accept = ','.join(line.split(':', 1)[1] for line in lines[1:]
                      if line.lower().startswith('accept:'))
    openmetrics = wants_openmetrics(accept)
    return reply('200 OK', source.text(openmetrics),
                 metrics.OPENMETRICS if openmetrics else metrics.TEXT, head, 'Vary: Accept\r\n')


def reply(status, text, kind='text/plain; charset=utf-8', head=False, more=''):
    body = text.encode()
    return (f'HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n'
            f'Connection: close\r\n{more}\r\n').encode() + (b'' if head else body)


class Connection:
    """A request, then its answer, then the end of what the other side sends."""

    def __init__(self, sock):
        sock.setblocking(False)
        self.sock = sock
        self.request = bytearray()
        self.out = None
        self.rest = 0
        self.until = time.monotonic() + SECONDS

    def ready(self, source):
        """Go on. Returns what to wait for; None: it is over."""
        if self.out:
            return self.write()
        data = self.sock.recv(4096)
        if not data:
            return None
        if self.out is not None:
            self.rest += len(data)
            return selectors.EVENT_READ if self.rest < REST_BYTES else None
        self.request += data
        end = re.search(rb'\r?\n\r?\n', self.request)
        if end is not None and end.start() <= REQUEST_BYTES:
            self.out = memoryview(answer(bytes(self.request[:end.start()]), source))
        elif len(self.request) > REQUEST_BYTES:
            self.out = memoryview(reply('431 Request Header Fields Too Large',
                                        f'at most {REQUEST_BYTES} bytes\n'))
        else:
            return selectors.EVENT_READ
        self.request.clear()
        self.until = time.monotonic() + SECONDS
        return self.write()

    def write(self):
        with contextlib.suppress(BlockingIOError):
            self.out = self.out[self.sock.send(self.out):]
        if self.out:
            return selectors.EVENT_WRITE
        self.sock.shutdown(socket.SHUT_WR)
        return selectors.EVENT_READ


class Server:
    """The connections to a listening socket, the oldest first."""

    def __init__(self, listener, source):
        self.listener, self.source = listener, source
        self.selector = selectors.DefaultSelector()
        self.connections = {}
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ)

    def drop(self, connection):
        del self.connections[connection]
        self.selector.unregister(connection.sock)
        connection.sock.close()

    def accept(self):
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return  # gone again
        # Who says nothing gives way to who comes.
        if len(self.connections) >= CONNECTIONS_MOST:
            self.drop(next(iter(self.connections)))
        connection = Connection(sock)
        self.connections[connection] = None
        self.selector.register(sock, selectors.EVENT_READ, connection)

    def go_on(self, connection):
        try:
            events = connection.ready(self.source)
        except BlockingIOError:
            return
        except OSError:
            events = None
        if events is None:
            self.drop(connection)
        else:
            self.selector.modify(connection.sock, events, connection)

    def step(self):
        """Wait for something, and do it."""
        until = min((each.until for each in self.connections), default=None)
        left = None if until is None else max(until - time.monotonic(), 0)
        for key, _ in self.selector.select(left):
            if key.data is None:
                self.accept()
            elif key.data in self.connections:
                self.go_on(key.data)
        # Behind that: who has asked in time is answered, also when we come late.
        now = time.monotonic()
        for connection in [each for each in self.connections if each.until <= now]:
            self.drop(connection)


def listen_unix(path):
    """A socket in the file system. What an exporter before left there is replaced."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise Failure(f'{path} is there, and no socket')
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            try:
                probe.connect(path)
                raise Failure(f'somebody listens on {path} already')
            except (ConnectionRefusedError, FileNotFoundError):
                os.unlink(path)
    sock = socket.socket(socket.AF_UNIX)
    old = os.umask(0o117)
    try:
        sock.bind(path)
    finally:
        os.umask(old)
    sock.listen(CONNECTIONS_MOST)
    return sock, f'unix:{path}'


def listen(where):
    """The socket that --listen names, and how to say where it is."""
    if where.startswith('unix:'):
        return listen_unix(where.removeprefix('unix:'))
    match = re.fullmatch(r'(\[[0-9a-fA-F:.]+\]|[^\[\]:]+):(\d{1,5})', where)
    if match is None or int(match.group(2)) > 65535:
        raise Failure(f'--listen ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH, and not {where}')
    host, port = match.group(1).strip('[]'), int(match.group(2))
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as err:
        raise Failure(f'{host}: {err.strerror}') from None
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(address)
    sock.listen(CONNECTIONS_MOST)
    return sock, f'http://{match.group(1)}:{sock.getsockname()[1]}/metrics'


def end(_signal, _frame):
    sys.exit(0)


def exporter(args):
    source = Source(args.socket)
    if args.once:
        print(source.text(False), end='')
        return 1 if source.trouble else 0
    signal.signal(signal.SIGTERM, end)
    try:
        sock, where = listen(args.listen)
    except OSError as err:
        raise Failure(f'{args.listen}: {err.strerror}') from None
    print(f'rocade: metrics at {where}', flush=True)
    server = Server(sock, source)
    try:
        while True:
            server.step()
    finally:
        if where.startswith('unix:'):
            os.unlink(where.removeprefix('unix:'))
