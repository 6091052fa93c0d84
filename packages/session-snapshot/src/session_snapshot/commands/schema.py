"""``session-snapshot schema``."""

from pathlib import Path

import click


@click.command()
@click.option("--write", "folder", type=click.Path(path_type=Path), help="Write one file each into this folder.")
def schema(folder: Path | None) -> None:
    """Show the JSON Schemas of agent.toml, scenario.toml and input.json, for editors."""
    from session_snapshot.schema import schema_files

    for name, text in schema_files().items():
        if folder is None:
            click.echo(text, nl=False)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")
        click.echo(f"{(folder / name).as_posix()} written")
