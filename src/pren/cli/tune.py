"""``pren tune``: choose the parameters of a method on validation classes."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.options import BackboneChoice, DataChoice, Json, command_line, settings_of
from pren.cli.output import Talk, percent, print_json, say, show_log, stderr, stdout, table
from pren.cli.progress import continued, counted, extraction
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.research.tuning import Trial, Tuned
    from pren.store.config import RunConfig


@bundled
def tune(
    data: Annotated[str, options.Data],
    *,
    method: Annotated[str, typer.Option("--method", help="A name of 'pren list methods'.")],
    trials: Annotated[int, typer.Option(min=1, help="How many trials in all.")] = 50,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder; by default under tuning/.")] = None,
    start: Annotated[
        Path | None, typer.Option(metavar="FILE.yaml", help="Try the parameters in this file first, not the defaults.")
    ] = None,
    json: Json = False,
    talk: Talk,
    chosen: DataChoice,
    vision: BackboneChoice,
    assignments: Annotated[
        list[str] | None,
        options.method_option("--set", metavar="NAME=VALUE", help="A parameter that stays fixed. Repeat."),
    ] = None,
    seed: Annotated[int, options.method_option(min=0, help="The same seed and threads give the same result.")] = 0,
    threads: options.Threads = None,
) -> None:
    """Choose the parameters of a method on validation folds, or on folds of the seen classes.

    After an interruption, the same command continues.
    """
    show_log(talk)
    from pren.foundation.extras import need
    from pren.methods.registry import METHODS
    from pren.research.tuning import tune as run

    optuna_log = need("optuna.logging", "research")
    optuna_log.set_verbosity(optuna_log.WARNING)
    fixed = options.parse_assignments(assignments)
    usual = seed if "seed" not in fixed and "seed" in METHODS[method].method.params else None
    settings = settings_of(chosen, vision, data=data, method=method, assignments=assignments, seed=usual)
    config = settings.with_backbone(settings.config())
    first = None if start is None else _params_of(start, method)
    folder = out or _default_folder(config)
    title = f"Tuning {METHODS[method].title} on {config.data} ({config.setting})"
    with counted(title, "trials", talk.quiet) as show, extraction(talk.quiet) as on_extract, continued(folder):

        def on_trial(number: int, trial: Trial, best: Trial | None) -> None:
            show(number, trials, f"{number:3d}/{trials}   {_outcome(trial, best)}")

        study = partial(run, config, folder, trials=trials, seed=seed, start=first, command=command_line())
        tuned = study(on_trial=on_trial, on_extract=on_extract)
    (print_json if json else _show)(_summary(tuned, folder))


def _outcome(trial: Trial, best: Trial | None) -> str:
    result = f"failed: {trial.error}" if trial.value is None else percent(trial.value)
    return f"{result}   best {percent(None if best is None else best.value)}   {trial.seconds:.1f} s"


def _default_folder(config: RunConfig) -> Path:
    """A name per study, such as tuning/cub-PS-gzsl-eszsl."""
    setting = config.setting if config.setting != "zsl" else None
    parts = [Path(config.data).stem, config.split, setting, config.options.get("signatures"), config.method]
    return Path("tuning") / "-".join(str(part) for part in parts if part)


def _show(summary: dict[str, Any]) -> None:
    from pren.evaluation import TITLES

    folds = ", ".join(map(percent, summary["folds"]))
    figure = f"{TITLES[summary['figure']]} {percent(summary['mean_over_folds'])}"
    stdout().print(f"[bold]{figure}[/] on average over the validation folds ({folds})")
    weights = {} if summary["signature_weights"] is None else {"signature_weights": summary["signature_weights"]}
    stdout().print(table(["parameter", "value"], {**summary["params"], **weights}.items(), 2))
    if summary["failed"]:
        say(f"{summary['failed']} of {summary['trials']} trials failed: see {summary['study']}.", stderr())
    say(f"Try next: pren fit --config {shlex.quote(summary['config'])}")


def _params_of(path: Path, method: str) -> dict[str, Any]:
    from pren.store.config import parse_config, read_yaml

    config = parse_config(read_yaml(path), str(path))
    if config.method != method:
        raise PrenError("other-method", f"{path} has parameters of {config.method}, not of {method}.")
    return config.resolved().params


def _summary(tuned: Tuned, folder: Path) -> dict[str, Any]:
    from pren.research.folder import STUDY_FILE
    from pren.research.tuning import CONFIG_FILE

    return {
        "config": str(folder / CONFIG_FILE),
        "study": str(folder / STUDY_FILE),
        "method": tuned.config.method,
        "params": tuned.config.model_dump(mode="json")["params"],
        "signature_weights": tuned.config.options.get("signature_weights"),
        "figure": tuned.figure,
        "mean_over_folds": tuned.value,
        "folds": tuned.folds,
        "trials": tuned.trials,
        "failed": tuned.failed,
    }
