"""Drives the page of `holdall serve` in headless Chromium, and takes screenshots.

    python3 tests/web/browse.py HOLDALL DIR [--objects 1000000] [--upload 1000]

Needs chromium, chromedriver and the package selenium; `make web-test` brings the last. Prints what
it measured.
"""

import argparse
import base64
import os
import shutil
import socket
import subprocess
import time
import http.client
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

CONFIG = """
[[users]]
access_key = "root"
secret_key = "root-secret"
grants = [{ bucket = "*", rights = ["read", "list", "write", "admin"] }]
[[users]]
access_key = "guest"
secret_key = "guest-secret"
grants = [{ bucket = "files", rights = ["read", "list"] }]
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def browser(dark: bool, phone: bool) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    for flag in [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]:
        options.add_argument(flag)
    options.add_argument("--window-size=" + ("420,800" if phone else "1200,800"))
    if dark:
        options.add_argument("--blink-settings=preferredColorScheme=0")
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


class Page:
    def __init__(self, driver: webdriver.Chrome, url: str, shots: Path) -> None:
        self.driver, self.url, self.shots = driver, url, shots

    def wait(self, what, seconds: float = 30):
        return WebDriverWait(self.driver, seconds, poll_frequency=0.02).until(lambda _: what())

    def one(self, css: str):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def names(self) -> list[str]:
        script = "return [...document.querySelectorAll('#rows td:first-child')].map(x => x.textContent)"
        return self.driver.execute_script(script)

    def login(self, name: str, password: str) -> None:
        self.driver.get(f"{self.url}/-/web/")
        self.wait(lambda: self.one("#login").is_displayed())
        # By the keyboard alone.
        self.one("#name").send_keys(name, Keys.TAB, password, Keys.ENTER)
        self.wait(lambda: self.one("#app").is_displayed())
        self.wait(lambda: self.names() or self.one("#empty").is_displayed())

    def go(self, path: str) -> float:
        begun = time.perf_counter()
        self.driver.execute_script("document.getElementById('rows').replaceChildren(); "
                                   "location.hash = encodeURI(arguments[0])", path)
        self.wait(lambda: self.names() or self.one("#empty").is_displayed())
        return time.perf_counter() - begun

    def act(self, row: str, button: str) -> None:
        for line in self.driver.find_elements(By.CSS_SELECTOR, "#rows tr"):
            if line.find_element(By.CSS_SELECTOR, "td").text == row:
                for found in line.find_elements(By.CSS_SELECTOR, "button, a"):
                    if found.text == button:
                        return found.click()
        raise AssertionError(f"no {button} of {row}")

    def shot(self, name: str) -> None:
        self.driver.save_screenshot(str(self.shots / f"{name}.png"))

    def errors(self) -> list[str]:
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("holdall")
    parser.add_argument("dir", type=Path)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--upload", type=int, default=1000, help="MB of the large upload")
    args = parser.parse_args()
    shutil.rmtree(args.dir, ignore_errors=True)
    args.dir.mkdir(parents=True)
    (args.dir / "config.toml").write_text(CONFIG)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [args.holdall, "serve", str(args.dir / "a.holdall"), "--listen", f"127.0.0.1:{port}"]
    with (args.dir / "server.log").open("w") as log:
        config = ["--config", str(args.dir / "config.toml")]
        server = subprocess.Popen([*command, *config], stderr=log)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    basic = {"Authorization": "Basic " + base64.b64encode(b"root:root-secret").decode()}

    def call(method: str, path: str, body: bytes = b"") -> None:
        connection.request(method, f"/-/dav/{path}", body, basic)
        answer = connection.getresponse()
        answer.read()
        assert answer.status < 300, (method, path, answer.status)

    try:
        for folder in ["files", "many", "files/photos"]:
            call("MKCOL", folder)
        svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><circle cx="150" cy="100" r="80" fill="teal"/></svg>'
        call("PUT", "files/circle.svg", svg)
        call("PUT", "files/notes.txt", b"hello\n" * 100)
        call("PUT", "files/evil.html", b"<script>parent.document.title='owned';document.title='owned'</script>evil")
        call("PUT", "files/%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D'owned'%3E.txt", b"x")
        for n in range(args.objects):
            call("PUT", f"many/object-{n:07}", b"x")
        drive(args, url)
    finally:
        server.terminate()
        server.wait(60)


def drive(args: argparse.Namespace, url: str) -> None:
    driver = browser(dark=False, phone=False)
    page = Page(driver, url, args.dir)
    page.login("root", "root-secret")
    assert {"files/", "many/"} <= set(page.names()), page.names()
    took = page.go("/many")
    assert len(page.names()) == min(1000, args.objects)
    print(f"first 1,000 of {args.objects:,} names on screen: {took * 1000:.0f} ms")
    page.one("#more").click() if args.objects > 1000 else None
    page.wait(lambda: len(page.names()) == min(2000, args.objects))
    page.go("/files")
    page.shot("files")
    assert any("<img src=x" in name for name in page.names())
    assert driver.title != "owned" and "owned" not in driver.title
    page.act("notes.txt", "notes.txt")
    page.wait(lambda: "hello" in page.one("#content").text)
    page.shot("text")
    page.one("#close").click()
    page.act("circle.svg", "circle.svg")
    page.wait(lambda: driver.execute_script("return document.querySelector('#content img').naturalWidth") > 0)
    page.shot("image")
    page.one("#close").click()
    page.act("notes.txt", "Delete")
    page.wait(lambda: "notes.txt" not in page.names())
    page.shot("undo")
    page.one("#status button").click()
    page.wait(lambda: "notes.txt" in page.names())
    # The trash shows what was deleted, and gives it back.
    page.act("photos/", "Delete")
    page.wait(lambda: "photos/" not in page.names())
    page.go("trash")
    assert page.names() == ["files/photos"], page.names()
    page.shot("trash")
    page.one("#rows button").click()
    page.wait(lambda: page.one("#empty").is_displayed())
    page.go("/files")
    assert "photos/" in page.names()
    page.act("notes.txt", "Share")
    page.wait(lambda: page.one("#content input").get_attribute("value").startswith("http"))
    page.shot("share")
    page.one("#close").click()
    # A hostile object opened by itself, and as a link: neither script runs.
    for address in [f"{url}/-/web/dav/files/evil.html"]:
        driver.get(address)
        time.sleep(0.5)
        assert driver.title != "owned", address
    driver.get(f"{url}/-/web/#/files")
    page.wait(lambda: page.names())
    large = args.dir / "large.bin"
    piece = os.urandom(1 << 20)
    with large.open("wb") as f:
        for _ in range(args.upload * 1_000_000 // len(piece) + 1):
            f.write(piece)
    begun = time.perf_counter()
    page.one("#files").send_keys(str(large.resolve()))
    page.wait(lambda: driver.find_elements(By.CSS_SELECTOR, "#uploads progress"))
    time.sleep(0.4)
    page.shot("upload")
    page.wait(lambda: "large.bin" in page.names(), 600)
    took = time.perf_counter() - begun
    print(f"upload of {large.stat().st_size / 1e6:.0f} MB: {took:.1f} s")
    driver.execute_script("location.hash = 'health'")
    page.wait(lambda: "kept" in page.one("#state").text)
    assert "PUT" in page.one("#state").text
    frame = page.one("#state iframe")
    driver.execute_script("arguments[0].scrollIntoView()", frame)
    driver.switch_to.frame(frame)
    page.wait(lambda: driver.find_elements(By.CSS_SELECTOR, "svg"))
    driver.switch_to.default_content()
    driver.execute_script("scrollTo(0, 0)")
    page.shot("health")
    # The page asks whether somebody is logged in, and for what is there of an upload.
    asked = ["/session - ", ".upload - ", "evil.html"]
    bad = [line for line in page.errors() if not any(part in line for part in asked)]
    assert not bad, bad
    driver.quit()
    driver = browser(dark=True, phone=True)
    page = Page(driver, url, args.dir)
    page.login("guest", "guest-secret")
    assert page.names() == ["files/"], page.names()
    page.go("/files")
    page.shot("phone-dark")
    # Nothing is offered that this user may not do.
    offered = {found.text for found in driver.find_elements(By.CSS_SELECTOR, "button, .button")}
    assert not offered & {"Delete", "Upload", "New folder"}, offered
    assert not page.one("#health").is_displayed()
    page.driver.execute_script("location.hash = 'health'")
    page.wait(lambda: "no right" in page.one("#status").text)
    driver.quit()
    print("two users, a hostile name and a hostile object: as they should be")


if __name__ == "__main__":
    main()
