#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what rcd_choice.c needs to know of a library of rdma-core's: what it exports, with a
function for each symbol that jumps to where the choice has put it.

    choice.py SYSTEM_LIBRARY CPU_FAMILY OUT.map OUT.c
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import dropin  # noqa: E402

# Registers that a call may change on its way, and the mark of a place that may be jumped to.
JUMPS = {
    'x86_64': ['endbr64', 'jmp *rcd_choice_target+{offset}(%rip)'],
    'aarch64': ['hint #34', 'adrp x16, rcd_choice_target+{offset}',
                'ldr x16, [x16, #:lo12:rcd_choice_target+{offset}]', 'br x16'],
}

HEAD = '''/* Made by choice.py from {system}. */
#include "rcd_choice.h"

#pragma GCC visibility push(hidden)
const char rcd_choice_file[] = "{file}";
const char rcd_choice_system[] = "{system}";
void *rcd_choice_target[{count}];
const size_t rcd_choice_count = {count};
#pragma GCC visibility pop

'''


def function(name, index, cpu):
    lines = ['.text', '.p2align 4', f'.globl {name}', f'.type {name}, %function', f'{name}:']
    lines += [line.format(offset=8 * index) for line in JUMPS[cpu]]
    lines += [f'.size {name}, .-{name}']
    return '__asm__(\n' + '\n'.join(f'\t"{line}\\n"' for line in lines) + ');\n'


def main(path, cpu, map_path, c_path):
    library = dropin.Library(path)
    symbols = sorted(library.symbols.items())
    text = HEAD.format(file=pathlib.Path(path).name, system=path, count=len(symbols))
    rows = []
    for index, (name, (version, kind, size)) in enumerate(symbols):
        if kind == 'STT_OBJECT':
            text += f'char {name}[{size}] __attribute__((aligned(8)));\n'
            place = f'{name}, {size}'
        else:
            text += function(name, index, cpu)
            place = 'NULL, 0'
        rows.append(f'\t{{"{name}", "{version}", {place}}},\n')
    text += '\n__attribute__((visibility("hidden"))) const struct rcd_choice_symbol '
    text += f'rcd_choice_symbol[] = {{\n{"".join(rows)}}};\n'
    pathlib.Path(c_path).write_text(text, encoding='utf-8')
    pathlib.Path(map_path).write_text(dropin.version_map(library), encoding='utf-8')


if __name__ == '__main__':
    main(*sys.argv[1:])
