"""``pren tune``: choose a method's parameters on validation classes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli import options
from pren.cli.options import DataOptions, Features, Json, Root, SettingName, Split
from pren.cli.output import percent, print_json, safe, show_log, stderr, stdout, table
from pren.cli.progress import continued, counted
from pren.errors import PrenError

if TYPE_CHECKING:
    from pren.experiments.tuning import Trial, Tuned


def tune(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="See 'pren list methods'.")],
    data: Annotated[str, options.Data],
    trials: Annotated[int, typer.Option(min=1, help="How many there are to be in all.")] = 50,
    root: Root = None,
    split: Split = None,
    setting: SettingName = None,
    features: Features = None,
    data_assignments: DataOptions = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter that is fixed, not chosen; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same parameters.")] = 0,
    start: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Try the parameters of this configuration first, not the defaults."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the study is kept; by default a name under tuning/.")] = None,
    json: Json = False,
) -> None:
    """Choose parameters without a look at the test: on the split's validation folds, or folds of the seen classes.

    The same command goes on with a study that was interrupted.
    """
    show_log()
    from pren.evaluation import TITLES
    from pren.experiments.extras import need
    from pren.experiments.tuning import tune as run
    from pren.methods.params import schema
    from pren.methods.registry import get_entry

    optuna_log = need("optuna.logging", "tune")
    optuna_log.set_verbosity(optuna_log.WARNING)
    params = options.parse_assignments(assignments or [])
    if "seed" in schema(get_entry(method).method).model_fields:
        params.setdefault("seed", seed)
    given = {"data": data, "root": root, "split": split, "setting": setting, "method": method}
    data_options = options.parse_data_options(data_assignments, features)
    config = options.build_config(None, given, params, None, data_options)
    first = None if start is None else _params_of(start, method)
    setting_part = [config.setting] if config.setting != "zsl" else []
    folder = out or Path("tuning") / "-".join([Path(data).stem, *([split] if split else []), *setting_part, method])
    title = f"Tuning {get_entry(method).title} on {config.data} ({config.setting})"
    with counted(title, "trials") as say, continued(folder):

        def on_trial(number: int, trial: Trial, best: Trial | None) -> None:
            result = f"failed: {trial.error}" if trial.value is None else percent(trial.value)
            best_so_far = percent(best.value) if best is not None else "-"
            say(number, trials, f"{result}   best {best_so_far}   {trial.seconds:.1f} s")

        command = shlex.join(["pren", *sys.argv[1:]])
        tuned = run(config, folder, trials=trials, seed=seed, start=first, command=command, on_trial=on_trial)
    content = _summary(tuned, folder)
    if json:
        print_json(content)
        return
    console = stdout()
    figure = TITLES[tuned.figure]
    folds = ", ".join(percent(value) for value in tuned.folds)
    console.print(f"[bold]{figure} {percent(tuned.value)}[/] on average over the validation folds ({folds})")
    console.print(table(["parameter", "value"], tuned.config.params.items(), 2))
    if tuned.failed:
        stderr().print(f"{tuned.failed} of {tuned.trials} trials failed; {folder / 'study.json'} says why.")
    console.print(f"Try next: pren fit --config {safe(shlex.quote(content['config']))}", soft_wrap=True)


def _params_of(path: Path, method: str) -> dict[str, Any]:
    from pren.runs.config import parse_config, read_yaml

    config = parse_config(read_yaml(path), str(path))
    if config.method != method:
        raise PrenError(f"{path} has parameters of {config.method}, not of {method}.")
    return config.resolved().params


def _summary(tuned: Tuned, folder: Path) -> dict[str, Any]:
    from pren.experiments.tuning import CONFIG_FILE

    return {
        "config": str(folder / CONFIG_FILE),
        "method": tuned.config.method,
        "params": tuned.config.model_dump(mode="json")["params"],
        "figure": tuned.figure,
        "mean_over_folds": tuned.value,
        "folds": tuned.folds,
        "trials": tuned.trials,
        "failed": tuned.failed,
    }
