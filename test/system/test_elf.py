#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the drop-in libraries have the symbols, versions and objects that programs bind to.

Method: no program is started. Each library exports what the system's own does, no more and no less.
Each ELF file here that needs one of them finds in ours what it imports, judged once from its tables
and once by the loader, which is asked to bind everything at once and to run nothing. What files of
the whole distribution import was recorded by symbols.py, with the rdma-core that they were built
for: of ours and of older ones all must be there, but for what only libraries of the same release
say to each other. The versions of the functions that nearly all programs use are checked by hand.
Sizes and offsets of structs are test_abi's.

    test_elf.py LIBIBVERBS LIBRDMACM LIBIBUMAD
"""
import glob
import os
import pathlib
import re
import subprocess
import sys

import elf

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

PATHS = dict(zip(elf.LIBRARIES, map(os.path.abspath, sys.argv[1:4])))
FOLDERS = sorted({os.path.dirname(path) for path in PATHS.values()})
OURS = {library: elf.exported(path) for library, path in PATHS.items()}
# 44 of libibverbs.so.1.14.44
RELEASE = int(os.path.realpath(PATHS['libibverbs.so.1']).split('.')[-1])
KNOWN = {'ibv_get_device_list': 'IBVERBS_1.1', 'ibv_reg_mr': 'IBVERBS_1.1',
         'ibv_create_comp_channel': 'IBVERBS_1.0', 'ibv_reg_mr_iova2': 'IBVERBS_1.8',
         'ibv_qp_to_qp_ex': 'IBVERBS_1.6', '_ibv_query_gid_ex': 'IBVERBS_1.11',
         'ibv_query_qp_data_in_order': 'IBVERBS_1.14',
         'verbs_register_driver_34': 'IBVERBS_PRIVATE_34'}
PATTERNS = ('/usr/bin/*', '/usr/sbin/*', '/usr/lib/*/*.so*', '/usr/lib/*/libibverbs/*',
            '/usr/lib/*/openmpi/lib/openmpi*/*', '/usr/lib/*/libfabric/*', '/usr/lib/*/ucx/*',
            '/usr/lib/*/dpdk/pmds-*/*', '/usr/lib/python3/dist-packages/pyverbs/*.so')


@tap.test
def versions_of_well_known_symbols():
    verbs = OURS['libibverbs.so.1']
    for name, version in KNOWN.items():
        tap.true(verbs.get((name, version), (0, 0, False))[2], f'{name}@@{version} is not there')
    tap.equal(verbs['verbs_allow_disassociate_destroy', 'IBVERBS_PRIVATE_34'][:2],
              ('STT_OBJECT', 1), 'the one object')


def without_sizes_of_code(symbols):
    return {symbol: (kind, size if kind == 'STT_OBJECT' else 0, default)
            for symbol, (kind, size, default) in symbols.items()}


@tap.test
def all_that_the_system_exports_and_nothing_else():
    for library, ours in OURS.items():
        paths = glob.glob(f'/usr/lib/*/{library}')
        if not paths:
            raise tap.Skip(f'no {library} of the system here')
        theirs, ours = without_sizes_of_code(elf.exported(paths[0])), without_sizes_of_code(ours)
        tap.equal(sorted(set(theirs.items()) ^ set(ours.items())), [], library)


@tap.test
def all_that_the_distributions_import():
    records = {int(re.search(r'\d+', path.name)[0]): path
               for path in pathlib.Path(__file__).parent.glob('symbols-*.txt')}
    tap.true(records, 'nothing is recorded')
    if RELEASE not in records:
        print(f'# of rdma-core {RELEASE} itself nothing is recorded (symbols.py --record)')
    looked = False
    for release, path in sorted(records.items()):
        lines = [line.split() for line in path.read_text(encoding='utf-8').splitlines()
                 if not line.startswith('#')]
        tap.true(len(lines) > 200, f'{path} is cut off')
        if release > RELEASE:
            continue
        looked = True
        wants = {}
        for library, name, version, _ in lines:
            if release == RELEASE or 'PRIVATE' not in version:
                wants.setdefault(library, {})[name, version] = None
        tap.equal(list(elf.missing(wants, OURS)), [], path.name)
        print(f'# all of {sum(map(len, wants.values()))} symbols that programs of rdma-core '
              f'{release} import')
    if not looked:
        raise tap.Skip(f'all that is recorded is of later releases than rdma-core {RELEASE}')


def users():
    """{file: what it imports} of those here that need one of the libraries."""
    found = {}
    for path in sorted(path for pattern in PATTERNS for path in glob.glob(pattern)):
        if os.path.isfile(path) and not os.path.islink(path):
            wants = elf.imported(path)
            if wants:
                found[path] = wants
    if not found:
        raise tap.Skip('nothing here needs the libraries')
    return found


@tap.test
def all_that_files_here_import():
    found = users()
    for library in elf.LIBRARIES:
        print(f'# {sum(library in wants for wants in found.values())} files here need {library}')
    tap.equal([f'{path}: {line}' for path, wants in found.items()
               for line in elf.missing(wants, OURS)], [], 'missing')


@tap.test
def the_loader_binds_all_of_it_at_once():
    env = {**os.environ, 'LD_LIBRARY_PATH': ':'.join(FOLDERS)}
    told = []
    for path, wants in users().items():
        done = subprocess.run(['ldd', '-r', path], capture_output=True, text=True, env=env,
                              check=False)
        text = done.stdout + done.stderr
        for library in wants:
            tap.true(re.search(rf'{re.escape(library)} => ({"|".join(FOLDERS)})/', text),
                     f'{path} gets another {library}')
        told += [line for line in text.splitlines()
                 if re.search(r'(version|symbol).*(IBVERBS|RDMACM|IBUMAD|libib|librdma)', line)]
    tap.equal(told, [], 'what the loader says')


if __name__ == '__main__':
    sys.exit(tap.run())
