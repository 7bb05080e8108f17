"""Settings of a Flower server."""

import dataclasses
import ipaddress

from jaxanon.core import checks
from jaxanon.kernels.bounds import check, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Serving:
    """Address, client requirements and TLS files of a Flower server.

    Raises:
      ValueError: if a number is out of range, the address is invalid, TLS files are
        incomplete, or plain HTTP would be reachable from other machines.

    """

    address: str = setting(help="``HOST:PORT``")
    min_available_clients: int = setting(
        at_least=1, help="connected clients required before the first round"
    )
    min_replies: int = setting(1, at_least=1, help="valid replies required per round")
    max_message_norm: float | None = setting(
        None, above=0, help="norm above which a message is rejected; None: 10x median"
    )
    timeout_s: float = setting(
        60.0, above=0, help="seconds to wait for a reply before inviting a client again"
    )
    wait_s: float = setting(600.0, above=0, help="maximum seconds to wait for clients")
    max_windows: int | None = setting(
        None, at_least=1, help="maximum windows per client; None: maximum in the data"
    )
    certificate: str | None = setting(None, help="path of the TLS certificate, PEM")
    private_key: str | None = setting(None, help="path of the certificate's key, PEM")
    client_keys: str | None = setting(
        None, help="path of the clients' public keys; see ``keys.public_keys``"
    )
    insecure: bool = setting(False, help="allow plain HTTP from other machines")

    def __post_init__(self):
        check(self)
        if self.min_replies > self.min_available_clients:
            raise ValueError(
                "min_replies must be at most min_available_clients "
                f"({self.min_available_clients}), got {self.min_replies}."
            )
        host, _ = checks.host_and_port(self.address)
        if (self.certificate is None) != (self.private_key is None):
            raise ValueError(
                "certificate and private_key belong together; give both or neither."
            )
        if self.certificate is not None:
            return
        if self.client_keys is not None:
            raise ValueError(
                "client_keys requires TLS; give certificate and private_key too."
            )
        if not local(host) and not self.insecure:
            raise ValueError(
                f"address {host} accepts other machines without encryption; give "
                "--certificate and --private-key, or --insecure."
            )


def local(host: str) -> bool:
    """Returns whether ``host`` is reachable only from this machine.

    Example:
      >>> local("127.0.0.1"), local("0.0.0.0"), local("127.0.0.1.nip.io")
      (True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # A host name, such as 127.0.0.1.nip.io.
        return host == "localhost"
