"""Kills `holdall serve` under WebDAV load, and checks what it holds afterwards.

    python3 tests/dav/kill.py HOLDALL DIR [--rounds 50] [--seed 1]

Each worker has a folder of its own and does one thing after another: puts, appends, deletes,
moves and copies of trees, properties, locks. What was answered must be there after the kill, and
the one change that was not answered must be there whole or not at all.
"""

import argparse
import http.client
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

WORKERS = 8
Tree = dict[str, bytes]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, program: str, store: Path) -> None:
        self.port = free_port()
        args = [program, "serve", str(store), "--anonymous", "--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the server does not start")


class Client:
    def __init__(self, port: int) -> None:
        self.port = port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, f"/-/dav/{path}", body, named)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def tree(self, folder: str) -> Tree:
        """All objects below a folder, byte for byte."""
        status, text = self.call("PROPFIND", f"{folder}/", Depth="1")
        if status == 404:
            return {}
        assert status == 207, status
        found: Tree = {}
        for href in re.findall(r"<D:href>/-/dav/([^<]*)</D:href>", text.decode())[1:]:
            if href.endswith("/"):
                found |= self.tree(href.rstrip("/"))
                continue
            status, body = self.call("GET", href)
            assert status == 200, (href, status)
            found[href] = body
        return found


class Worker:
    """What one client did: the state that was answered, and the one that may be."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.folder, self.rng = f"kill/w{number}", rng
        self.state: Tree = {}
        self.pending: Tree | None = None
        self.answered = 0

    def change(self) -> tuple[str, str, bytes, dict[str, str], Tree]:
        rng, state = self.rng, dict(self.state)
        names = sorted(state)
        kind = rng.choice(["put", "put", "append", "delete", "move", "copy", "clear"])
        if kind == "put" or not names:
            path = f"{self.folder}/t{rng.randrange(3)}/f{rng.randrange(20)}"
            body = rng.randbytes(rng.choice([10, 4096, 100_000, 2_000_000]))
            return "PUT", path, body, {}, state | {path: body}
        path = rng.choice(names)
        if kind == "append":
            body = rng.randbytes(rng.choice([1, 5000, 1_500_000]))
            headers = {"Content_Type": "application/x-sabredav-partialupdate", "X_Update_Range": "append"}
            return "PATCH", path, body, headers, state | {path: state[path] + body}
        if kind == "delete":
            del state[path]
            return "DELETE", path, b"", {}, state
        source = path.rsplit("/", 1)[0]
        inside = {name: body for name, body in state.items() if name.startswith(f"{source}/")}
        if kind == "clear":
            return "DELETE", source, b"", {}, {n: b for n, b in state.items() if n not in inside}
        target = f"{self.folder}/t{rng.randrange(3)}"
        if target == source:
            target = f"{self.folder}/t3"
        if kind == "move":
            state = {name: body for name, body in state.items() if name not in inside}
        state = {name: body for name, body in state.items() if not name.startswith(f"{target}/")}
        state |= {target + name[len(source):]: body for name, body in inside.items()}
        return kind.upper(), source, b"", {"Destination": f"/-/dav/{target}"}, state

    def run(self, port: int) -> None:
        client = Client(port)
        try:
            while True:
                method, path, body, headers, after = self.change()
                if method == "PUT":
                    client.call("MKCOL", path.rsplit("/", 1)[0])
                self.pending = after
                status, text = client.call(method, path, body, **headers)
                assert status < 300, (method, path, status, text)
                self.state, self.pending = after, None
                self.answered += 1
        except (OSError, http.client.HTTPException):
            return

    def check(self, client: Client) -> str:
        found = client.tree(self.folder)
        if found == self.state:
            told = "absent" if self.pending is not None else "none"
        elif found == self.pending:
            told = "whole"
        else:
            wrong = sorted(n for n in found.keys() | self.state.keys() if found.get(n) != self.state.get(n))
            raise SystemExit(f"violated: {self.folder}: {wrong}")
        self.state, self.pending = found, None
        return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("holdall")
    parser.add_argument("dir", type=Path)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    shutil.rmtree(args.dir, ignore_errors=True)
    args.dir.mkdir(parents=True)
    store, rng = args.dir / "a.holdall", random.Random(args.seed)
    server = Server(args.holdall, store)
    client = Client(server.port)
    assert client.call("MKCOL", "kill")[0] == 201
    for n in range(WORKERS):
        assert client.call("MKCOL", f"kill/w{n}")[0] == 201
    workers = [Worker(n, random.Random(rng.random())) for n in range(WORKERS)]
    ends = {"none": 0, "whole": 0, "absent": 0}
    for _ in range(args.rounds):
        threads = [threading.Thread(target=w.run, args=[server.port]) for w in workers]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.02, 1.5))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        for thread in threads:
            thread.join()
        server = Server(args.holdall, store)
        client = Client(server.port)
        for worker in workers:
            ends[worker.check(client)] += 1
    server.process.terminate()
    server.process.wait(60)
    verified = subprocess.run([args.holdall, "verify", str(store)], capture_output=True, text=True)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    answered = sum(worker.answered for worker in workers)
    print(
        f"{args.rounds} kills, {WORKERS} clients: {answered} answered changes are there; of those "
        f"not answered {ends['whole']} are whole and {ends['absent']} absent; the store verifies"
    )
    shutil.rmtree(args.dir)


if __name__ == "__main__":
    main()
