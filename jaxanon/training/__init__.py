"""Training of methods, run folders and checkpoints."""

from jaxanon.training.processes import join
from jaxanon.training.run_folder import open_run
from jaxanon.training.trainer import train

__all__ = ["join", "open_run", "train"]
