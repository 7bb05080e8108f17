"""The table of results on the first page: a few anonymizers of one benchmark."""

from anonymizers import rows as anonymizer_rows
from harness.pages import table
from harness.results import read

HEAD = (
    *("test people", "windows", "activity, accuracy"),
    *("gender, strongest attacker", "over 30 windows"),
)
# Case, system and form of each row in ``anonymizers.json``, with its printed name.
SHOWN = (
    ("MotionSense", "raw windows", "", "raw"),
    ("MotionSense", "Blinder, guided, 22 epochs", "flip of 52 %", "Blinder"),
    ("MotionSense", "ObscureNet", "random class", "ObscureNet"),
    ("MotionSense", "ORF", "", "ORF, an untrained baseline"),
    ("MotionSense, new people", "raw windows", "", "raw"),
    ("MotionSense, new people", "Blinder, guided", "", "Blinder"),
)


def front_door(results):
    """Returns the table: utility, and leakage from one window and from thirty."""
    rows = {
        (one["case"], one["system"], one["form"]): one
        for one in read(results / "anonymizers.json")
    }
    lines = []
    for case, system, form, name in SHOWN:
        one = rows[case, system, form]
        attacker, stream = anonymizer_rows.cells(one)[6:8]
        people = (
            "new to the model" if case.endswith("new people") else "seen in training"
        )
        activity = anonymizer_rows.shown(one["public_accuracy"])
        lines.append([people, name, activity, attacker, stream])
    return table(list(HEAD), lines)


TABLES = {"front door": front_door}
