"""Small data of four people, and a server with clients in threads.

Payloads pass through Flower's records only: ``meet`` uses an in-memory office in place
of Flower's programs. ``test_real`` uses the programs.
"""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import queue
import socket
import threading
import time

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import jaxanon as ja
import jaxanon.flower

# Flower keeps a reference to stdout, so import it before a test replaces it.


def write(path):
    """Writes 4 people, 2 activities by frequency, and 2 genders by amplitude."""
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
        split=(np.arange(len(subject)) % 6 == 5 - gender).astype(int),
    )
    return path


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "waves.npz")


@pytest.fixture(scope="session")
def data(file):
    return ja.load(str(file), public="activity", private="gender")


def _pem(key, kind=serialization.PrivateFormat.PKCS8):
    """Returns a private key's PEM, without a password."""
    nothing = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, kind, nothing)


@pytest.fixture(scope="session")
def pem():
    return _pem


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    """Returns paths of a self-signed certificate of 127.0.0.1 and its key."""
    from jaxanon.flower import server_transport

    return server_transport.certify(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def client_keys(tmp_path_factory):
    """Returns paths of three clients' keys, and the lines of the first two."""
    folder, lines, paths = tmp_path_factory.mktemp("keys"), [], []
    for number in range(3):
        key = ec.generate_private_key(ec.SECP384R1())
        paths.append(folder / f"client{number}")
        paths[-1].write_bytes(_pem(key, serialization.PrivateFormat.OpenSSH))
        public = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        lines.append(f"{number} {public.decode()} somebody@somewhere")
    known = folder / "known"
    known.write_text("\n".join(lines[:2]) + "\n\n")
    return paths, known


@pytest.fixture
def port():
    """Returns a port that is probably free."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.fixture
def hand_out(monkeypatch):
    """Returns ``hand_out(method)``, which makes every builder return this method.

    The method then compiles once.
    """
    from jaxanon.flower import terms

    def hand_out(method):
        def build(name, spec, recipe=None, **settings):
            assert (name, spec) == (method.name, method.spec)
            assert settings == dataclasses.asdict(method.config)
            return method

        monkeypatch.setattr(terms.registry, "build", build)

    return hand_out


class Office:
    """In-memory ``server_transport.Link`` and ``client_transport.answer``.

    Args:
      lost: number of each node's first payloads that never arrive.
    """

    def __init__(self, lost=0):
        self._lost, self._count = lost, itertools.count(1)
        self._boxes, self._replies, self._expire, self.closed = {}, {}, {}, False

    def nodes(self):
        return [*self._boxes]

    def push(self, node, kind, payload, ttl):
        from jaxanon.flower.records import to_record

        if node not in self._boxes:
            return None
        name = str(next(self._count))
        box, left = self._boxes[node]
        if left:
            self._boxes[node] = box, left - 1
            self._expire[name] = time.monotonic() + min(ttl, 0.2)
        else:
            box.put((name, kind, to_record(payload)))
        return name

    def pull(self, ids):
        from jaxanon.flower.records import Failure

        now = time.monotonic()
        over = [name for name in ids if self._expire.get(name, now) < now]
        gone = {name: Failure("no such message", False) for name in over}
        here = [name for name in [*self._replies] if name in set(ids)]
        return gone | {name: self._replies.pop(name) for name in here}

    def answer(self, respond, done, **_):
        from jaxanon.flower.client_transport import _answer
        from jaxanon.flower.records import Failure, to_payload, to_record

        node, box = next(self._count), queue.SimpleQueue()
        self._boxes[node] = box, self._lost
        try:
            while not done():
                if self.closed and box.empty():
                    raise ConnectionError("the server is gone")
                with contextlib.suppress(queue.Empty):
                    name, kind, record = box.get(timeout=0.05)
                    found = _answer(respond, kind, to_payload(record))
                    told = isinstance(found, str)
                    self._replies[name] = (
                        Failure(found, True) if told else to_payload(to_record(found))
                    )
        finally:
            del self._boxes[node]


@pytest.fixture
def office(monkeypatch):
    """Returns ``office(lost=0)``, which replaces Flower for servers and clients."""
    from jaxanon.flower import client_transport, roster, server_transport

    monkeypatch.setattr(roster, "POLL_S", 0.01)
    monkeypatch.setattr(roster, "POLL_S", 0.01)

    def opened(lost=0):
        found = Office(lost)

        @contextlib.contextmanager
        def serving(port, **_):
            try:
                yield found, {}
            finally:
                found.closed = True

        monkeypatch.setattr(server_transport, "serving", serving)
        monkeypatch.setattr(client_transport, "answer", found.answer)
        monkeypatch.setattr(client_transport, "wait_for_server", lambda *_: None)
        return found

    return opened


@pytest.fixture
def meet(data, port, tmp_path, hand_out, office):
    """Returns ``meet(method, devices, ...)``, which serves.

    It gives ``(run or error, told, outcomes)``.
    """
    from jaxanon.flower import client, server
    from jaxanon.flower.settings import Serving

    def run(method, devices, *, out=None, epochs=2, resume=False, lost=0, **settings):
        hand_out(method)
        office(lost)
        address, told = f"127.0.0.1:{port}", []
        patient = {"wait_s": 60.0, "timeout_s": 120.0}  # Clients compile in parallel.
        settings = {"min_available_clients": len(devices)} | patient | settings
        pool = concurrent.futures.ThreadPoolExecutor(len(devices) + 1)
        serve = pool.submit(
            server.serve,
            *(method, data, Serving(address=address, **settings)),
            epochs=epochs,
            seed=5,
            output_dir=out or tmp_path / "run",
            resume=resume,
            show=False,
            log=told.append,
        )
        clients = [pool.submit(client.take_part, address, each) for each in devices]
        try:
            ended = serve.result(240)
        except Exception as error:
            ended = error
        outcomes = []
        for each in clients:
            try:
                outcomes.append(each.result(90))
            except (Exception, SystemExit) as error:
                outcomes.append(error)
        pool.shutdown(wait=False)
        print(ended, told, outcomes, sep="\n")  # Shown if a test fails.
        return ended, told, outcomes

    return run


@pytest.fixture
def when():
    """Returns ``when(condition)``, which waits until it holds, at most 60 s."""

    def wait(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, "it never came to that"
            threading.Event().wait(0.05)

    return wait
