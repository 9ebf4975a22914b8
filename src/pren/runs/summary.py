"""A run in a few facts, for whoever shows them."""

from __future__ import annotations

from typing import Any

from pren.methods.storage import MODEL_FILE, read_facts
from pren.problem import candidates_of
from pren.runs.ending import label_facts
from pren.runs.store.folder import PREDICTIONS, REPORT_FILE, RunFolder
from pren.runs.store.tables import read_predictions

# What a method does with images; it has no effect on the features of a frozen backbone.
OF_IMAGES = set("backbone weights geometry backbone_lr augmentation precision train_statistics".split())


def run_summary(run: RunFolder) -> dict[str, Any]:
    """What a run was, how far it came, how well it did and where its results are; JSON-ready."""
    config, history, finished, trust = run.config(), run.history(), run.finished(), run.trust()
    without_effect = OF_IMAGES if config.extractor is not None else set()
    return {
        "run": str(run.path),
        "finished": finished,
        "data": config.data,
        "split": config.split,
        "setting": config.setting,
        "options": config.options,
        "extractor": None if config.extractor is None else config.extractor.model_dump(mode="json"),
        "method": config.method,
        "params": {key: value for key, value in config.params.items() if key not in without_effect},
        "record": config.record,
        "rounds_done": history[-1]["round"] if history else None,
        "rounds": config.params.get("rounds") or config.params.get("epochs") or 0,
        "metrics": run.metrics(),
        "forecast": None if trust is None else trust.forecast.model_dump(mode="json"),
        "labels": _label_facts(run) if finished else None,
        "model": str(run.path / MODEL_FILE) if finished else None,
        "predictions": str(run.path / PREDICTIONS) if finished else None,
        "report": str(run.path / REPORT_FILE) if (run.path / REPORT_FILE).is_file() else None,
    }


def _label_facts(run: RunFolder) -> dict[str, Any]:
    known = read_facts(run.path)
    names = list(zip(known["class_names"], known["seen"], strict=True))
    groups = [[name for name, seen in names if not seen], [name for name, seen in names if seen]]
    among = groups if candidates_of(known["setting"]) == "all" else groups[:1]
    return label_facts(read_predictions(run.path / PREDICTIONS), among)


def way_of_backbone(summary: dict[str, Any]) -> str:
    """What was done to the backbone that made the features of a run."""
    asked, source = summary["extractor"], summary["record"].get("source")
    if asked["until"] is None:
        return "frozen, with mirror images" if asked["mirrored"] else "frozen"
    if asked["finetune"] is None:
        return f"trained from stage {asked['until']} on"
    done = source.get("finetuning") if isinstance(source, dict) else None
    strength = done.get("strength") if isinstance(done, dict) else None
    return "frozen, as fine-tuning does not help" if strength == 0 else f"fine-tuned with strength {strength}"
