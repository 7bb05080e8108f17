"""An MQTT outlet and a real broker, Mosquitto, that comes and goes."""

import itertools
import json
import threading
import time

import mosquitto
import numpy as np
import pytest

from jaxanon.edge import mqtt, outlets
from jaxanon.edge.blocks import Block


def _block(number):
    """Ten samples, which say which block they are of."""
    samples = np.full((10, 2), number + 0.1, np.float32)
    return Block(number / 5, 50.0, samples, "", (number + 1) / 5)


@pytest.fixture
def broker(tmp_path):
    broker = mosquitto.Broker(tmp_path, "allow_anonymous true")
    broker.start()
    yield broker
    broker.kill()


class Subscriber:
    """Collects what comes on a topic, over brokers' lives."""

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
    outlet._client.reconnect_delay_set(3, 3)  # After the subscriber.
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
    # A number that comes again brings the same message; none is missing.
    by_number = {}
    for one in seen:
        assert by_number.setdefault(one["sequence"], one) == one
    kept = [by_number[sequence] for sequence in range(len(by_number))]
    assert len({one["session"] for one in kept}) == 1
    (place,) = [place for place, one in enumerate(kept) if one["gap"] == mqtt.OVERFLOW]
    # 10 came, 20 were under way, 30 waited: the gap is of all others until the end.
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
    assert "51 blocks were not taken by the broker." in caplog.text  # One is the end.
    outlet._sender.join(5)
    assert not outlet._sender.is_alive()
