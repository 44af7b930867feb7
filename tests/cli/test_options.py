"""A dataclass of options as the parameters of a command."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated

import typer
from typer.testing import CliRunner

from scaml.cli.options import takes
from scaml.cli.report import report
from scaml.cli.suggest import suggest


@dataclass(frozen=True)
class Base:
    name: Annotated[str, typer.Argument(help="Who.")] = "you"
    times: Annotated[int, typer.Option("-n", help="How often.")] = 1
    loud: Annotated[bool, typer.Option("--loud")] = False


@dataclass(frozen=True)
class Greeting(Base):
    times: Annotated[int, typer.Option("-n", help="How often.")] = 2
    word: Annotated[str, typer.Option(help="What to say.")] = field(
        default="Hello", metadata={"after": "name"}
    )
    end: Annotated[str, typer.Option()] = "."


@takes(Greeting)
def greet(options: Greeting) -> None:
    """Greet somebody."""
    text = f"{options.word} {options.name}{options.end}"
    for _ in range(options.times):
        typer.echo(text.upper() if options.loud else text)


app = typer.Typer(add_completion=False)
app.command()(greet)


def test_fields_are_options_with_their_defaults() -> None:
    assert CliRunner().invoke(app, []).stdout == "Hello you.\n" * 2
    words = ["Ada", "--loud", "-n", "1", "--word", "Bye", "--end", "!"]
    assert CliRunner().invoke(app, words).stdout == "BYE ADA!\n"
    assert "Greet somebody." in CliRunner().invoke(app, ["--help"]).stdout


def test_options_come_in_the_order_of_the_fields_unless_one_says_otherwise() -> None:
    assert list(inspect.signature(greet).parameters) == ["name", "word", "times", "loud", "end"]


def test_suggest_and_report_have_the_same_options_but_for_the_space_that_is_written() -> None:
    of_suggest, of_report = (
        list(inspect.signature(command).parameters) for command in (suggest, report)
    )
    place = of_suggest.index("write_space")
    assert of_suggest[place - 1] == "space"
    assert [name for name in of_suggest if name != "write_space"] == of_report
    assert inspect.signature(suggest).parameters["n"].default == 1
    assert inspect.signature(report).parameters["n"].default == 3
