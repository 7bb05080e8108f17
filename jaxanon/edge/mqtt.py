"""An MQTT topic as an outlet that outlives its broker's absences."""

import collections
import contextlib
import logging
import os
import secrets
import threading
import time
import urllib.parse

import numpy as np

from jaxanon.edge import rows
from jaxanon.edge.types import Block, Signature

PORTS = {"mqtt": 1883, "mqtts": 8883}
USER, PASSWORD = "JAXANON_MQTT_USER", "JAXANON_MQTT_PASSWORD"
IN_FLIGHT = 20  # Messages that the broker has not acknowledged yet.
OVERFLOW = "the broker did not take it in time"
ENDED = "the stream ended"
LOG = logging.getLogger("jaxanon.edge")


class MqttTopic:
    """An outlet that is a topic of an MQTT broker.

    A class because of its queue and the thread that empties it. Every block is one
    message (``rows.message``) of quality of service 1: after the broker was away, some
    messages may come twice, with the same sequence number. What does not fit into the
    queue becomes one gap, from the first block that did not fit to the last. The last
    message of a stream that was closed is the gap "the stream ended", of no length.

    Args:
      target: ``mqtt://HOST[:PORT]/TOPIC``, or ``mqtts://`` for TLS with the machine's
        certificates. User and password are read from the environment's
        JAXANON_MQTT_USER and JAXANON_MQTT_PASSWORD.
      wanted: ``Signature`` of the stream.
      max_blocks: that wait for the broker.
      wait_s: seconds to wait for the broker when opening, and again when closing.

    Raises:
      ImportError: if paho-mqtt is not installed.
      ValueError: if ``target`` is not of this form.
      PermissionError: if the broker refuses user, password or client.
      OSError: if no broker answers.
    """

    def __init__(
        self, target: str, wanted: Signature, max_blocks=600, wait_s: float = 5.0
    ):
        self._wanted, self._wait_s, self._max_blocks = wanted, wait_s, max_blocks
        self._session, self._sequence, self._end = secrets.token_hex(8), 0, 0.0
        self._queue: collections.deque = collections.deque()
        self._changed = threading.Condition()
        self._closing = self._given_up = False
        self._left = 0  # Blocks that never left.
        # Not a lock held while publishing: paho holds its own when it acknowledges.
        self._room = threading.Semaphore(IN_FLIGHT)
        secure, host, port, self._topic = parts(target)
        self._client = _client(self._session, secure)
        self._client.on_publish = lambda *_: self._room.release()
        self._connect(host, port)
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def write(self, block: Block) -> None:
        """Puts a block into the queue; never waits.

        Args:
          block: ``Block``.

        Raises:
          ValueError: as ``rows.checked``.
        """
        rows.checked(self._wanted, block)
        with self._changed:
            self._end = block.end
            if block.gap or len(block.samples):
                self._put(block)

    def close(self) -> None:
        """Waits ``wait_s`` for the broker; the log says what it never took."""
        deadline = time.monotonic() + self._wait_s
        with self._changed:
            if self._closing:
                return
            nothing = np.zeros((0, len(self._wanted.channels)), np.float32)
            rate = self._wanted.rate_hz
            self._put(Block(self._end, rate, nothing, ENDED, self._end), room=2)
            self._closing = True
        self._sender.join(max(0.0, deadline - time.monotonic()))
        acknowledged = 0
        while acknowledged < IN_FLIGHT and self._room.acquire(
            timeout=max(0.0, deadline - time.monotonic())
        ):
            acknowledged += 1
        self._left += len(self._queue) + IN_FLIGHT - acknowledged
        if self._left:
            LOG.warning("%s", self.lost())
        self._given_up = True
        self._room.release()  # The sender, should it still wait for it, ends.
        self._client.disconnect()
        # Joins a thread that may hang in a lookup of the broker's name.
        stop = threading.Thread(target=self._client.loop_stop, daemon=True)
        stop.start()
        stop.join(2.0)

    def lost(self) -> str:
        """What the broker never took, in a sentence; nothing if it took all."""
        if not self._left:
            return ""
        return f"{self._left} blocks were not taken by the broker."

    def _put(self, block, room=0):
        """Adds to the queue, or lengthens the gap at its end."""
        if len(self._queue) < self._max_blocks + room:
            self._queue.append((self._sequence, block))
            self._sequence += 1
        elif (last := self._queue[-1])[1].gap == OVERFLOW:
            self._left += 1
            self._queue[-1] = last[0], last[1]._replace(end=block.end)
        else:
            self._left += 1
            gap = block._replace(samples=block.samples[:0], gap=OVERFLOW)
            self._queue.append((self._sequence, gap))
            self._sequence += 1
        self._changed.notify()

    def _send(self):
        """Hands over what waits, as the broker acknowledges what was handed over."""
        while True:
            with self._changed:
                while not self._queue:
                    if self._closing:
                        return
                    self._changed.wait()
            self._room.acquire()
            if self._given_up:
                return
            with self._changed:
                sequence, block = self._queue.popleft()
            text = rows.message(self._wanted, self._session, sequence, block)
            self._client.publish(self._topic, text, qos=1)

    def _connect(self, host, port):
        """Raises OSError unless the broker takes us within the time."""
        answered, refused = threading.Event(), []

        def on_connect(client, userdata, flags, reason, properties):
            if reason.is_failure:
                refused.append(str(reason))
            answered.set()

        self._client.on_connect = on_connect
        try:
            self._client.connect(host, port)
        except OSError as error:
            raise ConnectionError(
                f"no MQTT broker at {host}:{port} ({error}); start one there, or name "
                "another in the target, mqtts:// with TLS and mqtt:// without."
            ) from error
        self._client.loop_start()
        try:
            if not answered.wait(self._wait_s):
                raise TimeoutError(
                    f"the MQTT broker at {host}:{port} did not answer in "
                    f"{self._wait_s} s; a broker of TLS is mqtts://."
                )
            if refused:
                raise PermissionError(
                    f"the MQTT broker at {host}:{port} refused: {refused[0]}; user and "
                    f"password are read from {USER} and {PASSWORD}."
                )
        except OSError:
            self._client.disconnect()
            self._client.loop_stop()
            raise


def parts(target: str) -> tuple[bool, str, int, str]:
    """Takes ``mqtt://HOST[:PORT]/TOPIC`` apart.

    Args:
      target: the address; ``mqtts://`` is TLS. A topic may hold slashes, and anything
        else percent-encoded.

    Returns:
      Whether it is TLS, host, port and topic.

    Raises:
      ValueError: if it is not of this form.

    Example:
      >>> parts("mqtts://broker.example/home/wrist")
      (True, 'broker.example', 8883, 'home/wrist')
    """
    form = f"mqtt://HOST[:PORT]/TOPIC, got {target!r}"
    found = urllib.parse.urlsplit(target)
    if found.username is not None or found.password is not None:
        raise ValueError(
            "target must hold no user and password, which every process here could "
            f"read; put them into {USER} and {PASSWORD}."
        )
    try:
        port = found.port or PORTS[found.scheme]
    except (ValueError, KeyError):
        raise ValueError(f"target must be {form}.") from None
    topic = urllib.parse.unquote(found.path.removeprefix("/"))
    if not found.hostname or not topic or found.query or found.fragment:
        raise ValueError(f"target must be {form}; percent-encode ? and #.")
    if set(topic) & set("+#\0"):
        raise ValueError(f"a topic to write to holds no + or #, got {topic!r}.")
    return found.scheme == "mqtts", found.hostname, port, topic


def _client(session, secure):
    try:
        from paho.mqtt import client as paho
    except ImportError as error:
        raise ImportError(
            "an MQTT outlet needs paho-mqtt; run pip install 'paho-mqtt>=2'."
        ) from error
    client = paho.Client(
        paho.CallbackAPIVersion.VERSION2, client_id=f"jaxanon-{session}"
    )
    client.max_inflight_messages_set(IN_FLIGHT)
    client.reconnect_delay_set(1, 30)
    if secure:
        client.tls_set()
    with contextlib.suppress(KeyError):
        client.username_pw_set(os.environ[USER], os.environ.get(PASSWORD))
    return client
