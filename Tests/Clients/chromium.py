"""Downloads one URL with headless Chromium, by its debugging pipe, and waits for the end.

    chromium.py URL DIRECTORY     writes DIRECTORY/download
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time


def main(url, directory):
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()

    def descriptors():
        # The browser reads commands from descriptor 3 and writes events to 4. A pipe may already have one of them.
        commands, events = os.dup2(to_browser, 103), os.dup2(from_browser, 104)
        os.dup2(commands, 3)
        os.dup2(events, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen(
            [
                "/usr/bin/chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
                f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
            ],
            preexec_fn=descriptors, close_fds=False, start_new_session=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile})
        os.close(to_browser)
        os.close(from_browser)
        try:
            download(url, directory, from_us, to_us)
        finally:
            end(browser, from_us)


def end(browser, commands):
    # After a kill, processes of the browser would still write to the profile while the directory is removed.
    send(commands, 3, "Browser.close", {})
    try:
        browser.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()


def send(commands, number, method, parameters):
    message = {"id": number, "method": method, "params": parameters}
    try:
        os.write(commands, json.dumps(message).encode() + b"\0")
    except BrokenPipeError:
        # The browser has ended; its end of the other pipe shows that.
        pass


def download(url, directory, commands, events):
    send(commands, 1, "Browser.setDownloadBehavior",
         {"behavior": "allowAndName", "downloadPath": directory, "eventsEnabled": True})
    send(commands, 2, "Target.createTarget", {"url": url})
    remaining = b""
    limit = time.monotonic() + 120
    while select.select([events], [], [], max(0, limit - time.monotonic()))[0]:
        piece = os.read(events, 65536)
        if not piece:
            sys.exit("the browser ended")
        *messages, remaining = (remaining + piece).split(b"\0")
        for message in map(json.loads, messages):
            if message.get("method") != "Browser.downloadProgress":
                continue
            progress = message["params"]
            print(progress, file=sys.stderr)
            if progress["state"] == "completed":
                os.rename(os.path.join(directory, progress["guid"]), os.path.join(directory, "download"))
                return
            if progress["state"] == "canceled":
                sys.exit("the browser canceled the download")
    sys.exit("the download did not end")


if __name__ == "__main__":
    main(*sys.argv[1:])
