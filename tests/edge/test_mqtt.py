"""An MQTT outlet and a real broker, Mosquitto, that restarts."""

import datetime
import gc
import ipaddress
import itertools
import json
import shutil
import socket
import subprocess
import threading
import time

import mosquitto
import numpy as np
import pytest

from jaxanon.edge import mqtt, outlets
from jaxanon.edge.types import Block


def _block(number):
    """Returns ten samples that identify their block."""
    samples = np.full((10, 2), number + 0.1, np.float32)
    return Block(number / 5, 50.0, samples, "", (number + 1) / 5)


@pytest.fixture
def broker(tmp_path):
    broker = mosquitto.Broker(tmp_path, "allow_anonymous true")
    broker.start()
    yield broker
    broker.kill()


class Subscriber:
    """Subscriber that collects a topic's messages across broker restarts."""

    def __init__(self, port, topic):
        from paho.mqtt import client as paho

        self.seen, self.ready = [], threading.Event()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        self.client.reconnect_delay_set(1, 1)
        self.client.on_connect = lambda client, *_: client.subscribe(topic, 1)
        self.client.on_subscribe = lambda *_: self.ready.set()
        self.client.on_message = lambda client, data, message: self.seen.append(
            json.loads(message.payload)
        )
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert self.ready.wait(5)

    def wait(self, done, seconds=10):
        deadline = time.monotonic() + seconds
        while not done(self.seen):
            assert time.monotonic() < deadline, self.seen[-2:]
            time.sleep(0.01)
        return self.seen

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def subscriber(broker):
    subscriber = Subscriber(broker.port, "home/wrist 1")
    yield subscriber
    subscriber.stop()


def _ended(seen):
    return seen and seen[-1]["gap"] == mqtt.ENDED


@mosquitto.needed
def test_every_block_is_a_message_complete_in_itself(broker, subscriber):
    target = f"mqtt://127.0.0.1:{broker.port}/home/wrist%201"
    outlet = outlets.open_outlet(target, mosquitto.SIGNATURE)
    outlet.write(_block(0))
    nan = np.full((10, 2), np.nan, np.float32)
    outlet.write(Block(0.2, 50.0, nan, "the clock jumped", 0.4))
    outlet.write(Block(0.4, 50.0, nan[:0], "", 0.4))
    outlet.write(_block(2))
    outlet.close()
    outlet.close()
    first, gap, last, end = subscriber.wait(_ended)
    session = first["session"]
    assert first == {
        "format": 1,
        "session": session,
        "sequence": 0,
        "start": 0.0,
        "end": 0.2,
        "rate_hz": 50.0,
        "channels": ["acc x", "acc y"],
        "units": ["g", "g"],
        "gap": "",
        "samples": [[0.1, 0.1]] * 10,
    }
    assert gap | {"sequence": 1, "gap": "the clock jumped", "samples": []} == gap
    assert last | {"sequence": 2, "start": 0.4, "session": session} == last
    assert end | {"sequence": 3, "start": 0.6, "end": 0.6, "samples": []} == end


@mosquitto.needed
def test_a_run_has_a_session_of_its_own(broker, subscriber):
    target = f"mqtt://127.0.0.1:{broker.port}/home/wrist%201"
    for _ in range(2):
        outlets.open_outlet(target, mosquitto.SIGNATURE).close()
    seen = subscriber.wait(lambda seen: len(seen) == 2)
    assert len({one["session"] for one in seen}) == 2
    assert [one["sequence"] for one in seen] == [0, 0]


@mosquitto.needed
def test_a_broker_that_goes_away_and_comes_back(broker, subscriber):
    target = f"mqtt://127.0.0.1:{broker.port}/home/wrist%201"
    outlet = mqtt.MqttTopic(target, mosquitto.SIGNATURE, max_blocks=30)
    outlet._client.reconnect_delay_set(3, 3)  # After the subscriber connected.
    for number in range(10):
        outlet.write(_block(number))
    subscriber.wait(lambda seen: len(seen) == 10)
    broker.kill()
    for number in range(10, 100):
        outlet.write(_block(number))
    assert len(outlet._queue) <= 31  # Bounded, one gap included.
    broker.start()
    subscriber.wait(lambda seen: any(one["gap"] for one in seen))
    for number in range(100, 110):
        outlet.write(_block(number))
    outlet.close()
    seen = subscriber.wait(_ended)
    # A repeated number brings the same message; none is missing.
    by_number = {}
    for one in seen:
        assert by_number.setdefault(one["sequence"], one) == one
    kept = [by_number[sequence] for sequence in range(len(by_number))]
    assert len({one["session"] for one in kept}) == 1
    (place,) = [place for place, one in enumerate(kept) if one["gap"] == mqtt.OVERFLOW]
    # 10 arrived, 20 were in flight, 30 waited: the gap covers all others until the end.
    assert 10 + 30 <= place <= 10 + 20 + 30 + 1
    assert (kept[place]["start"], kept[place]["end"]) == (place / 5, 20.0)
    for before, after in itertools.pairwise(kept):
        assert before["end"] == after["start"]
    for one in kept[:place] + kept[place + 1 : -1]:
        number = round(one["start"] * 5)
        assert one["samples"] == [[pytest.approx(number + 0.1, rel=1e-6)] * 2] * 10


@mosquitto.needed
def test_closing_waits_a_bounded_time(broker, caplog):
    target = f"mqtt://127.0.0.1:{broker.port}/a"
    outlet = mqtt.MqttTopic(target, mosquitto.SIGNATURE, wait_s=0.5)
    broker.kill()
    for number in range(50):
        outlet.write(_block(number))
    start = time.monotonic()
    outlet.close()
    assert time.monotonic() - start < 4
    assert "the broker did not accept 51 blocks." in caplog.text  # One marks the end.
    outlet._sender.join(5)
    assert not outlet._sender.is_alive()


@mosquitto.needed
def test_user_and_password(tmp_path, monkeypatch):
    tool = shutil.which("mosquitto_passwd", path="/usr/bin:/usr/local/bin")
    words = [tool, "-b", "-c", str(tmp_path / "users"), "watch", "a word"]
    subprocess.run(words, check=True, capture_output=True)
    broker = mosquitto.Broker(tmp_path, f"password_file {tmp_path}/users")
    broker.start()
    target = f"mqtt://127.0.0.1:{broker.port}/a"
    try:
        with pytest.raises(PermissionError, match="rejected: .*in JAXANON_MQTT_USER"):
            outlets.open_outlet(target, mosquitto.SIGNATURE)
        monkeypatch.setenv("JAXANON_MQTT_USER", "watch")
        monkeypatch.setenv("JAXANON_MQTT_PASSWORD", "a word")
        outlets.open_outlet(target, mosquitto.SIGNATURE).close()
    finally:
        broker.kill()


def _certificate(folder):
    """Writes key and self-signed certificate of 127.0.0.1."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker")])
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    day = datetime.timedelta(days=1)
    build = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day)
    build = build.not_valid_after(now + day)
    build = build.add_extension(x509.SubjectAlternativeName([here]), critical=False)
    build = build.add_extension(x509.BasicConstraints(True, None), critical=True)
    signed = build.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *form))
    (folder / "broker.pem").write_bytes(signed.public_bytes(pem))


@mosquitto.needed
# paho leaves the socket of a rejected certificate to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls_with_the_machine_s_certificates(tmp_path, monkeypatch):
    _certificate(tmp_path)
    files = f"certfile {tmp_path}/broker.pem", f"keyfile {tmp_path}/key.pem"
    broker = mosquitto.Broker(tmp_path, "allow_anonymous true", *files)
    broker.start()
    target = f"mqtts://127.0.0.1:{broker.port}/a"
    try:
        with pytest.raises(ConnectionError, match="certificate verify failed"):
            outlets.open_outlet(target, mosquitto.SIGNATURE)
        gc.collect()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "broker.pem"))
        outlets.open_outlet(target, mosquitto.SIGNATURE).close()
    finally:
        broker.kill()


def test_no_broker_is_an_error_at_once():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        with pytest.raises(ConnectionError, match=f"no MQTT broker .*:{port}"):
            outlets.open_outlet(f"mqtt://127.0.0.1:{port}/a", mosquitto.SIGNATURE)


def test_somebody_who_says_nothing_is_no_broker():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            TimeoutError, match="did not answer within 0.3 s; .*mqtts://"
        ):
            target = f"mqtt://127.0.0.1:{port}/a"
            mqtt.MqttTopic(target, mosquitto.SIGNATURE, wait_s=0.3)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mqtt://a:b@host/topic", "target must not contain user and password"),
        (
            "mqtt://host",
            "target must be mqtt://HOST\\[:PORT\\]/TOPIC, got 'mqtt://host'",
        ),
        ("mqtt:///topic", "target must be mqtt://HOST"),
        ("mqtt://host:many/topic", "target must be mqtt://HOST"),
        ("mqtt://host/topic?a", "percent-encode"),
        ("mqtt://host/home/+", "the topic must not contain \\+ or #"),
        ("mqtt://host/home/%23", "the topic must not contain \\+ or #"),
        ("amqp://host/topic", "target must be a path, '-', mqtt:// or mqtts://"),
    ],
)
def test_targets_that_are_none(target, said):
    with pytest.raises(ValueError, match=said):
        outlets.open_outlet(target, mosquitto.SIGNATURE)


def test_append_is_for_files():
    with pytest.raises(
        ValueError, match="append requires a file, got target mqtt://h/t"
    ):
        outlets.open_outlet("mqtt://h/t", mosquitto.SIGNATURE, append=True)


def test_without_paho(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "paho.mqtt", None)
    with pytest.raises(ImportError, match="pip install 'paho-mqtt>=2'"):
        outlets.open_outlet("mqtt://127.0.0.1:1/t", mosquitto.SIGNATURE)
