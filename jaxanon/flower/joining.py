"""One client joins a training that somebody serves, with windows of its own."""

from jaxanon.core import checks
from jaxanon.flower import keys, node
from jaxanon.flower.apps import client_app
from jaxanon.flower.device import Device
from jaxanon.flower.settings import local


def join(
    server: str,
    client: int,
    data,
    *,
    all_rows: bool = False,
    expected: str | None = None,
    budget=None,
    **how,
) -> str:
    """Takes part until the server says that it is over.

    Args:
      server: ``HOST:PORT``.
      client: its number.
      data: ``jaxanon.datasets.Data``; see ``Device``.
      all_rows: all training windows are this client's.
      expected: digest that the server printed; None agrees to any settings.
      budget: file that counts the rounds it answers; see ``Device``.
      **how: of ``take_part``.

    Returns:
      What the server said at the end.

    Raises:
      ConnectionError, ValueError: as ``take_part``.
    """
    device = Device(client, data, all_rows=all_rows, expected=expected, budget=budget)
    return take_part(server, device, **how)


def take_part(
    server: str,
    device: Device,
    *,
    root_certificate=None,
    private_key=None,
    insecure: bool = False,
    wait_s: float = 60.0,
) -> str:
    """Answers a server as ``device`` does until it is over.

    Args:
      server: ``HOST:PORT``.
      device: ``Device``.
      root_certificate: path of a PEM file that the server's certificate follows from;
        None is plain HTTP.
      private_key: path of an ECDSA key whose public half the server knows.
      insecure: plain HTTP beyond this machine.
      wait_s: seconds without a server after which to give up.

    Returns:
      What the server said at the end.

    Raises:
      ConnectionError: if nobody answers there, or not for such a client.
      ValueError: if client and server do not agree, or the server gave up.
      FileNotFoundError, ValueError: of ``credentials``.
    """
    host, port, pair, root = credentials(
        server, root_certificate, private_key, insecure
    )
    node.wait_for_server(host, port, wait_s)
    node.answer(
        *(client_app(device), lambda: device.why is not None),
        server=server,
        root_certificate=root,
        keys=pair,
        wait_s=wait_s,
    )
    if device.failed:
        raise ValueError(
            f"client {device.client} left the training at {server}: {device.why}"
        )
    return device.why or ""


def credentials(server: str, root_certificate, private_key, insecure: bool):
    """What a client asks by: ``(host, port, keys, PEM)``; arguments of ``take_part``.

    Raises:
      FileNotFoundError: for a file that is not there.
      ValueError: for settings that do not go together, or a file of another kind.
    """
    host, port = checks.host_and_port(server)
    if root_certificate is None:
        if private_key is not None:
            raise ValueError("private_key needs TLS; give --root-certificate too.")
        if not local(host) and not insecure:
            raise ValueError(
                f"{host} is another machine, and without TLS all could read along; "
                "give --root-certificate, or --insecure."
            )
    pair = None if private_key is None else keys.private_key(private_key)
    root = None if root_certificate is None else keys.root_certificate(root_certificate)
    return host, port, pair, root
