"""A file in place of options: TOML, `option = value`, under the words that the command line has."""

import tomllib
from pathlib import Path

import click

from proofcast.cli.values import refuse


def read_settings(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Take what stands in the file as the command's defaults; an option on the command line goes before it."""
    if path is None:
        return None
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise refuse(f"`{path}` is no TOML file (`{error}`)", "write `option = value` on each line") from error
    names = {option: parameter.name for parameter in context.command.params for option in parameter.opts}
    unknown = [word for word in found if f"--{word}" not in names or word in ("config", "check", "help")]
    if unknown:
        known = sorted(option.removeprefix("--") for option in names)
        raise refuse(f"`{path}` names `{unknown[0]}`, which is no option", f"known are {', '.join(known)}")
    context.default_map = {names[f"--{word}"] or word: value for word, value in found.items()}
    return path


CONFIG = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=read_settings,
    help='TOML file with these options, e.g. `feed = "feed"`; those of the command line go before it.',
)
CHECK = click.option("--check", is_flag=True, help="Say whether everything given is right, and end.")
