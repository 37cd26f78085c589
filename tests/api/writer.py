"""Writes the typed client, `lmsconf/api/sdk`, from schemas/openapi.json: `python -m tests.api.writer`.

One class an endpoint group, one method an operation, one more for each listing that has pages, and a TypedDict for
every object. A test compares what is written here with what is there.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent, wrap
from typing import Any

from lmsconf.api.spec import ApiSpec

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = json.loads((ROOT / "schemas" / "openapi.json").read_text(encoding="utf-8"))
TARGET = ROOT / "lmsconf" / "api" / "sdk"
AS_OURS = (f"--config={ROOT / 'pyproject.toml'}", f"--config=src = ['{ROOT}']")
ORIGIN = "Written by tests/api/writer.py from schemas/openapi.json; edit that one."
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
SHORT = {"manual_groups": "groups"}
"""Groups whose attribute is not the first part of their operations' ids."""
ANSWERS = {
    "choice": ("CHOICE", "dict[str, str | None]", "Id of a CHOICE field → id of the choice; None clears it"),
    "multi_select": ("MULTI_SELECT", "dict[str, ListOf[str]]", "Id of a MULTI_SELECT field → ids; none clear it"),
    "text": ("TEXT", "dict[str, str | None]", "Id of a TEXT field → text; None clears it"),
}
"""The arguments of the one operation whose body is a map: the type of the fields, that of the argument, what it is."""
Node = dict[str, Any]


def snake(name: str) -> str:
    """A name of the API as a name of Python."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removesuffix("[]")).replace("-", "_").lower()


def camel(name: str) -> str:
    """A name of the API as the name of a class."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[-_.]", name.removesuffix("[]")))


class Shapes:
    """The TypedDicts: resources are those that the description names, messages are the others."""

    def __init__(self) -> None:
        self.resources: list[str] = []
        self.messages: list[str] = []
        self.names: set[str] = set()
        self.about = "Part of another"
        for name, schema in DOCUMENT["components"]["schemas"].items():
            if "properties" in schema or "allOf" in schema:
                self._class(name, schema, self.resources)
            else:
                self.resources.append(f"{name}: TypeAlias = {self.of(schema, name, self.resources)}")
            self.names.add(name)
        self.known = frozenset(self.names)

    def of(self, schema: Node, name: str, where: list[str] | None = None) -> str:
        """The Python type of a schema; an object that has no name yet becomes a TypedDict of this one."""
        if "$ref" in schema:
            return str(schema["$ref"]).rpartition("/")[2]
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        if "anyOf" in schema and "type" not in schema:
            return " | ".join(self.of(one, name, where) for one in schema["anyOf"])
        if "properties" in schema or "allOf" in schema:
            self._class(name, schema, self.messages if where is None else where)
            self.names.add(name)
            return name
        if isinstance(schema["type"], list):
            return " | ".join(PLAIN[one] for one in schema["type"])
        if schema["type"] == "array":
            return f"ListOf[{self.of(schema['items'], name.removesuffix('s'), where)}]"
        if schema["type"] == "object":
            held = schema.get("additionalProperties")
            return f"dict[str, {self.of(held, name, where) if isinstance(held, dict) else 'object'}]"
        return PLAIN[schema["type"]]

    def _class(self, name: str, schema: Node, where: list[str]) -> None:
        """Adds one TypedDict. What an object holds inside comes before it."""
        merged, bases = dict(schema), ["TypedDict"]
        for one in schema.get("allOf", []):
            if "$ref" in one:
                bases = [self.of(one, name, where)]
            else:
                merged.update(one)
        required = merged.get("required", [])
        lines = [f'"""{merged.get("description", self.about)}."""', ""]
        for key, part in merged["properties"].items():
            type_ = self.of(part, name + camel(key), where)
            line = f"{key}: {type_ if key in required else f'NotRequired[{type_}]'}"
            comment = f"# {part['description']}" if "description" in part else ""
            lines += [f"{line}  {comment}"] if len(line + comment) < 112 else [comment, line]
        where.append(f"class {name}({bases[0]}):\n{indent(chr(10).join(lines), '    ')}")


@dataclass(frozen=True)
class Argument:
    """One argument of a method. where: path, query, headers, body; nullable where None goes; answers of a map."""

    wire_name: str
    where: str
    type: str
    required: bool
    description: str

    @property
    def name(self) -> str:
        return snake(self.wire_name)

    @property
    def signature(self) -> str:
        if self.required:
            return f"{self.name}: {self.type}"
        if self.where == "nullable":
            return f"{self.name}: {self.type.removesuffix(' | None')} | LeftOut | None = LEFT_OUT"
        return f"{self.name}: {self.type} | None = None"


@dataclass(frozen=True)
class Method:
    """One operation as a method."""

    operation: str
    route: str
    definition: Node
    arguments: list[Argument]
    answer: str
    answer_schema: Node | None

    @property
    def name(self) -> str:
        return snake(self.operation.partition(".")[2])

    def text(self) -> str:
        """The method, and the one that goes through its pages."""
        return self._one() + self._all()

    def _one(self) -> str:
        parts = [repr(self.operation)]
        for where in ("path", "query", "headers", "body", "nullable"):
            held = ", ".join(f"{one.wire_name!r}: {one.name}" for one in self.arguments if one.where == where)
            parts += [f"{where}={{{held}}}"] if held else []
        if answers := ", ".join(
            f"{ANSWERS[one.name][0]}={one.name}" for one in self.arguments if one.where == "answers"
        ):
            parts.append(f"nullable=self._answers({self.operation!r}, {answers})")
        in_batches = "manual-groups.add.batch" in ApiSpec.default()[self.operation].dialect_keys
        call = f"self.{'_in_batches' if in_batches else '_ask'}({', '.join(parts)})"
        body = call if self.answer == "None" else f"return cast({self.answer!r}, {call})"
        return self._method(self.name, self.arguments, self.answer, self._doc(), body)

    def _all(self) -> str:
        """The method that goes through the pages, where skip and limit are arguments or options; else nothing."""
        if not {one.name for one in self.arguments} & {"skip", "options"} or not self.answer_schema:
            return ""
        held = self.answer_schema["properties"]
        (rows,) = [name for name, part in held.items() if part.get("type") == "array"]
        items = held[rows]["items"]
        row = items["$ref"].rpartition("/")[2] if "$ref" in items else self.answer + camel(rows).removesuffix("s")
        schema = DOCUMENT["components"]["schemas"][row] if "$ref" in items else items
        id = next(iter(schema.get("required", [])), None)
        total = next((name for name in ("matchCount", "total") if name in held), None)
        kept = [one for one in self.arguments if one.name not in ("skip", "limit")]
        given = [f"{one.name}={one.name}" for one in kept if one.name != "options"]
        has_options = any(one.name == "options" for one in kept)
        given.append(
            "options={**(options or {}), 'skip': skip, 'limit': limit}" if has_options else "skip=skip, limit=limit"
        )
        page = f"lambda skip, limit: self.{self.name}({', '.join(given)})"
        body = f"return cast('Iterator[{row}]', self._every({page}, rows={rows!r}, id={id!r}, total={total!r}))"
        why = "not all came" if id else "pages repeat"
        summary = f"Every row of `{self.name}`, page after page. Raises InvalidResponse where {why}."
        return self._method(f"{self.name}_all", kept, f"Iterator[{row}]", f'"""{summary}"""', body)

    def _method(self, name: str, arguments: list[Argument], answer: str, doc: str, body: str) -> str:
        must = [one.signature for one in arguments if one.required]
        may = [one.signature for one in arguments if not one.required]
        signature = ", ".join(["self", *must, *(["*", *may] if may else [])])
        return f"def {name}({signature}) -> {answer}:\n{indent(doc, '    ')}\n    {body}\n\n"

    def _doc(self) -> str:
        """What the method promises: what it does, its arguments, its refusals, and where the specification says so."""
        lines, extra = [f"{self.definition['summary']}."], self.definition.get("description", "")
        if self.operation == "content-targets.create":
            extra += " One of user_id and target_id is given."
        if extra:
            lines += ["", *wrap(extra.strip(), 108)]
        described = [one for one in self.arguments if one.description]
        width = max((len(one.name) for one in described), default=0)
        if described:
            lines += ["", *(f"{one.name:{width}}  {one.description}" for one in described)]
        responses = self.definition["responses"].items()
        if refused := "; ".join(f"{code}: {said['description']}" for code, said in responses if code[0] == "4"):
            lines += ["", f"Raises Rejected. {refused}."]
        lines += ["", self.route]
        if keys := ApiSpec.default()[self.operation].dialect_keys:
            lines += wrap(f"Assumed: {', '.join(keys)}", 108)
        return '"""' + "\n".join(lines) + '\n"""'


def _method(shapes: Shapes, route: str, definition: Node) -> Method:
    """An operation as a method."""
    id = str(definition["operationId"])
    shapes.about = f"Of {id}"
    content = _json_schema(definition.get("requestBody"))
    answer = _json_schema(definition["responses"].get("200"))
    arguments = [_parameter(shapes, id, one) for one in definition.get("parameters", [])]
    if content is not None and "properties" not in content:
        arguments += [Argument(name, "answers", type_, False, about) for name, (_, type_, about) in ANSWERS.items()]
    elif content is not None:
        arguments += [
            _property(shapes, id, name, part, name in content.get("required", []))
            for name, part in content["properties"].items()
        ]
    result = "None" if answer is None else shapes.of(answer, camel(id) + "Answer")
    return Method(id, route, definition, arguments, result, answer)


def _json_schema(said: Node | None) -> Any:
    """The schema of a body, None for no body."""
    return (said or {}).get("content", {}).get("application/json", {}).get("schema")


def _parameter(shapes: Shapes, id: str, one: Node) -> Argument:
    if "$ref" in one:
        one = DOCUMENT["components"]["parameters"][str(one["$ref"]).rpartition("/")[2]]
    where = "headers" if one["in"] == "header" else str(one["in"])
    type_ = shapes.of(one["schema"], camel(id))
    return Argument(str(one["name"]), where, type_, bool(one.get("required")), _description(one))


def _property(shapes: Shapes, id: str, name: str, part: Node, required: bool) -> Argument:
    type_ = shapes.of(part, camel(id) + camel(name))
    return Argument(name, "nullable" if "None" in type_ else "body", type_, required, _description(part))


def _description(part: Node) -> str:
    """What the description says of it, with its default."""
    default = part.get("schema", part).get("default")
    limits = [f"left out: {json.dumps(default)}"] if default not in (None, "") else []
    return "; ".join([*([str(part["description"])] if "description" in part else []), *limits])


def attribute(operation: str) -> str:
    """The attribute of the service that holds an operation."""
    name = snake(operation.partition(".")[0])
    return SHORT.get(name, name)


def written() -> dict[str, str]:
    """File name → text, as ruff would format it."""
    shapes = Shapes()
    groups: dict[str, list[Method]] = {}
    for path, item in DOCUMENT["paths"].items():
        for verb, definition in item.items():
            method = _method(shapes, f"{verb.upper()} {path}", definition)
            groups.setdefault(attribute(method.operation), []).append(method)
    times = "Times are epoch milliseconds in UTC where they are whole numbers."
    resources = f"The resources of the API, as in responses and bodies.\n\n{times}"
    messages = f"Bodies and responses of single operations.\n\n{times}"
    return _formatted(
        {
            **{f"{name}.py": _module(name, held, shapes) for name, held in groups.items()},
            "resources.py": _with_imports(resources, "\n\n\n".join(shapes.resources)),
            "messages.py": _with_imports(messages, "\n\n\n".join(shapes.messages), shapes.known),
            "service.py": _service(groups),
            "__init__.py": _init(groups),
        }
    )


def _module(name: str, held: list[Method], shapes: Shapes) -> str:
    tag = held[0].definition["tags"][0]
    body = indent("".join(method.text() for method in held), "    ")
    about = f"The specification's group {tag}, one method an operation."
    text = f'class {camel(name)}(EndpointGroup):\n    """{tag}."""\n\n{body}'
    return _with_imports(about, text, shapes.known, shapes.names - shapes.known)


def _with_imports(about: str, text: str, resources: Set[str] = frozenset(), messages: Set[str] = frozenset()) -> str:
    """A module of this text, with all that it may need imported: ruff leaves out the rest."""
    lines = [f'"""{about}\n\n{ORIGIN}\n"""', "from __future__ import annotations"]
    for module, names in {
        "collections.abc": {"Iterator"},
        "typing": {"Literal", "NotRequired", "TypeAlias", "TypedDict", "cast"},
        "lmsconf.api.sdk.messages": messages,
        "lmsconf.api.sdk.resources": resources,
        "lmsconf.api.endpoint_group": {"EndpointGroup", "LEFT_OUT", "LeftOut", "ListOf"},
    }.items():
        lines += [f"from {module} import {', '.join(names)}"] if names else []
    return "\n".join([*lines, "", "", text])


def _init(groups: dict[str, list[Method]]) -> str:
    """The package: a map of it, and every group's class."""
    width = max(map(len, groups))
    rows = [f"{name:{width}}  {held[0].definition['tags'][0]}" for name, held in groups.items()]
    names = ", ".join(repr(camel(name)) for name in sorted(groups))
    about = "The API as typed methods, a module for each group of the specification."
    return f'"""{about}\n\n' + "\n".join(rows) + f'\n\n{ORIGIN}\n"""\n\n{_imports(groups)}\n\n__all__ = [{names}]\n'


SERVICE = '''\
"""Service: the whole API for scripts, every operation a typed method of its endpoint group.

    with Service.at("https://lms.example/api", token) as service:
        for user in service.users.list_all(filter="@acme.example"):
            print(user["email"])

Arguments and responses use the specification's names, whatever their wire names in the dialect; an optional part of a
response may be missing. Requests are retried where that is safe.

Raises Rejected for a refused request, Unauthorized for a refused credential, Unreachable without a usable response,
WriteOutcomeUnknown for a write that may have been carried out nevertheless, InvalidResponse for a body unlike the
specification, and ValueError for wrong arguments, before anything is sent.

ORIGIN
"""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec
IMPORTS


class Service:
    """One workspace's API over one client. Not thread-safe."""

    def __init__(self, client: Client) -> None:
        self.client = client
        GROUPS

    @classmethod
    def at(cls, url: str, token: str, *, dialect: Mapping[str, str | int] | None = None) -> Service:
        """Return a service for a URL. Raises LmsconfError for an unsafe URL or token and for an invalid dialect.

        dialect: dialect key → name or behaviour of this service, where it differs from the default.
        """
        return cls(Client(url, token, spec=ApiSpec(dialect)))

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.client.close()
'''


def _service(groups: dict[str, list[Method]]) -> str:
    """The class that has all groups over one client."""
    made = "\n".join(f"        self.{name} = {camel(name)}(client)" for name in groups)
    return SERVICE.replace("ORIGIN", ORIGIN).replace("IMPORTS", _imports(groups)).replace("        GROUPS", made)


def _imports(groups: Iterable[str]) -> str:
    """The imports of all groups' classes."""
    return "\n".join(f"from lmsconf.api.sdk.{name} import {camel(name)}" for name in groups)


def _formatted(files: Mapping[str, str]) -> dict[str, str]:
    """The texts as ruff formats them, their imports in order."""
    with TemporaryDirectory() as root:
        for name, text in files.items():
            (Path(root) / name).write_text(text, encoding="utf-8")
        for command in (["check", "--select=F401", "--fix"], ["check", "--select=I", "--fix"], ["format"]):
            line = [sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", *AS_OURS, "."]
            subprocess.run(line, capture_output=True, check=True, cwd=root)
        return {name: (Path(root) / name).read_text(encoding="utf-8") for name in files}


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for name, text in written().items():
        (TARGET / name).write_text(text, encoding="utf-8")
