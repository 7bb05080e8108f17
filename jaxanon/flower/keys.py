"""ECDSA keys and TLS certificates that authenticate clients and servers."""

import pathlib
import ssl

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

UNREAD = (NotImplementedError, UnsupportedAlgorithm, ValueError)


def private_key(path):
    """Returns ``(private, public)`` from an OpenSSH file of ``ssh-keygen -t ecdsa``.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if it is another kind of file, or the key has a passphrase.
    """
    try:
        key = load_ssh_private_key(_read(path), None)
    except (*UNREAD, TypeError) as error:
        raise ValueError(
            f"{path} is not a readable private key ({error}); create one with "
            "ssh-keygen -t ecdsa -b 384 -N '' -f FILE."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(
            f"{path} must be an ECDSA key; create one with ssh-keygen -t ecdsa."
        )
    return key, key.public_key()


def public_keys(path) -> dict[int, bytes]:
    """Returns each client's public key, without comments, in OpenSSH format.

    Each line of the file holds a client's index and the contents of its ``.pub`` file.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if a line is malformed, or a client or a key occurs twice.
    """
    by_client = {}
    for number, line in enumerate(_read(path).decode(errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            client, key = line.split(maxsplit=1)
            loaded = load_ssh_public_key(key.encode())
            if not isinstance(loaded, ec.EllipticCurvePublicKey):
                raise ValueError("the key is not an ECDSA key")
            bare = loaded.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
            if int(client) in by_client or bare in by_client.values():
                raise ValueError("the client or its key occurs twice")
            by_client[int(client)] = bare
        except UNREAD as error:
            raise ValueError(
                f"{path}, line {number}, must be a client's index and its ECDSA "
                f"public key ({error})."
            ) from error
    return by_client


def root_certificate(path) -> bytes:
    """Returns the PEM of a certificate that verifies the server's certificate.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if it is not a certificate.
    """
    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(
            f"the certificate {path} does not exist; root_certificate "
            "(--root-certificate) must be a copy of the server's, or of its issuer's."
        )
    pem = _read(path)
    try:
        if not pem.strip():  # An empty string would select the system's certificates.
            raise ValueError("it is empty")
        ssl.create_default_context(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"{path} is not a PEM certificate ({error}).") from error
    return pem


def _read(path) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def check_certificate(certificate, private_key) -> None:
    """Raises an error unless the files can serve TLS.

    Raises:
      OSError: if a file is missing.
      ValueError: if they are not a certificate and its private key in PEM.
    """
    if certificate is None:
        return
    for path in (certificate, private_key):
        pathlib.Path(path).read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # The empty password prevents a prompt at the terminal.
        context.load_cert_chain(certificate, private_key, password="")
    except ssl.SSLError as error:
        raise ValueError(
            f"{certificate} and {private_key} must be a PEM certificate and its "
            f"private key without a password ({error.reason or error}); give two files "
            "that match."
        ) from error
