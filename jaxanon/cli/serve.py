"""``jaxanon serve``: a training whose clients are other processes, over Flower."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console, files, recipes
from jaxanon.cli import data as cli_data
from jaxanon.cli.data import DataOptions
from jaxanon.cli.train import fields_of, settings_of

Pem = Annotated[pathlib.Path | None, arguments.optional("PEM")]


def command(method: str | None):
    """The function behind ``jaxanon serve METHOD``, with the method's settings."""
    settings_class = settings_of(method)

    def serve(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        output_dir: arguments.Folder = None,
        address: Annotated[str, tyro.conf.arg(metavar="HOST:PORT")] = "127.0.0.1:9092",
        clients: int,
        min_clients: int = 1,
        max_message_norm: arguments.Real = None,
        timeout_s: float = 60.0,
        wait_s: float = 600.0,
        rows: arguments.Whole = None,
        certificate: Pem = None,
        private_key: Pem = None,
        client_keys: arguments.File = None,
        insecure: bool = False,
        secure_aggregation: bool = False,
        data: Annotated[DataOptions, tyro.conf.arg(name="")] = DataOptions(),  # noqa: B008
        recipe: recipes.Recipe = recipes.DEFAULT,
        epochs: int = recipes.epochs(method),
        seed: int = 0,
        resume: bool = False,
        settings: Annotated[settings_class, tyro.conf.arg(name="")],  # pyrefly: ignore
    ) -> None:
        """Trains a method over clients that are processes of their own.

        Each runs `jaxanon client`, on this machine or elsewhere. The run's folder is
        that of `jaxanon train`, and with the same --seed so are its numbers. Of the
        data set only the spec is read, and how many windows a client has at most.

        Args:
          method: what to train, such as fedavg, atlas or blinder; comes first
          output_dir: folder for settings, checkpoints and metrics; default: runs/METHOD
          address: where to listen
          clients: so many must be there before the first round
          min_clients: so many must answer a round well, or it is tried again
          max_message_norm: of what a client's message changes; default: ten times the
            round's median, if three or more answered
          timeout_s: seconds that a client has for an answer
          wait_s: seconds that clients have to come
          rows: windows that no client has more of; default: the most in the data set
          certificate: of this server, for TLS
          private_key: of the certificate
          client_keys: who may take part: lines of a client's number and its ECDSA
            public key, as ssh-keygen writes it; needs TLS
          insecure: listen beyond this machine without TLS
          secure_aggregation: refused; see the README
          recipe: whose settings are the defaults: recommended, paper, fast, or official
            where there is one
          epochs: passes over the data; a finished run may be served with more
          seed: of everything random
          resume: go on with the run in --output-dir
        """
        if secure_aggregation:
            raise ValueError(
                "--secure-aggregation is not to be had: Flower's SecAgg+ is of its "
                "old strategies, whose messages are not these, and a server that sees "
                "sums alone can refuse no bad message; let noise hide clients, as "
                "atlas --guarantee client does."
            )
        from jaxanon.flower.server import serve as start
        from jaxanon.flower.settings import Serving

        path = lambda given: None if given is None else str(given)
        serving = Serving(
            address=address,
            clients=clients,
            min_clients=min_clients,
            max_norm=max_message_norm,
            timeout_s=timeout_s,
            wait_s=wait_s,
            rows=rows,
            certificate=path(certificate),
            private_key=path(private_key),
            client_keys=path(client_keys),
            insecure=insecure,
        )
        folder = output_dir or pathlib.Path("runs") / method
        built = recipe, settings
        _serve(method, data, built, serving, start, epochs, seed, folder, resume)

    return serve


def _serve(method, options, built, serving, start, epochs, seed, output_dir, resume):
    from jaxanon.core import registry

    recipe, settings = built

    files.refuse_folder(output_dir, resume)
    data = cli_data.load(options)
    run = start(
        registry.build(method, data.spec, recipe=recipe, **fields_of(settings)),
        data,
        serving,
        epochs=epochs,
        seed=seed,
        output_dir=output_dir,
        resume=resume,
        tell=console.say,
        on_claim=lambda: cli_data.remember(output_dir, options),
    )
    console.losses(run)
    console.say(f"The run is in {output_dir}. Next: jaxanon evaluate {output_dir}")


Address = Annotated[str, tyro.conf.arg(metavar="HOST:PORT")]

Digest = Annotated[str | None, arguments.optional("DIGEST")]


def client(
    *,
    server: Address = "127.0.0.1:9092",
    client: int,
    all_rows: bool = False,
    digest: Digest = None,
    budget: arguments.File = None,
    root_certificate: arguments.File = None,
    private_key: arguments.File = None,
    insecure: bool = False,
    wait_s: float = 90.0,
    data: Annotated[DataOptions, tyro.conf.arg(name="")] = DataOptions(),  # noqa: B008
) -> None:
    """Takes part in a training that `jaxanon serve` serves.

    It trains on the training windows of one subject of a data set, or of a file of its
    own. They never leave it, nor do layers that it keeps; the server's code never
    runs here, only numbers and settings come.

    Args:
      server: where `jaxanon serve` listens
      client: its number, from 0: of a learner its subject's, of a method its place
        among the subjects that have training windows
      all_rows: all training windows are its own, whatever subject they name
      digest: of the server's settings, which it prints; another one is refused.
        Default: any
      budget: counts the rounds that it answers, also when it starts again; made if it
        is not there, and needed where noise is to protect its windows
      root_certificate: PEM that the server's certificate follows from, for TLS
      private_key: ECDSA key whose public half is in the server's --client-keys
      insecure: talk to another machine without TLS
      wait_s: seconds without a server after which to give up
    """
    from jaxanon.flower.client import credentials, join

    credentials(server, root_certificate, private_key, insecure)  # Before data are.
    loaded = cli_data.load(data)
    console.say(f"Client {client} asks {server} what to do.")
    why = join(
        server,
        client,
        loaded,
        all_rows=all_rows,
        expected=digest,
        budget=budget,
        root_certificate=root_certificate,
        private_key=private_key,
        insecure=insecure,
        wait_s=wait_s,
    )
    console.say(f"Client {client} is done: {why}")
