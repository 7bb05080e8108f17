"""``jaxanon server`` and ``jaxanon client``: training over Flower."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console, files, recipes
from jaxanon.cli import data as cli_data
from jaxanon.cli.data import DataOptions
from jaxanon.cli.train import evaluation, fields_of, settings_of

Pem = Annotated[pathlib.Path | None, arguments.optional("PEM")]


def command(method: str | None):
    """Returns the function of ``jaxanon server METHOD``, with the method's settings."""
    settings_class = settings_of(method)

    def server(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        output_dir: arguments.Folder = None,
        address: Annotated[str, tyro.conf.arg(metavar="HOST:PORT")] = "127.0.0.1:9092",
        min_available_clients: int,
        min_replies: int = 1,
        max_message_norm: arguments.Real = None,
        timeout_s: float = 60.0,
        wait_s: float = 600.0,
        max_windows: arguments.Whole = None,
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
        """Trains a method over clients in separate processes.

        Each client runs `jaxanon client` on this or another machine. The run folder and
        its numbers are those of `jaxanon train` with the same --seed. The server reads
        only the spec of the data set and the maximum number of windows per client.

        Args:
          method: name of the method, such as fedavg, atlas or blinder; comes first
          output_dir: folder for settings, checkpoints and metrics; default: runs/METHOD
          address: address to listen at
          min_available_clients: connected clients required before the first round
          min_replies: valid replies required per round; with fewer, it is tried again
          max_message_norm: norm above which a client's update is rejected; default:
            ten times the round's median, if three or more replied
          timeout_s: seconds to wait for a client's reply
          wait_s: seconds to wait for clients to connect
          max_windows: maximum number of windows per client; default: the maximum in the
            data set
          certificate: TLS certificate of this server
          private_key: private key of the certificate
          client_keys: file with a line per admitted client: its index and its ECDSA
            public key, as ssh-keygen writes it; requires TLS
          insecure: accept other machines without TLS
          secure_aggregation: not supported; raises an error with the reason
          recipe: named settings to start from: recommended, paper, fast, or official
            where available
          epochs: passes over the data; raise it to continue a finished run
          seed: random seed
          resume: continue the run in --output-dir
        """
        if secure_aggregation:
            raise ValueError(
                "--secure-aggregation is not supported: Flower's SecAgg+ requires "
                "other strategies, and a server that sees only sums cannot reject bad "
                "messages; use noise to protect clients, as in atlas --privacy-unit "
                "client."
            )
        from jaxanon.flower.server import serve as start
        from jaxanon.flower.settings import Serving

        path = lambda file: None if file is None else str(file)
        serving = Serving(
            address=address,
            min_available_clients=min_available_clients,
            min_replies=min_replies,
            max_message_norm=max_message_norm,
            timeout_s=timeout_s,
            wait_s=wait_s,
            max_windows=max_windows,
            certificate=path(certificate),
            private_key=path(private_key),
            client_keys=path(client_keys),
            insecure=insecure,
        )
        folder = output_dir or pathlib.Path("runs") / method
        built = recipe, settings
        _serve(method, data, built, serving, start, epochs, seed, folder, resume)

    return server


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
        log=console.say,
        on_claim=lambda: cli_data.remember(output_dir, options),
    )
    console.losses(run)
    command = evaluation(output_dir, options.source)
    console.say(f"The run is in {output_dir}. Next: {command}")


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
    """Takes part in a training of `jaxanon server`.

    Trains on the training windows of one subject of a data set or of a local file.
    Windows and personal layers never leave this process. It receives only numbers and
    settings, and runs no code of the server.

    Args:
      server: address of `jaxanon server`
      client: index of this client, from 0: a learner's clients are all subjects, a
        method's are the subjects with training windows
      all_rows: use all training windows, of any subject
      digest: digest of the server's settings, which the server prints; others are
        rejected. Default: any
      budget: file that counts the answered rounds across restarts; created if missing;
        required if noise protects the windows
      root_certificate: PEM that verifies the server's certificate, for TLS
      private_key: ECDSA key whose public key is in the server's --client-keys
      insecure: connect to another machine without TLS
      wait_s: seconds without a server after which to give up
    """
    from jaxanon.flower.client import credentials, join

    credentials(server, root_certificate, private_key, insecure)  # Before data load.
    loaded = cli_data.load(data)
    console.say(f"Client {client} connects to {server}.")
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
