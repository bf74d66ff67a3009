#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collects `Spec:` tags of the libraries and `Covers:` tags of the tests into a table.

    conformance.py SOURCE_ROOT            prints doc/conformance.md
    conformance.py SOURCE_ROOT --check    a test: the file is up to date, every clause has a test

A tag in a comment before a function belongs to that function, one within a body to the function
around it, one at the top of a file to the file.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
HEAD = '''# Conformance

Made by `test/tidy/conformance.py` from the `Spec:` tags of the libraries and the `Covers:` tags of
the tests; do not edit. Clauses are those of the InfiniBand Architecture Specification, volume 1;
they were written down without the text at hand, down to the level of which the authors are sure,
and want checking by somebody who has it.

| clause | what | where | tests |
|---|---|---|---|
'''


def owner(lines, number):
    """Name of the function that a tag in this line (from 0) belongs to."""
    inside = lines[number].startswith('\t')
    order = range(number, -1, -1) if inside else range(number, len(lines))
    for i in order:
        match = re.match(r'([a-z_]\w*)\(', lines[i])
        if match:
            return match.group(1) + '()'
        if not inside and lines[i].startswith('#include'):
            return 'the file'
        if not inside and lines[i].startswith('static const struct'):
            name = re.search(r'(\w+)\[', lines[i])
            return name.group(1) + '[]' if name else 'the table'
    return 'the file'


def clauses(text):
    return re.findall(r'Annex [A-Z]\d+|\d+(?:\.\d+)+', text)


def tags(folder, word):
    """(path, function, clauses, the words behind them) of each tag."""
    for path in sorted((ROOT / folder).rglob('*.[ch]')):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            match = re.search(word + r': ((?:IBTA |Annex )[A-Z\d., ]*?)(?: (\D.*?))?(?: \*/)?$',
                              line)
            if match:
                yield path, owner(lines, number), clauses(match.group(1)), match.group(2) or ''


def sort_key(clause):
    return [int(part) if part.isdigit() else 99 for part in clause.split('.')]


def main():
    tests = {}
    for path, function, names, _ in tags('test', 'Covers'):
        for clause in names:
            entry = f'{path.stem}: {function[:-2]}' if function.endswith('()') else path.stem
            tests.setdefault(clause, []).append(entry)
    rows, bare = [], set()
    for path, function, names, words in tags('lib', 'Spec'):
        for clause in names:
            where = f'{function} in {path.relative_to(ROOT / "lib")}'
            covered = ', '.join(dict.fromkeys(tests.get(clause, [])))
            rows.append((sort_key(clause), clause, words, where, covered))
            if not covered:
                bare.add(clause)
    table = HEAD + ''.join(f'| {clause} | {words} | {where} | {covered} |\n'
                           for _, clause, words, where, covered in sorted(rows))
    if '--check' not in sys.argv:
        print(table, end='')
        return 0
    kept = (ROOT / 'doc/conformance.md').read_text()
    print('1..2')
    print('ok 1 - up to date' if kept == table else 'not ok 1 - up to date')
    if kept != table:
        print('# run test/tidy/conformance.py . >doc/conformance.md', file=sys.stderr)
    print('not ok 2 - every clause has a test' if bare else 'ok 2 - every clause has a test')
    if bare:
        print('# without a test:', *sorted(bare), file=sys.stderr)
    return 0 if kept == table and not bare else 1


sys.exit(main())
