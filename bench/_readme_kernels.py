"""README's tables of how fast the kernels are."""

from _markdown import table
from _readme_rows import Rows, figures

CLIENTS, MATRIX, FLEET = "1024 clients", "64 x 1048576", "24 recordings"


def kernels(results):
    """A line a kernel: what was measured, how near a limit, beside what."""
    return _lines(Rows(results, "kernels_cpu"), CASES)


def kernels_gpu(results):
    """The same of a GPU, but for what was not measured there."""
    found = Rows(results, "kernels_gpu")
    cases = [*GPU_CASES]
    for kernel, name, shapes, beside in CASES:
        measured = [e for e in beside if found.has(e[1], e[2] or shapes)]
        if found.has(name, shapes):
            cases.append((kernel, name, shapes, measured))
    return _lines(found, cases)


def _lines(found, cases):
    lines = []
    for kernel, name, shapes, beside in cases:
        row = found.row(name, shapes)
        times = [
            f"{_ratio(found.value(over, where or shapes))} {told}"
            for told, over, where in beside
        ]
        value = f"{figures(row['value'])} {row['unit']}"
        lines.append([kernel, row["shapes"], value, _share(row), "; ".join(times)])
    head = ["kernel", "size", "measured", "share of the nearer limit", "beside"]
    return table(head, lines)


def _ratio(value):
    return figures(value, 3 if value < 2 else 2)


def _share(row):
    """Of the limit that is nearer, products or the copy."""
    shares = {
        "products": row.get("share_of_matmul_rate") or 0.0,
        "the copy": row.get("share_of_copy_bandwidth") or 0.0,
    }
    limit = max(shares, key=lambda name: shares[name])
    if shares[limit] < 0.001:
        return "< 0.1 %"
    return f"{figures(100 * shares[limit], 2)} % of {limit}"


def _times(rival, name, shapes=""):
    return f"x as fast as {rival}", name, shapes


def _long(what, name, shapes=""):
    return f"x as long as {what}", name, shapes


STEP = "the step that protects nobody"
CLIPPED = (
    _long("a read of the data (aimed at 1.5)", "clip-noise-aggregate, over one read"),
    _times("Optax", "clip-noise-aggregate over optax per example"),
)
CASES = (
    (
        "`clipped_gradient_sum`, per layer",
        *("MLP: ours, per layer", "0.83 M"),
        (_long(f"{STEP} (aimed at 1.4)", "MLP: ours, per layer over non-private"),),
    ),
    (
        "the same, flat",
        *("MLP: ours, flat", "0.83 M"),
        (
            _long(STEP, "MLP: ours, flat over non-private"),
            _times("`vmap(grad)` and clip", "MLP: ours, flat over vmap(grad)"),
            _times(
                "Opacus's hooks (aimed at 50)", "MLP: ours, flat over Opacus's hooks"
            ),
            _times(
                "Opacus's ghost clipping (aimed at 2)",
                "MLP: ours, flat over Opacus's ghost clipping",
            ),
            _times("jax-privacy", "MLP: ours, flat over jax-privacy"),
            _times(
                "jax-privacy in microbatches",
                "MLP: ours, flat over jax-privacy, microbatches of 16",
            ),
        ),
    ),
    (
        "the same, per layer",
        *("LSTM: ours, per layer", "8 x 64 units"),
        (_long(f"{STEP} (aimed at 3)", "LSTM: ours, per layer over non-private"),),
    ),
    (
        "the same, flat",
        *("LSTM: ours, flat", "8 x 64 units"),
        (
            _times(
                "`vmap(grad)` of Flax's LSTM (aimed at 2)",
                "LSTM: ours, flat over vmap(grad) of Flax's",
            ),
            _times("`vmap(grad)` of ours", "LSTM: ours, flat over vmap(grad)"),
        ),
    ),
    (
        "`clipped_sum` and `add_noise_to_sum`",
        *("clip-noise-aggregate", MATRIX),
        (
            *CLIPPED,
            _times(
                "`vmap` of a clip and a sum",
                "clip-noise-aggregate over vmap of clip, then sum",
            ),
        ),
    ),
    ("`clip_and_noise_per_client`", "clip and noise per client", MATRIX, ()),
    (
        "`dtw`",
        *("DTW, a call per core", "10000 pairs"),
        (
            _times("dtaidistance in a loop", "DTW over dtaidistance, loop"),
            _times("its threads (aimed at 2)", "DTW over dtaidistance, threads"),
        ),
    ),
    (
        "`mutual_information`",
        *("mutual information", "4096 rows"),
        (_times("scikit-learn", "mutual information over scikit-learn", "4000 rows"),),
    ),
    *(
        (
            "`ddim_sample`",
            *("DDIM, windows/s", f", {steps} steps"),
            (
                _long(
                    "its network calls (aimed at 1.05)",
                    "DDIM, over its network calls alone",
                ),
                _times(
                    "a Python loop of jitted steps", "DDIM in a Python loop, over ours"
                ),
            ),
        )
        for steps in (20, 100)
    ),
    (
        "`dpm_solver_sample`",
        *("DPM-Solver++, windows/s", ", 20 steps"),
        (_long("its network calls", "DPM-Solver++, over its network calls alone"),),
    ),
    (
        "`ddpm_sample`, with noise for every step",
        *("DDPM, windows/s", ", 20 steps"),
        (_long("its network calls", "DDPM, over its network calls alone"),),
    ),
    (
        "`balance`",
        *("SMOTE, balanced from scratch", "64 clients"),
        (
            _times(
                "imbalanced-learn in a loop (aimed at 20)",
                "SMOTE, from scratch, over imbalanced-learn",
            ),
        ),
    ),
    (
        "`draw_from_table`, all rows",
        *("SMOTE, all, from the table", "64 clients"),
        (
            _times(
                "imbalanced-learn (aimed at 20)",
                "SMOTE, all, from the table, over imbalanced-learn",
            ),
        ),
    ),
    ("`draw_from_table`, a round's rows", "SMOTE, a round's draws", "64 clients", ()),
    (
        "`layer_mean`",
        "layer mean",
        CLIENTS,
        (_times("NumPy", "layer mean over NumPy"),),
    ),
    (
        "`coordinate_median`",
        *("coordinate median", CLIENTS),
        (_times("NumPy's", "coordinate median over NumPy"),),
    ),
    ("`trimmed_mean`", "trimmed mean", CLIENTS, ()),
    ("`krum`", "Krum", CLIENTS, ()),
    ("`fixed_point_encode`", "fixed point", CLIENTS, ()),
    (
        "`sosfilt`",
        *("Butterworth forward", FLEET),
        (
            _times("SciPy in a loop", "forward over SciPy's loop"),
            _times("SciPy in one call", "forward over SciPy, one call"),
        ),
    ),
    (
        "`sosfiltfilt`, ragged",
        *("Butterworth both ways, ragged", FLEET),
        (_times("SciPy in a loop", "both ways over SciPy's loop"),),
    ),
    (
        "`cut_windows`",
        *("cut windows", FLEET),
        (_times("NumPy's loop", "cut windows over NumPy's loop"),),
    ),
    *(
        (
            "`count_steps_jerk_pace`",
            *("steps, jerk and pace", size),
            (_times("a loop with SciPy", "steps over SciPy's loop"),),
        )
        for size in (FLEET, "5000 recordings")
    ),
    (
        "`window_statistics`",
        *("window statistics", "5000 windows"),
        (_times("NumPy and SciPy", "statistics over NumPy and SciPy"),),
    ),
    ("`laplace_mechanism`", "laplace noise, float32", "", ()),
    (
        "`grid_laplace_mechanism`",
        *("laplace noise on a grid", "1024 people"),
        (_long("noise in floating point", "laplace on a grid, over floats"),),
    ),
    (
        "`exponential_mechanism`",
        *("exponential mechanism, 20 candidates", ""),
        (_times("NumPy", "exponential over NumPy"),),
    ),
    *(
        (
            "`orthonormal_rows`",
            *("orthonormal rows, eigh", size),
            (_times("an SVD", "orthonormal rows, eigh over an SVD"),),
        )
        for size in ("7x30", "256x1024")
    ),
)
# Of other sizes, or calls, than on a CPU.
ROWS = "1024 x 1048576 bfloat16"
GPU_CASES = (
    (
        "`clipped_sum` and `add_noise_to_sum`",
        *("clip-noise-aggregate", ROWS),
        CLIPPED,
    ),
    ("`clip_and_noise_per_client`", "clip and noise per client", ROWS, ()),
    (
        "`dtw`",
        *("DTW, one call", "10000 pairs"),
        (
            _times("dtaidistance in a loop", "DTW over dtaidistance, loop"),
            _times("its threads", "DTW over dtaidistance, threads"),
        ),
    ),
)
