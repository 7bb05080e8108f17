"""Server and client as Flower's apps, which any runtime of Flower's could call."""

from collections.abc import Callable

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from jaxanon.flower.device import Device
from jaxanon.flower.records import to_letter, to_record

FAILED = 1000  # An app's own code of an error, beyond Flower's.


def client_app(device: Device) -> ClientApp:
    """A client's answers to ``query.join``, ``train`` and ``query.leave``.

    What goes wrong in a round is told to the server, without data; the client stays.

    Args:
      device: ``Device``.
    """
    app = ClientApp()

    def answering(fn):
        def answer(message: Message, context: Context) -> Message:
            del context
            try:
                reply = fn(to_letter(message.content))
            except Exception as error:  # A client that stays is worth more.
                return Message(Error(FAILED, type(error).__name__), reply_to=message)
            return Message(to_record(reply), reply_to=message)

        return answer

    app.query("join")(answering(device.join))
    app.train()(answering(device.work))
    app.query("leave")(answering(device.leave))
    return app


def server_app(drive: Callable[[Grid], None]) -> ServerApp:
    """``drive`` as Flower's ``main``.

    Args:
      drive: runs all rounds, given Flower's grid.
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        del context
        drive(grid)

    return app
