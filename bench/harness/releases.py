"""Trained runs that anonymize with settings other than their training settings."""

import dataclasses

from jaxanon import methods


def by(run, settings):
    """Returns a trained run that anonymizes with other settings and has no folder.

    Args:
      run: trained ``Run``.
      settings: settings of its method; networks must keep their shapes.
    """
    config = dataclasses.asdict(run.method.config) | settings
    method = methods.build(run.method.name, run.spec, **config)
    # Some settings live in the config, others in arrays of the state.
    heeded = {
        name: settings[name] for name in settings if name in method.adjustable.hyper
    }
    return dataclasses.replace(run, method=method, folder=None).adjusted(**heeded)
