"""The bridge to dimod: binary quadratic models, sample sets, annealers as negative phase, and what hardware can hold.

The package dimod itself is imported by `to_bqm` alone, when it is called.
"""

from harmonium.interop.dimod.annealer import Annealer as Annealer
from harmonium.interop.dimod.bqm import from_bqm as from_bqm
from harmonium.interop.dimod.bqm import to_bqm as to_bqm
from harmonium.interop.dimod.bqm import to_ising as to_ising
from harmonium.interop.dimod.bqm import to_qubo as to_qubo
from harmonium.interop.dimod.ranges import range_report as range_report
from harmonium.interop.dimod.samples import from_sampleset as from_sampleset
