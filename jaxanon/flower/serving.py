"""Serves a training: clients join over Flower, rounds go into a run's folder."""

import contextlib
import time
from collections.abc import Callable

import jax
import numpy as np
from flwr.app import Context, RecordDict

from jaxanon.core import checks
from jaxanon.core.run import Run
from jaxanon.federated.engine import exchange
from jaxanon.flower import keys, link, terms
from jaxanon.flower.apps import server_app
from jaxanon.flower.folder import Folder
from jaxanon.flower.records import Letter
from jaxanon.flower.roster import POLL_S, Roster
from jaxanon.flower.rounds import Bounds, TooFew, rounds
from jaxanon.flower.settings import Serving
from jaxanon.kernels.checks import whole
from jaxanon.privacy.guarantee import paid_for
from jaxanon.training import checkpoint, progress, run_folder, trainer

TRIES = 3  # Of a round that too few answer.


def serve(
    method,
    data,
    serving: Serving,
    *,
    epochs: int = 20,
    seed: int = 0,
    out,
    resume: bool = False,
    show: bool = True,
    tell: Callable[[str], None] = print,
    on_claim: Callable[[], None] | None = None,
) -> Run:
    """Trains as ``jaxanon.train`` does, over clients in processes of their own.

    With the same seed, and all clients of a cohort answering, the numbers are those of
    ``jaxanon.train``, but for learners with a guarantee, whose clients draw their noise
    from keys that nobody else has.

    Args:
      method: ``Method`` that ``terms.check_method`` takes.
      data: ``jaxanon.datasets.Data``; only its spec, and how many windows a client has,
        go into the training.
      serving: ``Serving``.
      epochs, seed, out, resume, on_claim: as in ``jaxanon.train``.
      show: a progress bar, or lines.
      tell: gets a sentence whenever a client comes, goes or is refused.

    Returns:
      ``Run``. What clients keep to themselves is not in it, but what they began with.

    Raises:
      OSError: if the port is taken, or a file of TLS is not there, before anything is
        written.
      ValueError: as ``jaxanon.train``, for a method that can't be served, and for files
        that are no certificate and its private key.
      TooFew: if too few clients answered well ``TRIES`` times, or too few came; the
        last good round's checkpoint stays.
      FloatingPointError: if the state is no longer finite; likewise.
    """
    checks.seed(seed)
    whole("epochs", epochs, least=1)
    terms.check_method(method)
    epochs = paid_for(method, epochs)
    trainer.check_data(method, data)
    known = serving.client_keys and keys.public_keys(serving.client_keys)
    keys.check_certificate(serving.certificate, serving.private_key)
    most = int(np.unique(data.train.labels["subject"], return_counts=True)[1].max())
    clients, rows = terms.clients_of(method, data), serving.rows or most
    init_key, run_key = jax.random.split(jax.random.key(seed))
    # Not copied, as training does: no round here gives the state's buffers away.
    state = jax.device_put(method.init(init_key))
    agreed = terms.terms(method, state, clients, rows, seed)
    config = run_folder.describe(method, data, state, epochs=epochs, seed=seed)
    one = terms.own_windows(method, _nobody(data), 0, agreed)
    bounds = Bounds(serving.min_clients, serving.max_norm)
    parts = rounds(method, run_key, clients, jax.eval_shape(lambda: one), bounds)
    total = epochs * method.schedule.rounds_per_epoch(one)
    port = link.listen(*checks.host_and_port(serving.address))
    with contextlib.closing(port), checkpoint.alone(out):
        not_too_far = lambda: run_folder.not_past(out, total, epochs)
        run_folder.claim(out, config, resume=resume, check=not_too_far)
        if on_claim is not None:
            on_claim()
        folder = Folder(out, method, total, total // epochs, tell)
        first = exchange.packed(exchange.first_own(state))
        digest = terms.digest(agreed)
        with contextlib.closing(folder):
            state = folder.begin(state)
            with link.serving(
                port,
                certificate=serving.certificate,
                private_key=serving.private_key,
                public_keys=known,
                upload_s=serving.timeout_s,
            ) as (grid, nodes):
                tell(f"Serving {method.name} at {serving.address}, digest {digest}.")
                roster = Roster(
                    grid,
                    Letter({"terms": agreed}, first),
                    digest,
                    num_clients=len(clients),
                    nodes=nodes,
                    timeout_s=serving.timeout_s,
                    refuse=folder.refuse,
                    tell=tell,
                )
                drive = lambda grid: _drive(
                    roster, parts, folder, state, serving, epochs, show
                )
                context = Context(grid.run.run_id, 0, {}, RecordDict(), {})
                server_app(drive)(grid=grid, context=context)
    return Run(method, folder.state, data.spec, folder.path, folder.history, config)


def _nobody(data):
    """A window of zeros, for the shapes of a client's data."""
    return jax.tree.map(lambda leaf: np.zeros_like(leaf[:1]), data.train)


def _drive(roster, parts, folder, state, serving, epochs, show):
    """All rounds, from a state on; whoever is there hears how it ended."""
    why, failed = "the server stopped.", True
    try:
        _wait_for(roster, serving.clients, serving.wait_s)
        done, total = int(state.round), folder.total
        shown = {"show": show, "epochs": epochs, "legend": progress.LEGEND}
        with progress.rounds(total, done, **shown) as tell:
            while done < total:
                start = time.monotonic()
                state, info, good = _one_round(roster, parts, folder, state, serving)
                roster.accepted.update(good)
                done = int(state.round)
                tell(folder.add(state, info, len(good), time.monotonic() - start))
        why, failed = f"the training is done; round {total} was its last.", False
    except (TooFew, FloatingPointError) as error:
        why = str(error)
        raise
    finally:
        roster.dismiss(why, failed=failed)


def _wait_for(roster, number, wait_s):
    end = time.monotonic() + wait_s
    while len(roster.present) < number:
        if time.monotonic() > end:
            raise TooFew(
                f"{len(roster.present)} clients are there after {wait_s:g} s, and "
                f"{number} are needed; start them, or wait longer (--wait-s)."
            )
        roster.poll()
        time.sleep(POLL_S)


def _one_round(roster, parts, folder, state, serving):
    """A round that enough clients answer, tried ``TRIES`` times at most."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(TooFew):
            return _one_try(roster, parts, folder, state)
        _wait_for(roster, serving.min_clients, serving.wait_s)
    return _one_try(roster, parts, folder, state)


def _one_try(roster, parts, folder, state):
    roster.poll()
    # Before clients are asked: never less is told than was spent.
    folder.asking()
    return parts.update(state, roster.ask, folder.refuse)
