#!/usr/bin/env python3
"""check_serve_command.py PROGRAM MODEL: `steadfast serve` as a user runs it: under which names it answers.

MODEL: the fixture's folder. Standard library only.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

PROGRAM = MODEL = ""


class ServeCommand(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        stored = Path(self.home.name) / "models" / "org"
        stored.mkdir(parents=True)
        (stored / "small").symlink_to(MODEL, target_is_directory=True)

    def tearDown(self):
        self.home.cleanup()

    def names_served(self, *words):
        """The name that it greets with, those that /v1/models lists, and the statuses of requests by name."""
        environment = dict(os.environ, STEADFAST_HOME=self.home.name, STEADFAST_DEVICE="cpu", no_proxy="127.0.0.1")
        command = [PROGRAM, "serve", *words, "--port", "0", "--threads", "1", "--context", "256"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        try:
            greeting = process.stdout.readline().split()
            url = greeting[-1]
            with urllib.request.urlopen(f"{url}/models", timeout=60) as reply:
                listed = [model["id"] for model in json.load(reply)["data"]]
            statuses = {name: self.ask(url, name) for name in ("org/small", "model", "other")}
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        return greeting[0], listed, statuses

    def ask(self, url, name):
        body = json.dumps({"model": name, "prompt": "a", "max_tokens": 1}).encode()
        request = urllib.request.Request(f"{url}/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_a_stored_model_under_the_name_that_was_typed(self):
        greeting, listed, statuses = self.names_served("org/small")
        self.assertEqual(greeting, "org/small")
        self.assertEqual(listed, ["org/small"])
        self.assertEqual(statuses, {"org/small": 200, "model": 200, "other": 404})

    def test_a_folder_under_its_own_name(self):
        greeting, listed, statuses = self.names_served(MODEL)
        self.assertEqual(greeting, "model")
        self.assertEqual(listed, ["model"])
        self.assertEqual(statuses, {"org/small": 404, "model": 200, "other": 404})

    def test_an_alias_comes_first(self):
        _, listed, statuses = self.names_served("org/small", "--alias", "other")
        self.assertEqual(listed, ["other"])
        self.assertEqual(statuses, {"org/small": 404, "model": 200, "other": 200})


if __name__ == "__main__":
    MODEL = sys.argv.pop()
    PROGRAM = sys.argv.pop()
    unittest.main()
