"""The server's end: Flower's SuperLink behind a gate that lets clients' calls in.

SuperLink serves all of its interfaces at one port, among them one that runs anybody's
code. Here it listens on the loopback interface, with a certificate of its own, and a
gate at the public address passes on the calls of SuperNodes alone.
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
from jaxanon.flower.records import Failure, Letter

STARTED_S = 120.0  # That Flower's programs may take to start.
AGAIN_S = 60.0  # Between two notices of clients that are refused.
FLEET = re.compile(r"/v\d+/fleet/[a-z-]+")  # What SuperNodes call.
ENTERS = ("register-node", "activate-node")
HOPS = {"connection", "host", "keep-alive", "transfer-encoding", "upgrade", "server"}

# Names apps that are installed at both ends; there is no code in it.
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
    """Messages to nodes and back, by the ServerApp that runs elsewhere."""

    def __init__(self, connection):
        self._connection = connection

    def _asked(self, *what):
        try:
            self._connection.send(what)
            found = self._connection.recv()
        except (EOFError, OSError) as error:
            found = error
        if isinstance(found, Exception):
            raise ConnectionError(
                f"Flower ended this run ({found!r}); start it again with resume=True "
                "(--resume)."
            ) from found
        return found

    def nodes(self) -> list[int]:
        """Nodes that are there."""
        return self._asked("nodes")

    def push(self, node: int, kind: str, letter: Letter, ttl: float) -> str | None:
        """Sends a letter that is valid for ``ttl`` seconds; its id, if it was taken."""
        return self._asked("push", node, kind, letter, ttl)

    def pull(self, ids: Iterable[str]) -> dict[str, Letter | Failure]:
        """Replies that are here, by what they reply to; waits for none."""
        return self._asked("pull", [*ids])


def listen(host: str, port: int) -> socket.socket:
    """A port that is this process's from now on.

    Raises:
      OSError: if it is another's, or the host is not this machine.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"{host}:{port} is not to be had ({error.strerror}); another program has "
            "it, or the address is not this machine's: choose another --address."
        ) from error
    return found


@contextlib.contextmanager
def serving(
    port: socket.socket,
    *,
    certificate,
    private_key,
    public_keys: dict[int, bytes] | None,
    tell: Callable[[str], None] = print,
):
    """Serves clients, and nobody else, while within.

    Args:
      port: of ``listen``.
      certificate, private_key: paths of PEM files, of TLS; None is plain HTTP.
      public_keys: of ``keys.public_keys``; None lets everybody in who speaks Flower.
      tell: gets a sentence, once a minute at most, of clients that Flower refuses.

    Yields:
      ``(link, nodes)``: a ``Link``, and the client of each node where there are keys.

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
                tell,
                ssl_certfile=certificate,
                ssl_keyfile=private_key,
            ),
        ):
            yield Link(connection), nodes
            with contextlib.suppress(OSError):
                connection.send(None)


def certify(folder):
    """Makes a certificate of the loopback interface: its path, and its key's."""
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
    """Starts SuperLink, and returns once it listens."""
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
    """Tells SuperLink whose keys it may take; the client of each node."""

    def register(client):
        path = flower.folder / f"client{client}.pub"
        path.write_bytes(public_keys[client])
        return int(flower.run("flwr", "supernode", "register", path)["node-id"])

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(pool.map(register, public_keys), public_keys, strict=True))


def _launch(flower, address, certificate):
    """Has Flower start the ServerApp; the connection to it."""
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
    # It would run what anybody on this machine hands in. Nothing is to come.
    if hasattr(signal, "SIGSTOP"):
        executor.send_signal(signal.SIGSTOP)
    return connections.get()


def _wait(flower, found):
    end = time.monotonic() + STARTED_S
    while not found():
        over = flower.ended()
        if over or time.monotonic() > end:
            why = f"{over}: {flower.said(over)}" if over else f"not in {STARTED_S:g} s"
            raise OSError(
                f"the server did not start ({why}); see whether this machine lets it "
                "listen, or choose another --address."
            )
        time.sleep(0.05)


@contextlib.contextmanager
def _gate(port, inner, root, tell, **tls):
    """Passes on, from a port to SuperLink, what SuperNodes may ask, while within."""
    config = uvicorn.Config(
        gate(inner, ssl.create_default_context(cafile=str(root)), tell),
        log_config=None,  # Logging is whose process it is.
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


def gate(inner: str, tls, tell: Callable[[str], None], transport=None) -> Starlette:
    """An ASGI app that passes on what SuperNodes may ask.

    Args:
      inner: SuperLink's URL.
      tls: ``ssl.SSLContext`` that knows its certificate.
      tell: gets a sentence, once a minute at most, of clients that it refuses.
      transport: of ``httpx``; None is the network.
    """
    limits = httpx.Limits(max_connections=None)
    http = httpx.AsyncClient(
        base_url=inner, verify=tls, timeout=60.0, limits=limits, transport=transport
    )
    told = -AGAIN_S

    async def forward(request):
        nonlocal told
        path = request.url.path
        if not FLEET.fullmatch(path):
            return Response(status_code=404)
        kept = lambda headers: [each for each in headers if each[0].lower() not in HOPS]
        try:
            found = await http.send(
                http.build_request(
                    "POST",
                    path,
                    headers=kept(request.headers.items()),
                    content=request.stream(),
                ),
                stream=True,
            )
        except httpx.TransportError:
            return Response(status_code=502)
        if found.status_code >= 400 and path.endswith(ENTERS):
            if time.monotonic() - told >= AGAIN_S:  # It tries again and again.
                told = time.monotonic()
                tell(
                    "A client was refused that has none of --client-keys, or one by "
                    "which another is there."
                )
        return StreamingResponse(
            found.aiter_raw(),
            found.status_code,
            dict(kept(found.headers.items())),
            background=BackgroundTask(found.aclose),
        )

    return Starlette(routes=[Route("/{path:path}", forward, methods=["POST"])])
