#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: who has installed Rocade builds programs with an engine of their own by pkg-config alone,
and headers, library and version map say the same.

Method: "meson install" into a scratch folder, of which nothing but the installed files is used
then: program.c is built outside of the tree, by C and by C++, and clients use its engine; so are
the examples with an engine in them, by C. Each header is compiled alone by both, with all
warnings. What the library exports is compared with its map and with what the headers declare.
doxygen reads the headers, and finds faults that are put in.

    test_sdk.py MESON BUILD_FOLDER
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

MESON, BUILD = sys.argv[1:3]
ROOT = pathlib.Path(__file__).resolve().parents[2]
WARNINGS = ['-Wall', '-Wextra', '-pedantic', '-Werror']
# Compiler, language, standard, and that for what includes DPDK, which is written in GNU's.
LANGUAGES = [('cc', 'c', 'c11', 'gnu11'), ('c++', 'c++', 'c++17', 'gnu++17')]


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False, **more)
    tap.equal(done.returncode, 0, f'{words[0]}: {done.stdout}{done.stderr}')
    return done.stdout


class Installed:
    """What "meson install" makes, in a folder that stands in for the root of the file system."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        said = json.loads(run(MESON, 'introspect', '--buildoptions', BUILD))
        option = {one['name']: one['value'] for one in said}
        run(MESON, 'install', '-C', BUILD, '--no-rebuild', '--destdir', folder)
        prefix = self.folder / option['prefix'].lstrip('/')
        self.headers = prefix / option['includedir'] / 'rocade'
        self.libdir = prefix / option['libdir']
        # It is there as if it had been installed with that prefix.
        for path in (self.libdir / 'pkgconfig').glob('*.pc'):
            text = path.read_text()
            path.write_text(re.sub('^prefix=.*', f'prefix={prefix}', text, flags=re.M))
        self.env = {**os.environ, 'PKG_CONFIG_PATH': str(self.libdir / 'pkgconfig'),
                    'LD_LIBRARY_PATH': str(self.libdir)}

    def flags(self, *which):
        return run('pkg-config', *which, 'rocade-engine', env=self.env).split()

    def engine_headers(self):
        """But for those of drivers, which are other libraries."""
        return [path for path in sorted(self.headers.glob('*.h'))
                if not path.name.startswith('rcd_pmd_')]

    def exported(self):
        """{symbol: version} of the library's functions."""
        with open(self.libdir / 'librocade-engine.so', 'rb') as file:
            elf = ELFFile(file)
            defined = {entry['vd_ndx']: next(names).name for entry, names in
                       elf.get_section_by_name('.gnu.version_d').iter_versions()}
            indices = [entry['ndx'] for entry in
                       elf.get_section_by_name('.gnu.version').iter_symbols()]
            return {symbol.name: defined.get(index) for symbol, index in
                    zip(elf.get_section_by_name('.dynsym').iter_symbols(), indices)
                    if symbol['st_shndx'] not in ('SHN_UNDEF', 'SHN_ABS')}

    def soname(self):
        with open(self.libdir / 'librocade-engine.so', 'rb') as file:
            return next(tag.soname for tag in
                        ELFFile(file).get_section_by_name('.dynamic').iter_tags('DT_SONAME'))


def without_comments(text):
    return re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)


def mapped():
    """(version, symbols) of the map."""
    text = re.sub(r'^#.*', '', (ROOT / 'lib/sdk/rocade-engine.map').read_text(), flags=re.M)
    nodes = re.findall(r'(\w[\w.]*) \{\s*global:(.*?)local:\s*\*;\s*\};', text, re.S)
    tap.equal(len(nodes), 1, 'nodes of the map')
    return nodes[0][0], re.findall(r'(\S+);', nodes[0][1])


def declared(header):
    """Functions that a header declares, and does not define."""
    text = re.sub(r'^#(?:\\\n|.)*', '', without_comments(header.read_text()), flags=re.M)
    text = re.sub(r'\bRCD_API_(?:BEGIN|END)\b', '', text)
    before = None
    while before != text:
        before, text = text, re.sub(r'\{[^{}]*\}', ';', text)
    found = (re.match(r'[^()]*?\b(\w+)\s*\(', statement.strip()) for statement in text.split(';')
             if not statement.strip().startswith('static'))
    return {match[1] for match in found if match}


def includes_dpdk(header, headers):
    """Whether a header includes DPDK's, itself or by others of ours."""
    text = header.read_text()
    return '#include <rte_' in text or any(
        includes_dpdk(headers / name, headers)
        for name in re.findall(r'^#include "(\w+\.h)"', text, re.M))


def compiler(name):
    if shutil.which(name) is None:
        raise tap.Skip(f'no {name} on this machine')
    return name


def traffic(socket):
    """Unmodified programs, with the drop-in libraries that were installed."""
    words = ['ibv_rc_pingpong', '-g', '1', '-s', '4096', '-n', '100', '-c']
    env = {**os.environ, 'ROCADE_SOCKET': socket,
           'LD_LIBRARY_PATH': str(INSTALLED.libdir / 'rocade')}
    with subprocess.Popen([*words, '-d', 'left'], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as server:
        # The server listens by TCP, when it has made what it takes.
        deadline = time.monotonic() + tap.PATIENCE
        while True:
            client = subprocess.run([*words, '-d', 'right', '127.0.0.1'], env=env, text=True,
                                    capture_output=True, timeout=tap.PATIENCE, check=False)
            if "Couldn't connect" not in client.stderr or server.poll() is not None or \
                    time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if client.returncode:
            server.kill()
        said = server.communicate(timeout=tap.PATIENCE)[0]
    tap.equal((client.returncode, server.returncode), (0, 0),
              f'ibv_rc_pingpong: {said}{client.stdout}{client.stderr}')


def program_said(folder):
    """What the program says of an engine with traffic, or without: {counter: (left, right)}."""
    socket = f'{folder}/socket'
    words = ['./program', '-l', min(os.sched_getaffinity(0)), '--no-huge', '-m', '256', '--no-pci',
             '--no-shconf', '--', socket]
    with subprocess.Popen(list(map(str, words)), cwd=folder, stdout=subprocess.PIPE, text=True,
                          env={**INSTALLED.env, 'RUNTIME_DIRECTORY': folder}) as program:
        try:
            for line in program.stdout:
                if line == 'ready\n':
                    break
            if shutil.which('ibv_rc_pingpong'):
                traffic(socket)
        finally:
            program.terminate()
        lines = [line.split() for line in program.stdout]
    tap.equal(program.returncode, 0, 'exit status of the program')
    return {name: (int(left), int(right)) for name, left, right in lines}


def program_runs(tool, language):
    """Nothing is said to the compiler but what pkg-config says."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, 'program.c')
        shutil.copy(ROOT / 'test/sdk/program.c', source)
        run(compiler(tool), '-x', language, *WARNINGS[:2], '-Werror', source, '-x', 'none',
            *INSTALLED.flags('--cflags', '--libs'), '-o', 'program', cwd=folder)
        counts = program_said(folder)
    rows = re.findall(r'^RCD_COUNTER\(\w+, (\w+)',
                      (INSTALLED.headers / 'rcd_counter.def').read_text(), re.M)
    tap.equal(list(counts), rows, 'counters')
    if shutil.which('ibv_rc_pingpong') is None:
        raise tap.Skip('it ran, but there is no ibv_rc_pingpong on this machine')
    # Over the wire, both ways: 100 messages, and 100 answers.
    for name in ('tx_packets', 'rx_roce'):
        tap.true(min(counts[name]) >= 100, f'{name}: {counts[name]}')


def headers_alone(tool, language, standard, gnu):
    compiler(tool)
    # Warnings are about ours.
    flags = [re.sub('^-I(?=/usr/include/)', '-isystem', flag)
             for flag in INSTALLED.flags('--cflags')]
    headers = INSTALLED.engine_headers()
    tap.true(len(headers) > 8, f'headers: {headers}')
    for header in headers:
        kind = gnu if includes_dpdk(header, INSTALLED.headers) else standard
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'alone.c').write_text(f'#include "{header.name}"\n'
                                                       f'#include "{header.name}"\nint alone;\n')
            run(tool, '-x', language, f'-std={kind}', *WARNINGS, *flags, '-c', 'alone.c',
                cwd=folder)


for words in LANGUAGES:
    tap.add(f'program_runs_{words[1]}', lambda words=words: program_runs(*words[:2]))
    tap.add(f'headers_alone_{words[1]}', lambda words=words: headers_alone(*words))


# What a reader takes in at one sitting.
EXAMPLE_LINES = 300
# Beside what pkg-config says of the engine: the other end of a ring is a program with verbs.
EXAMPLES = {
    'graph-router': ('graph_router.c', 'forward.c'), 'memif-gateway': ('memif_gateway.c',),
    'inline-sink': ('inline_sink.c', 'meet.c')}


def example_builds(name, sources):
    """In a folder of its own, with what examples have in common, and nothing else of the tree."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (*(ROOT / 'examples' / name).glob('*.[ch]'),
                     *(ROOT / 'examples/common').glob('*.h')):
            shutil.copy(path, folder)
        run(compiler('cc'), *WARNINGS[:2], '-Werror', '-DALLOW_EXPERIMENTAL_API', *sources,
            *INSTALLED.flags('--cflags', '--libs'), '-o', 'example', cwd=folder)
        # It is linked with the library that was installed, and finds its way to EAL.
        done = subprocess.run(['./example', '--help'], cwd=folder, env=INSTALLED.env, text=True,
                              capture_output=True, timeout=tap.PATIENCE, check=False)
        tap.true('EAL common options' in done.stdout, f'{name}: {done.stdout}{done.stderr}')
    for source in sources:
        lines = len((ROOT / 'examples' / name / source).read_text().splitlines())
        tap.true(lines <= EXAMPLE_LINES, f'{source}: {lines} lines')


for name in EXAMPLES:
    tap.add(f'example_{name}', lambda name=name: example_builds(name, EXAMPLES[name]))


@tap.test
def the_library_exports_its_map():
    version, symbols = mapped()
    tap.equal(symbols, sorted(set(symbols)), 'symbols of the map in order')
    tap.equal(INSTALLED.exported(), {symbol: version for symbol in symbols}, 'exported')


@tap.test
def what_headers_declare_is_exported():
    exported = set(INSTALLED.exported())
    known = set()
    for header in INSTALLED.engine_headers():
        functions = declared(header)
        tap.true(functions <= exported,
                 f'{header.name} declares, and nobody exports: {sorted(functions - exported)}')
        known |= functions
    tap.true(exported <= known, f'no header declares: {sorted(exported - known)}')


@tap.test
def functions_are_seen_in_a_header():
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder, 'a.h')
        header.write_text('#define A(b) \\\n\tc(b)\n/* int d(void); */\nRCD_API_BEGIN\n'
                          'struct s {\n\tint (*e)(int f);\n};\nstatic inline int\ng(int h)\n'
                          '{\n\tif (h) {\n\t\treturn i();\n\t}\n}\nint\nj(int (*k)(void *),\n'
                          '\tint l);\nvoid m(void);\nRCD_API_END\n')
        tap.equal(declared(header), {'j', 'm'}, 'declared')


@tap.test
def versions_agree():
    release = json.loads(run(MESON, 'introspect', '--projectinfo', BUILD))['version']
    major, minor, _ = release.split('.')
    text = (INSTALLED.headers / 'rcd_version.h').read_text()
    parts = re.findall(r'^#define RCD_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)', text, re.M)
    tap.equal('.'.join(parts), release, 'parts of the release in rcd_version.h')
    tap.true(f'#define RCD_ENGINE_VERSION "{release}"' in text, 'release in rcd_version.h')
    tap.equal(INSTALLED.flags('--modversion'), [release], 'release in rocade-engine.pc')
    abi = f'0.{minor}' if major == '0' else major
    tap.equal(INSTALLED.soname(), f'librocade-engine.so.{abi}', 'soname')
    # Of a stable release nodes are added, and the old ones stay.
    tap.equal(mapped()[0], f'ROCADE_ENGINE_{major}.{minor}', 'node of the map')


def doxygen(headers, folder):
    """What it says of headers."""
    if shutil.which('doxygen') is None:
        raise tap.Skip('no doxygen on this machine')
    done = subprocess.run([sys.executable, ROOT / 'doc/api.py', 'doxygen', ROOT / 'doc/Doxyfile',
                           '0', pathlib.Path(folder, 'api'), *headers], capture_output=True,
                          text=True, check=False)
    return done.stdout + done.stderr, done.returncode


@tap.test
def doxygen_has_nothing_to_say():
    with tempfile.TemporaryDirectory() as folder:
        tap.equal(doxygen(INSTALLED.engine_headers(), folder), ('', 0), 'doxygen')
        page = pathlib.Path(folder, 'api/html/rcd__engine_8h.html').read_text()
        tap.true('>rcd_engine_create<' in page, 'rcd_engine_create() is in the reference')
        page = pathlib.Path(folder, 'api/html/rcd__counter_8h.html').read_text()
        tap.true('well-formed RoCEv2 packets' in page, 'counters are in the reference')


@tap.test
def doxygen_finds_faults():
    with tempfile.TemporaryDirectory() as folder:
        for fault in ('int\nrcd_clock_nothing(void);\n',
                      '/** A. @param b of it */\nint\nrcd_clock_a(int c);\n',
                      '/** See #rcd_nobody. */\nint\nrcd_clock_a(int c);\n'):
            header = pathlib.Path(folder, 'rcd_clock.h')
            text = (INSTALLED.headers / header.name).read_text()
            header.write_text(text.replace('RCD_API_END\n', fault + '\nRCD_API_END\n'))
            said, status = doxygen([header], folder)
            tap.true(status != 0 and 'rcd_clock.h' in said, f'passed over {fault}')


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as scratch:
        INSTALLED = Installed(scratch)
        result = tap.run()
    sys.exit(result)
