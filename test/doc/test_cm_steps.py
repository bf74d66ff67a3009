#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the table of a connection's life in doc/cm.md is the one that the code goes by.

Method: rows are made of lib/base/rcd_cm_step.def and compared with those of the document.

    test_cm_steps.py            compare
    test_cm_steps.py --print    the rows, to be put there
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = (ROOT / 'lib/base/rcd_cm_step.def').read_text()
HEAD = '| step | side | agent | service | library | what it is |'


def moves(states, to):
    """What a step does to a layer, for people."""
    names = ', '.join(re.findall(r'\w\((\w+)\)', states))
    if not names:
        return ''
    return f'{names} stay' if to == 'STAY' and ',' in names else \
        f'{names} stays' if to == 'STAY' else f'{names} → {to}'


def rows():
    for args in re.findall(r'^RCD_CM_STEP\((.*?)"\)$', LIST, re.M | re.S):
        head, text = args.split('"')
        fields = [' '.join(field.split()) for field in head.split(',')]
        symbol, side, *layers = fields[:8]
        cells = [moves(*layers[i:i + 2]) for i in (0, 2, 4)]
        yield f'| {symbol} | {side.lower()} | {" | ".join(cells)} | {text} |'


@tap.test
def document_has_the_table():
    document = (ROOT / 'doc/cm.md').read_text()
    tap.true(HEAD in document, 'doc/cm.md has no table of steps')
    found = re.findall(r'^\|.*\|$', document.split(HEAD)[1].split('\n\n')[0], re.M)[1:]
    for made, written in zip(rows(), found):
        tap.true(made == written, f'{written}\nis in the list:\n{made}')
    tap.true(len(found) == len(list(rows())), 'more rows in one than in the other')


@tap.test
def list_is_read_whole():
    tap.true(len(list(rows())) == LIST.count('\nRCD_CM_STEP('), 'a row is not understood')
    tap.true(all(row.count('|') == 7 for row in rows()), 'a cell too many or too few')


if sys.argv[1:] == ['--print']:
    print('\n'.join(rows()))
else:
    sys.exit(tap.run())
