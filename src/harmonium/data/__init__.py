"""The data room: where rows come from, whether they fit the units, and how grey levels become bits.

Imports numpy only; jax, scikit-learn, scipy and pandas are loaded by the function that needs one.
"""

from harmonium.data.base import DataSet as DataSet
from harmonium.data.binarization import draw_binary as draw_binary
from harmonium.data.load import as_dataset as as_dataset
from harmonium.data.load import from_source as from_source
from harmonium.data.load import load_data as load_data
from harmonium.data.names import (
    NamedData as NamedData,
)
from harmonium.data.names import (
    Parameter as Parameter,
)
from harmonium.data.names import (
    data_names as data_names,
)
from harmonium.data.names import (
    data_parameters as data_parameters,
)
from harmonium.data.names import (
    describe_name as describe_name,
)
from harmonium.data.support import Encoded as Encoded
from harmonium.data.support import check_support as check_support
from harmonium.data.support import encode as encode
