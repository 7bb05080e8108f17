"""Trained runs that anonymize by other settings than they were trained with."""

import dataclasses

from jaxanon import methods


def by(run, settings):
    """A trained run that anonymizes by other settings, and has no folder.

    Args:
      run: ``Run``.
      settings: of its method's config; networks must keep their shapes.
    """
    config = dataclasses.asdict(run.method.config) | settings
    method = methods.build(run.method.name, run.spec, **config)
    # Some are told by the config, some by arrays of the state.
    heeded = {
        name: settings[name] for name in settings if name in method.adjustable.hyper
    }
    return dataclasses.replace(run, method=method, folder=None).adjusted(**heeded)
