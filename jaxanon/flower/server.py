"""Serves a training: clients join over Flower, rounds go into a run's folder."""

import contextlib
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxanon.core import checks
from jaxanon.core.run import Run
from jaxanon.federated.engine import exchange
from jaxanon.flower import keys, server_transport, terms
from jaxanon.flower.records import Letter
from jaxanon.flower.roster import POLL_S, Roster
from jaxanon.flower.rounds import Bounds, TooFew, rounds
from jaxanon.flower.settings import Serving
from jaxanon.kernels.checks import whole
from jaxanon.privacy import ledger
from jaxanon.privacy.guarantee import epochs_within_budget
from jaxanon.training import checkpoint, metrics_log, progress, run_folder, trainer

TRIES = 3  # Of a round that too few answer.

SLOW_S = 0.5  # To reckon what a round spends.

REFUSED = "refused.jsonl"  # Beside a run's metrics: round, client and why.


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
    epochs = epochs_within_budget(method, epochs)
    trainer.check_data(method, data)
    named = serving.client_keys
    known = None if named is None else keys.public_keys(named)
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
    port = server_transport.listen(*checks.host_and_port(serving.address))
    with contextlib.closing(port), checkpoint.lock_folder(out):
        not_too_far = lambda: run_folder.check_not_past(out, total, epochs)
        run_folder.claim(out, config, resume=resume, check=not_too_far)
        if on_claim is not None:
            on_claim()
        folder = Folder(out, method, total, total // epochs, tell)
        first = exchange.packed(exchange.first_own(state))
        digest = terms.digest(agreed)
        with contextlib.closing(folder):
            state = folder.begin(state)
            with server_transport.serving(
                port,
                certificate=serving.certificate,
                private_key=serving.private_key,
                public_keys=known,
                tell=tell,
            ) as (link, nodes):
                tell(f"Serving {method.name} at {serving.address}, digest {digest}.")
                roster = Roster(
                    link,
                    Letter({"terms": agreed}, first),
                    digest,
                    num_clients=len(clients),
                    nodes=nodes,
                    timeout_s=serving.timeout_s,
                    refuse=folder.refuse,
                    tell=tell,
                )
                _drive(roster, parts, folder, state, serving, epochs, show)
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


class Folder:
    """A run's folder. A class because its checkpoints are open, and time passes.

    Args:
      out: path, claimed before.
      method: ``Method``.
      total: rounds.
      per_epoch: rounds of an epoch.
      tell: gets a sentence of each refusal.
    """

    def __init__(self, out, method, total: int, per_epoch: int, tell: Callable):
        self.path, self.total = pathlib.Path(out), total
        self.state: Any = None
        self.history: list[dict] = []
        self._method, self._per_epoch, self._tell = method, per_epoch, tell
        self._checkpoints = checkpoint.Checkpoints(out)
        self._saved: int | None = None
        self._begun = self._covered = 0
        self._ahead = 0
        self._told: dict | None = None  # Of the guarantee, after ``_covered`` rounds.
        self._saved_at = time.monotonic()

    def begin(self, state):
        """The state to go on from: the last checkpoint's, or the one given."""
        found = self._checkpoints.restore(state) or state
        self._begun = ledger.rounds_spent(self.path, found)
        self.state, self._saved = found, int(found.round)
        self.history = self._checkpoints.truncate_after(self._saved)
        return self.state

    def asking(self) -> None:
        """Notes that clients are to be asked for a round: what they send is spent."""
        self._begun += 1
        if self._begun > self._covered:
            start = time.monotonic()
            ahead = min(self._begun + self._ahead, self.total)
            self._account(max(self._begun, ahead), "rdp")
            # What takes long to reckon is reckoned of more rounds at once.
            slow = time.monotonic() - start > SLOW_S
            self._ahead = max(1, 2 * self._ahead) if slow else self._ahead
        self._keep()

    def add(self, state, info: dict, answers: int, seconds: float) -> dict:
        """Notes a round, and keeps it where the last checkpoint is old; its row."""
        self.state, done = state, int(state.round)
        of_all = self._method, done, self._per_epoch, info, seconds, answers
        row = progress.row(*of_all) | {"answers": answers}
        self.history.append(row)
        metrics_log.append(self.path, row)
        if time.monotonic() - self._saved_at > 5:
            self._save()
        return row

    def refuse(self, client: int | None, why: str) -> None:
        """Notes whose message counts for nothing."""
        done = int(self.state.round)
        with (self.path / REFUSED).open("a", encoding="utf-8") as file:
            row = {"round": done + 1, "client": client, "why": why}
            file.write(json.dumps(row) + "\n")
        who = "A client" if client is None else f"Client {client}"
        self._tell(f"Round {done + 1}: {who} is refused: {why}")

    def _save(self):
        done = int(self.state.round)
        if done == self._saved:
            return
        self._checkpoints.save(self.state)
        self._saved, self._saved_at = done, time.monotonic()

    def _account(self, rounds, accountant):
        self._covered = rounds
        self._told = ledger.privacy_report(self._method, self.state, rounds, accountant)

    def _keep(self):
        if self._told is not None:
            about = {"done": int(self.state.round), "begun": self._begun}
            ledger.write_rounds(self.path, self._told, **about, asked=self.total)

    def close(self) -> None:
        """Keeps the last good round, and lets go of the folder."""
        try:
            if self.state is not None:
                self._save()
                self._account(self._begun, "pld")
                self._keep()
        finally:
            self._checkpoints.close()
