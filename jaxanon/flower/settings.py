"""Where a server listens, and what it asks of its clients."""

import dataclasses
import ipaddress

from jaxanon.core import checks
from jaxanon.kernels.bounds import check, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Serving:
    """Where a server listens, and what it asks of its clients.

    Raises:
      ValueError: for a number out of its range, an address that is none, TLS by halves,
        client keys without TLS, or plain HTTP beyond this machine.
    """

    address: str = setting(help="``HOST:PORT``")
    clients: int = setting(at_least=1, help="clients needed before the first round")
    min_clients: int = setting(1, at_least=1, help="good answers that a round needs")
    max_norm: float | None = setting(
        None, above=0, help="of a message; None is ten times the median of the round's"
    )
    timeout_s: float = setting(
        60.0, above=0, help="seconds for an answer; then a client is invited anew"
    )
    wait_s: float = setting(600.0, above=0, help="seconds to wait for clients at most")
    rows: int | None = setting(
        None, at_least=1, help="most windows of a client; None is the most in the data"
    )
    certificate: str | None = setting(None, help="path of a PEM file, of TLS")
    private_key: str | None = setting(None, help="path of its key")
    client_keys: str | None = setting(
        None, help="path of clients' public keys; see ``keys.public_keys``"
    )
    insecure: bool = setting(False, help="plain HTTP beyond this machine")

    def __post_init__(self):
        check(self)
        if self.min_clients > self.clients:
            raise ValueError(
                f"min_clients must be at most clients, {self.clients}, got "
                f"{self.min_clients}."
            )
        host, _ = checks.host_and_port(self.address)
        if (self.certificate is None) != (self.private_key is None):
            raise ValueError(
                "certificate and private_key belong together; give both, or neither."
            )
        if self.certificate is not None:
            return
        if self.client_keys is not None:
            raise ValueError(
                "client_keys need TLS, or others could read along; give certificate "
                "and private_key too."
            )
        if not local(host) and not self.insecure:
            raise ValueError(
                f"{host} is not this machine alone, and without a certificate all "
                "could read along; give --certificate and --private-key, or --insecure."
            )


def local(host: str) -> bool:
    """Whether only this machine reaches a host of that name.

    Example:
      >>> local("127.0.0.1"), local("0.0.0.0"), local("127.0.0.1.nip.io")
      (True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # A name, which might begin with anything.
        return host == "localhost"
