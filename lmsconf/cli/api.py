"""`lmsconf api`: send one authenticated request, for anything that is not configuration."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output_streams import masks_people, write_redacted
from lmsconf.cli.planning import load_context_settings, on_request
from lmsconf.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from lmsconf.model.canonical_json import Json

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@click.command(cls=Command)
@click.argument("method", metavar="METHOD", type=click.Choice(_METHODS, case_sensitive=False))
@click.argument("path")
@click.option("--query", metavar="K=V", multiple=True, help="A query parameter. Can be repeated.")
@click.option("--body", metavar="JSON", help="The request's body; - reads it from stdin.")
@pass_context
def api(context: CommandContext, *, method: str, path: str, query: tuple[str, ...], body: str | None) -> ExitCode:
    """Send one request to the API and print the response.

    PATH is relative to the workspace's url, and percent-encoded: lmsconf api GET /users --query limit=5. Names are
    sent as they are: the project's dialect is not applied. The response is printed unchanged, including any people,
    keys and links in it; with --mask-people, no request is sent.
    """
    from lmsconf.documents.document import escape_invisible
    from lmsconf.workspace.connection import Connection

    if masks_people():
        message = "--mask-people: the response would be printed unchanged, with the people in it"
        raise UsageError(message, hint="Remove --mask-people, or unset LMSCONF_MASK_PEOPLE.")
    parameters = parse_query(query)
    content = None if body is None else _body(sys.stdin.buffer.read() if body == "-" else body.encode())
    settings = load_context_settings(context)
    with Connection(settings, on_call=on_request()) as connection, connection.worker_pool(1) as pool:
        try:
            answer = pool.submit(
                lambda client: client.send(method.upper(), path, query=parameters, body=content)
            ).result()
        except ValueError as error:
            hint = "PATH begins with /, is percent-encoded, and has no query: pass --query NAME=VALUE."
            raise UsageError(str(error), hint=hint) from error
    if answer is not None:
        write_redacted(
            f"{escape_invisible(json.dumps(answer, ensure_ascii=False, indent=2))}\n", sys.stdout, whole=True
        )
    return ExitCode.OK


def parse_query(pairs: Sequence[str]) -> dict[str, Json]:
    """Parse `k=v` pairs as query parameters; a repeated name becomes a list. Raises UsageError."""
    parameters: dict[str, Json] = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--query {text}: expected NAME=VALUE", hint="Write --query limit=5.")
        before = parameters.get(name)
        parameters[name] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    return parameters


def _body(text: bytes) -> Json:
    """Parse the request body. Raises UsageError for invalid JSON."""
    from lmsconf.api.messages import decode

    try:
        return decode(text)
    except ValueError as error:
        raise UsageError(
            f"--body: {error}", hint="""Quote it for the shell: --body '{"name": "Coaches"}'."""
        ) from error
