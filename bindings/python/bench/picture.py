"""Draws a table printed by `bench.py` as an SVG picture.

`python bench.py 10e6 | tee table.txt; python picture.py table.txt > speed.svg`.
"""

import sys

BAR, LEFT, WIDTH = 11, 210, 420
COLOURS = {"build": "#4477aa", "absent": "#ee6677"}

rows = []
for line in open(sys.argv[1]):
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if line.startswith("| ") and len(cells) == 6 and cells[1] not in ("build", "---:"):
        rows.append((cells[0], {"build": float(cells[1]), "absent": float(cells[3])}))
most = max(value for _, values in rows if not _.startswith("py") for value in values.values())
height = 40 + len(rows) * (2 * BAR + 8)
out = [
    f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" '
    'font-family="sans-serif" font-size="12">',
    '<rect width="100%" height="100%" fill="white"/>'
    f'<text x="{LEFT}" y="18">CPU nanoseconds per key, one core: ',
    *(f'<tspan fill="{colour}">{what}</tspan> ' for what, colour in COLOURS.items()),
    "</text>",
]
for i, (name, values) in enumerate(rows):
    top = 32 + i * (2 * BAR + 8)
    weight = ' font-weight="bold"' if name.startswith("ours") else ""
    out.append(f'<text x="{LEFT - 8}" y="{top + BAR + 4}" text-anchor="end"{weight}>{name}</text>')
    for j, (what, colour) in enumerate(COLOURS.items()):
        # A bar far longer than the others is cut off at the edge.
        length = min(values[what] / most, 1) * WIDTH
        out.append(
            f'<rect x="{LEFT}" y="{top + j * BAR}" width="{length:.1f}" height="{BAR - 1}" '
            f'fill="{colour}"/>'
        )
        out.append(
            f'<text x="{LEFT + length + 4:.1f}" y="{top + j * BAR + 9}" font-size="10">'
            f"{values[what]:.1f}</text>"
        )
print("\n".join([*out, "</svg>"]))
