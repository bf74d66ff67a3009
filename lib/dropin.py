#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fits a drop-in library to the one of rdma-core that is installed.

What the system's library exports is read from it: symbols, versions and how they follow each other,
sizes of objects. What our objects define of that is ours; every other symbol becomes a stub that
says so where ROCADE_DEBUG is set, and fails as its family does. So does the older version of a
symbol that has a newer one: programs of before 2007 bind to it, and their structs are other ones.

    dropin.py SYSTEM_LIBRARY HEADERS_FOLDER OUT.map OUT.c OUR_OBJECT...
    dropin.py --version SYSTEM_LIBRARY    three numbers of the version in its file's name
    dropin.py --fit RECORD SYSTEM_LIBRARY    the release of rdma-core that it is of; it is an error
                                             when the build directory's RECORD is of another one
"""
import pathlib
import re
import sys

from elftools.elf.elffile import ELFFile

# What has no header: calls between rdma-core's libraries. All others return an int.
POINTERS = re.compile(r'verbs_open_device|_verbs_init_and_alloc_context')
VOIDS = re.compile(r'__verbs_log|verbs_(init_cq|set_ops|uninit_context)|verbs_register_driver_\d+')
# Called as a provider is loaded, and no mistake of anybody's.
SILENT = re.compile(r'verbs_register_driver_\d+')

TEXT = '''/* Made by dropin.py from {library}: what it exports and Rocade does not implement. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static void __attribute__((unused))
missing(const char *name)
{{
	if (getenv("ROCADE_DEBUG") != NULL)
		fprintf(stderr, "rocade: %s() is not offered\\n", name);
	errno = EOPNOTSUPP;
}}

/* Of their prototypes nothing matters but what they return. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

'''


class Library:
    """What a shared library exports."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            elf = ELFFile(file)
            self.parents = {}       # {version: the one that it follows, or None}, in order
            names = {}
            for version, auxiliaries in elf.get_section_by_name('.gnu.version_d').iter_versions():
                words = [auxiliary.name for auxiliary in auxiliaries]
                names[version['vd_ndx']] = words[0]
                if not version['vd_flags'] & 1:
                    self.parents[words[0]] = words[1] if len(words) > 1 else None
            versions = elf.get_section_by_name('.gnu.version')
            self.symbols = {}       # {name: (version, type, size)}
            self.old = {}           # {(name, version): type}, not what programs bind to today
            for index, symbol in enumerate(elf.get_section_by_name('.dynsym').iter_symbols()):
                number = versions.get_symbol(index)['ndx']
                kind = symbol['st_info']['type']
                if symbol['st_shndx'] in ('SHN_UNDEF', 'SHN_ABS') or not isinstance(number, int):
                    continue
                if number & 0x8000:
                    self.old[symbol.name, names[number & 0x7fff]] = kind
                else:
                    self.symbols[symbol.name] = (names[number], kind, symbol['st_size'])


def defined(paths):
    """Names of what objects define for others."""
    found = set()
    for path in paths:
        with open(path, 'rb') as file:
            for symbol in ELFFile(file).get_section_by_name('.symtab').iter_symbols():
                if symbol['st_info']['bind'] == 'STB_GLOBAL' and \
                        symbol['st_shndx'] != 'SHN_UNDEF':
                    found.add(symbol.name)
    return found


def returns(name, headers):
    """'void', 'pointer', or the type of an integer."""
    found = re.search(r'^(?!#|\s*\*|typedef)[ \t]*((?:\w+[ \t\n]+)+?)(\**)[ \t\n]*' + name +
                      r'[ \t]*\(', headers, re.M)
    if found is None:
        if POINTERS.fullmatch(name):
            return 'pointer'
        return 'void' if VOIDS.fullmatch(name) else 'int'
    words = ' '.join(word for word in found[1].split() if word not in ('extern', 'static'))
    if found[2]:
        return 'pointer'
    return words if words in ('void', 'ssize_t', 'size_t', 'off_t') else 'int'


def stub(name, kind, size, headers, called=None):
    """What stands for a symbol; called: the name of its function, if that is another one."""
    if kind == 'STT_OBJECT':
        return f'char {name}[{size}] __attribute__((aligned(8)));\n'
    result = returns(name, headers)
    if SILENT.fullmatch(name):
        return f'void\n{name}(void)\n{{\n}}\n'
    # How who calls learns of it: as verbs, as a call of the management library, or by errno.
    error = 'EOPNOTSUPP' if re.match('_*(ibv|verbs|execute_ioctl)', name) else \
        '-EOPNOTSUPP' if name.startswith('umad') else '-1'
    types = {'pointer': ('void *', 'NULL'), 'void': ('void\n', None)}
    called = called or name
    head, val = types.get(result, (f'{"int" if result == "int" else "long"}\n', error))
    back = f'\treturn {val};\n' if val else ''
    return f'{head}{called}(void)\n{{\n\tmissing("{name}");\n{back}}}\n'


def version_map(library):
    """In the order in which versions follow each other."""
    out = ['/* Made by dropin.py. */']
    # Everything else is hidden; but what is, is so in old versions of this one as well.
    hiding = next(version for version in library.parents
                  if version not in {entry[1] for entry in library.old})
    for version, parent in library.parents.items():
        names = sorted(name for name, entry in library.symbols.items() if entry[0] == version)
        out.append(f'{version} {{')
        if names:
            out += ['\tglobal:'] + [f'\t\t{name};' for name in names]
        if version == hiding:
            out.append('\tlocal: *;')
        out.append(f'}}{" " + parent if parent else ""};')
    return '\n'.join(out) + '\n'


def main(path, folder, map_path, c_path, *objects):
    library = Library(path)
    ours = defined(objects)
    headers = '\n'.join(file.read_text(encoding='utf-8', errors='replace')
                        for part in ('infiniband', 'rdma')
                        for file in sorted(pathlib.Path(folder, part).glob('*.h')))
    text = TEXT.format(library=pathlib.Path(path).resolve().name)
    for name, (_, kind, size) in sorted(library.symbols.items()):
        if name not in ours:
            text += stub(name, kind, size, headers) + '\n'
    for number, ((name, version), kind) in enumerate(sorted(library.old.items())):
        if kind == 'STT_FUNC':
            text += stub(name, kind, 0, headers, f'rcd_old_{number}').replace(
                f'("{name}")', f'("{name}@{version}")')
            text += f'__asm__(".symver rcd_old_{number}, {name}@{version}");\n\n'
    pathlib.Path(c_path).write_text(text, encoding='utf-8')
    pathlib.Path(map_path).write_text(version_map(library), encoding='utf-8')


def numbers(path):
    """1, 14, 44, 0 of libNAME.so.1.14.44.0: the library's version, and rdma-core's release."""
    return pathlib.Path(path).resolve().name.split('.so.', 1)[1].split('.')


def fit(record, path):
    """Objects that were made for two releases would be mixed in one build directory."""
    here, record = '.'.join(numbers(path)[2:]), pathlib.Path(record)
    before = record.read_text(encoding='utf-8').strip() if record.exists() else here
    if before != here:
        sys.exit(f'this build directory is for rdma-core {before}, and rdma-core {here} is '
                 f'installed: make another one by meson setup, or this one anew by meson setup '
                 f'--wipe {record.parent}')
    record.write_text(f'{here}\n', encoding='utf-8')
    print(here)


if __name__ == '__main__':
    if sys.argv[1:2] == ['--version']:
        print('.'.join(numbers(sys.argv[2])[:3]))
    elif sys.argv[1:2] == ['--fit']:
        fit(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
