# SPDX-License-Identifier: BSD-3-Clause
"""What rules look at: the files of a tree, and C without what is not code."""
import pathlib
import re
import shutil
import subprocess


def tracked(root):
    """Files below the root that belong to the project, as paths relative to it."""
    names = ''
    if shutil.which('git'):
        # Root may look at a user's clone.
        done = subprocess.run(['git', '-c', 'safe.directory=*', '-C', root, 'ls-files', '-co',
                               '--exclude-standard'], capture_output=True, text=True, check=False)
        names = done.stdout
    if names:
        paths = [pathlib.Path(name) for name in names.splitlines()]
    else:
        paths = [path.relative_to(root) for path in root.rglob('*')]
        paths = [path for path in paths if path.parts[0] not in ('build', '.git')]
    return [path for path in paths if (root / path).is_file()]


def sources(root, *suffixes):
    for path in tracked(root):
        if path.suffix in suffixes:
            yield path, (root / path).read_text(encoding='utf-8')


def without_comments(text):
    """C text with comments and strings blanked, line numbers kept."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)
