"""What a federation's server sees, attacked: python bench/audit.py [--smoke].

Membership inference (LiRA) and gradient inversion against the messages of one client,
of learners with and without noise, beside the ε that is accounted for:

- ``mechanisms``: the worst example, or client, that there can be, on models of three
  numbers: ε as it is counted in 40,000 runs a side, of noise that keeps its claim and
  of noise that does not;
- ``members``: three people's windows, one of which is in question, in or out of a
  client's rows;
- ``inversion``: a window rebuilt from the message of a client that has no other.

``--part`` names one of them, ``--dataset`` the windows (uci_hapt by default, for
``members`` its magnitudes). ``--json F`` writes the rows to F, and F with .md, .html
and .png beside; with ``--part``, F keeps its rows of other parts.
"""

import json

import _audit_inversion
import _audit_mechanisms
import _audit_members
import _audit_page
import _timing

PARTS = {
    "mechanisms": _audit_mechanisms.rows,
    "members": _audit_members.rows,
    "inversion": _audit_inversion.rows,
}


def main():
    """Measures, prints, writes."""
    args = _timing.arguments(
        __doc__.splitlines()[0],
        part=f"one of {', '.join(PARTS)}; all by default",
        dataset="uci_hapt by default, smartwatch with --smoke",
        runs="of each example and side, 128 by default",
    )
    _timing.among("part", args.part, PARTS)
    name = args.dataset or ("smartwatch" if args.smoke else "uci_hapt")
    found = []
    for part, make in PARTS.items():
        if args.part in (None, part):
            for row in make(name, args.smoke, int(args.runs or 128)):
                row = {"kind": part, **row, **_timing.about()}
                found.append(row)
                print(_audit_page.line(row), flush=True)
    print(_audit_page.markdown(found))
    if args.json is not None:
        _audit_page.write(args.json, beside(args, found))


def beside(args, found):
    """All rows of the file, those of this part anew."""
    before = []
    if args.part and args.json.exists():
        before = json.loads(args.json.read_text())
    rows = [row for row in before if row["kind"] != args.part] + found
    return sorted(rows, key=lambda row: list(PARTS).index(row["kind"]))


if __name__ == "__main__":
    main()
