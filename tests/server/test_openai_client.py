"""The official OpenAI client against the server: what it sends is understood, what comes back fills its types."""
import asyncio
import json

import openai
import pytest
from conftest import run_server

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a place",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
]


def ask(text, **more):
    return {"model": "fake-model", "messages": [{"role": "user", "content": text}], **more}


def streamed_text(stream):
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def test_chat(client):
    reply = client.chat.completions.create(**ask("say:Hello é"))
    assert reply.choices[0].message.content == "Hello é"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.model_extra["steadfast"]["request_digest"]


def test_chat_streamed(client):
    whole = client.chat.completions.create(**ask("Hi", max_tokens=50, seed=4)).choices[0].message.content
    stream = client.chat.completions.create(
        **ask("Hi", max_tokens=50, seed=4, stream=True, stream_options={"include_usage": True})
    )
    chunks = list(stream)
    assert streamed_text(chunks) == whole
    assert chunks[-1].usage.completion_tokens > 0
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] in ("stop", "length")


def test_chat_choices_and_logprobs(client):
    reply = client.chat.completions.create(**ask("Hi", n=3, max_tokens=5, logprobs=True, top_logprobs=2))
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    for choice in reply.choices:
        assert 0 < len(choice.logprobs.content) <= 5
        assert len(choice.logprobs.content[0].top_logprobs) == 2
        text = b"".join(bytes(entry.bytes) for entry in choice.logprobs.content).decode(errors="replace")
        assert text.startswith(choice.message.content.rstrip("\ufffd"))


def test_tool_round_trip(client):
    call = {"name": "weather", "arguments": {"place": "Rome", "days": 2}}
    text = f"say:<tool_call>\n{json.dumps(call)}\n</tool_call>"
    reply = client.chat.completions.create(**ask(text, tools=TOOLS))
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    made = choice.message.tool_calls[0]
    assert made.function.name == "weather"
    assert json.loads(made.function.arguments) == call["arguments"]
    messages = [
        {"role": "user", "content": text},
        choice.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": made.id, "content": "say:Sunny"},
    ]
    reply = client.chat.completions.create(model="fake-model", messages=messages, tools=TOOLS)
    assert reply.choices[0].message.content == "Sunny"


def test_tools_streamed_through_the_clients_own_accumulator(client):
    call = {"name": "weather", "arguments": {"place": "Rome"}}
    text = f"say:Look.<tool_call>{json.dumps(call)}</tool_call>"
    with client.chat.completions.stream(**ask(text, tools=TOOLS)) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    assert message.content == "Look."
    assert json.loads(message.tool_calls[0].function.arguments) == call["arguments"]


def test_xml_tools_and_thinking():
    with run_server("--tools", "xml", "--thinking") as number:
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{number}/v1", api_key="x", max_retries=0)
        call = (
            "<tool_call>\n<function=weather>\n<parameter=days>\n2\n</parameter>\n"
            "<parameter=place>\nRome\n</parameter>\n</function>\n</tool_call>"
        )
        reply = client.chat.completions.create(**ask(f"say:why\n</think>\n\n{call}", tools=TOOLS))
        message = reply.choices[0].message
        assert message.reasoning_content == "why"
        assert json.loads(message.tool_calls[0].function.arguments) == {"days": 2, "place": "Rome"}
        reply = client.chat.completions.create(
            **ask("say:no", extra_body={"chat_template_kwargs": {"enable_thinking": False}})
        )
        assert reply.choices[0].message.content == "no"


def test_completions(client):
    reply = client.completions.create(model="fake-model", prompt=["say:a", "say:b"], echo=True)
    assert [choice.text for choice in reply.choices] == ["say:aa", "say:bb"]
    stream = client.completions.create(model="fake-model", prompt="say:abc", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "abc"
    reply = client.completions.create(model="fake-model", prompt="say:ab", logprobs=2)
    assert reply.choices[0].logprobs.tokens[:2] == ["a", "b"]


def test_models(client):
    assert [model.id for model in client.models.list()] == ["fake-model"]
    assert client.models.retrieve("fake-model").owned_by == "steadfast"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_errors_become_the_clients_exceptions(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**ask("x", temperature=-1))
    assert caught.value.param == "temperature"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(**ask("x", response_format={"type": "json_object"}))
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(**{**ask("x"), "model": "other"})
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**ask("fail:"))
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(**ask("fail:", stream=True)))


def test_keys():
    with run_server("--key", "right") as number:
        base = f"http://127.0.0.1:{number}/v1"
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=base, api_key="wrong", max_retries=0).models.list()
        assert openai.OpenAI(base_url=base, api_key="right", max_retries=0).models.list().data


def test_many_clients_each_get_their_own_stream(url):
    async def one(client, number):
        stream = await client.chat.completions.create(**ask(f"client {number}", max_tokens=40, seed=number, stream=True))
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def all_of(count):
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0, timeout=120) as client:
            return await asyncio.gather(*[one(client, number) for number in range(count)])

    together = asyncio.run(all_of(40))
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
        for number, text in enumerate(together):
            body = ask(f"client {number}", max_tokens=40, seed=number)
            assert client.chat.completions.create(**body).choices[0].message.content == text
