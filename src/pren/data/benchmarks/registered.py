"""The standard benchmarks by name: where their files are in a folder of the user."""

from __future__ import annotations

from pathlib import Path

from pren.data.benchmarks.xlsa17_files import Place
from pren.foundation.errors import PrenError

PUBLISHED = (
    "The files are published by the Max Planck Institute for Informatics on the page of 'Zero-Shot Learning: the Good, "
    "the Bad and the Ugly' (xlsa17.zip with the proposed splits and ResNet-101 features, standard_split.zip with the "
    "standard ones): www.mpi-inf.mpg.de/departments/computer-vision-and-machine-learning/research/zero-shot-learning/"
    "zero-shot-learning-the-good-the-bad-and-the-ugly"
)
FOLDERS = {"cub": "CUB", "sun": "SUN", "sun10": "SUN", "awa2": "AWA2"}
SPLIT_FOLDERS = {"PS": "data", "SS": "standard_split", "SUN10": "data"}
_SUN_IMAGES = (
    ("SUN/images", "SUNAttributeDB/images", "SUNAttributeDB_Images/images", "images"),  # the archive unpacks to images
    "The images are published at cs.brown.edu/~gmpatter/sunattributes.html (SUNAttributeDB_Images.tar.gz).",
)
IMAGES = {  # where they usually are below the root, and where they are published
    "cub": (("CUB_200_2011/images",), "The images are published by Caltech at data.caltech.edu (CUB_200_2011.tgz)."),
    "sun": _SUN_IMAGES,
    "sun10": _SUN_IMAGES,
    "awa2": (
        ("Animals_with_Attributes2/JPEGImages",),
        "The images are published at cvml.ista.ac.at/AwA2 (AwA2-data.zip).",
    ),
}
SUN10_CLASSES = "testclasses_sun10.txt"


def find_benchmark(root: Path, name: str, split: str) -> Place:
    """Where one split of a benchmark is; any other name means that `root` itself is a folder with one split."""
    if name not in FOLDERS:
        return Place(name, split, root, root)
    folder = FOLDERS[name]
    places, images_published = IMAGES[name]
    for base in (root / "xlsa17", root):
        if any((base / kind / folder).is_dir() for kind in SPLIT_FOLDERS.values()):
            return Place(
                name=name,
                split=split,
                folder=base / SPLIT_FOLDERS[split] / folder,
                features=base / SPLIT_FOLDERS["PS"] / folder,
                test_classes=SUN10_CLASSES if split == "SUN10" else None,
                published=PUBLISHED,
                images=tuple(root / place for place in places),
                images_published=images_published,
            )
    hint = f"give the folder that holds xlsa17. {PUBLISHED}"
    raise PrenError("data-missing", f"{root} holds neither xlsa17/data/{folder} nor data/{folder}: {hint}")
