#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: every clause that a function follows is known, with the tests that exercise it there.

Method: `Spec:` tags of the libraries meet `Covers:` tags of the tests, by clause and function. That
a test reaches what it says it covers stands in reached.txt, written by a run with gcov; without an
entry there, made of the test as it stands, it is not believed. The rules are first shown breaches
that they must find.

    conformance.py SOURCE_ROOT                 prints doc/conformance.md
    conformance.py SOURCE_ROOT --check         a test
    conformance.py SOURCE_ROOT --record BUILD  writes reached.txt; BUILD has -Db_coverage=true

A `Spec: IBTA 1.2.3 words` in a comment before a function belongs to that function, one within a
body to the function around it. `Covers: IBTA 1.2.3 rcd_a(), rcd_b()` stands before a test's
function.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

REACHED = 'test/tidy/reached.txt'
CLAUSES = r'(?:IBTA \d+(?:\.\d+)+(?:, \d+(?:\.\d+)+)*|Annex [A-Z]\d+)'
HEAD = '''# Conformance

Made by `test/tidy/conformance.py` from the `Spec:` tags of the libraries and the `Covers:` tags of
the tests; do not edit. A test stands in a row if it says that it exercises this clause in this
function, and a run with gcov saw it there (`test/tidy/reached.txt`). Clauses are those of the
InfiniBand Architecture Specification, volume 1; they were written down without the text at hand,
down to the level of which the authors are sure, and want checking by somebody who has it.

| clause | what | where | tests |
|---|---|---|---|
'''


class Tag:
    def __init__(self, path, line, clauses, function, words):
        self.path, self.line, self.words = path, line, words
        self.clauses, self.function = clauses, function

    def __str__(self):
        return f'{self.path}:{self.line + 1}'


def owner(lines, number):
    """Name of the function that a tag in this line (from 0) belongs to, or None."""
    inside = lines[number].startswith('\t')
    for i in range(number, -1, -1) if inside else range(number, len(lines)):
        match = re.match(r'([a-z_]\w*)\(', lines[i])
        if match:
            return match.group(1)
        if not inside and lines[i].startswith(('#include', '}', 'static const')):
            return None
    return None


def tags(root, folder, word):
    """The tags of a folder, with the file relative to the root and the line from 0."""
    for path in sorted((root / folder).rglob('*.[ch]')):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if word + ':' not in line:
                continue
            match = re.search(rf'\b{word}: ({CLAUSES})(?: (\S.*?))??(?: \*/)?$', line)
            clauses = re.findall(r'Annex [A-Z]\d+|\d+(?:\.\d+)+', match[1]) if match else []
            yield Tag(path.relative_to(root), number, clauses, owner(lines, number),
                      match[2] or '' if match else '')


def program(tag):
    """The test program of a tag, as the table calls it."""
    return f'{tag.path.parent.name}/{tag.path.stem}'


def case_name(root, tag):
    """What a test's report calls the function of a tag."""
    text = (root / tag.path).read_text()
    match = re.search(rf'\{{ "([^"]+)",\s+{tag.function} \}}', text)
    return match[1] if match else tag.function


def claims(root):
    """(tag, clause, function) of what the tests say that they cover."""
    for tag in tags(root, 'test', 'Covers'):
        for function in re.findall(r'(\w+)\(\)', tag.words) or ['']:
            for clause in tag.clauses or ['']:
                yield tag, clause, function


def digest(root, tag):
    """Of the text of a tag's function, by which a test is known that changed."""
    text = (root / tag.path).read_text()
    found = re.search(rf'^{tag.function}\(.*?^\}}$', text, re.M | re.S)
    return hashlib.sha256(found[0].encode()).hexdigest()[:8] if found else 'none'


def recorded(root):
    """{(test program, case): [digest, functions and clauses]}, as they were recorded."""
    path = root / REACHED
    rows = (line.split(': ', 3) for line in path.read_text().splitlines()
            if not line.startswith('#')) if path.is_file() else []
    return {(name, case): rest for name, case, *rest in rows}


def reached(root):
    """{(test program, case): (clause, function) that it reaches}, as it was recorded."""
    return {case: {(clause.replace('_', ' '), function)
                   for function, clause in re.findall(r'(\w+)\(\):(\S+)', functions)}
            for case, (_, functions) in recorded(root).items()}


def rows_of(root):
    """{(clause, function): [words, file, tests]} of the libraries' tags, claims believed."""
    rows, seen = {}, reached(root)
    for tag in tags(root, 'lib', 'Spec'):
        for clause in tag.clauses:
            rows[clause, tag.function] = [tag.words, tag.path.relative_to('lib'), []]
    for tag, clause, function in claims(root):
        case = case_name(root, tag)
        if (clause, function) in rows and (clause, function) in seen.get((program(tag), case), ()):
            rows[clause, function][2].append(f'{program(tag)}: {case}')
    return rows


def spec_tags_are_whole(root):
    """Each says clause, function and what for, and no two say the same place."""
    known = set()
    for tag in tags(root, 'lib', 'Spec'):
        if not tag.clauses or not tag.words or tag.function is None:
            yield f'{tag}: no clause, no words or no function'
        for clause in tag.clauses:
            if (clause, tag.function) in known:
                yield f'{tag}: {clause} stands at {tag.function}() already'
            known.add((clause, tag.function))


def covers_tags_meet(root):
    """Each names clauses and functions that a `Spec:` tag has together."""
    known = {(clause, tag.function) for tag in tags(root, 'lib', 'Spec') for clause in tag.clauses}
    for tag, clause, function in claims(root):
        if (clause, function) not in known:
            yield f'{tag}: no function {function}() has a tag of clause "{clause}"'


def covers_tags_reach(root):
    """Each was seen to reach the functions it names."""
    seen = reached(root)
    for tag, clause, function in claims(root):
        if (clause, function) not in seen.get((program(tag), case_name(root, tag)), ()):
            yield f'{tag}: not recorded to reach {clause} in {function}(): run with --record'


def covers_tags_are_of_these_tests(root):
    """What was recorded is of the test as it stands."""
    known = recorded(root)
    for tag in tags(root, 'test', 'Covers'):
        was = known.get((program(tag), case_name(root, tag)), ('none',))[0]
        if was not in ('none', digest(root, tag)):
            yield f'{tag}: changed since it was recorded: run with --record'


def table(root):
    def key(row):
        return [int(part) if part.isdigit() else 99 for part in row[0][0].split('.')], row
    return HEAD + ''.join(
        f'| {clause} | {words} | {function}() in {path} | {", ".join(tests) or "none"} |\n'
        for (clause, function), (words, path, tests) in sorted(rows_of(root).items(), key=key))


def up_to_date(root):
    if (root / 'doc/conformance.md').read_text() != table(root):
        yield 'doc/conformance.md is not what the tags make: conformance.py . >doc/conformance.md'


def lines_run(build, root):
    """{file of lib: ({function: times run}, {line: times run})} of the last run."""
    result = {}
    for data in build.rglob('*.gcda'):
        done = subprocess.run(['gcov', '-j', '-t', str(data)], capture_output=True, check=True,
                              cwd=build)
        for file in json.loads(done.stdout)['files'] if done.stdout else []:
            path = os.path.relpath(os.path.normpath(build / file['file']), root)
            functions, lines = result.setdefault(path, ({}, {}))
            for row in file['functions']:
                functions[row['name']] = functions.get(row['name'], 0) + row['execution_count']
            for row in file['lines']:
                number = row['line_number']
                lines[number] = lines.get(number, 0) + row['count']
    return result


def is_reached(root, run, tag):
    """Whether the first line behind the tag was run that counts; of a function, its first."""
    functions, lines = run.get(str(tag.path), ({}, {}))
    if not (root / tag.path).read_text().splitlines()[tag.line].startswith('\t'):
        return functions.get(tag.function, 0) > 0
    behind = [number for number in sorted(lines) if number > tag.line + 1]
    return bool(behind) and lines[behind[0]] > 0


def record(root, build):
    """Run each case that covers something by itself, and write down which tags it reaches."""
    suites = json.loads(subprocess.run(['meson', 'introspect', '--tests', build], check=True,
                                       capture_output=True).stdout)
    # An engine that is confined can't write what it ran through.
    commands = {'/'.join(pathlib.Path(test['cmd'][0]).parts[-2:]): test for test in suites
                if 'ROCADED_CONFINED' not in test['env']}
    specs = list(tags(root, 'lib', 'Spec'))
    out = ['# Which functions with a clause each test case runs through at their tag. Written by\n'
           '# conformance.py --record; do not edit.\n']
    cases = {(program(tag), case_name(root, tag)): digest(root, tag)
             for tag in tags(root, 'test', 'Covers')}
    for (name, case), text in sorted(cases.items()):
        for data in build.rglob('*.gcda'):
            data.unlink()
        test = commands[name]
        done = subprocess.run(test['cmd'], env={**os.environ, **test['env'], 'TAP_ONLY': case},
                              capture_output=True, text=True, check=False, cwd=build)
        if f'ok 1 - {case}' not in done.stdout or done.returncode != 0:
            sys.exit(f'{name}: {case}: {done.stdout}{done.stderr}')
        run = lines_run(build, root)
        at = {f'{tag.function}():{clause.replace(" ", "_")}'
              for tag in specs if is_reached(root, run, tag) for clause in tag.clauses}
        out.append(f'{name}: {case}: {text}: {" ".join(sorted(at))}\n')
    (root / REACHED).write_text(''.join(out))


CODE = '/* Spec: IBTA 1.2 why */\nint\nrcd_a(int b)\n{\n}\n'
TEST = '/* Covers: IBTA %s %s() */\nstatic void\ncase(void)\n{\n}\n'
RULES = [
    (spec_tags_are_whole, {'lib/a/a.c': '/* Spec: 1.2 why */\nint\nrcd_a(int b)\n{\n}\n'}),
    (spec_tags_are_whole, {'lib/a/a.c': '/* Spec: IBTA 1.2 */\nint\nrcd_a(int b)\n{\n}\n'}),
    (spec_tags_are_whole, {'lib/a/a.c': '/* Spec: IBTA 1.2 why */\n#include "a.h"\n'}),
    (spec_tags_are_whole, {'lib/a/a.c': CODE[:-2] + '\t/* Spec: IBTA 1.2 too */\n}\n'}),
    (covers_tags_meet, {'lib/a/a.c': CODE, 'test/t.c': TEST % ('1.3', 'rcd_a')}),
    (covers_tags_meet, {'lib/a/a.c': CODE, 'test/t.c': TEST % ('1.2', 'rcd_b')}),
    (covers_tags_meet, {'lib/a/a.c': CODE, 'test/t.c': '/* Covers: IBTA 1.2 */\n'}),
    (covers_tags_reach, {'test/t.c': TEST % ('1.2', 'rcd_a'),
                         REACHED: 'test/t: case: none: rcd_b():1.2 rcd_a():1.3\n'}),
    (covers_tags_reach, {'test/t.c': TEST % ('1.2', 'rcd_a'),
                         REACHED: 'test/t: other: none: rcd_a():1.2\n'}),
    (covers_tags_are_of_these_tests, {'test/t.c': TEST % ('1.2', 'rcd_a'),
                                      REACHED: 'test/t: case: 01234567: rcd_a():1.2\n'}),
    (up_to_date, {'lib/a/a.c': CODE, 'doc/conformance.md': HEAD}),
]


def example(files):
    """A tree of its own with these files."""
    folder = tempfile.TemporaryDirectory()
    for name, text in files.items():
        path = pathlib.Path(folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def check(root, rule, files):
    def run():
        with example(files) as folder:
            tap.true(list(rule(pathlib.Path(folder))), 'the rule does not find its own example')
        breaches = list(rule(root))
        tap.true(not breaches, '\n'.join(breaches))
    return run


def credited_where_it_reaches():
    """Of two functions with one clause only the one that the test names and reaches."""
    files = {'lib/a/a.c': CODE + CODE.replace('rcd_a', 'rcd_b'),
             'test/t.c': TEST % ('1.2', 'rcd_b'),
             REACHED: 'test/t: case: none: rcd_a():1.2 rcd_b():1.2\n'}
    with example(files) as folder:
        rows = rows_of(pathlib.Path(folder))
        tap.equal(rows['1.2', 'rcd_a'][2], [], 'tests of the one that is not named')
        tap.equal(rows['1.2', 'rcd_b'][2], ['test/t: case'], 'tests of the one that is')
    with example({**files, REACHED: 'test/t: case: none: rcd_a():1.2 rcd_b():1.3\n'}) as folder:
        tap.equal(rows_of(pathlib.Path(folder))['1.2', 'rcd_b'][2], [], 'what is not reached')


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    if '--record' in sys.argv:
        record(root, pathlib.Path(sys.argv[3]).resolve())
        return 0
    if '--check' not in sys.argv:
        print(table(root), end='')
        return 0
    for number, (rule, files) in enumerate(RULES, 1):
        tap.add(f'{rule.__name__}_{number}', check(root, rule, files))
    tap.add('credited_where_it_reaches', credited_where_it_reaches)
    return tap.run()


sys.exit(main())
