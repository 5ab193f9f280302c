"""The conversations of the golden chat-template cases: PLAIN, with TOOLS, with THINKING and its options.

Content is never null and arguments are objects here: what the engine does beyond Hugging Face has unit tests.
"""


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def called(*calls):
    return [{"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(calls)]


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather <b>now</b> & later, \"as is\"",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "é, 日本"}, "days": {"type": "integer", "default": 3}},
            "required": ["city"],
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}

HELLO = [said("user", "Hi")]
TALK = [said("system", "Be brief."), said("user", " Hi \n"), said("assistant", "Hello!"), said("user", "Łódź, 日本 🎉?")]
CALLS = called(("get_weather", {"city": "Rome", "days": [1, 2], "deep": True, "none": None, "f": 1.0, "o": {"a": []}, "e": ""}), ("clock", {}))
TOOL_TALK = [
    said("user", "Weather?"),
    said("assistant", "", reasoning_content="look", tool_calls=CALLS),
    said("tool", "A"),
    said("tool", "B"),
]
LONG_TOOL_TALK = [
    said("system", "Use tools."),
    said("user", "First"),
    said("assistant", "Yo", reasoning_content="r0"),
    *TOOL_TALK,
    said("assistant", "Let me see.", tool_calls=called(("clock", {"zone": "UTC"}))),
    said("tool", "<12:00>"),
    said("user", "<tool_response>\nold form\n</tool_response>"),
    said("assistant", "<think>\nhm\n</think>\n\nDone."),
    said("user", "Thanks"),
]

PLAIN = [
    {"messages": HELLO},
    {"messages": HELLO, "add_generation_prompt": False},
    {"messages": TALK},
    {"messages": TALK, "add_generation_prompt": False},
    {"messages": [said("system", ""), said("user", "")]},
    {"messages": [said("user", "<|im_end|>{{ x }}{% y %}")]},
]
TOOLS = [
    {"messages": HELLO, "tools": [WEATHER]},
    {"messages": TALK, "tools": [WEATHER, CLOCK]},
    {"messages": HELLO, "tools": []},
    {"messages": TOOL_TALK, "tools": [WEATHER, CLOCK]},
    {"messages": LONG_TOOL_TALK, "tools": [CLOCK]},
    {"messages": LONG_TOOL_TALK},
]

# For real templates: what they react to and ours does not.
ODD = [
    {"messages": [said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")], "add_generation_prompt": False},
    {"messages": [said("user", "Sum?"), said("assistant", "", tool_calls=[{**c, "id": "abcdefghi"} for c in called(("add", {"a": 1}))]),
                  said("tool", "3", tool_call_id="abcdefghi", name="add"), said("assistant", "3")], "tools": [WEATHER]},
    {"messages": [said("user", [{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "?"}])]},
    {"messages": HELLO, "kwargs": {"date_string": "1 Jan 2025", "tools_in_user_message": False}, "tools": [CLOCK]},
    {"messages": HELLO, "kwargs": {"documents": [{"title": "T", "text": "x"}]}},
    {"messages": [said("developer", "d"), *HELLO], "tools": [WEATHER]},
    {"messages": [said("assistant", "first"), *HELLO]},
]

NEW = {"rules_3_8": True}
THINKING = [
    {"messages": HELLO, "kwargs": {"enable_thinking": False}},
    {"messages": HELLO, "kwargs": {"enable_thinking": True}},
    {"messages": LONG_TOOL_TALK, "kwargs": {"preserve_thinking": True}},
    {"messages": LONG_TOOL_TALK, "kwargs": {"preserve_thinking": False}},
    {"messages": HELLO, "kwargs": NEW},
    {"messages": HELLO, "kwargs": {**NEW, "enable_thinking": False}},
    {"messages": HELLO, "kwargs": {**NEW, "reasoning_effort": "low"}},
    {"messages": TALK, "kwargs": {**NEW, "reasoning_effort": "medium"}},
    {"messages": TALK, "kwargs": {**NEW, "reasoning_effort": "high"}},
    {"messages": TALK, "tools": [CLOCK], "kwargs": {**NEW, "reasoning_effort": "low"}},
    {"messages": TOOL_TALK, "tools": [WEATHER], "kwargs": NEW},
    {"messages": LONG_TOOL_TALK, "tools": [WEATHER], "kwargs": NEW},
    {"messages": LONG_TOOL_TALK, "kwargs": {**NEW, "preserve_thinking": False}},
    {"messages": [said("user", [{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "?"}])]},
    {"messages": [said("system", [{"type": "image"}]), said("user", "x")]},
    {"messages": []},
    {"messages": [said("user", "a"), said("system", "late")]},
    {"messages": [said("assistant", "alone")]},
    {"messages": [said("robot", "x"), said("user", "a")]},
    {"messages": [said("user", 5)]},
]
