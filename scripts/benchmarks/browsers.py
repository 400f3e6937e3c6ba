"""Compares the page and the module in headless browsers with a static page of nginx, and with plain requests of the browser."""
import html, json, os, random, shutil, time, urllib.parse

from .comparison import Row
from .programs import SOURCES, Failure, run

ENTRIES = 1000
FILES = 200
BROWSERS = ("chromium", "firefox")


def fill(directory):
    """Creates files with names, sizes and times as in a folder of a person."""
    generator = random.Random(1)
    directory.mkdir(parents=True)
    for number in range(ENTRIES):
        words = generator.sample(["report", "photo", "draft", "budget", "notes", "invoice", "backup", "summer"], 2)
        path = directory / f"{' '.join(words)} {number:04}.{generator.choice(['pdf', 'jpg', 'txt', 'mp4', 'tar.gz'])}"
        with open(path, "w") as file:
            file.truncate(generator.randrange(1, 10 ** generator.randrange(2, 9)))
        modified = 1_700_000_000 + generator.randrange(60_000_000)
        os.utime(path, (modified, modified))


def static_page(directory):
    """Returns a document with a plain table of the same entries, without a style and a script."""
    rows = []
    for entry in os.scandir(directory):
        status = entry.stat()
        modified = time.strftime("%Y-%m-%d %H:%M", time.gmtime(status.st_mtime))
        rows.append(f'<tr><td><a href="./{urllib.parse.quote(entry.name)}">{html.escape(entry.name)}</a></td>'
                    f"<td>{status.st_size}</td><td><time>{modified}</time></td></tr>\n")
    return ('<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">\n'
            "<title>Files</title><h1>Files</h1>\n<table><thead><tr><th>Name</th><th>Size</th><th>Modified</th></tr></thead>\n"
            f"<tbody>\n{''.join(rows)}</tbody></table>\n</html>\n")


def browsers(bench):
    """Measures the first paint of a folder, one upload of 1 GB, and uploads of many small files, in Chromium and Firefox."""
    programs = bench.programs
    node = shutil.which("node")
    if not node:
        raise Failure("node is missing: run scripts/system-packages test browser")
    speed = SOURCES.parent.parent / "Tests/Browser/speed.mjs"

    def measure(kind, browser, *parameters):
        return json.loads(run(node, speed, kind, browser, bench.runs, *parameters, limit=1200))

    large = programs.directory / "large.bin"
    with open(large, "wb") as file:
        for _ in range(1000):
            file.write(os.urandom(1_000_000))
    with programs.serve() as server, programs.nginx() as nginx:
        fill(server.root / "files/many")
        (nginx.root / "files/many").mkdir(parents=True)
        (nginx.root / "files/many/index.html").write_text(static_page(server.root / "files/many"))
        for browser in BROWSERS:
            name = browser.capitalize()
            times = measure("paint", browser, f"onward={server.url}many/", f"nginx={nginx.url}many/index.html")
            yield Row("browsers", f"first paint of a folder with 1,000 entries in {name}", times["onward"], "ms",
                      "static page of nginx", times["nginx"], "<=", 2)
        for browser in BROWSERS:
            name = browser.capitalize()
            programs.warm_memory(2000)
            times = measure("upload", browser, f"{server.origin}/", large, server.root / "files")
            yield Row("browsers", f"1 GB upload by onward.js in {name}", [1e6 / time for time in times["module"]], "MB/s",
                      "XMLHttpRequest", [1e6 / time for time in times["request"]], ">=", 0.8, is_rate=True)
        for browser in BROWSERS:
            name = browser.capitalize()
            times = measure("files", browser, f"{server.origin}/", FILES)
            yield Row("browsers", f"{FILES} files of 4 KiB dropped on the page in {name}",
                      [FILES * 1000 / time for time in times["page"]], "/s", "fetch, four at a time",
                      [FILES * 1000 / time for time in times["request"]], is_rate=True)
