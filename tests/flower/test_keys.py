"""TLS and client keys: clients without a key are rejected."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from jaxanon.cli import app
from jaxanon.core import checks
from jaxanon.flower import client, keys
from jaxanon.flower.settings import Serving, local


def test_files_of_keys_are_read_or_refused(tmp_path, client_keys, tls, pem):
    own, known = client_keys
    private, public = keys.private_key(own[0])
    found = keys.public_keys(known)
    assert sorted(found) == [0, 1]
    assert serialization.load_ssh_public_key(found[0]) == public
    assert private.public_key() == public
    with pytest.raises(ValueError, match="is not a readable private key"):
        keys.private_key(known)
    with pytest.raises(FileNotFoundError):
        keys.private_key(tmp_path / "nobody")
    other = tmp_path / "other"
    kind = serialization.PrivateFormat.OpenSSH
    other.write_bytes(pem(ed25519.Ed25519PrivateKey.generate(), kind))
    with pytest.raises(ValueError, match="must be an ECDSA key; create one with"):
        keys.private_key(other)
    first = known.read_text().splitlines()[0]
    for text, why in {
        "x ecdsa": "line 1, must be a client's index and its ECDSA public key",
        f"{first}\n{first}": "line 2, .*the client or its key occurs twice",
        f"{first}\n5{first[1:]}": "line 2, .*occurs twice",
        "3 ssh-ed25519 AAAA": "line 1, must be",
    }.items():
        other.write_text(text)
        with pytest.raises(ValueError, match=why):
            keys.public_keys(other)


def test_a_certificate_is_looked_at_before_anything_is_written(tls, tmp_path, pem):
    certificate, key = tls
    keys.check_certificate(None, None)
    keys.check_certificate(str(certificate), str(key))
    with pytest.raises(FileNotFoundError, match="nowhere.pem"):
        keys.check_certificate(str(certificate), str(tmp_path / "nowhere.pem"))
    other = tmp_path / "other.pem"
    kind = serialization.PrivateFormat.PKCS8
    other.write_bytes(pem(ec.generate_private_key(ec.SECP256R1()), kind))
    with pytest.raises(ValueError, match="must be a PEM certificate and its"):
        keys.check_certificate(str(certificate), str(other))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"min_available_clients": 0}, "min_available_clients must be >= 1"),
        ({"min_replies": 3}, r"must be at most min_available_clients \(2\), got 3"),
        ({"timeout_s": 0.0}, "timeout_s must be finite and > 0"),
        ({"max_message_norm": -1.0}, "max_message_norm must be finite and > 0"),
        ({"address": "somewhere"}, "an address must be HOST:PORT, got 'somewhere'"),
        ({"address": "here:99999"}, "an address must be HOST:PORT"),
        ({"address": "0.0.0.0:9092"}, "0.0.0.0 accepts other machines without"),
        ({"certificate": "a"}, "certificate and private_key belong together"),
        ({"client_keys": "a"}, "client_keys requires TLS; give certificate"),
    ],
)
def test_settings_that_do_not_do_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        Serving(**{"address": "localhost:9092", "min_available_clients": 2} | settings)


def test_plain_http_stays_on_this_machine_unless_asked(data):
    assert Serving(address="0.0.0.0:9092", min_available_clients=1, insecure=True)
    assert checks.host_and_port("[::1]:80") == ("::1", 80) and local("::1")
    assert local("127.8.0.1") and not local("127.evil.org") and not local("localhost.x")
    for host in ("10.0.0.9", "127.evil.org"):
        with pytest.raises(ValueError, match=f"server {host} is another machine and"):
            client.join(f"{host}:9092", 0, data)
    with pytest.raises(ValueError, match="private_key requires TLS"):
        client.join("127.0.0.1:9092", 0, data, private_key="a")


def test_a_root_certificate_is_looked_at_first(tls, tmp_path):
    certificate, key = tls
    assert keys.root_certificate(certificate) == certificate.read_bytes()
    with pytest.raises(FileNotFoundError, match="the certificate .*--root-certificate"):
        keys.root_certificate(tmp_path / "nowhere.pem")
    other = tmp_path / "other"
    pem = x509.load_pem_x509_certificate(certificate.read_bytes())
    binary = pem.public_bytes(serialization.Encoding.DER)
    for content in (key.read_bytes(), binary, b"", b"\n"):
        other.write_bytes(content)
        with pytest.raises(ValueError, match="other is not a PEM certificate"):
            keys.root_certificate(other)


def test_what_a_client_asks_by_is_looked_at_before_its_data(tmp_path, capsys):
    nowhere = str(tmp_path / "nowhere.pem")
    words = ["client", "--client", "0", "--dataset", "none"]
    assert app.main([*words, "--root-certificate", nowhere]) == 2
    assert "must be a copy of the server's" in capsys.readouterr().err
