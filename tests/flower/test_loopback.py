"""Rounds of a server and its clients: equal to the simulation, and bad clients."""

import concurrent.futures
import itertools
import json
import sys
import time

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets, learners, methods
from jaxanon.cli import app
from jaxanon.evaluation import newcomers
from jaxanon.flower import client as flower_client
from jaxanon.flower.client import Device
from jaxanon.flower.records import Payload
from jaxanon.flower.rounds import TooFew
from jaxanon.privacy import ledger
from jaxanon.training import run_folder

SMALL = {"filters": (4,), "hidden_sizes": (8,), "local_steps": 2, "batch_size": 4}
BLINDER = methods.recipes("blinder")["paper"].settings | {
    **{
        "latent_dim": 3,
        "hidden_sizes": (8,),
        "samples_per_class": 4,
        "support_size": 1,
        "query_size": 3,
    },
    **{
        "extra": 0,
        "discriminator_steps": 0,
        "discriminator_rounds": 2,
        "client_fraction": 0.5,
    },
    **{"second_order": False, "shadows": False, "discriminator_hidden_sizes": (4,)},
}


@pytest.fixture(scope="module")
def fedavg(data):
    """Returns the default learner of these tests, compiled once."""
    return learners.build("fedavg", data.spec, **SMALL)


@pytest.fixture(scope="module")
def simulated(data, fedavg):
    """Returns ``simulated(rounds, missing)``, the state without one client."""
    update = jax.jit(fedavg.update)
    prepared = fedavg.prepare(datasets.by_client(data.train))

    def simulate(rounds, missing=None):
        init_key, key = jax.random.split(jax.random.key(5))
        mask = np.array(prepared.mask)
        mask[missing if missing is not None else slice(0)] = False
        state = jax.jit(fedavg.init)(init_key)
        for _ in range(rounds):
            state, _ = update(key, state, prepared._replace(mask=mask))
        return state

    return simulate


def _close(run, wanted):
    assert int(run.state.round) == int(wanted.round)
    for name in ("params", "average"):
        both = (getattr(one, name) for one in (run.state, wanted))
        chex.assert_trees_all_close(*both, rtol=2e-4, atol=2e-5)


def _four(data, folder=None):
    """Starts four clients; ``folder`` holds the budgets of private ones."""
    return [Device(c, data, budget=_budget(folder, c)) for c in range(4)]


def _budget(folder, client):
    return None if folder is None else folder / f"budget-{client}.json"


def _refused(run):
    with (run.folder / "refused.jsonl").open() as lines:
        return [*map(json.loads, lines)]


@pytest.mark.slow
def test_blinder_is_that_of_train(data, meet):
    method = methods.blinder(data.spec, **BLINDER)
    run, _, why = meet(method, _four(data), epochs=1)
    wanted = ja.train(method, data, epochs=1, seed=5, progress=False)
    _close(run, wanted.state)
    # Each client stores a row per round, and the server stores one of their means.
    rows, (told,) = [row["losses"] for row in run.history], wanted.history
    means = jax.tree.map(lambda *each: np.mean(each), *rows)
    chex.assert_trees_all_close(means, told["losses"], rtol=2e-4, atol=2e-5)
    assert run.config == wanted.config
    assert why == ["the training is done; round 2 was its last."] * 4


@pytest.mark.slow
def test_atlas_is_that_of_train_and_keeps_at_home_what_clients_keep(data, meet):
    method = learners.build("atlas", data.spec, **SMALL, epsilon=0.0)
    run, _, _ = meet(method, devices := _four(data))
    wanted = ja.train(method, data, epochs=2, seed=5, progress=False)
    _close(run, wanted.state)
    own = jax.tree.map(lambda *leaves: np.stack(leaves), *(d.own for d in devices))
    chex.assert_trees_all_close(own, wanted.state.own, rtol=2e-4, atol=2e-5)
    first = jax.jit(method.init)(jax.random.split(jax.random.key(5))[0])
    # Two programs draw them and may round differently.
    chex.assert_trees_all_close(run.state.own, first.own, atol=1e-7)


@pytest.mark.slow
def test_noise_of_a_guarantee_is_nobody_elses_and_losses_are_not_told(
    data, meet, tmp_path
):
    settings = {"epsilon": 2.0, "max_examples": 24, "max_rounds": 2}
    method = learners.build("fedsgd_ldp", data.spec, **SMALL, **settings)
    run, _, _ = meet(method, _four(data, tmp_path))
    wanted = ja.train(method, data, epochs=2, seed=5, progress=False)
    assert run.history[-1]["losses"] == {}  # No noise covers them.
    apart = lambda a, b: float(jnp.abs(a - b).max())
    found = jax.tree.map(apart, run.state.params, wanted.state.params)
    assert max(jax.tree.leaves(found)) > 1e-3  # Not from the public seed.
    assert (run.folder / "privacy.json").exists()


def test_who_never_had_its_invitation_is_invited_anew(data, fedavg, simulated, meet):
    run, _, _ = meet(fedavg, _four(data), lost=1)
    _close(run, simulated(2))


def test_a_served_run_goes_on_from_the_shell(
    data, file, fedavg, office, hand_out, port, tmp_path, capsys
):
    hand_out(fedavg)
    out = tmp_path / "run"
    words = ["server", "fedavg", "--filters", "4", "--hidden-sizes", "8"]
    words += ["--local-steps", "2", "--batch-size", "4", "--dataset", str(file)]
    words += ["--public", "activity", "--private", "gender"]
    words += ["--address", f"127.0.0.1:{port}", "--min-available-clients", "1"]
    for epochs, more in (("1", []), ("2", ["--resume"])):
        server = office()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            why = pool.submit(flower_client.join, f"127.0.0.1:{port}", 0, data)
            words_now = [*words, "--output-dir", str(out), "--epochs", epochs, *more]
            try:
                code = app.main(words_now)
            finally:
                server.closed = True  # A client waits for a server that failed.
            assert code == 0, capsys.readouterr()
            assert (
                why.result(20) == f"the training is done; round {epochs} was its last."
            )
    assert int(run_folder.open_run(out).state.round) == 2
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 2


class Bad(Device):
    """Client whose payloads the functions ``spoils`` change, one per round."""

    def __init__(self, client, data, spoils, budget=None):
        super().__init__(client, data, budget=budget)
        self._spoils = iter(spoils)

    def work(self, payload):
        return next(self._spoils)(super().work(payload))


def _arrays(change):
    return lambda payload: payload._replace(
        arrays={name: change(array) for name, array in payload.arrays.items()}
    )


def _falls(payload):
    raise OSError("disk full at /home/somebody")


SPOILED = {
    "must be finite, got NaN": _arrays(lambda a: np.full_like(a, np.nan)),
    "must be float32": _arrays(lambda a: a[None]),
    "got 1 missing": lambda payload: payload._replace(
        arrays=dict([*payload.arrays.items()][1:])
    ),
    "its norm must be at most": _arrays(lambda a: 1e6 * a),
    "its weight must be in": lambda payload: Payload({"weight": 1e9}, payload.arrays),
    "its weight must be a number": lambda payload: Payload({}, payload.arrays),
    "it failed (OSError)": _falls,
    "it did not reply within 2 s": lambda _: (
        time.sleep(4) or sys.exit()
    ),  # So it is last.
}


def test_a_bad_client_counts_for_nothing(data, meet, fedavg, simulated):
    devices = [Device(client, data) for client in (0, 1, 3)]
    devices += [Bad(2, data, SPOILED.values())]
    run, told, _ = meet(fedavg, devices, epochs=(rounds := len(SPOILED)), timeout_s=2.0)
    state = simulated(rounds, missing=2)  # As if it had no window.
    chex.assert_trees_all_close(run.state.params, state.params, rtol=1e-4, atol=1e-6)
    assert [row["answers"] for row in run.history] == [3] * rounds
    refused = _refused(run)
    assert [row["client"] for row in refused] == [2] * rounds
    assert [row["round"] for row in refused] == [*range(1, rounds + 1)]
    for row, why in zip(refused, SPOILED, strict=True):
        assert why in row["why"]
        line = f"Round {row['round']}: Client 2 is rejected: {row['why']}"
        assert line in told
    assert "somebody" not in str(told)  # Details of the error stay on the client.


def _one_bad(data, spoil, folder=None):
    clients = _four(data, folder)
    clients[2] = Bad(2, data, itertools.repeat(spoil), _budget(folder, 2))
    return clients


def test_too_few_end_the_run_whose_last_good_round_stays(
    data, meet, fedavg, simulated, tmp_path
):
    out, spoiled = tmp_path / "run", {"left": 1}

    def later(payload):
        spoiled["left"] -= 1
        return payload if spoiled["left"] >= 0 else Payload({"weight": 1.0}, {})

    ended, _, outcomes = meet(fedavg, _one_bad(data, later), out=out, min_replies=4)
    assert isinstance(ended, TooFew)
    assert str(ended).startswith("round 2 needs 4 valid replies, got 3 from")
    assert all("round 2 needs 4 valid replies" in str(each) for each in outcomes)
    assert int(run_folder.open_run(out).state.round) == 1
    run, _, _ = meet(fedavg, _four(data), out=out, min_replies=4, resume=True)
    _close(run, simulated(2))


@pytest.mark.slow
def test_what_clients_sent_in_vain_is_spent(data, meet, tmp_path, capsys):
    settings = {"epsilon": 2.0, "max_examples": 24, "max_rounds": 2}
    method = learners.build("fedsgd_ldp", data.spec, **SMALL, **settings)
    out, left = tmp_path / "vain", iter([True])

    def once(payload):
        return payload if next(left, False) else Payload({"weight": 1.0}, {})

    bad = _one_bad(data, once, tmp_path)
    ended, _, _ = meet(method, bad, out=out, min_replies=4)
    assert isinstance(ended, TooFew)  # In the second round, after three tries.
    assert (told := ledger.read(out))["rounds"] == {"done": 1, "begun": 4, "asked": 2}
    assert told["epsilon"] == pytest.approx(method.guarantee.epsilon(4), rel=1e-6)
    assert app.main(["privacy", str(out)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 of 2 rounds are done. The server started 4 rounds" in said
    with pytest.raises(
        ValueError, match="jaxanon server --resume.* invited to 4 rounds"
    ):
        ja.train(
            method, data, epochs=2, seed=5, output_dir=out, resume=True, progress=False
        )
    # A retried round spends its budget once; new noise is charged again.
    for client in range(4):
        told = json.loads(_budget(tmp_path, client).read_text())
        assert told["releases"] == {"1.0": 2}
    (tmp_path / "new").mkdir()
    run, _, _ = meet(method, _four(data, tmp_path / "new"), out=out, resume=True)
    assert ledger.read(out)["rounds"] == {"done": 2, "begun": 5, "asked": 2}
    found = ja.evaluate(run, data)["privacy"]["epsilon"]
    assert found == pytest.approx(method.guarantee.epsilon(5), rel=1e-6)
    assert found > 1.2 * method.guarantee.epsilon(2)
    # A new client inherits the spent budget of those that trained the model.
    joined = newcomers.join(run, data, num_rounds=0)
    assert ja.evaluate(joined, data)["privacy"]["epsilon"] == found


class Stranger(Device):
    """Client that claims another version."""

    def join(self, payload):
        found = super().join(payload)
        return found._replace(facts=found.facts | {"version": "0.0.9"})


def test_other_versions_and_settings_are_refused_on_both_sides(
    data, file, meet, when, tmp_path, fedavg
):
    out = tmp_path / "run" / "refused.jsonl"
    swapped = ja.load(str(file), public="gender", private="activity")
    strangers = {
        "it is jaxanon 0.0.9 and the server": Stranger(1, data),
        "expects 0123abcd": Device(2, data, expected="0123abcd"),
        "public must be 'activity', as at the server": Device(3, swapped),
        "--client must be from 0 to 3, got 4": Device(4, data),
    }

    class Patient(Device):
        def work(self, payload):
            when(lambda: out.exists() and out.read_text().count("round") > 3)
            return super().work(payload)

    devices = [Patient(0, data), *strangers.values()]
    run, _, outcomes = meet(fedavg, devices, min_available_clients=1)
    assert outcomes[0] == "the training is done; round 2 was its last."
    told = [row["why"] for row in _refused(run)]
    for reason, outcome in zip(strangers, outcomes[1:], strict=True):
        assert isinstance(outcome, ValueError)
        assert "left the training at" in str(outcome) and reason in str(outcome)
        assert any(reason in why for why in told)
    # Details about a client's windows stay on the client.
    assert "have 'gender'" in str(outcomes[3]) and "gender" not in " ".join(told)


def test_a_second_client_of_one_number_takes_its_place(data, meet, when, fedavg):
    second = Device(1, data)

    class Patient(Device):
        def work(self, payload):
            when(lambda: first.why or second.why)
            return super().work(payload)

    first, patient = Device(1, data), Patient(0, data)
    run, _, outcomes = meet(fedavg, [patient, first, second], min_available_clients=2)
    assert outcomes[0] == "the training is done; round 2 was its last."
    # The later of the two gets the error.
    assert sorted(type(each).__name__ for each in outcomes[1:]) == ["ValueError", "str"]
    assert any("another process joined as client 1" in str(each) for each in outcomes)
    assert int(run.state.round) == 2
