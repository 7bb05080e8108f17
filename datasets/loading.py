"""Loading of data sets as windows for training, by name or from a file."""

import os

from jaxanon.datasets import held_out, registry, store
from jaxanon.datasets.choices import choose
from jaxanon.datasets.custom import build_data, load_file
from jaxanon.datasets.importing.convert import windows_of
from jaxanon.datasets.pipeline import cut_and_split
from jaxanon.datasets.spec import Data, Spec, attributes
from jaxanon.datasets.targets import Target, moments


def load(
    name_or_npz,
    *,
    public: str | None = None,
    private=None,
    preset: str | None = None,
    split: str | None = None,
    source=None,
    data_dir=None,
    seed: int = 0,
    test_people=None,
    **recordings,
) -> Data:
    """Loads a data set as windows, split into training and test windows.

    Args:
      name_or_npz: a name in ``datasets.names()``, or the path of an ``.npz`` file in
        the layout of ``jaxanon.datasets.custom``. For a file, ``public`` and
        ``private`` are required unless the file sets them. Recordings are accepted,
        too: a DataFrame of pandas or polars, an Arrow table, a Hugging Face data set, a
        dict of arrays, a dict of such tables by person, a file or folder of
        recordings, or a list of these. They are cut into windows as by
        ``import_recordings``.
      public: attribute that anonymized windows preserve, or target that learners
        predict; the default depends on the data set.
      private: attribute or attributes that anonymized windows hide; the default depends
        on the data set.
      preset: name of a way to cut the recordings; ``None`` is the data set's first.
      split: ``"trial"``, ``"subject"``, ``"time_block"`` or ``"given"``, depending on
        the data set; ``None`` is its first. Splits never separate overlapping windows.
        The only exception is ``"official"``, which repeats a published program's split
        by window, with statistics of both sides, for comparison with its results.
      source: folder or file of the original data, if it is not in a default folder.
      data_dir: folder for prepared data, by default ``$JAXANON_CACHE``, else
        ``~/.cache/jaxanon``. The first call fills it; later calls take about a second.
      seed: random seed for the test subjects of ``split="subject"``, the test windows
        of ``"official"``, and the clients of CIFAR-10.
      test_people: names of the people to test on, instead of drawn ones; the others
        train. It implies ``split="subject"``.
      **recordings: settings of recordings, as for ``import_recordings``: ``channels``,
        ``labels``, ``time``, ``length`` and so on.

    Returns:
      ``Data(spec, train, test)``: ``float32[N, time, channels]`` in physical units,
      ``int32[N]`` labels, ``float32[N]`` targets. Mean and standard deviation are
      computed on the training rows.

    Raises:
      ValueError: if a name, attribute, preset, split or person is unknown, or the data
        is invalid. Also if test people have one class of an attribute (see
        ``held_out.check_test_classes``).
      FileNotFoundError: if the original files are not found.

    Example:
      >>> data = load("smartwatch", private=["side", "subject"])
      >>> data.train.windows.shape[1:], data.spec.num_classes("side")
      ((128, 6), 2)
      >>> walk = {"x": list(range(400)), "act": ["walk"] * 200 + ["run"] * 200}
      >>> data = load({"ann": walk, "bob": walk}, channels=["x"], labels=["act"],
      ...             rate_hz=50.0, length=20, public="act", private="subject")
      >>> data.train.windows.shape[1:], data.spec.classes["subject"]
      ((20, 1), ('ann', 'bob'))
    """
    private = (private,) if isinstance(private, str) else private
    private = None if private is None else tuple(private)
    data = _load(
        name_or_npz,
        public=public,
        private=private,
        preset=preset,
        split=_implied_split(split, test_people),
        source=source,
        data_dir=data_dir,
        seed=seed,
        test_people=test_people,
        recordings=recordings,
    )
    chosen = {name for name in (public, *(private or ())) if name is not None}
    from_file = _is_recordings(name_or_npz, recordings)
    from_file = from_file or os.fspath(name_or_npz).endswith(".npz")
    if test_people is not None or from_file:
        chosen = {*attributes(data.spec)}
    held_out.check_test_classes(data, chosen)
    return data


def _implied_split(split, test_people):
    """Returns the split in the spelling of ``Spec``; named people imply one."""
    split = None if split is None else split.replace(" ", "_").replace("-", "_")
    if test_people is None or split == "subject":
        return split
    if split is not None:
        raise ValueError(
            f"split (--split) must be 'subject' with test_people, got {split!r}; omit "
            "one of them."
        )
    return "subject"


def _load(
    name_or_npz,
    *,
    public,
    private,
    preset,
    split,
    source,
    data_dir,
    seed,
    test_people,
    recordings,
):
    """Implements ``load`` without the check of the test windows."""
    if _is_recordings(name_or_npz, recordings):
        if source is not None:
            raise ValueError(f"source must be None for recordings, got {source!r}.")
        is_many = isinstance(name_or_npz, list | tuple)
        sources = name_or_npz if is_many else [name_or_npz]
        arrays = windows_of(sources, preset=preset, **recordings)
        return build_data(
            arrays, "recordings", public, private, split, seed, test_people
        )
    name = os.fspath(name_or_npz)
    if name.endswith(".npz"):
        for argument, value in {"preset": preset, "source": source}.items():
            if value is not None:
                raise ValueError(
                    f"{argument} must be None for an .npz file, got {value!r}; omit it."
                )
        chosen_split = {"split": split, "seed": seed, "test_people": test_people}
        return load_file(name, public=public, private=private, **chosen_split)
    dataset = registry.find(name)
    split = choose("split", split or dataset.splits[0], dataset.splits)
    preset = choose("preset", preset or next(iter(dataset.presets)), dataset.presets)
    numbers = dataset.presets[preset].targets
    public = choose("public", public or dataset.public, [*dataset.attributes, *numbers])
    private = dataset.private if private is None else private
    for attribute in private:
        choose("private", attribute, dataset.attributes)
    chosen = dataset.presets[preset]
    parts = store.read(chosen.origin or dataset, source, data_dir)
    classes, mean, std, train, test = cut_and_split(
        dataset, chosen, parts, split, seed, test_people
    )
    if chosen.tokens:  # Tokens have no mean.
        mean, std = (0.0,), (1.0,)
    spec = Spec(
        name=dataset.name,
        preset=preset,
        channels=chosen.channels,
        units=chosen.units,
        rate_hz=dataset.rate_hz / chosen.every,
        time=chosen.length,
        public=public,
        private=private,
        classes=classes,
        mean=mean,
        std=std,
        split=split,
        tokens=chosen.tokens,
        targets={name: _target(t, train.labels[name]) for name, t in numbers.items()},
    )
    return Data(spec, train, test)


def _is_recordings(source, settings) -> bool:
    """Returns whether the source of ``load`` holds recordings to cut into windows."""
    if not isinstance(source, str | os.PathLike):
        return True
    name = os.fspath(source)
    if not name.endswith(".npz") and name not in registry.names():
        return bool(settings) or os.path.exists(name)
    if settings:
        raise TypeError(
            f"{', '.join(settings)} must be omitted for {name!r}, because only "
            "recordings take settings of import_recordings."
        )
    return False


def _target(forecast, values) -> Target:
    """Returns a preset's target with the statistics of training windows."""
    mean, std = moments(values)
    source = {"channel": forecast.channel, "samples": forecast.samples}
    return Target(unit=forecast.unit, mean=mean, std=std, **source)
