"""PrivateHub on MotionSense, evaluated as in the benchmark of anonymizers."""

from anonymizers import command as anonymizers
from anonymizers import (
    entries,
    page,  # noqa: F401  (used by anonymizers)
)

EPOCHS = 12
SETTINGS = {"widths": (32, 64, 128), "batch_size": 128}
CASE = entries.CASES[0]._replace(entries=())
BEFORE = 10  # Default epochs of the classifiers that guide the rivals.
# Generates a window from its inferred activity only. The guidance scale was chosen with
# raw-data classifiers on 1,024 training windows: 1.5 lost 4 points of activity
# accuracy, 3 lost 1, and 8 gained nothing.
ANEW = {"strength": 1.0, "guidance_scale": 5.0, "negative_guidance_scale": 0.0}
WAYS = entries.AS_IT_IS | {"all anew": ANEW}
# Settings for rivals that also start from pure noise; not evaluated yet.
FROM_NOISE = entries.AS_IT_IS | {"all anew": {"strength": 1.0}}
ENTRIES = (
    entries.Entry("PrivateHub", "privatehub", EPOCHS, SETTINGS, WAYS),
    # Methods of the rivals' abstracts, with our network sizes.
    entries.Entry(
        "PrivDiffuser", "privdiffuser", BEFORE + EPOCHS, SETTINGS, FROM_NOISE
    ),
    entries.Entry("Cloak", "cloak", BEFORE + EPOCHS, {"batch_size": 128}, FROM_NOISE),
)
SMOKE = entries.Entry(
    "PrivateHub",
    "privatehub",
    1,
    {
        "widths": (8, 16),
        "heads": 2,
        "num_train_timesteps": 10,
        "num_inference_steps": 2,
    },
)


def rows(folder, seeds, smoke, end) -> list[dict]:
    """Returns rows of the table of anonymizers if MotionSense is available."""
    case = entries.SMOKE[0] if smoke else CASE
    try:
        data = anonymizers.load(case, smoke)
    except OSError as error:
        print(f"Skipping {case.name}: {error}")
        return []
    own = (SMOKE,) if smoke else ENTRIES
    bench = anonymizers.Bench(case, data, folder / "motionsense", smoke)
    for seed in seeds:
        for entry in own:
            bench.run(entry, "seeds", seed, end)
    found = [bench.row(one, variant) for one in own for variant in one.variants]
    about = {"question": "motionsense", "place": case.name}
    return [about | row for row in found if row is not None]
