"""Restricted Boltzmann machines on top of each other: independent when they are trained, one density when read."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.couplings.absent import Absent
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.rbm import RBM
from harmonium.units.base import AbstractUnits


class AbstractStack(AbstractLayered):
    r"""RBMs :math:`1, \dots, M`, where the visible layer of each has the units of the hidden layer of the one below.

    As an energy model it is their *product*: a configuration :math:`(v_1, h_1, v_2, h_2, \dots, v_M, h_M)` has the
    energy :math:`\sum_i E_i(v_i, h_i)` in nats, the levels are independent of each other, and log partition functions
    add up. That is the law in which a jointly trained stack is sampled and learned. An inner layer thus has *two* bias
    vectors: the hidden bias of the level below (recognition) and the visible bias of the level above (the prior).

    Read from the top it is a deep belief network,

    .. math:: p(v_1, h_1, \dots, h_M) = p_1(v_1 \mid h_1) \cdots p_{M-1}(h_{M-2} \mid h_{M-1})\, p_M(h_{M-1}, h_M),

    in which the hidden biases of all levels but the last have no part, and whose only normaliser is that of its top
    level. *Which of the two laws a function means:* the methods here (:meth:`energy`, :meth:`free_energy`,
    :meth:`marginal_energy`, :meth:`sweep`) are those of the product, for samplers and rules; its marginal over the
    visible layer is that of the bottom RBM. Whatever speaks of probabilities, `harmonium.log_likelihood`,
    `harmonium.log_partition` and `harmonium.sample`, speaks of the network, and ``-free_energy(v)`` minus *that* log
    partition function is the log-probability of nothing. To score an RBM of the stack by itself, pass ``levels[0]``.

    Source: "Deep Tempering" (2014), section 3; the chapter's deep belief network.
    """

    units: eqx.AbstractVar[tuple[AbstractUnits, ...]]
    couplings: eqx.AbstractVar[tuple[Dense | Absent, ...]]  # pyright: ignore[reportIncompatibleUnannotatedOverride]

    @property
    def depth(self) -> int:
        """How many RBMs lie on each other."""
        return len(self.units) // 2

    @property
    def levels(self) -> tuple[RBM, ...]:
        """The RBMs from the bottom to the top."""
        return tuple(self.level(index) for index in range(self.depth))

    def level(self, index: int) -> RBM:
        """One of the RBMs, counted from 0 at the bottom."""
        coupling = self.couplings[2 * index]
        units = self.units[2 * index : 2 * index + 2]
        rbm = RBM(*units, weights=np.zeros((units[0].size, units[1].size), np.float32))
        return eqx.tree_at(lambda tree: tree.couplings, rbm, (coupling,))

    @property
    def layers(self) -> tuple[AbstractUnits, ...]:
        """The layers of the network, each once, with the biases that are its own, the visible one first."""
        return (*self.units[::2], self.units[-1])

    @property
    def top(self) -> RBM:
        """The level that normalises the network: the prior of what lies below."""
        return self.level(self.depth - 1)

    def recognised(self, visible: Float[Array, "*batch visible"]) -> tuple[Float[Array, "*batch n"], ...]:
        r"""Means of :math:`v_1, h_1, h_2, \dots, h_M` on the way up, each given the means of the one below."""
        layers = [visible]
        for rbm in self.levels:
            field = rbm.field(1, (layers[-1], jnp.zeros((*visible.shape[:-1], 0))))
            layers.append(rbm.units[1].mean(field))
        return tuple(layers)
