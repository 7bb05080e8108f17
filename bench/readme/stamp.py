"""The line below a table that names the device, the versions and the command."""

import re
from collections import Counter

from harness.pages import columns_table
from harness.results import figures, read

# Words in stored rows, and the words that the tables print instead.
PLAIN = {
    "as released": "official",
    "by models of MotionSense": "with models trained on MotionSense",
    "new people": "unseen subjects",
    "flip of half": "flip 50\u00a0%",
    "flip of 52 %": "flip 52\u00a0%",
    "last fit": "local fine-tuning",
    "as DySan has it": "with DySan's networks",
    "chosen online": "model chosen online",
    "adversary steps": "discriminator steps",
    "shard per device": "shard per core",
    "as if of one": "accounted with half the sensitivity",
    "all anew": "all windows regenerated",
    "from nothing": "from pure noise",
    "reading ": "noise interpretation ",
    "Atlas, of clients": "Atlas, client level",
    "Atlas, of examples": "Atlas, example level",
    "released bare": "released without noise",
    "not counted": "not accounted",
    "samples not drawn": "sampling claimed and not done",
    "noise of the mean": "noise scaled for the mean",
    "ε of one |": "ε of one weight |",
    "on paper over compiled": "formula divided by compiled program",
    "reduced of a round": "bytes reduced in a round",
    " x as many": "",
    ", ours": ", this library",
    "ours, ": "default, ",
    "over ours": "over the default round",
    "gender intrusive": "gender, raw-data classifier",
    "gender re-identified": "gender, retrained attacker",
    "clients on disk over in memory": "time with clients on disk over in memory",
    "members, ": "runs, ",
}
LIMITS = "matmul rate", "copy bandwidth"


def plain(text: str) -> str:
    """Returns the name of a stored row in the words of the documentation."""
    for old, new in PLAIN.items():
        text = text.replace(old, new)
    return text.replace(
        " ± ", "\u00a0±\u00a0"
    )  # Keeps a mean and its deviation together.


def stamped(table, command, file, question=None):
    """Returns ``results -> str``: the table, and the line on how it was measured."""

    def with_stamp(results):
        rows = read(results / f"{file}.json")
        rows = [r for r in rows if question in (None, r.get("question"))]
        return f"{plain(table(results))}\n\n{measured(rows)} Command: `{command}`."

    return with_stamp


def measured(rows) -> str:
    """Returns a sentence on the devices and versions that most rows name.

    Example:
      >>> row = {"device": "1 x x86_64 CPU", "versions": {"jax": "0.10.2"}}
      >>> measured([row])
      'Measured on an x86-64 CPU with jaxanon 0.1 and JAX 0.10.2.'
    """
    devices = Counter(map(_device, rows)).most_common()
    parts = []
    for device, _ in devices:
        own = [row.get("versions", {}) for row in rows if _device(row) == device]
        jax = Counter(one.get("jax", "") for one in own).most_common(1)[0][0]
        # Rows name the version of jaxanon since 0.2.
        version = Counter(one.get("jaxanon", "0.1") for one in own).most_common(1)[0][0]
        parts.append(f"{device} with jaxanon {version} and JAX {jax}")
    return f"Measured on {'; on '.join(parts)}."


def _device(row):
    name = re.sub(r"^\d+ x ", "", row.get("device", ""))
    if "CPU" in name:
        return "an x86-64 CPU"
    return f"one {name.replace(' 80GB HBM3', '')}"


def listed(*names, prefix=""):
    """Returns ``results -> str``: the rows of files as they are, in a table."""

    def table(results):
        rows = [row for name in names for row in read(results / f"{name}.json")]
        measurements = [row for row in rows if row["name"] not in LIMITS]
        columns = {
            "measurement": lambda row: row["name"],
            "size": lambda row: row["shapes"],
            "value": lambda row: f"{figures(row['value'])} {row['unit']}",
        }
        return columns_table(
            [r for r in measurements if r["name"].startswith(prefix)], columns
        )

    return table
