"""One WebDAV server's part of one round: Holdall, Apache mod_dav or rclone serve webdav.

``webdav.py DIR --contestant NAME [--holdall PATH] [--quick]`` prints a line of JSON for each row.
The server runs alone on a fresh folder; `wrk` makes the load of many clients. Only Holdall syncs
its puts: the others answer before the bytes are on the disk.
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
from collections.abc import Iterator
from pathlib import Path

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


def rclone(_: str, folder: Path, port: int) -> tuple[list[str], str]:
    (folder / "files" / "bench").mkdir(parents=True)
    args = ["rclone", "serve", "webdav", str(folder / "files"), "--addr", f"127.0.0.1:{port}"]
    return [*args, "--vfs-cache-mode", "off"], "/bench"


SERVERS = {"Holdall": holdall, "Apache mod_dav": apache, "rclone": rclone}


class Server:
    def __init__(self, name: str, program: str, folder: Path, seconds: int) -> None:
        self.seconds = seconds
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.port, self.folder = free_port(), folder
        args, self.path = SERVERS[name](program, folder, self.port)
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
        args = ["wrk", "-t1", f"-c{clients}", f"-d{self.seconds}s", "-s", str(script)]
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


def rows(server: Server, files: int) -> Iterator[tuple[str, str, float]]:
    yield "put 4 KB, 32 clients", "PerSecond", server.wrk("PUT", 4096, 32, 1)
    server.fill(server.path, 4096, 1000)
    yield "get 4 KB, 32 clients, hot", "PerSecond", server.wrk("GET", 0, 32, 1000)
    big = 10_000_000
    yield "put 10 MB, 4 clients", "MbPerSecond", server.wrk("PUT", big, 4, 1) * 10
    server.fill(server.path, big, 8)
    yield "get 10 MB, 4 clients, hot", "MbPerSecond", server.wrk("GET", 0, 4, 8) * 10
    tree = f"{server.path}/tree"
    server.call("MKCOL", tree)
    server.fill(tree, 100, files)
    times = []
    for _ in range(5):
        status, text, took = server.call("PROPFIND", f"{tree}/", Depth="1")
        if status != 207 or text.count(b"response>") <= files:
            raise RuntimeError(f"PROPFIND was answered with {status}")
        times.append(took)
    yield f"PROPFIND of {files:,} files", "Ms", statistics.median(times) * 1000
    destination = f"http://127.0.0.1:{server.port}{server.path}/moved"
    status, _, took = server.call("MOVE", tree, Destination=destination)
    if status != 201:
        raise RuntimeError(f"MOVE was answered with {status}")
    yield f"move a folder of {files:,} files", "Ms", took * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--contestant", choices=SERVERS, required=True)
    parser.add_argument("--holdall", default="holdall")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    seconds, files = (1, 500) if args.quick else (5, 10_000)
    server = Server(args.contestant, args.holdall, args.dir / "server", seconds)
    try:
        for row, unit, value in rows(server, files):
            print(json.dumps({"row": row, "unit": unit, "value": value}), flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
