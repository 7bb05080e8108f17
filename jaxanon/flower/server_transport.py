"""Server side of the transport: Flower's SuperLink behind a filtering gate.

SuperLink serves all its interfaces at one port, including one that runs arbitrary code.
Here it listens on the loopback interface with its own certificate, and a gate at the
public address forwards only calls of SuperNodes.
"""

import contextlib
import datetime
import ipaddress
import queue
import re
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import httpx
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from jaxanon.flower import programs
from jaxanon.flower.records import Failure, Payload

STARTED_S = 120.0  # Time for Flower's programs to start.
AGAIN_S = 60.0  # Minimum interval of lines about rejected clients.
FLEET = re.compile(r"/v\d+/fleet/[a-z-]+")  # Paths that SuperNodes call.
ENTERS = ("register-node", "activate-node")
HOPS = {"connection", "host", "keep-alive", "transfer-encoding", "upgrade", "server"}

# Names apps that are installed at both ends; contains no code.
BUNDLE = """
[project]
name = "jaxanon"
version = "1.0.0"
description = "Relays messages of jaxanon."
license = {text = "Apache-2.0"}

[tool.flwr.app]
publisher = "jaxanon"

[tool.flwr.app.components]
serverapp = "jaxanon.flower.records:server"
clientapp = "jaxanon.flower.records:client"
"""


class Link:
    """Messages to and from nodes through the ServerApp in Flower's process."""

    def __init__(self, connection):
        self._connection = connection

    def _call(self, *call):
        try:
            self._connection.send(call)
            result = self._connection.recv()
        except (EOFError, OSError) as error:
            result = error
        if isinstance(result, Exception):
            raise ConnectionError(
                f"Flower ended this run ({result!r}); start it again with resume=True "
                "(--resume)."
            ) from result
        return result

    def nodes(self) -> list[int]:
        """Returns the connected nodes."""
        return self._call("nodes")

    def push(self, node: int, kind: str, payload: Payload, ttl: float) -> str | None:
        """Sends a payload that expires after ``ttl`` seconds; returns its id if any."""
        return self._call("push", node, kind, payload, ttl)

    def pull(self, ids: Iterable[str]) -> dict[str, Payload | Failure]:
        """Returns the available replies by request id, without waiting."""
        return self._call("pull", [*ids])


def listen(host: str, port: int) -> socket.socket:
    """Binds and returns a socket of the server's address.

    Raises:
      OSError: if the port is taken, or the host is not this machine.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"cannot bind {host}:{port} ({error.strerror}): another program uses it, "
            "or the address is not of this machine; choose another --address."
        ) from error


@contextlib.contextmanager
def serving(
    port: socket.socket,
    *,
    certificate,
    private_key,
    public_keys: dict[int, bytes] | None,
    log: Callable[[str], None] = print,
):
    """Serves clients inside the context.

    Args:
      port: socket from ``listen``.
      certificate, private_key: paths of PEM files for TLS. None uses plain HTTP.
      public_keys: keys from ``keys.public_keys``. None accepts any Flower client.
      log: callback for lines, at most one per minute, about clients that Flower
        rejects.

    Yields:
      ``(link, nodes)``: a ``Link``, and the client of each node with a key.

    Raises:
      OSError: if Flower's programs do not start.
    """
    with programs.running() as flower:
        root, key = certify(flower.folder)
        number = programs.free_port()
        _start(flower, number, root, key, authenticated=public_keys is not None)
        nodes = _register(flower, public_keys or {})
        connection = _launch(flower, f"127.0.0.1:{number}", root)
        with (
            contextlib.closing(connection),
            _gate(
                port,
                f"https://127.0.0.1:{number}",
                root,
                log,
                ssl_certfile=certificate,
                ssl_keyfile=private_key,
            ),
        ):
            yield Link(connection), nodes
            with contextlib.suppress(OSError):
                connection.send(None)


def certify(folder):
    """Creates a loopback certificate; returns paths of the certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now, year = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=365)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - year)
        .not_valid_after(now + 10 * year)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(pem))
    kind = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(pem, kind, plain))
    return paths


def _start(flower, port, certificate, key, *, authenticated):
    """Starts SuperLink and returns once it listens."""
    flower.start(
        "flower-superlink",
        *("--host", "127.0.0.1", "--port", port, "--isolation", "process"),
        *("--superexec-auth-secret-file", flower.secret),
        *("--ssl-certfile", certificate, "--ssl-keyfile", key),
        *(
            "--ssl-ca-certfile",
            certificate,
            "--disable-runtime-dependency-installation",
        ),
        *(("--enable-supernode-auth",) if authenticated else ()),
    )
    config = f"""[superlink]
default = "inner"
[superlink.inner]
address = "127.0.0.1:{port}"
root-certificates = "{certificate}"
"""
    (flower.folder / "home" / "config.toml").write_text(config)

    def listens():
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return True

    _wait(flower, listens)


def _register(flower, public_keys):
    """Registers the clients' keys with SuperLink; returns the client of each node."""

    def register(client):
        path = flower.folder / f"client{client}.pub"
        path.write_bytes(public_keys[client])
        return int(flower.run("flwr", "supernode", "register", path)["node-id"])

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(pool.map(register, public_keys), public_keys, strict=True))


def _launch(flower, address, certificate):
    """Starts the ServerApp through Flower; returns the connection to it."""
    app = flower.folder / "jaxanon"
    app.mkdir()
    (app / "pyproject.toml").write_text(BUNDLE)
    connections = queue.SimpleQueue()
    flower.serve(connections.put)
    executor = flower.start(
        "flower-superexec",
        *("--runtime-api-address", address, "--root-certificates", certificate),
        *("--superexec-auth-secret-file", flower.secret),
    )
    flower.run("flwr", "run", app)
    _wait(flower, lambda: not connections.empty())
    # The executor would run apps of other users of this machine, so it is paused.
    if hasattr(signal, "SIGSTOP"):
        executor.send_signal(signal.SIGSTOP)
    return connections.get()


def _wait(flower, ready):
    end = time.monotonic() + STARTED_S
    while not ready():
        over = flower.ended()
        if over or time.monotonic() > end:
            why = f"{over}: {flower.said(over)}" if over else f"not in {STARTED_S:g} s"
            raise OSError(
                f"the server did not start ({why}); check that this machine allows it "
                "to listen, or choose another --address."
            )
        time.sleep(0.05)


@contextlib.contextmanager
def _gate(port, inner, root, log, **tls):
    """Forwards calls of SuperNodes from a port to SuperLink inside the context."""
    config = uvicorn.Config(
        gate(inner, ssl.create_default_context(cafile=str(root)), log),
        log_config=None,  # The application configures logging.
        log_level="critical",
        ws="none",
        lifespan="off",
        **tls,
    )
    server = uvicorn.Server(config)
    target = lambda: server.run(sockets=[port])
    thread = threading.Thread(target=target, name="gate", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise OSError("the server did not start; choose another --address.")
            time.sleep(0.02)
        yield
    finally:
        server.should_exit = True
        thread.join(5)
        port.close()


def gate(inner: str, tls, log: Callable[[str], None], transport=None) -> Starlette:
    """Builds an ASGI app that forwards calls of SuperNodes.

    Args:
      inner: URL of SuperLink.
      tls: ``ssl.SSLContext`` with SuperLink's certificate.
      log: callback for lines, at most one per minute, about rejected clients.
      transport: transport for ``httpx``; None uses the network.
    """
    limits = httpx.Limits(max_connections=None)
    http = httpx.AsyncClient(
        base_url=inner, verify=tls, timeout=60.0, limits=limits, transport=transport
    )
    logged = -AGAIN_S

    async def forward(request):
        nonlocal logged
        path = request.url.path
        if not FLEET.fullmatch(path):
            return Response(status_code=404)
        end_to_end = lambda headers: [h for h in headers if h[0].lower() not in HOPS]
        try:
            response = await http.send(
                http.build_request(
                    "POST",
                    path,
                    headers=end_to_end(request.headers.items()),
                    content=request.stream(),
                ),
                stream=True,
            )
        except httpx.TransportError:
            return Response(status_code=502)
        if response.status_code >= 400 and path.endswith(ENTERS):
            if time.monotonic() - logged >= AGAIN_S:  # Rejected clients keep trying.
                logged = time.monotonic()
                log(
                    "Rejected a client whose key is not in --client-keys or is already "
                    "in use."
                )
        return StreamingResponse(
            response.aiter_raw(),
            response.status_code,
            dict(end_to_end(response.headers.items())),
            background=BackgroundTask(response.aclose),
        )

    return Starlette(routes=[Route("/{path:path}", forward, methods=["POST"])])
