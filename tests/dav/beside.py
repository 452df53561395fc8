"""WebDAV servers side by side: Holdall, Apache mod_dav, wsgidav, rclone serve webdav.

    python3 tests/dav/beside.py HOLDALL DIR [--rounds N]

Each server that is installed runs alone on a fresh folder; every second round goes in reverse
order. `wrk` makes the load of many clients. Only Holdall syncs its puts: the others answer before
the bytes are on the disk.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

SECONDS = 5
FILES = 10_000
LUA = """
local body = string.rep("x", {size})
local n, id = 0, 0
local threads = 0
function setup(thread) thread:set("id", threads); threads = threads + 1 end
request = function()
    n = n + 1
    local at = {get} and (n % {count}) or n
    return wrk.format("{method}", "{path}/" .. "f" .. at, nil, {get} and nil or body)
end
-- No function for answers: with one, wrk copies each body.
done = function(summary)
    io.stderr:write(summary.requests / summary.duration * 1e6, " ", summary.errors.status, "\\n")
end
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def holdall(program: str, folder: Path, port: int) -> tuple[list[str], str]:
    args = [program, "serve", str(folder / "a.holdall"), "--anonymous", "--listen", f"127.0.0.1:{port}"]
    return args, "/-/dav/bench"


def apache(_: str, folder: Path, port: int) -> tuple[list[str], str]:
    (folder / "files" / "bench").mkdir(parents=True)
    for path in [folder, folder / "files", folder / "files" / "bench"]:
        path.chmod(0o777)
    modules = Path("/usr/lib/apache2/modules")
    load = ["mpm_event", "authz_core", "dav", "dav_fs"]
    lines = [f"LoadModule {name}_module {modules}/mod_{name}.so" for name in load]
    lines += [
        f"ServerRoot {folder}", f"PidFile {folder}/pid", f"Listen 127.0.0.1:{port}",
        "ServerName localhost", f"ErrorLog {folder}/log", "User www-data", "Group www-data",
        f"DocumentRoot {folder}/files", f"DavLockDB {folder}/files/.lock",
        "MaxKeepAliveRequests 0", "<Location />", "Dav On", "DavDepthInfinity off",
        "Require all granted", "</Location>",
    ]
    (folder / "conf").write_text("\n".join(lines) + "\n")
    return ["apache2", "-DFOREGROUND", "-f", str(folder / "conf")], "/bench"


def wsgidav(_: str, folder: Path, port: int) -> tuple[list[str], str]:
    (folder / "files" / "bench").mkdir(parents=True)
    args = ["wsgidav", "--host", "127.0.0.1", "--port", str(port), "--root", str(folder / "files")]
    return [*args, "--auth", "anonymous", "--server", "cheroot", "-q"], "/bench"


def rclone(_: str, folder: Path, port: int) -> tuple[list[str], str]:
    (folder / "files" / "bench").mkdir(parents=True)
    args = ["rclone", "serve", "webdav", str(folder / "files"), "--addr", f"127.0.0.1:{port}"]
    return [*args, "--vfs-cache-mode", "off"], "/bench"


PEERS = {"Holdall": holdall, "Apache mod_dav": apache, "wsgidav": wsgidav, "rclone": rclone}
NEEDS = {"Apache mod_dav": "apache2", "wsgidav": "wsgidav", "rclone": "rclone"}


class Server:
    def __init__(self, name: str, program: str, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.port, self.folder = free_port(), folder
        args, self.path = PEERS[name](program, folder, self.port)
        env = os.environ | {"APACHE_RUN_DIR": str(folder)}
        with (folder / "out").open("w") as out:
            self.process = subprocess.Popen(args, stdout=out, stderr=out, env=env)
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                time.sleep(0.1)
        self.call("MKCOL", self.path)

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes, float]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        begun = time.perf_counter()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        text = answer.read()
        took = time.perf_counter() - begun
        connection.close()
        return answer.status, text, took

    def wrk(self, method: str, size: int, clients: int, count: int) -> float:
        get = "true" if method == "GET" else "false"
        script = self.folder.parent / "wrk.lua"
        script.write_text(
            LUA.replace("{size}", str(size)).replace("{get}", get).replace("{method}", method)
            .replace("{path}", self.path).replace("{count}", str(count))
        )
        args = ["wrk", "-t1", f"-c{clients}", f"-d{SECONDS}s", "-s", str(script)]
        ran = subprocess.run([*args, f"http://127.0.0.1:{self.port}"], capture_output=True, text=True)
        rate, bad = ran.stderr.split()[-2:]
        if float(bad) > 0:
            raise RuntimeError(f"{bad} of the answers were errors")
        return float(rate)

    def fill(self, folder: str, size: int, count: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        for n in range(1, count + 1):
            connection.request("PUT", f"{folder}/f{n % count}", b"x" * size)
            answer = connection.getresponse()
            answer.read()
            assert answer.status < 300, answer.status
        connection.close()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)


def rows(server: Server) -> dict[str, float]:
    found = {}
    found["put 4 KB, 32 clients, per s"] = server.wrk("PUT", 4096, 32, 1)
    server.fill(server.path, 4096, 1000)
    found["get 4 KB hot, 32 clients, per s"] = server.wrk("GET", 0, 32, 1000)
    big = 10_000_000
    found["put 10 MB, 4 clients, MB/s"] = server.wrk("PUT", big, 4, 1) * 10
    server.fill(server.path, big, 8)
    found["get 10 MB hot, 4 clients, MB/s"] = server.wrk("GET", 0, 4, 8) * 10
    tree = f"{server.path}/tree"
    server.call("MKCOL", tree)
    server.fill(tree, 100, FILES)
    times = []
    for _ in range(5):
        status, text, took = server.call("PROPFIND", f"{tree}/", Depth="1")
        assert status == 207 and text.count(b"response>") > FILES, status
        times.append(took)
    found["PROPFIND of 10,000 files, ms"] = statistics.median(times) * 1000
    destination = f"http://127.0.0.1:{server.port}{server.path}/moved"
    status, _, took = server.call("MOVE", tree, Destination=destination)
    assert status == 201, status
    found["move of a tree of 10,000 files, ms"] = took * 1000
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("holdall")
    parser.add_argument("dir", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    names = [name for name in PEERS if name not in NEEDS or shutil.which(NEEDS[name])]
    taken: dict[str, dict[str, list[float]]] = {}
    for turn in range(args.rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            server = Server(name, args.holdall, args.dir / "server")
            try:
                for row, value in rows(server).items():
                    taken.setdefault(row, {}).setdefault(name, []).append(value)
            except (RuntimeError, AssertionError, OSError, ValueError) as e:
                print(f"{name} failed: {e!r}")
            finally:
                server.stop()
    if args.json:
        print(json.dumps(taken))
        return
    print("| |", " | ".join(names), "| ratio to the best |")
    print("|---|" + "---|" * (len(names) + 1))
    for row, of in taken.items():
        middle = {name: statistics.median(values) for name, values in of.items()}
        others = [value for name, value in middle.items() if name != "Holdall"]
        timed = row.endswith("ms")
        best = (min if timed else max)(others) if others else float("nan")
        own = middle.get("Holdall", float("nan"))
        ratio = best / own if timed else own / best
        cells = [
            f"{middle[n]:,.4g} ({min(of[n]):,.4g}–{max(of[n]):,.4g})" if n in of else "failed"
            for n in names
        ]
        print(f"| {row} |", " | ".join(cells), f"| {ratio:.2f} |")


if __name__ == "__main__":
    main()
