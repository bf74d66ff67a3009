#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a picture from its text, which says how: see architecture.txt.

    draw.py architecture.txt >architecture.svg
"""
import pathlib
import sys
from xml.sax.saxutils import escape

# Fill and edge of each kind of box.
KINDS = {
    'program': ('#eef2f7', '#8a99ad'),
    'library': ('#cfe0f5', '#4a76b0'),
    'memory': ('#fdf0d0', '#c09a3e'),
    'engine': ('#e3f1e4', '#5f9a66'),
    'part': ('#ffffff', '#5f9a66'),
    'port': ('#eee8f5', '#8568ab'),
    'wire': ('#f2f2f2', '#999999'),
}
SIZE, LINE = 12.5, 16
# Of a line in this size; a bold one is wider.
CHAR, BOLD = 6.3, 6.8
HEAD = '''<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" \
font-family="DejaVu Sans, Verdana, sans-serif" font-size="{2}" fill="#1b1f24">
<title>{3}</title>
<defs>
<marker id="point" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#555555"/></marker>
</defs>
<rect width="{0}" height="{1}" fill="#ffffff"/>
'''


def box(left, top, width, height, kind, *lines):
    fill, edge = KINDS[kind]
    yield (f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="4" '
           f'fill="{fill}" stroke="{edge}"/>')
    # In a small box the middle; in a large one from the top, as others may be drawn into it.
    base = top + height / 2 + SIZE / 3 if len(lines) == 1 and height < 40 else top + LINE
    for number, line in enumerate(lines):
        bold = len(lines) > 1 and number == 0 or kind == 'engine'
        if len(line) * (BOLD if bold else CHAR) > width - 8:
            raise SystemExit(f'draw.py: too wide for its box: {line}')
        yield (f'<text x="{left + width / 2:g}" y="{base + number * LINE:g}" '
               f'text-anchor="middle"{" font-weight=" + chr(34) + "bold" + chr(34) if bold else ""}'
               f' xml:space="preserve">{escape(line)}</text>')


def arrow(*ends):
    x1, y1, x2, y2 = ends
    yield (f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#555555" '
           'marker-start="url(#point)" marker-end="url(#point)"/>')


def draw(text, title):
    size, parts = None, []
    for line in text.splitlines():
        first, *lines = (word.strip() for word in line.split('|'))
        word, *rest = first.split() or ['#']
        if word.startswith('#'):
            continue
        if word == 'size':
            size = rest
        elif word == 'box':
            parts += box(*map(int, rest[:4]), rest[4], *lines)
        elif word == 'arrow':
            parts += arrow(*map(int, rest))
        else:
            raise SystemExit(f'draw.py: what is "{line}"?')
    return HEAD.format(*size, SIZE, escape(title)) + '\n'.join(parts) + '\n</svg>\n'


if __name__ == '__main__':
    SOURCE = pathlib.Path(sys.argv[1])
    print(draw(SOURCE.read_text(encoding='utf-8'), f'Rocade: {SOURCE.stem}'), end='')
