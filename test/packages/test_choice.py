#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: where Rocade is the default, a program gets Rocade's libraries, a DPDK program the
system's, and each function is the one that was asked for.

Method: processes that load the libraries that choose, by LD_LIBRARY_PATH as "rocade enable" has it;
their maps say what they got. A DPDK program is one that has librte_eal, and the engine itself. Each
exported symbol is looked at: its jump leads where the chosen library has that function.

    test_choice.py ROCADED LIBIBVERBS_THAT_CHOOSES LIBIBVERBS
"""
import glob
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'lib'))
import dropin  # noqa: E402

ROCADED = os.path.abspath(sys.argv[1])
CHOICE, ROCADE = (pathlib.Path(path).resolve().parent for path in sys.argv[2:4])
LIBRARIES = ('libibverbs.so.1', 'librdmacm.so.1', 'libibumad.so.3')

LOADED = '''
import ctypes, sys
ctypes.CDLL(sys.argv[1])
print(*sorted({line.split()[5] for line in open('/proc/self/maps') if sys.argv[1] in line}))
'''

JUMPS = '''
import ctypes, sys
from elftools.elf.elffile import ELFFile
chooses, chosen = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
with open(sys.argv[1], 'rb') as file:
    symbols = [(symbol.name, symbol['st_info']['type'])
               for symbol in ELFFile(file).get_section_by_name('.dynsym').iter_symbols()
               if isinstance(symbol['st_shndx'], int)]
count = 0
for name, kind in symbols:
    if kind != 'STT_FUNC':
        continue
    at = ctypes.cast(chooses[name], ctypes.c_void_p).value
    code = ctypes.string_at(at, 10)
    assert code[:6].hex() == 'f30f1efaff25', (name, code.hex())
    slot = at + 10 + int.from_bytes(code[6:], 'little', signed=True)
    target = ctypes.c_uint64.from_address(slot).value
    wanted = ctypes.cast(chosen[name], ctypes.c_void_p).value
    assert target == wanted, (name, hex(target), hex(wanted))
    count += 1
print(count)
'''


def python(code, *words, **more):
    env = {key: val for key, val in os.environ.items() if not key.startswith(('ROCADE', 'LD_'))}
    done = subprocess.run([sys.executable, '-c', code, *map(str, words)], capture_output=True,
                          env={**env, 'LD_LIBRARY_PATH': str(CHOICE), **more}, text=True,
                          check=False)
    tap.equal(done.returncode, 0, done.stderr)
    return done


def system(library):
    found = glob.glob(f'/usr/lib/*/{library}')
    if not found:
        raise tap.Skip(f'no {library} of the system here')
    return os.path.realpath(found[0])


def eal():
    found = glob.glob('/usr/lib/*/librte_eal.so.*')
    if not found:
        raise tap.Skip('no DPDK libraries here')
    return sorted(found)[0]


def got(library, **more):
    return python(LOADED, library, **more).stdout.split()


def rocades(library):
    return os.path.realpath(ROCADE / library)


@tap.test
def a_program_gets_rocades():
    for library in LIBRARIES:
        tap.equal(got(library), sorted([str(CHOICE / library), rocades(library)]), library)


@tap.test
def a_dpdk_program_gets_the_systems():
    for library in LIBRARIES:
        tap.equal(got(library, LD_PRELOAD=eal()), sorted([str(CHOICE / library), system(library)]),
                  library)


@tap.test
def dpdk_that_no_other_library_sees():
    code = f'import ctypes; ctypes.CDLL({eal()!r})' + LOADED
    tap.equal(python(code, LIBRARIES[0]).stdout.split(),
              sorted([str(CHOICE / LIBRARIES[0]), system(LIBRARIES[0])]), 'files')


@tap.test
def the_engine_gets_the_systems():
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, 'LD_LIBRARY_PATH': str(CHOICE), 'LD_PRELOAD': LIBRARIES[0],
               'LD_DEBUG': 'files', 'LD_DEBUG_OUTPUT': f'{folder}/log'}
        subprocess.run([ROCADED, '--version'], env=env, capture_output=True, check=True)
        log = ''.join(path.read_text() for path in pathlib.Path(folder).iterdir())
    loaded = {line.split('calling init: ')[1] for line in log.splitlines()
              if 'calling init: ' in line and LIBRARIES[0] in line}
    tap.equal({os.path.realpath(path) for path in loaded},
              {str(CHOICE / LIBRARIES[0]), system(LIBRARIES[0])}, 'files')


@tap.test
def a_user_may_choose():
    library = LIBRARIES[0]
    tap.equal(got(library, ROCADE_VERBS='system'),
              sorted([str(CHOICE / library), system(library)]), 'system')
    tap.equal(got(library, ROCADE_VERBS='rocade', LD_PRELOAD=eal()),
              sorted([str(CHOICE / library), rocades(library)]), 'rocade')
    done = python(LOADED, library, ROCADE_VERBS='rocade3')
    tap.true('it can be rocade or system' in done.stderr, done.stderr)
    tap.true(rocades(library) in done.stdout, done.stdout)


@tap.test
def each_function_leads_to_its_own():
    if platform.machine() != 'x86_64':
        raise tap.Skip('knows the jumps of x86_64 only')
    for library in LIBRARIES:
        for wish, path in (('rocade', ROCADE / library), ('system', system(library))):
            done = python(JUMPS, CHOICE / library, path, ROCADE_VERBS=wish)
            tap.true(int(done.stdout) > 30, f'{library}: {done.stdout} functions')


@tap.test
def symbols_versions_and_objects_are_the_systems():
    for library in LIBRARIES:
        ours, theirs = (dropin.Library(path) for path in (CHOICE / library, system(library)))
        for name, (version, kind, size) in theirs.symbols.items():
            size = size if kind == 'STT_OBJECT' else ours.symbols.get(name, (0, 0, 0))[2]
            tap.equal(ours.symbols.get(name), (version, kind, size), name)
        tap.equal(set(ours.symbols), set(theirs.symbols), library)
        tap.equal(ours.parents, theirs.parents, library)


@tap.test
def without_rocades_the_systems_and_a_word():
    with tempfile.TemporaryDirectory() as folder:
        alone = pathlib.Path(folder).resolve() / 'default'
        alone.mkdir()
        shutil.copy(CHOICE / LIBRARIES[0], alone)
        done = python(LOADED, LIBRARIES[0], LD_LIBRARY_PATH=str(alone))
        tap.equal(done.stdout.split(), sorted([str(alone / LIBRARIES[0]), system(LIBRARIES[0])]),
                  'files')
        tap.true("rocade: the system's libibverbs.so.1 is used" in done.stderr, done.stderr)


if __name__ == '__main__':
    sys.exit(tap.run())
