"""Who plays in a conditional GAN, and the method that they make."""

import jax
import jax.numpy as jnp
import optax

from jaxanon.methods import acp, gan_networks, hub_sampling
from jaxanon.methods.central import Player, central
from jaxanon.methods.gan_networks import CRITIC, GENERATOR, Networks

HYPER = ("step_size", "critic_step_size", "classifier_step_size")
MOMENTUM = 0.5  # Radford, Metz, Chintala, ICLR 2016, section 3.


def build(name: str, nets: Networks, hyper, critic: Player, generator: Player):
    """A ``Method``, the GAN of those two players."""
    make_fn = lambda *given: made(nets, *given)
    see_fn = lambda params, windows: nets.bits.encode(
        hub_sampling.standardised(nets, windows)
    )
    method = central(
        name,
        nets.config,
        nets.spec,
        gan_networks.room(nets, every_class=True),
        init_fn=nets.init,
        players=(critic, generator, acp.classifying(nets)),
        hyper={name: getattr(nets.config, name) for name in hyper},
    )
    return method._replace(
        anonymize=gan_networks.rewriter(nets, see_fn, make_fn),
        sample=gan_networks.sampler(nets, make_fn),
        takes_tokens=True,
    )


def made(nets: Networks, key, params, classes):
    """Windows of public classes, ``float32[n, time, channels]``, in physical units."""
    x = nets.make(key, params[GENERATOR], classes)
    return hub_sampling.physical(nets, nets.bits.decode(x))


def judging(nets: Networks, *, concealing: bool) -> Player:
    """The critic, by the cross-entropy of what is real.

    With ``concealing`` real windows of classes to hide count as made up.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch, given):
        del hyper, given
        labels = batch.labels[public]
        windows = nets.make(key, params[GENERATOR], labels)
        real = nets.judge(params[CRITIC], batch.windows, labels)
        made_up = nets.judge(params[CRITIC], windows, labels)
        secret = concealing & hub_sampling.is_hidden(nets)[labels]
        each = jax.nn.softplus(jnp.where(secret, real, -real))
        loss = jnp.mean(each) + jnp.mean(jax.nn.softplus(made_up))
        return loss, ({"critic": loss}, {})

    optimizer = optax.scale_by_adam(b1=MOMENTUM)
    return Player((CRITIC,), loss_fn, step_size="critic_step_size", optimizer=optimizer)


def generating(nets: Networks, more_fn=None) -> Player:
    """The generator, by how sure the critic is that its windows are none.

    ``more_fn(params, windows, labels, hyper) -> (float[], info)`` is added.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch, given):
        del given
        labels = batch.labels[public]
        windows = nets.make(key, params[GENERATOR], labels)
        made_up = nets.judge(params[CRITIC], windows, labels)
        loss = jnp.mean(jax.nn.softplus(-made_up))
        info = {"generator": loss}
        if more_fn is not None:
            more, told = more_fn(params, windows, labels, hyper)
            loss, info = loss + more, info | told
        return loss, (info, {})

    return Player((GENERATOR,), loss_fn, optimizer=optax.scale_by_adam(b1=MOMENTUM))
