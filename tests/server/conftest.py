"""Servers for the tests: one steadfast_test_server for each set of options, on a free port, ended with the session."""
import os
import subprocess
from contextlib import contextmanager

import openai
import pytest


@contextmanager
def run_server(*options):
    command = [os.environ["STEADFAST_TEST_SERVER"], *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline().split()[1])
    finally:
        process.stdin.close()
        status = process.wait(timeout=60)
    assert status == 0


@pytest.fixture(scope="session")
def port():
    with run_server() as number:
        yield number


@pytest.fixture(scope="session")
def url(port):
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0, timeout=60) as one:
        yield one
