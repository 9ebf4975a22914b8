"""Export a model as one file that runs without pren, from photographs or features to the scores of all classes."""

from pren.label.export.files import FORMATS, export

__all__ = ["FORMATS", "export"]
