"""What tells classes apart: a vector for each, from attributes or from words."""

from pren.signatures.combine import combine, scaled_anew, source_names
from pren.signatures.encoders import ENCODERS, Encoder, encode, register_encoder
from pren.signatures.table import Signatures

__all__ = [
    "ENCODERS",
    "Encoder",
    "Signatures",
    "combine",
    "encode",
    "register_encoder",
    "scaled_anew",
    "source_names",
]
