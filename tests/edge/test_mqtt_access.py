"""Who may write to an MQTT topic, and what is no topic."""

import datetime
import gc
import ipaddress
import shutil
import socket
import subprocess

import mosquitto
import pytest

from jaxanon.edge import mqtt, outlets


@mosquitto.needed
def test_user_and_password(tmp_path, monkeypatch):
    tool = shutil.which("mosquitto_passwd", path="/usr/bin:/usr/local/bin")
    words = [tool, "-b", "-c", str(tmp_path / "users"), "watch", "a word"]
    subprocess.run(words, check=True, capture_output=True)
    broker = mosquitto.Broker(tmp_path, f"password_file {tmp_path}/users")
    broker.start()
    target = f"mqtt://127.0.0.1:{broker.port}/a"
    try:
        with pytest.raises(PermissionError, match="refused: .*from JAXANON_MQTT_USER"):
            outlets.open_outlet(target, mosquitto.SIGNATURE)
        monkeypatch.setenv("JAXANON_MQTT_USER", "watch")
        monkeypatch.setenv("JAXANON_MQTT_PASSWORD", "a word")
        outlets.open_outlet(target, mosquitto.SIGNATURE).close()
    finally:
        broker.kill()


def _certificate(folder):
    """Key and certificate of 127.0.0.1 that nobody signed, in files."""
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
# paho leaves the socket of a refused certificate to the collector.
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
        with pytest.raises(ConnectionError, match=f"no MQTT broker at .*:{port}"):
            outlets.open_outlet(f"mqtt://127.0.0.1:{port}/a", mosquitto.SIGNATURE)


def test_somebody_who_says_nothing_is_no_broker():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(TimeoutError, match="did not answer in 0.3 s; .* mqtts://"):
            target = f"mqtt://127.0.0.1:{port}/a"
            mqtt.MqttTopic(target, mosquitto.SIGNATURE, wait_s=0.3)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mqtt://a:b@host/topic", "target must hold no user and password"),
        (
            "mqtt://host",
            "target must be mqtt://HOST\\[:PORT\\]/TOPIC, got 'mqtt://host'",
        ),
        ("mqtt:///topic", "target must be mqtt://HOST"),
        ("mqtt://host:many/topic", "target must be mqtt://HOST"),
        ("mqtt://host/topic?a", "percent-encode"),
        ("mqtt://host/home/+", "a topic to write to holds no \\+ or #"),
        ("mqtt://host/home/%23", "a topic to write to holds no \\+ or #"),
        ("amqp://host/topic", "target must be a path, '-', mqtt:// or mqtts://"),
    ],
)
def test_targets_that_are_none(target, said):
    with pytest.raises(ValueError, match=said):
        outlets.open_outlet(target, mosquitto.SIGNATURE)


def test_append_is_for_files():
    with pytest.raises(ValueError, match="append is for files, and target mqtt://h/t"):
        outlets.open_outlet("mqtt://h/t", mosquitto.SIGNATURE, append=True)


def test_without_paho(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "paho.mqtt", None)
    with pytest.raises(ImportError, match="run pip install 'paho-mqtt>=2'"):
        outlets.open_outlet("mqtt://127.0.0.1:1/t", mosquitto.SIGNATURE)
