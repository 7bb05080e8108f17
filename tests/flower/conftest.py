"""Small data of four people, and a server with clients, in threads, on loopback."""

import concurrent.futures
import dataclasses
import socket
import threading
import time

import numpy as np
import pytest

import jaxanon as ja
import jaxanon.flower  # Flower takes hold of stdout as it is, so before a test has it.


def write(path):
    """4 people, 2 activities told by frequency, 2 genders by amplitude."""
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(4), (24, 20, 24, 18))
    activity, gender = np.arange(len(subject)) % 2, subject % 2
    t, phase = np.arange(8)[None, :, None], rng.uniform(0, 6, (len(subject), 1, 2))
    wave = (1 + gender[:, None, None]) * np.sin(
        (activity[:, None, None] + 1) * t + phase
    )
    np.savez(
        path,
        windows=wave.astype(np.float32),
        subject=subject,
        activity=activity,
        gender=gender,
        split=(np.arange(len(subject)) % 6 == 5).astype(int),
    )
    return path


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "waves.npz")


@pytest.fixture(scope="session")
def data(file):
    return ja.load(str(file), public="activity", private="gender")


@pytest.fixture
def port():
    """A port that nobody has, as far as one can know."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


class _Built:
    """Hands out a method that is there, so that it compiles once for all clients."""

    def __init__(self, method):
        self._method = method

    def build(self, name, spec, **settings):
        config = dataclasses.asdict(self._method.config)
        assert (name, spec) == (self._method.name, self._method.spec)
        assert settings == config
        return self._method


@pytest.fixture
def hand_out(monkeypatch):
    """``hand_out(method)``: whoever builds it has this one, compiled once for all."""
    from jaxanon.flower import terms

    return lambda method: monkeypatch.setattr(
        terms, "methods_of", lambda name: _Built(method)
    )


@pytest.fixture
def meet(data, port, tmp_path, hand_out):
    """``meet(method, devices, ...)``: serves; ``(run or error, told, outcomes)``."""
    from jaxanon.flower import joining, serving
    from jaxanon.flower.settings import Serving

    def run(method, devices, *, out=None, epochs=2, resume=False, how=None, **settings):
        hand_out(method)
        address, told = f"127.0.0.1:{port}", []
        patient = {"wait_s": 60.0, "timeout_s": 120.0}  # Clients compile side by side.
        settings = {"clients": len(devices)} | patient | settings
        pool = concurrent.futures.ThreadPoolExecutor(len(devices) + 1)
        serve = pool.submit(
            serving.serve,
            *(method, data, Serving(address=address, **settings)),
            epochs=epochs,
            seed=5,
            out=out or tmp_path / "run",
            resume=resume,
            show=False,
            tell=told.append,
        )
        clients = [
            pool.submit(joining.take_part, address, device, wait_s=60.0, **(how or {}))
            for device in devices
        ]
        try:
            ended = serve.result(240)
        except Exception as error:
            ended = error
        outcomes = []
        for client in clients:
            try:
                outcomes.append(client.result(90))
            except (Exception, SystemExit) as error:
                outcomes.append(error)
        pool.shutdown(wait=False)
        print(ended, told, outcomes, sep="\n")  # Shown where a test fails.
        return ended, told, outcomes

    return run


@pytest.fixture
def when():
    """``when(condition)``: waits until it holds, 60 s at most."""

    def wait(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, "it never came to that"
            threading.Event().wait(0.05)

    return wait
