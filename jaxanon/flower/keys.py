"""Who a client is: ECDSA keys, as OpenSSH writes them and Flower asks for them."""

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
    """``(private, public)`` of an OpenSSH file, as ``ssh-keygen -t ecdsa`` writes it.

    Raises:
      FileNotFoundError: if there is none.
      ValueError: if it is no ECDSA key, or has a passphrase.
    """
    try:
        key = load_ssh_private_key(_read(path), None)
    except (*UNREAD, TypeError) as error:
        raise ValueError(
            f"{path} is no private key that can be read ({error}); make one by "
            "ssh-keygen -t ecdsa -b 384 -N '' -f FILE."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(
            f"{path} must be an ECDSA key; make one by ssh-keygen -t ecdsa."
        )
    return key, key.public_key()


def public_keys(path) -> dict[int, bytes]:
    """Each client's public key, of lines that are its number and what is in ``.pub``.

    Without comments, as OpenSSH writes it.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: for a line that is none, or a client or a key that comes twice.
    """
    found = {}
    for number, line in enumerate(_read(path).decode(errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            client, key = line.split(maxsplit=1)
            loaded = load_ssh_public_key(key.encode())
            if not isinstance(loaded, ec.EllipticCurvePublicKey):
                raise ValueError("the key is none of ECDSA")
            bare = loaded.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
            if int(client) in found or bare in found.values():
                raise ValueError("the client, or its key, stands there twice")
            found[int(client)] = bare
        except UNREAD as error:
            raise ValueError(
                f"{path}, line {number}, must be a client's number and its ECDSA "
                f"public key ({error})."
            ) from error
    return found


def root_certificate(path) -> bytes:
    """The PEM of a certificate that a server's follows from.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: if it is no certificate.
    """
    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(
            f"there is no certificate {path}; root_certificate (--root-certificate) "
            "names a copy of the server's, or of one that it follows from."
        )
    pem = _read(path)
    try:
        if not pem.strip():  # By which the machine's own would be taken.
            raise ValueError("it is empty")
        ssl.create_default_context(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"{path} is no certificate in PEM ({error}).") from error
    return pem


def _read(path) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def check_certificate(certificate, private_key) -> None:
    """Refuses what no server of TLS can be had by.

    Raises:
      OSError: if a file is not there.
      ValueError: if they are no certificate and its private key, in PEM.
    """
    if certificate is None:
        return
    for path in (certificate, private_key):
        pathlib.Path(path).read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A key with a password would be asked for one at the terminal.
        context.load_cert_chain(certificate, private_key, password="")
    except ssl.SSLError as error:
        raise ValueError(
            f"{certificate} and {private_key} are no certificate and its private key "
            f"in PEM, without a password ({error.reason or error}); give two that "
            "belong together."
        ) from error
