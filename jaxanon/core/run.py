"""A trained method: what ``train`` returns and ``open_run`` finds again."""

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core import checks, registry
from jaxanon.core.method import Method, check_hyper, generation
from jaxanon.core.programs import single
from jaxanon.datasets import Spec
from jaxanon.kernels.checks import typed_key

BATCH = 1024  # Windows per call; the last call is padded, so one program serves any N.


@dataclasses.dataclass(frozen=True)
class Run:
    """A method with the state it was trained to. A class, so that it can be asked.

    ``history`` has one dict per call of the training program: ``round``, ``epoch``,
    ``losses``, a speed such as ``client_updates_per_second``. ``config`` is what
    ``config.json`` holds; ``folder`` is None for a run that was not saved.
    """

    method: Method
    state: Any
    spec: Spec
    folder: pathlib.Path | None
    history: list[dict]
    config: dict

    def __repr__(self):
        """In one line: arrays of a state would fill a notebook."""
        folder = None if self.folder is None else str(self.folder)
        # Not a number while its arrays are traced.
        round_ = getattr(self.state, "round", None)
        return f"Run({self.method.name!r}, round={round_}, folder={folder!r})"

    @property
    def unfinished(self) -> dict | None:
        """Epochs ``done`` and ``asked`` for, of a run that was interrupted; else None.

        None, too, where its metrics do not say.
        """
        last = self.history[-1] if self.history else {}
        asked = self.config.get("epochs")
        if last.get("round") != int(self.state.round) or asked is None:
            return None
        done = last.get("epoch", asked)
        if not isinstance(done, int | float):  # Somebody changed the file.
            return None
        return {"done": done, "asked": asked} if done < asked else None

    @property
    def client_loss(self) -> Callable | None:
        """``() -> (loss_fn, params)``: what a client's steps take gradients of.

        The loss of one standardised window and its public class, one-hot, as
        ``attacks.invert_gradient`` takes it; None of a method whose clients send none.
        """
        federation = self.method.federation
        if federation is None or federation.client_loss is None:
            return None
        return functools.partial(federation.client_loss, self.state)

    def adjusted(self, **hyper) -> "Run":
        """The same run with other weights where it rewrites; nothing is trained anew.

        Args:
          **hyper: of those that ``method.adjustable.hyper`` names, such as
            ``guidance`` and ``negative_guidance`` of ``cloak``: what is kept against
            what is hidden; or of ``method.adjustable.settings``, such as
            ``num_inference_steps``.

        Returns:
          ``Run``; this one is as it was.

        Raises:
          ValueError: for another hyper-parameter, or a value out of its range.
          TypeError: for a setting of another type.

        Example:
          >>> import jaxanon as ja
          >>> data = ja.load("smartwatch")
          >>> tiny = {"widths": (4,), "heads": 1, "autoencoder_widths": (4,)}
          >>> method = ja.methods.cloak(data.spec, **tiny)
          >>> state = jax.jit(method.init)(jax.random.key(0))
          >>> run = Run(method, state, data.spec, None, [], {})
          >>> float(run.adjusted(guidance_scale=2.0).state.hyper["guidance_scale"])
          2.0
        """
        method = self.method
        weights, settings = method.adjustable
        wrong = sorted({*hyper} - {*weights, *settings})
        if wrong:
            known = [*weights, *settings] or "nothing"
            raise ValueError(
                f"{method.name}, as this run was trained, may be told {known} anew, "
                f"got {wrong}; train it with others, or leave out what it lacks."
            )
        arrays = {name: hyper[name] for name in weights if name in hyper}
        check_hyper(method, arrays)
        if fields := {name: hyper[name] for name in settings if name in hyper}:
            config = dataclasses.replace(method.config, **fields)
            method = registry.rebuild(method.name, self.spec, config)
        kept = self.state.hyper
        arrays = {name: jnp.asarray(v, kept[name].dtype) for name, v in arrays.items()}
        state = self.state._replace(hyper=kept | arrays)
        return dataclasses.replace(self, method=method, state=state)

    @single
    def anonymize(self, key, windows) -> np.ndarray:
        """Rewrites windows so that they can be shared.

        The same key and windows give the same result, and a window's result does not
        depend on the windows that follow it.

        Args:
          key: typed PRNG key.
          windows: ``float[N, time, channels]`` in the dataset's own units and channel
            order; any N, 0 included.

        Returns:
          ``float32[N, time, channels]`` in the same units.

        Raises:
          TypeError: for a key or windows of another type, or a run of a learner.
          ValueError: for windows of another shape, or not finite.
          FloatingPointError: if what the method made of them is not finite, as
            DEEProtect's release is when its guarantee would not hold.
        """
        if self.method.anonymize is None:
            does = (
                ""
                if self.method.predict is None
                else f"predicts {self.spec.public} and "
            )
            raise TypeError(
                f"{self.method.name} {does}rewrites no "
                "windows; train a method of jaxanon.methods to anonymize."
            )
        typed_key(key)
        windows = checks.windows(windows, self.spec.time, self.spec.channels)
        anonymize = jax.jit(self.method.anonymize)
        safe = np.empty_like(windows)
        for number, start in enumerate(range(0, len(windows), BATCH)):
            batch = windows[start : start + BATCH]
            padding = [(0, BATCH - len(batch)), (0, 0), (0, 0)]
            made = anonymize(
                jax.random.fold_in(key, number), self.state, np.pad(batch, padding)
            )
            safe[start : start + BATCH] = np.asarray(made)[: len(batch)]
        return self._finite(safe)

    @single
    def sample(
        self, key, classes, *, seconds: float | None = None, avoid=None
    ) -> np.ndarray:
        """Makes windows, or longer streams, of named classes from nothing.

        Args:
          key: typed PRNG key; the same key and classes give the same windows.
          classes: dict of ``int[N]`` by attribute, places in ``spec.classes``, of each
            that is to be told; the public one must be there. N at least 1.
          seconds: how long each is, a window's length at least; None is a window's.
          avoid: a dict likewise, of classes that windows are led away from, by
            ``negative_guidance``, such as private ones; None leads away from nothing.

        Returns:
          ``float32[N, samples, channels]``, in the dataset's own units.

        Raises:
          TypeError: for a key of another type, classes or avoid that are no dict, or a
            method that makes none.
          ValueError: for classes that there are not, of which there was no window to
            learn from, or to avoid where the method cannot; for streams shorter than a
            window, or without an end.
          FloatingPointError: if what was made is not finite.
        """
        generate = generation(self.method)
        typed_key(key)
        avoid = {} if avoid is None else avoid
        for name, own in {"classes": classes, "avoid": avoid}.items():
            if not isinstance(own, Mapping):
                raise TypeError(
                    f"{name} must be a dict of int[N] by attribute, such as "
                    f"{{{self.spec.public!r}: [0, 1]}}, got {type(own).__name__}; "
                    "numbers are places in spec.classes."
                )
            if flat := [each for each in own if np.ndim(own[each]) != 1]:
                raise ValueError(f"{name}[{flat[0]!r}] must be int[N], one per window.")
        number = len(next(iter(classes.values()), ()))
        if not number:
            raise ValueError("classes must be int[N] of an attribute, N at least 1.")
        unknown = sorted({*avoid} - {self.spec.public, *self.spec.private})
        if unknown:
            known = [self.spec.public, *self.spec.private]
            raise ValueError(f"avoid must be of {known}, got {unknown}.")
        for own in (classes, avoid):
            self._check_labels(own, number)
        if generate.check is not None:
            generate.check(self.state, classes)
        for own in (classes, avoid):
            self._check_seen(own)
        time = self.spec.time
        if seconds is not None and not math.isfinite(seconds):
            raise ValueError(f"seconds must be finite, got {seconds!r}.")
        samples = time if seconds is None else round(seconds * self.spec.rate_hz)
        if samples < time:
            raise ValueError(
                f"seconds must be a window's at least, {time / self.spec.rate_hz:g} s "
                f"at {self.spec.rate_hz:g} Hz (rate_hz of the data, 1 where a file of "
                f"one's own does not say), got {seconds!r}; leave it out for windows, "
                "which may be cut."
            )
        make = jax.jit(generate.sample, static_argnames="samples")
        size = min(number, max(1, BATCH * time // samples))
        parts = []
        for start in range(0, number, size):
            # The last part is filled up, so that it compiles to nothing of its own.
            here = np.arange(start, start + size) % number
            own, other = (
                {name: np.asarray(each)[here] for name, each in labels.items()}
                for labels in (classes, avoid)
            )
            own_key = jax.random.fold_in(key, start)
            more = {"avoid": other} if other else {}
            made = make(own_key, self.state, own, samples=samples, **more)
            parts.append(np.asarray(made)[: number - start])
        return self._finite(np.concatenate(parts))

    @single
    def window_losses(self, key, windows, labels) -> dict[str, np.ndarray]:
        """How badly a generator explains windows: who trained it on them can tell.

        Args:
          key: typed PRNG key.
          windows: ``float[N, time, channels]`` in the dataset's own units; N >= 1.
          labels: ``int[N]`` of each attribute, as ``data.train.labels`` has them.

        Returns:
          ``float32[N]`` for each way of asking, such as a step of a diffusion. The
          private classes and, trained without noise, a window's statistics are told.

        Raises:
          TypeError: for a key of another type, or a method that explains no windows.
          ValueError: for windows of another shape, or not finite, or no window; for
            labels out of range, or not one for each window.
        """
        generate = self.method.generate
        losses = None if generate is None else generate.losses
        if losses is None:
            raise TypeError(
                f"{self.method.name} has no losses of windows; train privatehub, which "
                "does."
            )
        typed_key(key)
        windows = checks.windows(windows, self.spec.time, self.spec.channels)
        if not len(windows):
            raise ValueError("windows must be at least one, got none.")
        self._check_labels(labels, len(windows))
        size, take = min(BATCH, len(windows)), jax.jit(losses)
        parts = []
        for start in range(0, len(windows), size):
            rows = np.arange(start, start + size) % len(windows)
            own = {name: np.asarray(each)[rows] for name, each in labels.items()}
            found = take(jax.random.fold_in(key, start), self.state, windows[rows], own)
            left = len(windows) - start
            parts.append({name: np.asarray(x)[:left] for name, x in found.items()})
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def _check_labels(self, labels, count):
        """ValueError for labels that do not fit; other names the method refuses."""
        for name, own in labels.items():
            if name in self.spec.classes:
                checks.labels(name, own, count, self.spec.classes[name])

    def _check_seen(self, labels):
        """ValueError for classes of which there was no training window."""
        for name, lacking in self.config.get("data", {}).get("unseen", {}).items():
            names = self.spec.classes[name]
            asked = {names[k] for k in np.unique(np.asarray(labels.get(name, ()), int))}
            if wrong := sorted(asked & set(lacking)):
                seen = [own for own in names if own not in lacking]
                raise ValueError(
                    f"of {name} {wrong} this run has seen no training window, so it "
                    f"can neither make nor avoid any; name others, of {seen}, or train "
                    "on data that have it."
                )

    def _finite(self, windows):
        """Windows that a method made, if all are finite."""
        if not np.isfinite(windows).all():
            raise FloatingPointError(
                f"{self.method.name} made windows that are not finite, and none of "
                "them is returned; train it, for an epoch at least, or train it anew."
            )
        return windows
