"""Tables of kernel speed, on a CPU and on a GPU."""

import pathlib

from harness.pages import table
from harness.results import Rows, figures

# One line for each measurement: kernel | name of its row | part of its shapes. Indented
# lines below it are comparisons: "fast" or "long" | other code | name of the row | part
# of its shapes, if they differ. The second block holds cases of other sizes for a GPU.
TEXT = pathlib.Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
CASES, GPU_CASES = TEXT.split("\n\n")
HEAD = "kernel", "size", "time or rate", "share of the nearer limit", "compared with"


def kernels(results) -> str:
    """Returns the table of a CPU."""
    return table(HEAD, lines(results, "kernels_cpu"))


def kernels_gpu(results) -> str:
    """Returns the table of a GPU."""
    return table(HEAD, lines(results, "kernels_gpu"))


def lines(results, name) -> list[list[str]]:
    """Returns the cells of each measured kernel, in the order of ``HEAD``."""
    rows, cases = Rows(results, name), parsed(CASES)
    if name == "kernels_gpu":
        cases = parsed(GPU_CASES) + [
            (kernel, row, shapes, [each for each in others if rows.has(*each[1:])])
            for kernel, row, shapes, others in cases
            if rows.has(row, shapes)
        ]
    return [_cells(rows, *case) for case in cases]


def parsed(text) -> list[tuple]:
    """Returns ``(kernel, row, shapes, [(words, row, shapes)])`` for each case.

    Example:
      >>> parsed("`dtw` | DTW | 9 pairs\\n  fast | a loop | loop")
      [('`dtw`', 'DTW', '9 pairs', [('x as fast as a loop', 'loop', '9 pairs')])]
    """
    cases = []
    for line in text.strip().splitlines():
        first, *rest = (part.strip() for part in line.split("|"))
        if not line.startswith(" "):
            cases.append((first, *rest, []))
            continue
        other, name, *shapes = rest
        shapes = shapes[0] if shapes else cases[-1][2]
        cases[-1][3].append((f"x as {first} as {other}", name, shapes))
    return cases


def _cells(rows, kernel, name, shapes, others):
    row = rows.row(name, shapes)
    ratios = ((rows.value(*each[1:]), each[0]) for each in others)
    compared = (f"{figures(x, 3 if x < 2 else 2)} {words}" for x, words in ratios)
    measured = f"{figures(row['value'])} {row['unit']}"
    return [kernel, row["shapes"], measured, _share(row), "; ".join(compared)]


def _share(row):
    shares = {
        "matmul rate": row.get("share_of_matmul_rate") or 0.0,
        "copy bandwidth": row.get("share_of_copy_bandwidth") or 0.0,
    }
    limit = max(shares, key=lambda name: shares[name])
    if shares[limit] < 0.001:
        return "< 0.1 %"
    return f"{figures(100 * shares[limit], 2)} % of {limit}"
