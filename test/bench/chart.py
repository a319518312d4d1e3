# SPDX-License-Identifier: MIT
"""A chart of what run.py measured: CPU time against the same program without a tool, on a log scale, as SVG.

usage: chart.py JSON SVG. A bar is the median, the line in it reaches from the lowest round to the highest; > marks what
was cut off by the time limit. It brings its own page, white or dark as the reader has it."""
import json
import math
import sys
from xml.sax.saxutils import escape

SHOWN = {  # name in the JSON -> (name in the legend, colour)
    'leakwatch': ('LeakWatch, 32 frames', '#0a8f6a'),
    'leakwatch, caller only': ('LeakWatch, caller only', '#6cc5a8'),
    'heaptrack': ('heaptrack', '#3b7dd8'),
    'lsan, full stacks': ('LeakSanitizer, full stacks', '#b07aa1'),
    'memcheck': ('valgrind memcheck', '#d98324'),
    'gperftools': ('gperftools heap profiler', '#c8504b'),
}
LEFT, WIDTH, RIGHT, TOP, BAR, GAP = 132, 560, 60, 112, 8, 12   # pixels
MOST = 200

STYLE = '''
.page { fill: #ffffff; }
text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
.title { font-size: 16px; font-weight: 600; }
.less { font-size: 11px; fill: #57606a; }
.grid { stroke: #8b949e; stroke-opacity: .3; }
.one { stroke: #57606a; }
.span { stroke: #24292f; stroke-opacity: .7; }
@media (prefers-color-scheme: dark) {
 .page { fill: #0d1117; } text { fill: #e6edf3; } .less { fill: #9da7b1; } .one { stroke: #9da7b1; } .span { stroke: #e6edf3; }
}'''


def across(ratio):
    """Pixels from the left for a ratio; 0.8 is where the scale begins."""
    low = math.log(0.8)
    return LEFT + WIDTH * (math.log(min(max(ratio, 0.8), MOST)) - low) / (math.log(MOST) - low)


def text(x, y, words, more=''):
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(words)}</text>'


def number(ratio):
    return f'{ratio:.2f}' if ratio < 10 else f'{ratio:.0f}'


def bar(y, figures, colour):
    problem, zero = figures.get('problem'), across(1)
    if problem and not (problem.startswith('over') and figures['cpu']):
        return [text(zero + 5, y + BAR, problem, 'class="less"')]
    median, low, high = figures['cpu']
    end = across(median)
    lines = [f'<rect x="{min(zero, end):.1f}" y="{y}" width="{max(abs(end - zero), 1):.1f}" height="{BAR}" rx="1.5"'
             f' fill="{colour}"/>']
    if high > low:
        lines.append(f'<path class="span" d="M{across(low):.1f} {y + BAR / 2}H{across(high):.1f}"/>')
    words = '> ' + number(median) if problem else number(median)
    return lines + [text(max(across(high), zero) + 5, y + BAR, words, 'class="less"')]


def legend():
    lines = []
    for i, (words, colour) in enumerate(SHOWN.values()):
        x, y = LEFT + i % 3 * 200, 62 + i // 3 * 18
        lines += [f'<rect x="{x}" y="{y}" width="12" height="9" rx="1.5" fill="{colour}"/>', text(x + 17, y + 9, words, 'class="less"')]
    return lines


def scale(bottom):
    lines = []
    for tick in 1, 2, 5, 10, 20, 50, 100, 200:
        x = across(tick)
        lines += [f'<path class="{"one" if tick == 1 else "grid"}" d="M{x:.1f} {TOP - 6}V{bottom}"/>',
                  text(x, bottom + 16, f'{tick}x', 'class="less" text-anchor="middle"')]
    return lines + [text(LEFT + WIDTH / 2, bottom + 36, 'CPU time with the tool / without, log scale', 'class="less" text-anchor="middle"')]


def draw(result):
    body, y = [], TOP
    for name, row in result['workloads'].items():
        shown = [(row['tools'][tool], colour) for tool, (_, colour) in SHOWN.items() if tool in row['tools']]
        if not row['is_long'] or not shown:
            continue
        height = len(shown) * (BAR + 2)
        body.append(text(LEFT - 10, y + height / 2 + 3, name, 'text-anchor="end"'))
        for figures, colour in shown:
            body += bar(y, figures, colour)
            y += BAR + 2
        y += GAP
    full = LEFT + WIDTH + RIGHT
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {y + 46}" width="{full}" height="{y + 46}" role="img">',
            '<title>What leak detectors cost</title>', f'<style>{STYLE}</style>',
            f'<rect class="page" width="{full}" height="{y + 46}" rx="8"/>',
            text(LEFT, 24, 'What it costs to find leaks', 'class="title"'),
            text(LEFT, 44, f'CPU time against the same program alone; medians of {result["rounds"]} interleaved rounds, slow tools once', 'class="less"')]
    return '\n'.join(head + legend() + scale(y) + body + ['</svg>', ''])


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        result = json.load(file)
    with open(sys.argv[2], 'w', encoding='utf-8') as file:
        file.write(draw(result))


if __name__ == '__main__':
    main()
