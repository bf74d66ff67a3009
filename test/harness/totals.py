#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up what meson logged of several test runs and prints one line:

    N passed, N failed, N skipped

    totals.py JUNIT_XML...

Exit status 1 when a test failed, a log is missing, or no test ran.
"""
import sys
import xml.etree.ElementTree


def main():
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        try:
            tree = xml.etree.ElementTree.parse(path)
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            print(f'totals: {path}: {error}', file=sys.stderr)
            failed += 1
            continue
        for case in tree.iter('testcase'):
            kinds = {child.tag for child in case}
            if kinds & {'failure', 'error'}:
                failed += 1
            elif 'skipped' in kinds:
                skipped += 1
            else:
                passed += 1
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


sys.exit(main())
