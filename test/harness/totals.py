#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up what meson logged of several test runs. Names each test that failed, with the end of what
its program printed, and last of all prints one line:

    N passed, N failed, N skipped

    totals.py TESTLOG_JSON...

A program that reports its tests in the Test Anything Protocol counts as many as it reports, any
other one as one. One that ended otherwise than its reports say (by a signal, out of time, with what
a sanitizer found at its exit) has failed once more: meson's own JUnit file leaves that out.

Exit status 1 when a test failed, a log is missing, or no test ran.
"""
import json
import re
import sys

REPORT = re.compile(r'(not )?ok\b *\d* *(?:- *)?([^#\n]*)(?:# *(skip|todo))?', re.IGNORECASE)
GOOD = {'OK', 'SKIP', 'EXPECTEDFAIL'}
# Lines of a failed program's output that are shown again: a log that others shorten keeps its end.
SHOWN = 30


def reports(program):
    """Yields (name, 'passed', 'failed' or 'skipped') for each test that the program told of."""
    for line in (program.get('stdout') or '').splitlines():
        found = REPORT.match(line)
        if not found:
            continue
        bad, name, directive = found.groups()
        if directive:
            yield name.strip(), 'skipped'
        else:
            yield name.strip(), 'failed' if bad else 'passed'


def judge(program):
    """Counts a program's tests by result; prints those that failed."""
    counts = {'passed': 0, 'failed': 0, 'skipped': 0}
    names = []
    for name, result in reports(program):
        counts[result] += 1
        if result == 'failed':
            names.append(name)
    good = program['result'] in GOOD
    if not good and not names:
        names.append(f'{program["result"]}, status {program.get("returncode")}')
        counts['failed'] += 1
    elif good and not any(counts.values()):
        counts['skipped' if program['result'] == 'SKIP' else 'passed'] += 1
    for name in names:
        print(f'FAILED: {program["name"]}: {name}')
    if names:
        said = f'{program.get("stdout") or ""}\n{program.get("stderr") or ""}'
        for line in said.splitlines()[-SHOWN:]:
            print(f'    {line}')
    return counts


def main():
    totals = {'passed': 0, 'failed': 0, 'skipped': 0}
    for path in sys.argv[1:]:
        try:
            with open(path, encoding='utf-8', errors='replace') as log:
                programs = [json.loads(line) for line in log]
        except (OSError, ValueError) as error:
            print(f'FAILED: no log of tests: {path}: {error}')
            totals['failed'] += 1
            continue
        for program in programs:
            for result, count in judge(program).items():
                totals[result] += count
    print('{passed} passed, {failed} failed, {skipped} skipped'.format(**totals))
    return 1 if totals['failed'] or not totals['passed'] else 0


sys.exit(main())
