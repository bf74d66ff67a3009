# SPDX-License-Identifier: BSD-3-Clause
"""What ELF files export to others and import from the libraries that Rocade takes the place of."""
import struct

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

LIBRARIES = ('libibverbs.so.1', 'librdmacm.so.1', 'libibumad.so.3')
# Architectures name a copy of an object into the program each in their own way.
COPIES = {'EM_X86_64': 5, 'EM_AARCH64': 1024, 'EM_PPC64': 19, 'EM_RISCV': 4, 'EM_S390': 9}


def _version_numbers(elf):
    """Of each dynamic symbol, the number of its version; 0x8000 if it is not the default."""
    data = elf.get_section_by_name('.gnu.version').data()
    return struct.unpack(f'{"<" if elf.little_endian else ">"}{len(data) // 2}H', data)


def exported(path):
    """{(symbol, version): (type, size, whether it is what new programs bind to)}"""
    with open(path, 'rb') as file:
        elf = ELFFile(file)
        names = {version['vd_ndx']: next(auxiliaries).name for version, auxiliaries
                 in elf.get_section_by_name('.gnu.version_d').iter_versions()}
        symbols = elf.get_section_by_name('.dynsym')
        found = {}
        for index, number in enumerate(_version_numbers(elf)):
            symbol = symbols.get_symbol(index)
            if symbol['st_shndx'] in ('SHN_UNDEF', 'SHN_ABS') or number & 0x7fff not in names:
                continue
            found[symbol.name, names[number & 0x7fff]] = (
                symbol['st_info']['type'], symbol['st_size'], not number & 0x8000)
        return found


def imported(path):
    """{library: {(symbol, version): size of the program's copy, or None}} of a file's needs of
    LIBRARIES; empty when it needs none of them, and when it is no ELF file at all."""
    with open(path, 'rb') as file:
        if file.read(4) != b'\x7fELF':
            return {}
        try:
            elf = ELFFile(file)
            dynamic = elf.get_section_by_name('.dynamic')
            if dynamic is None:
                return {}
            found = {tag.needed: {} for tag in dynamic.iter_tags('DT_NEEDED')
                     if tag.needed in LIBRARIES}
            needs = elf.get_section_by_name('.gnu.version_r')
            if not found or needs is None:
                return found
            names = {aux['vna_other']: (need.name, aux.name)
                     for need, auxiliaries in needs.iter_versions() if need.name in LIBRARIES
                     for aux in auxiliaries}
            symbols = elf.get_section_by_name('.dynsym')
            copied = {relocation['r_info_sym'] for section in elf.iter_sections()
                      if section['sh_type'] == 'SHT_RELA' for relocation in
                      section.iter_relocations()
                      if relocation['r_info_type'] == COPIES.get(elf['e_machine'])}
            for index, number in enumerate(_version_numbers(elf)):
                if number & 0x7fff in names:
                    symbol = symbols.get_symbol(index)
                    library, version = names[number & 0x7fff]
                    found.setdefault(library, {})[symbol.name, version] = \
                        symbol['st_size'] if index in copied else None
            return found
        except ELFError:
            return {}


def missing(wants, ours):
    """What of imported() is not in exported() of our libraries ({library: ...}), as sentences."""
    for library, symbols in sorted(wants.items()):
        for (name, version), size in sorted(symbols.items()):
            there = ours[library].get((name, version))
            if there is None:
                yield f'{library} has no {name}@{version}'
            elif size is not None and size != there[1]:
                yield f'{library} has {there[1]} bytes of {name}@{version}, the program {size}'
