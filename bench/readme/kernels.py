"""README's tables of the kernels' speed."""

import pathlib

from harness.pages import columns_table
from harness.results import Rows, figures

# Kernel: its name | name of the row | part of its shapes. Below it, a comparison: words
# of the ratio | row of the ratio | its shapes, if different. The second part has other
# sizes or calls on a GPU than on a CPU.
TEXT = pathlib.Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
CASES, GPU_CASES = TEXT.split("\n\n")


def kernels(results):
    """Returns a line per kernel: measurement, share of a limit, comparisons."""
    return _table(Rows(results, "kernels_cpu"), parsed(CASES))


def kernels_gpu(results):
    """Returns the same for a GPU, without kernels that were not measured there."""
    found = Rows(results, "kernels_gpu")
    cases = parsed(GPU_CASES)
    for kernel, name, shapes, beside in parsed(CASES):
        if found.has(name, shapes):
            measured = [each for each in beside if found.has(*each[1:])]
            cases.append((kernel, name, shapes, measured))
    return _table(found, cases)


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
        what, over, *where = rest
        shapes = where[0] if where else cases[-1][2]
        cases[-1][3].append((f"x as {first} as {what}", over, shapes))
    return cases


def _table(found, cases):
    row = lambda case: found.row(case[1], case[2])

    def beside(case):
        told = ((_ratio(found.value(*each[1:])), each[0]) for each in case[3])
        return "; ".join(f"{ratio} {words}" for ratio, words in told)

    columns = {
        "kernel": lambda case: case[0],
        "size": lambda case: row(case)["shapes"],
        "measured": lambda case: f"{figures(row(case)['value'])} {row(case)['unit']}",
        "share of the nearer limit": lambda case: _share(row(case)),
        "beside": beside,
    }
    return columns_table(cases, columns)


def _ratio(value):
    return figures(value, 3 if value < 2 else 2)


def _share(row):
    """Returns the share of the nearer limit, products or copy."""
    shares = {
        "products": row.get("share_of_matmul_rate") or 0.0,
        "the copy": row.get("share_of_copy_bandwidth") or 0.0,
    }
    limit = max(shares, key=lambda name: shares[name])
    if shares[limit] < 0.001:
        return "< 0.1 %"
    return f"{figures(100 * shares[limit], 2)} % of {limit}"
