"""Requests that no client library would send, over plain sockets, and httpx where a response's details matter."""
import json
import socket
import time

import httpx
import pytest


def exchange(port, data, half_close=False):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
        one.sendall(data)
        if half_close:
            one.shutdown(socket.SHUT_WR)
        reply = b""
        while more := one.recv(65536):
            reply += more
    return reply


def running(url):
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("steadfast_streams_running "))


def wait_until_idle(url):
    until = time.monotonic() + 60
    while running(url) > 0:
        assert time.monotonic() < until
        time.sleep(0.02)


def post(path, body, *headers):
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    head += [f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(head) + "\r\n\r\n").encode() + body


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # a TLS greeting
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost : a\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello",
        b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 4\r\n\r\nhello",
    ],
)
def test_malformed_heads(port, data):
    assert exchange(port, data).startswith(b"HTTP/1.1 400 ")


def test_percent_encoded_line_ends_stay_out_of_headers(port):
    data = b"GET /v1/models/a%0d%0aX-Evil:%201 HTTP/1.1\r\nHost: a\r\nOrigin: a%0d%0aX-Evil: 1\r\nConnection: close\r\n\r\n"
    reply = exchange(port, data)
    head = reply.split(b"\r\n\r\n")[0]
    assert reply.startswith(b"HTTP/1.1 404 ")
    assert b"\nX-Evil" not in head


def test_a_reply_ends_when_its_client_closes_one_side(port, url):
    body = json.dumps({"prompt": "hang:"}).encode()
    exchange(port, post("/v1/completions", body), half_close=True)
    wait_until_idle(url)


def test_a_broken_stream_ends_its_reply(url):
    body = {"prompt": "x", "stream": True, "ignore_eos": True, "max_tokens": 4000}
    with httpx.stream("POST", f"{url}/v1/completions", json=body) as reply:
        assert reply.status_code == 200
        next(reply.iter_lines())
    wait_until_idle(url)


def test_streams_are_not_compressed_or_cached(url):
    headers = {"Accept-Encoding": "gzip, br"}
    with httpx.stream("POST", f"{url}/v1/completions", json={"prompt": "say:x", "stream": True}, headers=headers) as reply:
        assert reply.headers["content-type"] == "text/event-stream"
        assert "content-encoding" not in reply.headers
        assert reply.headers["cache-control"] == "no-cache"
        lines = [line for line in reply.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert "content-encoding" not in httpx.get(f"{url}/v1/models", headers=headers).headers


def test_http_1_0(port):
    body = json.dumps({"prompt": "say:x", "stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    reply = exchange(port, head.encode() + body)
    assert reply.endswith(b"data: [DONE]\n\n")
    assert b"Transfer-Encoding" not in reply


def test_a_body_that_stops_short_is_an_error(port, url):
    data = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    assert exchange(port, data, half_close=True).startswith(b"HTTP/1.1 400 ")
    assert httpx.get(f"{url}/health").status_code == 200


def test_errors_say_nothing_of_the_machine(url):
    for body in ({"prompt": "fail:"}, {"prompt": [10**9]}, {"prompt": {"a": 1}}, {"model": "/etc/passwd", "prompt": "x"}):
        text = httpx.post(f"{url}/v1/completions", json=body).text
        assert "src/" not in text and "/dev" not in text and "exception" not in text.lower()
