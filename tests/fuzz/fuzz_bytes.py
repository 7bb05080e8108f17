"""Damages the bytes of a file: blindly, or following its format."""

import io
import json
import random
import zipfile

import numpy as np

# Input that often breaks parsers, whatever the format.
WORDS = (
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\n",
        b"\r",
        b",",
        b'"',
        b"-",
        b"9" * 40,
    ),
    *(b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0", b"1e308", b"\xd9\xa3", b"'"),
    *(b"2147483648", b"9223372036854775808", b"0001-01-01", b"9999-12-31", b"\xc3\xa9"),
)
BRACKETS = "\0deep\0"  # Stands for nesting that overflows any parser's stack.
VALUES = (
    *(None, True, [], {}, "", "x", "../x", -1, 0, 1, 3.5, 2**31, 10**30, 1e308),
    *(float("nan"), float("inf"), [[]], [None], {"": None}, ["a", 1], "\ud800"),
    *(BRACKETS, [0] * 5, "9" * 5000),
)
ARRAYS = (
    *(np.float64("nan"), np.zeros(0), np.zeros((2, 2)), np.arange(3), np.array("x")),
    *(np.full(40, -1), np.full(40, 2**63, np.uint64), np.full(40, 1j), np.bool_(True)),
    *(np.array(["a"] * 40), np.zeros(40, "M8[s]"), np.zeros(40, [("a", "f4")])),
    *(np.full(40, np.inf), np.full((40, 8, 2), np.nan), np.full((40, 8, 2), 1e300)),
    *(np.zeros((40, 8, 2)), np.zeros((40, 0, 2)), np.zeros((40, 8, 2), np.int8)),
    *(
        np.array([b"a"] * 40),
        np.array(-1),
        np.array(np.inf),
        np.zeros((40, 8, 2), "U1"),
    ),
)
HEADERS = (
    *("(99999999999999,)", "(-1, 2)", "(2**9,)", "(40, 8, 2, 1)", "'x'", "(4.0,)"),
    *(
        "(True, True)",
        "()",
        "(" * 90,
        "(1" + "0" * 30 + ",)",
        "(3,",
        "(None,)",
        "(2, 3)",
    ),
)
TYPES = ("'|O'", "'<f9'", "'<c16'", "[('a', '<f4')]", "'<U9999999'", "5", "'|V0'", "''")


def mutated(draw: random.Random, data: bytes, kind: str) -> bytes:
    """Returns the content after one to three changes.

    Args:
      draw: makes every choice.
      data: content of a valid or previously changed file.
      kind: "json", "jsonl", "text", "zip", "npz", "npy" or "bytes", as it is known.
    """
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        change = draw.choice((BY_KIND[kind], BY_KIND[kind], blind))
        try:
            data = change(draw, data)
        # It is damaged already, so format-specific changes do not apply.
        except Exception:
            data = blind(draw, data)
    return data


def blind(draw, data):
    """Changes bytes without knowledge of the format."""
    size = len(data)
    start = draw.randrange(size + 1)
    stop = min(size, start + draw.choice((1, 1, 2, 8, 64, 1024)))
    choice = draw.randrange(7)
    if choice == 0:
        return data[:start]
    if choice == 1 and size:
        at = draw.randrange(size)
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if choice == 2:
        return data[:start] + data[stop:]
    if choice == 3:
        return data[:start] + 2 * data[start:stop] + data[stop:]
    if choice == 4:
        return data[:start] + draw.choice(WORDS) + data[start:]
    if choice == 5:
        return data[:start] + draw.randbytes(stop - start) + data[stop:]
    return draw.choice(
        (b"", data[::-1], b"[" * 200_000, bytes(size), data + b"\0", b"{}")
    )


def text(draw, data):
    """Changes a cell, a line or the header of a table."""
    lines = data.split(b"\n")
    at = draw.choice((0, draw.randrange(len(lines))))
    split = b"," if b"," in lines[at] else b"\t" if b"\t" in lines[at] else b" "
    cells = lines[at].split(split)
    cell = draw.randrange(len(cells))
    choice = draw.randrange(8)
    if choice < 4:
        cells[cell] = draw.choice(WORDS)
    elif choice == 4:
        del cells[cell]
    elif choice == 5:
        cells.insert(cell, cells[draw.randrange(len(cells))])
    lines[at] = split.join(cells)
    if choice == 6:
        del lines[at:]
    if choice == 7:
        lines.insert(draw.randrange(len(lines)), lines[at])
    return b"\n".join(lines)


def of_json(draw, data):
    """Changes a value, an entry or a name in JSON."""
    told = json.loads(data)
    places = list(_places(told))
    if not places:
        return blind(draw, data)
    inside, name = draw.choice(places)
    choice = draw.randrange(6)
    if choice == 0 and isinstance(inside, dict):
        inside[str(draw.choice(VALUES))] = inside.pop(name)
    elif choice == 1:
        del inside[name]
    else:
        inside[name] = draw.choice(VALUES)
    found = json.dumps(told).replace(json.dumps(BRACKETS), "[" * 99_999)
    return found.encode()


def _places(value):
    """Yields every (list or dict, index) in a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in list(inside):
        yield value, name
        if isinstance(each, dict | list):
            yield from _places(each)


def jsonl(draw, data):
    """Changes JSON in a line, or whole lines."""
    lines = data.splitlines()
    at = draw.randrange(len(lines))
    lines[at] = of_json(draw, lines[at])
    return b"\n".join(lines)


def npy(draw, data):
    """Changes the header of unchanged numbers."""
    length = int.from_bytes(data[8:10], "little")
    header, body = data[10 : 10 + length], data[10 + length :]
    start, stop = header.index(b"'shape': ") + 9, header.index(b", }")
    if draw.random() < 0.5:
        header = header[:start] + draw.choice(HEADERS).encode() + header[stop:]
    else:
        comma = header.index(b", 'fortran")
        header = b"{'descr': " + draw.choice(TYPES).encode() + header[comma:]
    return data[:8] + len(header).to_bytes(2, "little") + header + body


def of_zip(draw, data):
    """Damages, drops, renames or duplicates a member, with a valid checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    name = draw.choice(names)
    pairs = list(members.items())
    at, choice = names.index(name), draw.randrange(6)
    if choice == 0:
        del pairs[at]
    elif choice == 1:
        pairs[at] = draw.choice((*names, "", "../x.npy", "a/", "x")), members[name]
    elif choice == 2:
        pairs[at] = name, draw.choice(pairs)[1]
    else:
        kind = "npy" if members[name][:6] == b"\x93NUMPY" else "text"
        pairs[at] = name, mutated(draw, members[name], kind)
    made = io.BytesIO()
    how = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(made, "w", how) as archive:
        for name, content in dict(pairs).items():
            archive.writestr(name, content)
    return made.getvalue()


def npz(draw, data):
    """Changes an array or its numbers, or calls ``of_zip``."""
    if draw.random() < 0.4:
        return of_zip(draw, data)
    with np.load(io.BytesIO(data)) as file:
        arrays = dict(file)
    name = draw.choice(sorted(arrays))
    choice = draw.randrange(5)
    if choice == 0:
        del arrays[name]
    elif choice == 1:
        flat = np.array(arrays[name])
        flat.reshape(-1)[draw.randrange(flat.size)] = draw.choice((0, 1, 2, 3, 9))
        arrays[name] = flat
    else:
        arrays[draw.choice((name, name, "other"))] = draw.choice(ARRAYS)
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


BY_KIND = {
    "json": of_json,
    "jsonl": jsonl,
    "text": text,
    "zip": of_zip,
    "npz": npz,
    "npy": npy,
    "bytes": blind,
}
