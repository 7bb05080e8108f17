"""``jaxanon client``: one client of ``jaxanon serve``, with windows of its own."""

from typing import Annotated

import tyro

from jaxanon.commands import arguments, show, sources
from jaxanon.commands.sources import DataOptions

Address = Annotated[str, tyro.conf.arg(metavar="HOST:PORT")]
Digest = Annotated[str | None, arguments.optional("DIGEST")]


def client(
    *,
    server: Address = "127.0.0.1:9092",
    client: int,
    all_rows: bool = False,
    digest: Digest = None,
    root_certificate: arguments.File = None,
    private_key: arguments.File = None,
    insecure: bool = False,
    wait_s: float = 60.0,
    data: Annotated[DataOptions, tyro.conf.arg(name="")] = DataOptions(),  # noqa: B008
) -> None:
    """Takes part in a training that `jaxanon serve` serves.

    It trains on the training windows of one subject of a data set, or of a file of its
    own. They never leave it, nor do layers that it keeps; the server's code never
    comes here, only numbers and settings.

    Args:
      server: where `jaxanon serve` listens
      client: its number, from 0: of a learner its subject's, of a method its place
        among the subjects that have training windows
      all_rows: all training windows are its own, whatever subject they name
      digest: of the server's settings, which it prints; another one is refused.
        Default: any
      root_certificate: PEM that the server's certificate follows from, for TLS
      private_key: ECDSA key whose public half is in the server's --client-keys
      insecure: talk to another machine without TLS
      wait_s: seconds without a server after which to give up
    """
    from jaxanon.flower.joining import credentials, join

    credentials(server, root_certificate, private_key, insecure)  # Before data are.
    loaded = sources.load(data)
    show.say(f"Client {client} asks {server} what to do.")
    why = join(
        server,
        client,
        loaded,
        all_rows=all_rows,
        expected=digest,
        root_certificate=root_certificate,
        private_key=private_key,
        insecure=insecure,
        wait_s=wait_s,
    )
    show.say(f"Client {client} is done: {why}")
