#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: rocade exporter tells all counters as Prometheus wants them, and nobody who asks strangely
makes it grow, hang or fall.

Method: an exporter beside an engine of its own. What it says is read by the parsers of Prometheus'
own Python client and by promtool, and compared with the list of counters in the sources; then
sockets that are used as no client would.

    test_exporter.py ROCADED [PROMTOOL]
"""
import contextlib
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'usertools'))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
sys.dont_write_bytecode = True
import alone  # noqa: E402
import rocade_exporter  # noqa: E402
import rocade_metrics as metrics  # noqa: E402
import tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = tap.PATIENCE


class Exporter:
    """An exporter for an engine, at a port that was free."""

    def __init__(self, engine, listen='127.0.0.1:0'):
        self.errors = open(f'{engine.folder}/exporter.err', 'w+', encoding='utf-8')
        self.process = subprocess.Popen(
            [alone.ROCADE, 'exporter', '--listen', listen], env=engine.env, text=True,
            stdout=subprocess.PIPE, stderr=self.errors)
        self.said = self.process.stdout.readline()
        found = re.search(r'http://127\.0\.0\.1:(\d+)/metrics$', self.said)
        self.port = int(found.group(1)) if found else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def connect(self):
        return socket.create_connection(('127.0.0.1', self.port), LIMIT)

    def get(self, accept='*/*', path='/metrics', method='GET'):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=LIMIT)
        with contextlib.closing(connection):
            connection.request(method, path, headers={'Accept': accept})
            answer = connection.getresponse()
            return answer.status, answer.headers['Content-Type'], answer.read().decode()

    def end(self):
        """By a signal, as systemd does it. Returns what it said on stderr."""
        self.process.send_signal(signal.SIGTERM)
        tap.equal(self.process.wait(LIMIT), 0, 'status')
        self.errors.seek(0)
        return self.errors.read()


@contextlib.contextmanager
def both():
    engine = alone.shared()
    with Exporter(engine) as exporter:
        yield engine, exporter


def counter_list():
    """The counters of the sources: (name, unit, description)."""
    text = (ROOT / 'lib/base/rcd_counter.def').read_text(encoding='utf-8')
    found = re.findall(r'^RCD_COUNTER\(\w+, (\w+), (\w+), "([^"]+)"\)', text, re.M)
    tap.true(len(found) > 100, found)
    return found


def parsed(parser, text):
    """Families by name."""
    families = list(parser(text))
    tap.equal(len({family.name for family in families}), len(families), 'families, each once')
    return {family.name: family for family in families}


@tap.test
def all_counters():
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parser
    except ImportError:
        raise tap.Skip('no python3-prometheus-client here') from None
    with both() as (engine, exporter):
        status, kind, text = exporter.get('application/openmetrics-text;version=1.0.0')
        tap.equal((status, kind), (200, metrics.OPENMETRICS), 'answer')
        tap.true(text.endswith('\n# EOF\n'), text[-100:])
        families = parsed(parser, text)
        shown = {link['ifname']: link['counters'] for link in engine.ask('statistic')}
        for name, unit, description in counter_list():
            family = families[metrics.counter_family(name, unit, '').name]
            base, scale = metrics.base_unit(unit)
            tap.equal((family.type, family.unit, family.documentation),
                      ('counter', base, description), name)
            found = {sample.labels['device']: sample.value for sample in family.samples
                     if 'device' in sample.labels}
            tap.equal(set(found), {'roce0', 'roce1'}, name)
            tap.true(all(sample.name == f'{family.name}_total' for sample in family.samples),
                     family.samples)
            # ARP and the like go on.
            tap.true(all(value <= shown[link][name] * scale + 1e-6
                         for link, value in found.items()), name)
        for name, labels in (('rocade_lcore_polls', {'lcore'}), ('rocade_link_up', {
                'device', 'type'}), ('rocade_user_quota_used', {'uid', 'resource'}), (
                'rocade_quota_limit', {'resource'}), ('rocade_up', set())):
            tap.true(families[name].samples, f'{name} has no sample')
            for sample in families[name].samples:
                tap.equal(set(sample.labels), labels, name)
        tap.equal(families['rocade_up'].samples[0].value, 1, 'up')
        uids = {sample.labels['uid'] for sample in families['rocade_user_clients'].samples}
        tap.equal(uids, {str(os.getuid())}, 'users')


@tap.test
def older_text():
    try:
        from prometheus_client.parser import text_string_to_metric_families as parser
    except ImportError:
        raise tap.Skip('no python3-prometheus-client here') from None
    with both() as (_, exporter):
        status, kind, text = exporter.get('text/plain')
        tap.equal((status, kind), (200, metrics.TEXT), 'answer')
        tap.true('# EOF' not in text and '# UNIT' not in text, 'marks of OpenMetrics')
        families = parsed(parser, text)
        for name, unit, _ in counter_list():
            family = families[metrics.counter_family(name, unit, '').name]
            tap.equal(family.type, 'counter', name)
        tap.equal(families['rocade_lcore_polls'].type, 'counter', 'polls')


@tap.test
def promtool():
    program = shutil.which(sys.argv[2] if len(sys.argv) > 2 else 'promtool')
    if program is None:
        raise tap.Skip('no promtool here')
    with alone.Alone() as engine:
        texts = [engine.rocade('exporter', '--once').stdout]
        engine.rocade('down')
        done = engine.rocade('exporter', '--once', check=False)
        tap.equal(done.returncode, 1, 'without an engine')
        texts.append(done.stdout)
    for text in texts:
        done = subprocess.run([program, 'check', 'metrics'], input=text, capture_output=True,
                              text=True, timeout=LIMIT, check=False)
        tap.equal((done.returncode, done.stdout + done.stderr), (0, ''), 'promtool')
    tap.true('\nrocade_up 0\n' in texts[1], texts[1])


@tap.test
def formats_are_chosen():
    for accept, openmetrics in (
            ('', False), ('*/*', False), ('text/plain', False), ('text/html, */*;q=0.1', False),
            ('application/openmetrics-text', True), ('application/openmetrics-text;q=0', False),
            ('application/openmetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1', True),
            ('application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;'
             'version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2', True),
            ('Application/OpenMetrics-Text; Q=1', True),
            ('application/openmetrics-text;q=0.2,text/plain', False), (';;,q=,=', False)):
        tap.equal(rocade_exporter.wants_openmetrics(accept), openmetrics, accept)
    text = metrics.render([metrics.Family('a', 'gauge', 'b "c" \\').add(1, d='e"f\\g\nh'),
                           metrics.Family('nothing', 'gauge', 'no samples')], True)
    tap.equal(text, '# TYPE a gauge\n# HELP a b \\"c\\" \\\\\na{d="e\\"f\\\\g\\nh"} 1\n# EOF\n',
              'what has to be escaped')


@tap.test
def engine_goes_and_comes():
    with alone.Alone() as engine, Exporter(engine) as exporter:
        def up():
            status, _, text = exporter.get()
            tap.equal(status, 200, text)
            return re.search(r'^rocade_up (.*)$', text, re.M).group(1)
        tap.equal(up(), '1', 'up')
        engine.rocade('down')
        tap.wait_until('still up', lambda: up() == '0')
        engine.up()
        tap.wait_until('not up again', lambda: up() == '1')
        lines = exporter.end().splitlines()
        tap.true('no engine answers' in lines[0] and 'answers again' in lines[-1], lines)


@tap.test
def other_requests():
    with both() as (_, exporter):
        tap.equal(exporter.get(method='HEAD')[::2], (200, ''), 'HEAD')
        tap.true('"/metrics"' in exporter.get(path='/')[2], 'page')
        tap.equal(exporter.get(path='/metrics?x=1')[0], 200, 'query')
        tap.equal(exporter.get(path='/../etc/passwd')[0], 404, 'path')
        tap.equal(exporter.get(method='POST')[0], 405, 'method')
        for request, status in ((b'hello\r\n\r\n', b'400'),
                                (b'GET /metrics HTTP/2\r\n\r\n', b'400'),
                                (b'\r\n\r\n', b'400'), (b'\0\xff \n\n', b'400'),
                                (b'GET /metrics HTTP/1.0\n\n', b'200'),
                                (b'GET /' + b'x' * 9000, b'431'),
                                (b'GET / HTTP/1.1\r\n' + b'a: b\r\n' * 5000, b'431')):
            with exporter.connect() as sock:
                sock.sendall(request)
                tap.equal(sock.recv(12)[9:], status, request[:40])
        tap.equal(exporter.end(), '', 'stderr')


def memory(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'^VmRSS:\s+(\d+) kB', status, re.M).group(1))


@tap.test
def hostile_clients():
    with both() as (_, exporter), contextlib.ExitStack() as stack:
        exporter.get()
        before = memory(exporter.process.pid)
        silent = [stack.enter_context(exporter.connect()) for _ in range(300)]
        # The oldest of them gave way.
        tap.equal(silent[0].recv(1), b'', 'a silent client')
        tap.equal(exporter.get()[0], 200, 'beside silent clients')
        count = len(list(pathlib.Path(f'/proc/{exporter.process.pid}/fd').iterdir()))
        tap.true(count < rocade_exporter.CONNECTIONS_MOST + 16, f'{count} descriptors')
        # One that never reads what it asked for, again and again.
        for _ in range(50):
            sock = stack.enter_context(exporter.connect())
            sock.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
        tap.equal(exporter.get()[0], 200, 'beside deaf clients')
        # One that never ends.
        flood = stack.enter_context(exporter.connect())
        with contextlib.suppress(OSError):
            for _ in range(1000):
                flood.sendall(b'x' * 65536)
        tap.equal(exporter.get()[0], 200, 'behind a flood')
        # One that says a little now and then gets its time, and no more.
        slow = stack.enter_context(exporter.connect())

        def given_up():
            try:
                slow.sendall(b'G')
                return False
            except OSError:
                return True
        tap.wait_until('a slow client is waited for', given_up)
        tap.equal(silent[-1].recv(1), b'', 'a silent client')
        grown = memory(exporter.process.pid) - before
        tap.true(grown < 32 << 10, f'{grown} KiB more')
        tap.equal(exporter.end(), '', 'stderr')


@tap.test
def unix_socket():
    engine = alone.shared()
    path = f'{engine.folder}/metrics.sock'
    with Exporter(engine, f'unix:{path}') as exporter:
        tap.equal(stat.S_IMODE(os.stat(path).st_mode), 0o660, 'mode')
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(LIMIT)
            sock.connect(path)
            sock.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
            tap.true(sock.recv(15).startswith(b'HTTP/1.1 200 OK'), 'answer')
        done = engine.rocade('exporter', '--listen', f'unix:{path}', check=False)
        tap.true('somebody listens' in done.stderr, done.stderr)
        exporter.end()
        tap.true(not os.path.exists(path), 'the socket stays')
    with Exporter(engine, f'unix:{path}'):
        pass  # killed: it leaves its socket, which the next one takes
    with Exporter(engine, f'unix:{path}') as exporter:
        tap.equal(exporter.end(), '', 'stderr')


@tap.test
def faults_have_sentences():
    with both() as (engine, exporter):
        for where, text in ((f'127.0.0.1:{exporter.port}', 'in use'), ('9791', '--listen ADDRESS'),
                            ('127.0.0.1:99999', '--listen ADDRESS'), ('[::1:80', '--listen'),
                            (f'unix:{engine.folder}', 'no socket'),
                            ('unix:/nonexistent/x', 'No such file')):
            done = engine.rocade('exporter', '--listen', where, check=False)
            tap.equal(done.returncode, 1, where)
            tap.true(done.stderr.startswith('rocade: ') and text in done.stderr and
                     done.stderr.count('\n') == 1, done.stderr)


@tap.test
def unit():
    if shutil.which('systemd-analyze') is None:
        raise tap.Skip('no systemd-analyze here')
    path = ROOT / 'usertools/rocade-exporter.service'
    with tempfile.TemporaryDirectory() as folder:
        mine = pathlib.Path(folder) / path.name
        mine.write_text(path.read_text().replace('/usr/local/bin/rocade', str(alone.ROCADE)))
        done = subprocess.run(['systemd-analyze', 'verify', mine], capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        tap.equal([line for line in done.stderr.splitlines() if path.name in line], [], 'verify')
        done = subprocess.run(['systemd-analyze', '--no-pager', '--offline=true', 'security', mine],
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        found = re.search(r'Overall exposure level for \S+: ([0-9.]+)', done.stdout)
        if found is None:
            raise tap.Skip('systemd-analyze does not judge files here: ' + done.stderr.strip())
        tap.true(float(found.group(1)) <= 1.5, done.stdout)


if __name__ == '__main__':
    sys.exit(tap.run())
