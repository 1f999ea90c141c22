"""Other people's interfaces, nothing else: ``hm.interop.dimod`` is the bridge to annealers and Ising hardware."""

from harmonium.interop import dimod as dimod
