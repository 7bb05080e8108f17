"""TLS and keys of clients: who has none of them is not let in."""

import datetime
import ipaddress
import logging

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from flwr.proto.fleet_pb2 import ActivateNodeResponse
from flwr.supercore.error import ApiErrorCode, FlowerError

from jaxanon import learners
from jaxanon.cli import app
from jaxanon.core import checks
from jaxanon.flower import joining, keys, node
from jaxanon.flower.device import Device
from jaxanon.flower.settings import Serving, local

SMALL = {"filters": (4,), "hidden": (8,), "local_steps": 1, "batch": 4}


def _pem(key, kind=serialization.PrivateFormat.PKCS8):
    nothing = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, kind, nothing)


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """Paths of a certificate of 127.0.0.1, signed by itself, and of its key."""
    folder, key = (
        tmp_path_factory.mktemp("tls"),
        ec.generate_private_key(ec.SECP256R1()),
    )
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(_pem(key))
    return paths


@pytest.fixture(scope="module")
def client_keys(tmp_path_factory):
    """Paths of three clients' keys, and of the lines of the first two."""
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


@pytest.mark.filterwarnings("ignore:the server does not take this client's key yet")
def test_clients_with_certificate_and_key_take_part_and_others_do_not(
    data, meet, port, tls, client_keys
):
    (certificate, key), (own, known) = tls, client_keys
    method = learners.build("fedavg", data.spec, **SMALL)
    outcomes, server = {}, f"127.0.0.1:{port}"
    root = {"root_certificate": certificate}
    others = {
        "plain": {},
        "without a key": root,
        "unknown": root | {"private_key": own[2]},
        "somebody else's": root | {"private_key": own[1]},
    }

    class Patient(Device):
        def work(self, letter):
            for name, how in others.items():
                try:
                    device = Device(0, data)
                    outcomes[name] = joining.take_part(server, device, wait_s=1, **how)
                except (ConnectionError, ValueError) as error:
                    outcomes[name] = error
            return super().work(letter)

    how = root | {"private_key": own[0]}
    secured = {"certificate": str(certificate), "private_key": str(key)}
    secured["client_keys"] = str(known)
    run, _, told = meet(method, [Patient(0, data)], epochs=1, how=how, **secured)
    assert told == ["the training is done; round 1 was its last."]
    assert int(run.state.round) == 1 and run.history[0]["answers"] == 1
    for name in ("plain", "without a key", "unknown"):
        assert isinstance(outcomes[name], ConnectionError), name
        assert "does not take this client" in str(outcomes[name])
    # The second client's key is known, and tells that it is not the first.
    assert isinstance(outcomes["somebody else's"], ValueError)
    assert "a process with the key of client 1 says that it is client 0" in str(
        outcomes["somebody else's"]
    )
    assert "it asks for keys, and this client has none" in str(
        outcomes["without a key"]
    )


def test_files_of_keys_are_read_or_refused(tmp_path, client_keys, tls):
    own, known = client_keys
    private, public = keys.private_key(own[0])
    found = keys.public_keys(known)
    assert sorted(found) == [0, 1]
    assert serialization.load_pem_public_key(found[0]) == public
    assert private.public_key() == public
    with pytest.raises(ValueError, match="is no private key that can be read"):
        keys.private_key(known)
    with pytest.raises(FileNotFoundError):
        keys.private_key(tmp_path / "nobody")
    other = tmp_path / "other"
    kind = serialization.PrivateFormat.OpenSSH
    other.write_bytes(_pem(ed25519.Ed25519PrivateKey.generate(), kind))
    with pytest.raises(ValueError, match="must be an ECDSA key; make one by"):
        keys.private_key(other)
    first = known.read_text().splitlines()[0]
    for text, why in {
        "x ecdsa": "line 1, must be a client's number and its ECDSA public key",
        f"{first}\n{first}": "line 2, .*the client, or its key, stands there twice",
        f"{first}\n5{first[1:]}": "line 2, .*stands there twice",
        "3 ssh-ed25519 AAAA": "line 1, must be",
    }.items():
        other.write_text(text)
        with pytest.raises(ValueError, match=why):
            keys.public_keys(other)


def test_a_certificate_is_looked_at_before_anything_is_written(tls, tmp_path):
    certificate, key = tls
    keys.check_certificate(None, None)
    keys.check_certificate(str(certificate), str(key))
    with pytest.raises(FileNotFoundError, match="nowhere.pem"):
        keys.check_certificate(str(certificate), str(tmp_path / "nowhere.pem"))
    other = tmp_path / "other.pem"
    kind = serialization.PrivateFormat.PKCS8
    other.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1()), kind))
    with pytest.raises(ValueError, match="are no certificate and its private key in P"):
        keys.check_certificate(str(certificate), str(other))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"clients": 0}, "clients must be >= 1, got 0"),
        ({"min_clients": 3}, "min_clients must be at most clients, 2, got 3"),
        ({"timeout_s": 0.0}, "timeout_s must be finite and > 0"),
        ({"max_norm": -1.0}, "max_norm must be finite and > 0"),
        ({"address": "somewhere"}, "an address must be HOST:PORT, got 'somewhere'"),
        ({"address": "here:99999"}, "an address must be HOST:PORT"),
        ({"address": "0.0.0.0:9092"}, "0.0.0.0 is not this machine alone, and without"),
        ({"certificate": "a"}, "certificate and private_key belong together"),
        ({"client_keys": "a"}, "client_keys need TLS, or others could read along"),
    ],
)
def test_settings_that_do_not_do_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        Serving(**{"address": "localhost:9092", "clients": 2} | settings)


def test_plain_http_stays_on_this_machine_unless_asked(data):
    assert Serving(address="0.0.0.0:9092", clients=1, insecure=True).certificate is None
    assert checks.host_and_port("[::1]:80") == ("::1", 80) and local("::1")
    assert local("127.8.0.1") and not local("127.evil.org") and not local("localhost.x")
    for host in ("10.0.0.9", "127.evil.org"):
        with pytest.raises(ValueError, match=f"{host} is another machine, and"):
            joining.join(f"{host}:9092", 0, data)
    with pytest.raises(ValueError, match="private_key needs TLS"):
        joining.join("127.0.0.1:9092", 0, data, private_key="a")


def test_nobody_listens(data, port):
    with pytest.raises(ConnectionError, match=f"nobody answers at 127.0.0.1:{port}"):
        joining.join(f"127.0.0.1:{port}", 0, data, wait_s=0.1)


class Busy:
    """A server's end that takes a key again after some tries."""

    def __init__(self, tries):
        self.tries = tries

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def ActivateNode(self, request):
        self.tries -= 1
        if self.tries >= 0:
            code = ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED
            told = FlowerError(code, "busy").to_json("Failed to activate SuperNode.")
            response = httpx.Response(400, json=told)
            raise httpx.HTTPStatusError("no", request=None, response=response)
        return ActivateNodeResponse(node_id=7)

    def DeactivateNode(self, request):
        self.left = request.node_id


def test_the_key_of_a_client_that_was_killed_is_waited_for(client_keys, monkeypatch):
    pair = keys.private_key(client_keys[0][0])
    for tries, wait_s in ((2, 5.0), (10**6, 0.2)):
        server = Busy(tries)
        address = lambda *_, found=server, **__: found
        monkeypatch.setattr(node.FleetHttpClient, "from_server_address", address)
        with pytest.warns(UserWarning, match="key yet: .* was killed and is not yet m"):
            if tries > 2:
                with pytest.raises(ConnectionError, match="no other process is there"):
                    node._connected("here:1", None, pair, wait_s).__enter__()
                continue
            with node._connected("here:1", None, pair, wait_s) as (_, found):
                assert found.node_id == 7
        assert server.left == 7
    # A client without a key has a new one, which nobody else has: it does not wait.
    server = Busy(1)
    server.RegisterNode = lambda request: None
    monkeypatch.setattr(
        node.FleetHttpClient, "from_server_address", lambda *_, **__: server
    )
    with pytest.raises(ConnectionError, match="does not take this client"):
        node._connected("here:1", None, None, 5.0).__enter__()


def test_a_root_certificate_is_looked_at_first(tls, tmp_path):
    certificate, key = tls
    assert keys.root_certificate(certificate) == certificate.read_bytes()
    with pytest.raises(FileNotFoundError, match="no certificate .*--root-certificate"):
        keys.root_certificate(tmp_path / "nowhere.pem")
    other = tmp_path / "other"
    pem = x509.load_pem_x509_certificate(certificate.read_bytes())
    binary = pem.public_bytes(serialization.Encoding.DER)
    for content in (key.read_bytes(), binary, b"", b"\n"):
        other.write_bytes(content)
        with pytest.raises(ValueError, match="other is no certificate in PEM"):
            keys.root_certificate(other)


def test_what_a_client_asks_by_is_looked_at_before_its_data(tmp_path, capsys):
    nowhere = str(tmp_path / "nowhere.pem")
    words = ["client", "--client", "0", "--dataset", "none"]
    assert app.main([*words, "--root-certificate", nowhere]) == 2
    assert "there is no certificate" in capsys.readouterr().err


def test_what_flower_says_of_who_is_refused_is_one_line(capsys):
    heard = []
    log = logging.getLogger("flwr")
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    log.addHandler(handler)
    try:
        for key in "abc":
            log.error("[x][ApiError:2001] Attempted to register SuperNode %s", key)
        log.error("something else")
    finally:
        log.removeHandler(handler)
    *refused, other = heard
    assert other == "something else" and not log.propagate
    assert all("a client was refused that has none of" in line for line in refused)
    assert len(refused) <= 1  # None, if it was said in the minute before.
    (own,) = (each for each in log.handlers if type(each) is logging.StreamHandler)
    record = log.makeRecord(log.name, logging.ERROR, "", 1, "lost", (), None)
    assert own.format(record) == "jaxanon: lost"  # Without Flower's colours.
