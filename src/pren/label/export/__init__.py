"""A model that leaves the house: one file from images or features to the scores of all classes, used without pren."""

from pren.label.export.files import FORMATS, export

__all__ = ["FORMATS", "export"]
