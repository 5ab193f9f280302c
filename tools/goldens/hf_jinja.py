"""Jinja2 set up as Hugging Face transformers sets it up for chat templates: the oracle of our own engine.

Sandboxed and immutable, trim_blocks and lstrip_blocks on, break/continue, {% generation %}, and a tojson that is plain
json.dumps.
"""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}: prints its body, which has names of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_print")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


def _raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def _tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _strftime_now(form):
    """The clock stands at the start of 1970, as where the engine's tests render."""
    return datetime.datetime.fromtimestamp(0).strftime(form)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _raise_exception
    env.globals["strftime_now"] = _strftime_now
    return env


def render(env, template, context):
    """{"text": rendered} or {"error": "Type: message"}; whatever Python raises is an error of the template."""
    try:
        return {"text": env.from_string(template).render(**context)}
    except Exception as error:  # noqa: BLE001: any error is a result here
        return {"error": f"{type(error).__name__}: {error}"}
