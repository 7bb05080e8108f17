"""The client's side of Flower: code it runs, and when it gives up."""

import contextlib
import multiprocessing.connection
import subprocess
import sys
import threading

import pytest

from jaxanon.flower import client, client_transport, programs
from jaxanon.flower.records import Payload


def test_nobody_listens(data, port):
    with pytest.raises(ConnectionError, match=f"no server answers at 127.0.0.1:{port}"):
        client.join(f"127.0.0.1:{port}", 0, data, wait_s=0.1)


@pytest.mark.parametrize("kind", ["source", "bytecode", "shadow", "settings"])
def test_no_code_of_the_server_runs(kind):
    """Flower unpacks the server's messages, and would import an app from there."""
    with programs.running(guarded=True) as flower:
        app = flower.folder / "home" / "apps" / "evil"
        app.mkdir(parents=True)
        (app / "pyproject.toml").write_text("fine = true")
        name = "wave" if kind == "shadow" else "evil"
        (app / f"{name}.py").write_text("print('owned')")
        if kind == "bytecode":
            made = f"import py_compile; py_compile.compile({str(app / 'evil.py')!r}, "
            subprocess.run([sys.executable, "-c", made + f"{str(app / 'evil.pyc')!r})"])
            (app / "evil.py").unlink()
        program = f"import sys; sys.path.insert(0, {str(app)!r}); "
        program += (
            f"print(open({str(app / 'pyproject.toml')!r}).read())"
            if kind == "settings"
            else f"import {name}"
        )
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=flower.env, capture_output=True, text=True)
    assert "owned" not in done.stdout
    if kind == "settings":
        assert done.stdout == "fine = true\n"
    else:
        assert "came from the server: its code is not run" in done.stderr


def test_what_flower_says_is_one_line_without_colours():
    with programs.running() as flower:
        log = flower.folder / "flower-supernode.log"
        log.write_text(
            "\x1b[92mINFO \x1b[0m:  Starting\n\n\x1b[91mERROR \x1b[0m: lost\n"
        )
        assert flower.said("flower-supernode") == "INFO :  Starting ERROR : lost"


def test_flower_tells_nobody_what_it_does():
    with programs.running() as flower:
        assert flower.env["FLWR_TELEMETRY_ENABLED"] == "0"
        assert flower.env["FLWR_DISABLE_UPDATE_CHECK"] == "1"


def test_programs_end_with_the_process_that_started_them(tmp_path):
    """Even if the process was killed, no program keeps a port or a key."""
    program = (
        "import os, sys, pathlib\n"
        "from jaxanon.flower import programs\n"
        "with programs.running() as flower:\n"
        "    path = flower.folder / 'bin' / 'launch.py'\n"
        "    text = path.read_text().partition('found =')[0]\n"
        "    path.write_text(text + 'time.sleep(100)')\n"
        "    print(flower.start('sleeper').pid, flush=True)\n"
        "    os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.returncode == 9, done.stderr
    path = f"/proc/{int(done.stdout)}/stat"

    def alive():
        with contextlib.suppress(OSError), open(path) as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"

    for _ in range(200):
        if not alive():
            return
        threading.Event().wait(0.05)
    pytest.fail("it goes on")


class Flower:
    """``Programs`` whose first ``refusals`` SuperNodes exit at once."""

    def __init__(self, refusals=0, asks=()):
        self.refusals, self.asks, self.starts, self.secret = refusals, asks, [], "s"
        self.answers, self.gone = [], False

    def serve(self, handle):
        self.handle = handle

    def stop(self):
        pass

    def start(self, name, *words):
        if name == "flower-supernode":
            self.starts.append([*map(str, words)])
            if len(self.starts) > self.refusals:
                threading.Thread(target=self._ask).start()

    def _ask(self):
        for kind in self.asks:
            one, other = multiprocessing.connection.Pipe()
            one.send((kind, Payload({}, {})))
            asked = threading.Thread(target=self.handle, args=(other,))
            asked.start()
            self.answers.append(one.recv())
            one.close()
            asked.join()

    def ended(self):
        over = self.gone or len(self.starts) <= self.refusals
        return "flower-supernode" if over else None

    def said(self, name):
        return "so it says"


@pytest.fixture
def take_part(monkeypatch):
    """Returns ``take_part(flower, respond, done, ...)``, a client of a server."""
    monkeypatch.setattr(client_transport, "LINGER_S", 0.0)
    monkeypatch.setattr(client_transport, "POLL_S", 0.01)

    def answer(flower, respond=None, done=lambda: False, **more):
        running = lambda guarded: contextlib.nullcontext(flower)
        monkeypatch.setattr(programs, "running", running)
        how = {"private_key": None, "root_certificate": None, "wait_s": 5.0}
        how |= {"host": "127.0.0.1", "port": 9} | more
        client_transport.answer(respond, done, **how)

    return answer


def test_letters_are_answered_until_it_is_over(take_part):
    heard = []

    def respond(kind, payload):
        heard.append(kind)
        if kind == "train":
            raise OSError("disk full at /home/somebody")
        return Payload({"kind": kind}, {})

    flower = Flower(asks=["query.join", "train", "query.leave"])
    take_part(flower, respond, lambda: "query.leave" in heard)
    joined, failed, left = flower.answers
    assert joined.facts == {"kind": "query.join"} and left.facts["kind"] == heard[-1]
    assert failed == "OSError"  # Details of the error stay on the client.
    (words,) = flower.starts
    assert "--insecure" in words and "--auth-supernode-private-key" not in words


def test_who_is_not_taken_is_told_what_to_look_at(take_part):
    match = r"rejects this client \(so it says\). Check that both or"
    with pytest.raises(ConnectionError, match=match):
        take_part(flower := Flower(refusals=1), root_certificate="root.pem")
    (words,) = flower.starts
    assert words[words.index("--root-certificates") + 1] == "root.pem"
    assert "--insecure" not in words


def test_the_key_of_a_client_that_was_killed_is_waited_for(take_part):
    heard = []
    respond = lambda kind, _: heard.append(kind) or Payload({}, {})
    flower = Flower(refusals=2, asks=["query.leave"])
    how = {"private_key": "client0", "root_certificate": "root.pem"}
    with pytest.warns(UserWarning, match="key yet: .* a killed process may still be"):
        take_part(flower, respond, lambda: bool(heard), **how)
    assert len(flower.starts) == 3 and heard == ["query.leave"]
    with (
        pytest.warns(UserWarning, match="Retrying for"),
        pytest.raises(ConnectionError, match="no other process uses the key"),
    ):
        take_part(Flower(refusals=100), **how | {"wait_s": 0.3})


def test_a_server_that_does_not_listen_any_more_is_gone(take_part, monkeypatch, port):
    """SuperNode would wait for it forever."""
    monkeypatch.setattr(client_transport, "LOOK_S", 0.05)
    with pytest.raises(
        ConnectionError, match=f":{port} is gone .nothing listens there"
    ):
        take_part(
            Flower(asks=["query.join"]),
            lambda *_: Payload({}, {}),
            port=port,
            wait_s=0.1,
        )


def test_a_server_that_is_gone_is_told(take_part):
    flower = Flower(asks=["query.join"])

    def respond(kind, payload):
        flower.gone = True
        return payload

    with pytest.raises(ConnectionError, match=r"127.0.0.1:9 is gone \(so it says\)"):
        take_part(flower, respond)
