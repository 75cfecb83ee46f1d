"""The API of EMR Serverless, as far as a job of Airflow's operator needs it, on a loopback port.

A job run is a process of this machine with the job's entry point and arguments. Its states are those of the service:
RUNNING, then SUCCESS, FAILED, or CANCELLED.
https://docs.aws.amazon.com/emr-serverless/latest/APIReference
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.http_receiver import loopback_server

Environ = Mapping[str, str]


@dataclass
class EmrServer:
    """`requests` are the bodies of the job runs that were asked for, `cancelled` the ids of those that were ended."""

    local: Callable[[str], str]
    """The file of this machine for the address of an entry point."""
    environ: Environ
    runs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    port: int = 0

    def start(self, asked: dict[str, Any]) -> dict[str, str]:
        self.requests.append(asked)
        driver, number = asked["jobDriver"]["sparkSubmit"], f"run{len(self.requests)}"
        words = [sys.executable, self.local(driver["entryPoint"]), *driver["entryPointArguments"]]
        self.runs[number] = subprocess.Popen(words, env=dict(self.environ))
        return {"applicationId": "00f1", "jobRunId": number, "arn": f"arn:aws:emr-serverless:::/{number}"}

    def state(self, number: str) -> str:
        status = self.runs[number].poll()
        if number in self.cancelled:
            return "CANCELLED"
        return "RUNNING" if status is None else "FAILED" if status else "SUCCESS"

    def cancel(self, number: str) -> None:
        self.cancelled.add(number)
        self.runs[number].kill()
        self.runs[number].wait(30)

    def stop(self) -> None:
        for each in self.runs.values():
            each.kill()
            each.wait(30)


@contextmanager
def emr_server(local: Callable[[str], str], environ: Environ) -> Iterator[EmrServer]:
    emr = EmrServer(local, environ)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.split("?")[0].strip("/").split("/"):
                case ["applications", application]:
                    self._send({"application": {"applicationId": application, "state": "STARTED"}})
                case ["applications", application, "jobruns", number]:
                    run = {"applicationId": application, "jobRunId": number, "state": emr.state(number)}
                    self._send({"jobRun": {**run, "stateDetails": "", "createdAt": time.time()}})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self._send(emr.start(body))

        def do_DELETE(self) -> None:
            number = self.path.split("?")[0].rpartition("/")[2]
            emr.cancel(number)
            self._send({"applicationId": "00f1", "jobRunId": number})

        def _send(self, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with loopback_server(Answer) as emr.port:
        try:
            yield emr
        finally:
            emr.stop()
