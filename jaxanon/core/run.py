"""Trained methods, as returned by ``train`` and ``open_run``."""

import dataclasses
import functools
import math
import pathlib
import time
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
    """A method with its trained state.

    ``history`` has one dict per call of the training program: ``round``, ``epoch``,
    ``losses``, a speed such as ``client_updates_per_second``. ``config`` is the content
    of ``config.json``; ``folder`` is None for a run that was not saved.
    """

    method: Method
    state: Any
    spec: Spec
    folder: pathlib.Path | None
    history: list[dict]
    config: dict

    def __repr__(self):
        """Returns one line, without the arrays of the state."""
        folder = None if self.folder is None else str(self.folder)
        round_ = getattr(self.state, "round", None)  # A tracer under ``jit``.
        return f"Run({self.method.name!r}, round={round_}, folder={folder!r})"

    @property
    def unfinished(self) -> dict | None:
        """Epochs ``done`` and ``asked`` of an interrupted run.

        None for a finished run, and if the metrics do not record the last round.
        """
        last = self.history[-1] if self.history else {}
        asked = self.config.get("epochs")
        if last.get("round") != int(self.state.round) or asked is None:
            return None
        done = last.get("epoch", asked)
        if not isinstance(done, int | float):  # The file was edited.
            return None
        return {"done": done, "asked": asked} if done < asked else None

    @property
    def client_loss(self) -> Callable | None:
        """``() -> (loss_fn, params)`` of a client's steps, for gradient inversion.

        ``loss_fn`` is the loss of one standardized window and its one-hot public class,
        in the form that ``attacks.invert_gradient`` expects. None if the method's
        clients send no gradients.
        """
        federation = self.method.federation
        if federation is None or federation.client_loss is None:
            return None
        return functools.partial(federation.client_loss, self.state)

    def adjusted(self, **hyper) -> "Run":
        """Returns a run with other anonymization settings, without retraining.

        Args:
          **hyper: hyper-parameters in ``method.adjustable.hyper``, such as
            ``guidance_scale`` and ``negative_guidance_scale`` of ``cloak``, which trade
            utility for privacy; or settings in ``method.adjustable.settings``, such as
            ``num_inference_steps``.

        Returns:
          A new ``Run``.

        Raises:
          ValueError: if a name is not adjustable or a value is out of range.
          TypeError: if a setting has the wrong type.

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
            known = [*weights, *settings]
            raise ValueError(
                f"hyper must be adjustable after training, one of {known} for this run "
                f"of {method.name}, got {wrong}; omit it or retrain."
            )
        arrays = {name: hyper[name] for name in weights if name in hyper}
        check_hyper(method, arrays)
        if fields := {name: hyper[name] for name in settings if name in hyper}:
            config = dataclasses.replace(method.config, **fields)
            method = registry.rebuild(method.name, self.spec, config, method.recipe)
        old = self.state.hyper
        arrays = {name: jnp.asarray(v, old[name].dtype) for name, v in arrays.items()}
        state = self.state._replace(hyper=old | arrays)
        return dataclasses.replace(self, method=method, state=state)

    @single
    def anonymize(
        self, key, windows, *, progress: Callable[[int, int, str], None] | None = None
    ) -> np.ndarray:
        """Anonymizes windows so that they can be shared.

        The result is deterministic in key and windows. A window's result does not
        depend on the windows after it.

        Args:
          key: typed PRNG key.
          windows: ``float[N, time, channels]`` in the dataset's units and channel
            order; N may be 0.
          progress: callback ``progress(done, total, what)``, called before compilation
            and before each of ``total`` batches.

        Returns:
          ``float32[N, time, channels]`` in the same units.

        Raises:
          TypeError: if key or windows have the wrong type, or the method is a learner.
          ValueError: if windows have the wrong shape or are not finite.
          FloatingPointError: if the result is not finite; DEEProtect returns NaN where
            its guarantee would not hold.
        """
        if self.method.anonymize is None:
            raise TypeError(
                f"{self.method.name} cannot anonymize windows; train a method of "
                "jaxanon.methods."
            )
        typed_key(key)
        windows = checks.windows(windows, self.spec.time, self.spec.channels)
        anonymize = jax.jit(self.method.anonymize)
        step = _steps(progress, -(-len(windows) // BATCH), "anonymizing windows")
        safe = np.empty_like(windows)
        for number, start in enumerate(range(0, len(windows), BATCH)):
            batch = windows[start : start + BATCH]
            padding = [(0, BATCH - len(batch)), (0, 0), (0, 0)]
            step(number)
            padded = anonymize(
                jax.random.fold_in(key, number), self.state, np.pad(batch, padding)
            )
            safe[start : start + BATCH] = np.asarray(padded)[: len(batch)]
        return self._finite(safe)

    @single
    def sample(
        self,
        key,
        classes,
        *,
        seconds: float | None = None,
        avoid=None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> np.ndarray:
        """Generates synthetic windows, or longer streams, of given classes.

        Args:
          key: typed PRNG key; the same key and classes give the same windows.
          classes: dict of ``int[N]`` by attribute, indices into ``spec.classes``, N at
            least 1. It must contain the public attribute.
          seconds: length of each stream, at least a window's; None generates windows.
          avoid: dict in the form of ``classes``; ``negative_guidance`` steers windows
            away from these classes, such as private ones.
          progress: callback ``progress(done, total, what)``, called before compilation
            and before each of ``total`` batches.

        Returns:
          ``float32[N, samples, channels]``, in the dataset's units.

        Raises:
          TypeError: if key, classes or avoid have the wrong type, or the method cannot
            generate windows.
          ValueError: if a class is unknown or had no training window, the method cannot
            avoid classes, or ``seconds`` is not finite or shorter than a window.
          FloatingPointError: if the result is not finite.
        """
        generate = generation(self.method)
        typed_key(key)
        avoid = {} if avoid is None else avoid
        for name, labels in {"classes": classes, "avoid": avoid}.items():
            if not isinstance(labels, Mapping):
                raise TypeError(
                    f"{name} must be a dict of int[N] by attribute, such as "
                    f"{{{self.spec.public!r}: [0, 1]}}, got {type(labels).__name__}; "
                    "numbers are indices into spec.classes."
                )
            if flat := [each for each in labels if np.ndim(labels[each]) != 1]:
                raise ValueError(f"{name}[{flat[0]!r}] must be int[N], one per window.")
        number = len(next(iter(classes.values()), ()))
        if not number:
            raise ValueError("classes must hold int[N] of an attribute, N at least 1.")
        unknown = sorted({*avoid} - {self.spec.public, *self.spec.private})
        if unknown:
            known = [self.spec.public, *self.spec.private]
            raise ValueError(f"avoid must have keys in {known}, got {unknown}.")
        for labels in (classes, avoid):
            self._check_labels(labels, number)
        if generate.check is not None:
            generate.check(self.state, classes)
        for labels in (classes, avoid):
            self._check_seen(labels)
        length = self.spec.time
        if seconds is not None and not math.isfinite(seconds):
            raise ValueError(f"seconds must be finite, got {seconds!r}.")
        samples = length if seconds is None else round(seconds * self.spec.rate_hz)
        if samples < length:
            raise ValueError(
                f"seconds must be at least a window's {length / self.spec.rate_hz:g} s "
                f"at {self.spec.rate_hz:g} Hz (rate_hz of the data, 1 if a custom file "
                f"does not set it), got {seconds!r}; omit it to generate windows."
            )
        make = jax.jit(generate.sample, static_argnames="samples")
        size = min(number, max(1, BATCH * length // samples))
        parts = []
        step = _steps(progress, -(-number // size), "sampling windows")
        for index, start in enumerate(range(0, number, size)):
            step(index)
            # Fill up the last part, so that it reuses the compiled program.
            rows = np.arange(start, start + size) % number
            wanted, unwanted = (
                {name: np.asarray(each)[rows] for name, each in labels.items()}
                for labels in (classes, avoid)
            )
            part_key = jax.random.fold_in(key, start)
            options = {"avoid": unwanted} if unwanted else {}
            part = make(part_key, self.state, wanted, samples=samples, **options)
            parts.append(np.asarray(part)[: number - start])
        return self._finite(np.concatenate(parts))

    @single
    def window_losses(self, key, windows, labels) -> dict[str, np.ndarray]:
        """Returns a generator's loss on each window, for membership inference.

        Args:
          key: typed PRNG key.
          windows: ``float[N, time, channels]`` in the dataset's units; N >= 1.
          labels: ``int[N]`` of each attribute, as in ``data.train.labels``.

        Returns:
          ``float32[N]`` for each probe, such as a step of a diffusion. The losses are
          conditioned on the private classes and, if training had no noise, on a
          window's statistics.

        Raises:
          TypeError: if the key has the wrong type, or the method has no window losses.
          ValueError: if windows are empty, not finite or of the wrong shape, or labels
            are out of range or of another length.
        """
        generate = self.method.generate
        losses = None if generate is None else generate.losses
        if losses is None:
            raise TypeError(
                f"{self.method.name} cannot compute losses of windows; train "
                "privatehub."
            )
        typed_key(key)
        windows = checks.windows(windows, self.spec.time, self.spec.channels)
        if not len(windows):
            raise ValueError("windows must have at least 1 row, got 0.")
        self._check_labels(labels, len(windows))
        size, take = min(BATCH, len(windows)), jax.jit(losses)
        parts = []
        for start in range(0, len(windows), size):
            rows = np.arange(start, start + size) % len(windows)
            batch = {name: np.asarray(each)[rows] for name, each in labels.items()}
            part_key = jax.random.fold_in(key, start)
            part = take(part_key, self.state, windows[rows], batch)
            left = len(windows) - start
            parts.append({name: np.asarray(x)[:left] for name, x in part.items()})
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def _check_labels(self, labels, count):
        """Raises ValueError for invalid labels; the method checks unknown names."""
        for name, values in labels.items():
            if name in self.spec.classes:
                checks.labels(name, values, count, self.spec.classes[name])

    def _check_seen(self, labels):
        """Raises ValueError for classes without a training window."""
        for name, unseen in self.config.get("data", {}).get("unseen", {}).items():
            names = self.spec.classes[name]
            asked = {names[k] for k in np.unique(np.asarray(labels.get(name, ()), int))}
            if wrong := sorted(asked & set(unseen)):
                seen = [each for each in names if each not in unseen]
                raise ValueError(
                    f"{name} must be one of the classes with training windows, {seen}, "
                    f"got {wrong}; choose another class, or train on data with it."
                )

    def _finite(self, windows):
        """Returns windows; raises FloatingPointError unless all are finite."""
        if not np.isfinite(windows).all():
            raise FloatingPointError(
                f"{self.method.name} computed windows that are not finite; train it "
                "for at least one epoch, or retrain it with another seed."
            )
        return windows


def _steps(progress, total, what):
    """Returns ``(number)``, to call before each batch; it tells the compile time.

    The first batch includes the compilation, so the first step is announced as such,
    and the second one with its duration.
    """
    began = time.perf_counter()

    def step(number):
        if progress is None:
            return
        if number == 0:
            progress(0, total, f"compiling, then {what}")
        elif number == 1:
            seconds = time.perf_counter() - began
            progress(1, total, f"{what} (compiled and first batch in {seconds:.1f} s)")
        else:
            progress(number, total, what)

    return step
