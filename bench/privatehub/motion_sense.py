"""PrivateHub as a rewriter of MotionSense, tried as every anonymizer is."""

from anonymizers import command as anonymizers
from anonymizers import (
    entries,
    page,  # noqa: F401  (anonymizers writes with it)
)

EPOCHS = 12
SETTINGS = {"widths": (32, 64, 128), "batch_size": 128}
CASE = entries.CASES[0]._replace(entries=())
BEFORE = 10  # Epochs of what guides the rivals, by default.
# Of a window only its activity is left, as the classifier sees it. How much it obeys
# was chosen by judges of raw windows on 1,024 training windows: 1.5 lost 4 points of
# activity, 3 lost 1, and 8 gained nothing.
ANEW = {"strength": 1.0, "guidance_scale": 5.0, "negative_guidance_scale": 0.0}
WAYS = entries.AS_IT_IS | {"all anew": ANEW}
# The rivals, too, from noise alone; not tried yet.
FROM_NOISE = entries.AS_IT_IS | {"all anew": {"strength": 1.0}}
ENTRIES = (
    entries.Entry("PrivateHub", "privatehub", EPOCHS, SETTINGS, WAYS),
    # Of their abstracts, with sizes of ours.
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
    """Rows of the table of anonymizers, where MotionSense is at hand."""
    case = entries.SMOKE[0] if smoke else CASE
    try:
        data = anonymizers.load(case, smoke)
    except OSError as error:
        print(f"{case.name} is left out: {error}")
        return []
    own = (SMOKE,) if smoke else ENTRIES
    bench = anonymizers.Bench(case, data, folder / "motionsense", smoke)
    for seed in seeds:
        for entry in own:
            bench.run(entry, "seeds", seed, end)
    found = [bench.row(one, variant) for one in own for variant in one.variants]
    about = {"question": "motionsense", "place": case.name}
    return [about | row for row in found if row is not None]
