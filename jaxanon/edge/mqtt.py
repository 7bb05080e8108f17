"""An MQTT topic as an outlet that tolerates absences of its broker."""

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
IN_FLIGHT = 20  # Maximum unacknowledged messages.
OVERFLOW = "the broker did not accept it in time"
ENDED = "the stream ended"
LOG = logging.getLogger("jaxanon.edge")


class MqttTopic:
    """An outlet to a topic of an MQTT broker, with a queue and a sending thread.

    Each block is one message (``rows.message``) with quality of service 1. After the
    broker was absent, messages may arrive twice with the same sequence number. Blocks
    that do not fit into the queue become one gap. The last message of a closed stream
    is an empty gap, "the stream ended".

    Args:
      target: ``mqtt://HOST[:PORT]/TOPIC``, or ``mqtts://`` for TLS with the system's
        certificates. User and password come from the environment variables
        JAXANON_MQTT_USER and JAXANON_MQTT_PASSWORD.
      wanted: ``Signature`` of the stream.
      max_blocks: maximum number of queued blocks.
      wait_s: seconds to wait for the broker when opening, and again when closing.

    Raises:
      ImportError: if paho-mqtt is not installed.
      ValueError: if ``target`` is malformed.
      PermissionError: if the broker rejects user, password or client.
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
        self._left = 0  # Blocks that were not sent.
        # A semaphore, because a lock held while publishing could deadlock with paho's.
        self._room = threading.Semaphore(IN_FLIGHT)
        secure, host, port, self._topic = parts(target)
        self._client = _client(self._session, secure)
        self._client.on_publish = lambda *_: self._room.release()
        self._connect(host, port)
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def write(self, block: Block) -> None:
        """Queues a block without waiting.

        Args:
          block: ``Block``.

        Raises:
          ValueError: see ``rows.checked``.
        """
        rows.checked(self._wanted, block)
        with self._changed:
            self._end = block.end
            if block.gap or len(block.samples):
                self._put(block)

    def close(self) -> None:
        """Waits ``wait_s`` for the broker; logs a warning about lost blocks."""
        deadline = time.monotonic() + self._wait_s
        with self._changed:
            if self._closing:
                return
            empty = np.zeros((0, len(self._wanted.channels)), np.float32)
            rate = self._wanted.rate_hz
            self._put(Block(self._end, rate, empty, ENDED, self._end), room=2)
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
        self._room.release()  # Unblocks the sender.
        self._client.disconnect()
        # In a thread, because it may hang in a lookup of the broker's name.
        stop = threading.Thread(target=self._client.loop_stop, daemon=True)
        stop.start()
        stop.join(2.0)

    def lost(self) -> str:
        """Returns a sentence about blocks that the broker did not accept, or ""."""
        if not self._left:
            return ""
        return f"the broker did not accept {self._left} blocks."

    def _put(self, block, room=0):
        """Adds a block to the queue, or extends the gap at its end."""
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
        """Publishes queued blocks as the broker acknowledges earlier ones."""
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
        """Connects; raises OSError unless the broker accepts in time."""
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
                f"no MQTT broker answers at {host}:{port} ({error}); start one there, "
                "or change the target (mqtts:// with TLS, mqtt:// without)."
            ) from error
        self._client.loop_start()
        try:
            if not answered.wait(self._wait_s):
                raise TimeoutError(
                    f"the MQTT broker at {host}:{port} did not answer within "
                    f"{self._wait_s} s; use mqtts:// for a broker with TLS."
                )
            if refused:
                raise PermissionError(
                    f"the MQTT broker at {host}:{port} rejected: {refused[0]}; set "
                    f"user and password in {USER} and {PASSWORD}."
                )
        except OSError:
            self._client.disconnect()
            self._client.loop_stop()
            raise


def parts(target: str) -> tuple[bool, str, int, str]:
    """Parses ``mqtt://HOST[:PORT]/TOPIC``.

    Args:
      target: address; ``mqtts://`` means TLS. The topic may contain slashes; other
        special characters must be percent-encoded.

    Returns:
      ``(tls, host, port, topic)``.

    Raises:
      ValueError: if ``target`` is malformed.

    Example:
      >>> parts("mqtts://broker.example/home/wrist")
      (True, 'broker.example', 8883, 'home/wrist')
    """
    form = f"mqtt://HOST[:PORT]/TOPIC, got {target!r}"
    url = urllib.parse.urlsplit(target)
    if url.username is not None or url.password is not None:
        raise ValueError(
            "target must not contain user and password, which other processes could "
            f"read; set {USER} and {PASSWORD}."
        )
    try:
        port = url.port or PORTS[url.scheme]
    except (ValueError, KeyError):
        raise ValueError(f"target must be {form}.") from None
    topic = urllib.parse.unquote(url.path.removeprefix("/"))
    if not url.hostname or not topic or url.query or url.fragment:
        raise ValueError(f"target must be {form}; percent-encode ? and #.")
    if set(topic) & set("+#\0"):
        raise ValueError(f"the topic must not contain + or #, got {topic!r}.")
    return url.scheme == "mqtts", url.hostname, port, topic


def _client(session, secure):
    try:
        from paho.mqtt import client as paho
    except ImportError as error:
        raise ImportError(
            "an MQTT outlet requires paho-mqtt; pip install 'paho-mqtt>=2'."
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
