#!/usr/bin/env python3
"""pull_command_test.py PROGRAM: `steadfast pull` as a user runs it, against a hub served from this machine.

Checks exit statuses, that results alone go to standard output, and what is stored. Standard library only.
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

PROGRAM = ""
CONFIG = b'{"model_type": "llama"}'
WEIGHTS = b"\x02\x00\x00\x00\x00\x00\x00\x00{}"
LISTING = {
    "sha": "c1",
    "siblings": [
        {"rfilename": "config.json", "size": len(CONFIG)},
        {"rfilename": "model.safetensors", "size": len(WEIGHTS)},
    ],
}
FILES = {
    "/api/models/org/good/revision/main": json.dumps(LISTING).encode(),
    "/org/good/resolve/c1/config.json": CONFIG,
    "/org/good/resolve/c1/model.safetensors": WEIGHTS,
    "/api/models/org/evil/revision/main": json.dumps(
        {"sha": "c1", "siblings": LISTING["siblings"] + [{"rfilename": "../../evil.safetensors", "size": 1}]}
    ).encode(),
    "/tiny.gguf": b"GGUF and more",
}


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = FILES.get(self.path.split("?")[0])
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


class PullCommand(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.home = tempfile.TemporaryDirectory()
        self.models = Path(self.home.name) / "models"

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        self.home.cleanup()

    def run_pull(self, *arguments):
        environment = dict(os.environ, STEADFAST_HOME=self.home.name, HF_ENDPOINT=self.url, no_proxy="127.0.0.1")
        environment.pop("HF_TOKEN", None)
        command = [PROGRAM, "pull", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)

    def test_list_shows_known_and_stored_names(self):
        done = self.run_pull("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("smollm2", done.stdout)
        self.assertNotIn("org/good", done.stdout)
        self.assertEqual(self.run_pull("org/good").returncode, 0)
        self.assertIn("org/good", self.run_pull("--list").stdout)

    def test_a_hubs_model(self):
        done = self.run_pull("org/good")
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = self.models / "org" / "good"
        self.assertEqual(done.stdout, f"{folder}\n", "the result alone")
        self.assertEqual((folder / "config.json").read_bytes(), CONFIG)
        self.assertEqual((folder / "model.safetensors").read_bytes(), WEIGHTS)
        self.server.shutdown()
        again = self.run_pull("org/good")
        self.assertEqual((again.returncode, again.stdout), (0, done.stdout), "without the server")

    def test_a_file_from_a_url(self):
        done = self.run_pull(f"{self.url}/tiny.gguf")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.models / "tiny" / "tiny.gguf").read_bytes(), FILES["/tiny.gguf"])

    def refused(self, *arguments, status=1):
        done = self.run_pull(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse(any(self.models.glob("[!.]*")), "nothing is stored")
        return done.stderr

    def test_what_is_refused_is_said_in_a_sentence(self):
        self.assertIn("steadfast: 'nope' is not known", self.refused("nope"))
        self.assertIn("HTTP 404", self.refused("org/absent"))
        self.assertIn("leads out", self.refused("org/evil"))
        self.assertIn("--max-size", self.refused("org/good", "--max-size", "10"))
        self.assertIn("64 hexadecimal", self.refused(f"{self.url}/tiny.gguf", "--sha256", "12"))
        self.assertIn("SHA-256", self.refused(f"{self.url}/tiny.gguf", "--sha256", "0" * 64))

    def test_wrong_usage(self):
        self.assertIn("NAME", self.refused(status=2))
        self.refused("org/good", "--no-such-option", status=2)
        self.refused("org/good", "--max-size", "many", status=2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
