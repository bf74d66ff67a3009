#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the reference of the engine for programs from its headers, by doxygen.

    api.py DOXYGEN DOXYFILE RELEASE FOLDER HEADER...
    api.py HEADER

FOLDER is made anew. Exit status: 0 when doxygen had nothing to say.

The second form is how doxygen reads a header: with the lists (.def) that it includes written out,
each row with the comment above it, or its last column, as comment.
"""
import pathlib
import re
import shutil
import subprocess
import sys

# A macro, and the list that is included with it.
LIST = re.compile(r'^#define (\w+)\(([^)]*)\) ((?:.*\\\n)*.*)\n'
                  r'#include "(\w+\.def)"\n(?:#undef .*\n)?', re.M)
COLUMN = re.compile(r'(?:"(?:\\.|[^"\\])*"|\([^()]*\)|[^,"()])+')


def rows(text, macro):
    """Columns of each row of a list, a string in pieces as one, and what is said of it."""
    for said, row in re.findall(rf'^(?:/\* ((?:(?!\*/).)*) \*/\n)?{macro}\((.*?)\)$', text,
                                re.S | re.M):
        columns = [column.strip() for column in COLUMN.findall(re.sub(r'"\s+"', '', row))]
        yield columns, said or columns[-1].strip('"')


def written_out(header):
    """A header without lists, each line where it was."""
    def expand(match):
        macro, parameters, template, name = match.groups()
        template = template.replace('\\\n', ' ')
        made = ''
        for columns, comment in rows((header.parent / name).read_text(encoding='utf-8'), macro):
            values = dict(zip(re.split(r', *', parameters), columns))
            text = re.sub(r'[a-z]\w*', lambda word: values.get(word[0], word[0]), template)
            made += f'{text.replace("##", "")} /**< {comment} */ '
        return made + match[0].count('\n') * '\n'
    return LIST.sub(expand, header.read_text(encoding='utf-8'))


def make(doxygen, doxyfile, release, folder, *headers):
    shutil.rmtree(folder, ignore_errors=True)
    said = {
        'PROJECT_NUMBER': release,
        'OUTPUT_DIRECTORY': folder,
        'INPUT': '" "'.join(header for header in headers if header.endswith('.h')),
        'INPUT_FILTER': f'{sys.executable} {pathlib.Path(__file__).resolve()}',
    }
    text = pathlib.Path(doxyfile).read_text(encoding='utf-8')
    text += ''.join(f'{key} = "{value}"\n' for key, value in said.items())
    done = subprocess.run([doxygen, '-'], input=text, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
    return done.returncode


if __name__ == '__main__':
    if len(sys.argv) == 2:
        sys.stdout.write(written_out(pathlib.Path(sys.argv[1])))
        sys.exit(0)
    sys.exit(make(*sys.argv[1:]))
