"""Turn a method's declarations into its constructor, documentation and search space."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pren.methods.params import Learned, Param, declared


def take_declarations(cls: Any) -> None:
    """Give a class of methods what it declares."""
    own = {name: value for name, value in vars(cls).items() if isinstance(value, Param | Learned)}
    cls._declared = own
    for name, value in own.items():
        if isinstance(value, Param):
            setattr(cls, name, value.default)
        else:
            delattr(cls, name)
    cls.params = declared(cls, Param)
    cls.space = {name: known.search for name, known in cls.params.items() if known.search is not None}
    cls.__init__ = _constructor(cls.params)
    if cls.__doc__ is not None and not inspect.isabstract(cls):
        described = "\n".join(f"        {name}: {known.doc}" for name, known in cls.params.items())
        cls.__doc__ = f"{cls.__doc__.rstrip()}\n\n    Args:\n{described}\n"


def _constructor(params: Mapping[str, Param]) -> Any:
    """A constructor that only stores its arguments, as scikit-learn wants it."""

    def __init__(self: Any, **given: Any) -> None:  # noqa: N807
        for name in given:
            if name not in params:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}")
        for name, known in params.items():
            setattr(self, name, given.get(name, known.default))

    keyword = inspect.Parameter.KEYWORD_ONLY
    arguments = [inspect.Parameter(name, keyword, default=known.default) for name, known in params.items()]
    myself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([myself, *arguments])  # type: ignore[attr-defined]
    return __init__
