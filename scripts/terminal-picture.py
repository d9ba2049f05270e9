#!/usr/bin/env python3
"""Draws a terminal session of the real program, on the samples, as an SVG picture.

    scripts/terminal-picture.py demo [PROGRAM] > docs/demo.svg
    scripts/terminal-picture.py mail [PROGRAM] > docs/mail.svg

PROGRAM is target/release/larder by default. Needs the standard library only. A test compares the
pictures with the output of this script; identifiers of new items are random and ignored.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import unicodedata

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = 84
SESSIONS = {
    "demo": [
        "larder import -q samples/contacts/google.vcf samples/calendars",
        "larder find 503-555-0120",
        'larder add "Lunch with Anna 6 March 2026 12:30 for 1h at Bistro Verde"',
        "larder agenda 2026-03-05 2026-03-06",
        "larder undo",
    ],
    "mail": [
        "larder find --kind message --related --threads terrace",
        "larder edit --query 'subject:audit' --label +walrus",
        "larder show mid:audit-4@walrus.example",
        "larder find --kind message 'label:walrus flag:attach'",
    ],
}

SETUP = {
    "demo": "true",
    "mail": "mkdir -p mail/cur mail/new && cp samples/mail/*.eml mail/cur &&"
    " larder -q sources add mail && larder -q sync 2>&1",
}

CELL, LINE, MARGIN, BAR = 8.4, 19, 16, 32
FOREGROUND, FAINT = "#d8dee9", "#7b8698"
COLOURS = {
    31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd", 36: "#56b6c2",
}
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def run_session(name, program):
    """Runs the commands in a private home and returns the lines of the terminal."""
    lines = []
    with tempfile.TemporaryDirectory() as home:
        os.symlink(os.path.join(ROOT, "samples"), os.path.join(home, "samples"))
        os.mkdir(os.path.join(home, "bin"))
        os.symlink(os.path.abspath(program), os.path.join(home, "bin", "larder"))
        environment = {
            "HOME": home,
            "PATH": os.path.join(home, "bin") + ":/usr/bin:/bin",
            "LARDER_DIR": os.path.join(home, "store"),
            "TZ": "Europe/Berlin",
            "LC_ALL": "en_US.UTF-8",
            "COLUMNS": str(COLUMNS),
        }
        subprocess.run(
            ["sh", "-c", SETUP[name]], cwd=home, env=environment, stdout=subprocess.DEVNULL,
            check=True,
        )
        for command in SESSIONS[name]:
            lines.append("\x1b[32m$\x1b[0m \x1b[1m" + command + "\x1b[0m")
            coloured = command.replace("larder ", "larder --color always ", 1)
            done = subprocess.run(
                ["sh", "-c", coloured], cwd=home, env=environment, text=True, encoding="utf-8",
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
            )
            lines.extend(done.stdout.rstrip("\n").split("\n"))
            lines.append("")
    return lines[:-1]


def width(text):
    """Returns the number of terminal columns that a text takes."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide


def draw_line(line, y):
    """Returns the SVG of one line, a `text` element for each style."""
    drawn, column, style, at = [], 0, set(), 0
    pieces = []
    for match in SGR.finditer(line):
        pieces.append((line[at:match.start()], frozenset(style)))
        codes = [int(code) for code in match.group(1).split(";") if code] or [0]
        for code in codes:
            style = set() if code == 0 else style | {code}
        at = match.end()
    pieces.append((line[at:], frozenset(style)))
    for text, codes in pieces:
        if text.strip():
            blank = len(text) - len(text.lstrip(" "))
            x = MARGIN + (column + blank) * CELL
            colour = next((COLOURS[code] for code in sorted(codes) if code in COLOURS), None)
            colour = colour or (FAINT if 2 in codes else FOREGROUND)
            extra = ' font-weight="bold"' if 1 in codes else ""
            extra += ' text-decoration="line-through"' if 9 in codes else ""
            shown = html.escape(text.strip(" "), quote=False)
            length = width(text.strip(" ")) * CELL
            drawn.append(
                f'<text x="{x:.1f}" y="{y}" fill="{colour}"{extra} textLength="{length:.1f}"'
                f' xml:space="preserve">{shown}</text>'
            )
        column += width(text)
    return drawn


def draw(lines):
    """Returns the picture."""
    picture_width = round(2 * MARGIN + COLUMNS * CELL)
    picture_height = BAR + len(lines) * LINE + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture_width}" height="{picture_height}"'
        f' viewBox="0 0 {picture_width} {picture_height}" role="img"'
        ' aria-label="A terminal session of larder" font-size="14"'
        ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">',
        f'<rect width="{picture_width}" height="{picture_height}" rx="8" fill="#1e2430"/>',
    ]
    for at, colour in enumerate(["#e06c75", "#e5c07b", "#98c379"]):
        parts.append(f'<circle cx="{20 + 18 * at}" cy="17" r="5.5" fill="{colour}"/>')
    for number, line in enumerate(lines):
        parts.extend(draw_line(line, BAR + number * LINE + 14))
    parts.append("</svg>")
    return "\n".join(parts)


def main():
    name = sys.argv[1]
    program = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "target/release/larder")
    sys.stdout.reconfigure(encoding="utf-8")
    print(draw(run_session(name, program)))


if __name__ == "__main__":
    main()
