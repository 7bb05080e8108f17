"""Where a server listens, and what it asks of its clients."""

import dataclasses
import ipaddress

from jaxanon.core import checks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Serving:
    """Where a server listens, and what it asks of its clients.

    Attributes:
      address: ``HOST:PORT``.
      clients: so many must be there before the first round.
      min_clients: so many must answer a round well.
      max_norm: of a message; None is ten times the median of the round's.
      timeout_s: seconds that a client has for an answer; then it is invited anew.
      wait_s: seconds that the server waits for clients before it gives up.
      rows: windows that no client has more of; None is the most in the data.
      certificate: path of a PEM file, of TLS.
      private_key: path of its key.
      client_keys: path of clients' public keys; see ``keys.public_keys``.
      insecure: plain HTTP beyond this machine.

    Raises:
      ValueError: for a number out of its range, an address that is none, TLS by halves,
        client keys without TLS, or plain HTTP beyond this machine.
    """

    address: str
    clients: int
    min_clients: int = 1
    max_norm: float | None = None
    timeout_s: float = 60.0
    wait_s: float = 600.0
    rows: int | None = None
    certificate: str | None = None
    private_key: str | None = None
    client_keys: str | None = None
    insecure: bool = False

    def __post_init__(self):
        checks.positive(clients=self.clients, min_clients=self.min_clients)
        checks.positive(timeout_s=self.timeout_s, wait_s=self.wait_s)
        for name in ("max_norm", "rows"):
            if getattr(self, name) is not None:
                checks.positive(**{name: getattr(self, name)})
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
