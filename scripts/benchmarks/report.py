"""Writes the result as a table, as a part of a document, and as a picture."""
import html, math, re

END = "<!-- End of the table. -->"


def begin(flags=""):
    """The line before a table in a document. A benchmark that runs only if it is named has a table of its own."""
    return f"<!-- The table is written by `make bench{f' BENCHFLAGS={flags}' if flags else ''}`. -->"


def number(value):
    """Returns a number with three significant digits."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def spread(row):
    """Returns the median, with the minimum and the maximum in brackets."""
    text = number(row.median)
    if len(row.compared) > 1:
        text += f" ({number(min(row.compared))}–{number(max(row.compared))})"
    return text if row.others else f"{text} {row.unit}".strip()


def target(row):
    if row.limit is None:
        return ""
    unit = "" if row.others else f" {row.unit}".rstrip()
    return f"{'≥' if row.relation == '>=' else '≤'} {row.limit:g}{unit}"


def verdict(row):
    return {None: "", True: "yes", False: "no"}[row.is_met]


def absolute(values, unit):
    values = sorted(values)
    return f"{number(values[len(values) // 2])} {unit}".strip() if values else ""


def table(rows):
    """Returns the result in aligned columns, for a terminal."""
    lines = [("", "onward", "reference", "", "ratio or value", "target", "met")]
    for row in rows:
        lines.append((row.work, absolute(row.own, row.unit), absolute(row.others, row.unit), row.reference, spread(row),
                      target(row), verdict(row)))
    widths = [max(len(line[index]) for line in lines) for index in range(7)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown(rows, machine, runs, note, flags=""):
    has_runs = any(len(row.own) > 1 for row in rows)
    count = f"Medians of {runs} runs, minimum and maximum in brackets." if has_runs else "One run."
    lines = [begin(flags), "", f"{machine}. {count} {note}".strip(), "",
             "| Work | Compared with | Ratio, or value | Target | Met |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.work} | {row.reference} | {spread(row)} | {target(row)} | {verdict(row)} |")
    return "\n".join([*lines, "", END])


def update(path, text):
    """Replaces the part of a document between the lines that begin and end the table."""
    document, first = path.read_text(), text.split("\n")[0]
    pattern = re.compile(re.escape(first) + r".*?" + re.escape(END), re.S)
    if not pattern.search(document):
        raise SystemExit(f"{path} has no place for the table: {first} {END}")
    path.write_text(pattern.sub(lambda _: text, document))


def picture(rows):
    """Returns a picture with a bar for each row: the speed relative to the reference, on a logarithmic scale, with a mark at the
    target."""
    rows = [row for row in rows if row.others and row.limit is not None]
    low, high, left, width, height = 1 / 8, 4, 530, 380, 22

    def place(speed):
        share = math.log(min(max(speed, low), high) / low) / math.log(high / low)
        return left + share * width

    bottom = 40 + height * len(rows)
    parts = []
    for value, name in [(1 / 8, "⅛"), (1 / 4, "¼"), (1 / 2, "½"), (1, "1"), (2, "2"), (4, "4")]:
        parts.append(f'<line class="{"one" if value == 1 else "grid"}" x1="{place(value):.0f}" x2="{place(value):.0f}" '
                     f'y1="32" y2="{bottom}"/>')
        parts.append(f'<text x="{place(value):.0f}" y="26" text-anchor="middle">{name}</text>')
    for index, row in enumerate(rows):
        top = 38 + index * height
        goal = row.limit if row.is_rate else 1 / row.limit
        begin, end = sorted([place(1), place(row.speed)])
        parts.append(f'<text x="{left - 12}" y="{top + 12}" text-anchor="end">{html.escape(row.work)}</text>')
        parts.append(f'<rect class="{"met" if row.is_met else "missed"}" x="{begin:.1f}" y="{top + 2}" '
                     f'width="{max(end - begin, 1.5):.1f}" height="12" rx="2"/>')
        parts.append(f'<line class="goal" x1="{place(goal):.1f}" x2="{place(goal):.1f}" y1="{top}" y2="{top + 16}"/>')
        parts.append(f'<text x="{left + width + 12}" y="{top + 12}">{number(row.speed)} × {html.escape(row.reference)}</text>')
    title = "Speed of Onward relative to the reference: longer to the right is faster or cheaper; a mark is the target"
    # The colors of the bars are visible on white and on black. The color of the text depends on the color scheme.
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1110 {bottom + 10}" font-family="sans-serif" font-size="12">
<title>{title}</title>
<style>
text {{ fill: #24292f }} .grid {{ stroke: #8c959f; stroke-opacity: .4 }} .one {{ stroke: #8c959f; stroke-width: 1.5 }}
.met {{ fill: #2da44e }} .missed {{ fill: #d4843e }} .goal {{ stroke: #24292f; stroke-width: 2 }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} .goal {{ stroke: #e6edf3 }} }}
</style>
<text x="{left + width / 2:.0f}" y="11" text-anchor="middle">{title.split(":")[0]}</text>
{chr(10).join(parts)}
</svg>
"""
