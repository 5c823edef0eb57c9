"""The command line: `cardkeeper serve | resolve | report | validate | watch | agents | card | fingerprint | …`.

Exit codes: 0 done, 1 the answer is no (refused, drift, rejected), 2 wrong usage or unreadable input, 3 the service cannot be
reached.
"""

import typer

from cardkeeper.cli.cards import app as cards_app
from cardkeeper.cli.fleet import app as fleet_app
from cardkeeper.cli.judge import app as judge_app
from cardkeeper.cli.observe import app as observe_app
from cardkeeper.cli.serve import app as serve_app

app = typer.Typer(
    name="cardkeeper",
    help="Discovery service for A2A fleets: keeps agent cards, finds drift, pushes invalidations.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for part in (serve_app, observe_app, fleet_app, cards_app, judge_app):
    app.registered_commands.extend(part.registered_commands)


def main() -> None:
    """Run the command line."""
    app()
