#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the drop-in libraries have the symbols and versions that programs import.

Method: pyelftools reads each library, and the system's own where there is one: every function that
the one exports under its default version, ours has under the same. Likewise each program and
library here that needs libibverbs, libibumad or librdmacm: what it imports, by name and version, is
there. The list of releases that programs bind to is checked by hand for the functions nearly all of
them use. Sizes and offsets of structs are test_abi's.

    test_elf.py LIBIBVERBS LIBIBUMAD LIBRDMACM
"""
import glob
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

try:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
except ImportError:
    ELFFile = None

LIBRARY, UMAD, RDMACM = sys.argv[1:4]
KNOWN = {'ibv_get_device_list': 'IBVERBS_1.1', 'ibv_reg_mr': 'IBVERBS_1.1',
         'ibv_create_comp_channel': 'IBVERBS_1.0', 'ibv_reg_mr_iova2': 'IBVERBS_1.8',
         'ibv_qp_to_qp_ex': 'IBVERBS_1.6', '_ibv_query_gid_ex': 'IBVERBS_1.11',
         'ibv_query_qp_data_in_order': 'IBVERBS_1.14',
         'verbs_register_driver_34': 'IBVERBS_PRIVATE_34'}


def exported(path):
    """{symbol: (default version, type, size)} of a shared library."""
    if ELFFile is None:
        raise tap.Skip('no pyelftools here')
    with open(path, 'rb') as file:
        elf = ELFFile(file)
        names = {}
        for version, auxiliaries in elf.get_section_by_name('.gnu.version_d').iter_versions():
            names[version['vd_ndx']] = next(auxiliaries).name
        versions = elf.get_section_by_name('.gnu.version')
        found = {}
        for index, symbol in enumerate(elf.get_section_by_name('.dynsym').iter_symbols()):
            number = versions.get_symbol(index)['ndx']
            if symbol['st_shndx'] == 'SHN_UNDEF' or not isinstance(number, int) or \
                    number & 0x8000 or symbol.name in names.values():
                continue
            found[symbol.name] = (names[number & 0x7fff], symbol['st_info']['type'],
                                  symbol['st_size'])
        return found


@tap.test
def versions_of_well_known_symbols():
    ours = exported(LIBRARY)
    for name, version in KNOWN.items():
        tap.equal(ours.get(name, ('none',))[0], version, name)
    tap.equal(ours['verbs_allow_disassociate_destroy'][1:], ('STT_OBJECT', 1), 'the one object')


@tap.test
def all_that_the_system_exports():
    for library, path in (('libibverbs.so.1', LIBRARY), ('librdmacm.so.1', RDMACM)):
        paths = glob.glob(f'/usr/lib/*/{library}')
        if not paths:
            raise tap.Skip(f'no {library} of the system here')
        ours = exported(path)
        for name, (version, kind, _) in exported(paths[0]).items():
            tap.equal(ours.get(name, ('none', ''))[:2], (version, kind), name)


def imported(path, library):
    """{(symbol, version)} that a file takes from a library; None when it does not need it."""
    with open(path, 'rb') as file:
        try:
            elf = ELFFile(file)
        except ELFError:
            return None
        needs = elf.get_section_by_name('.gnu.version_r')
        versions = elf.get_section_by_name('.gnu.version')
        if needs is None or versions is None:
            return None
        names = {aux['vna_other']: aux.name for need, auxiliaries in needs.iter_versions()
                 for aux in auxiliaries if need.name == library}
        if not names:
            return None
        symbols = elf.get_section_by_name('.dynsym').iter_symbols()
        return {(symbol.name, names[versions.get_symbol(index)['ndx']])
                for index, symbol in enumerate(symbols)
                if versions.get_symbol(index)['ndx'] in names}


def check_imports(library, ours):
    """Each file that needs the library finds all of its symbols in ours."""
    patterns = ('/usr/bin/*', '/usr/sbin/*', '/usr/lib/*/*.so*', '/usr/lib/*/libibverbs/*',
                '/usr/lib/*/openmpi/lib/openmpi*/*', '/usr/lib/*/libfabric/*', '/usr/lib/*/ucx/*',
                '/usr/lib/python3/dist-packages/pyverbs/*.so')
    there = {(name, entry[0]) for name, entry in exported(ours).items()}
    users = 0
    for path in (path for pattern in patterns for path in glob.glob(pattern)):
        if not pathlib.Path(path).is_file() or pathlib.Path(path).is_symlink():
            continue
        wanted = imported(path, library)
        if wanted is None or pathlib.Path(path).name.startswith(library.split('.')[0]):
            continue
        users += 1
        tap.equal(sorted(wanted - there), [], f'{path} misses')
    print(f'# {users} files here need {library}')
    if not users:
        raise tap.Skip(f'nothing here needs {library}')


@tap.test
def all_that_programs_import_of_verbs():
    exported(LIBRARY)
    check_imports('libibverbs.so.1', LIBRARY)


@tap.test
def all_that_programs_import_of_umad():
    exported(UMAD)
    check_imports('libibumad.so.3', UMAD)


@tap.test
def all_that_programs_import_of_rdmacm():
    tap.equal(len(exported(RDMACM)), 68, 'symbols of librdmacm')
    check_imports('librdmacm.so.1', RDMACM)


if __name__ == '__main__':
    sys.exit(tap.run())
