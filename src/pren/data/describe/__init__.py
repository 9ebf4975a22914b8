"""Signatures: a vector for each class, from attributes or from words."""

from pren.data.describe.combine import combine, reweighted, scaled_anew, source_names, varies
from pren.data.describe.encoders import (
    ENCODERS,
    TEMPLATES,
    Encoder,
    KnownEncoder,
    encode,
    find_encoder,
    list_encoders,
    register_encoder,
    templates_of,
)
from pren.data.describe.recipe import RECIPE_FILE, Recipe, in_templates, read_recipe
from pren.data.describe.sentences import DEFAULT as DEFAULT_ENCODER
from pren.data.describe.table import Signatures

__all__ = [
    "DEFAULT_ENCODER",
    "ENCODERS",
    "RECIPE_FILE",
    "TEMPLATES",
    "Encoder",
    "KnownEncoder",
    "Recipe",
    "Signatures",
    "combine",
    "encode",
    "find_encoder",
    "in_templates",
    "list_encoders",
    "read_recipe",
    "register_encoder",
    "reweighted",
    "scaled_anew",
    "source_names",
    "templates_of",
    "varies",
]
