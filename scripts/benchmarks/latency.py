"""Measures the time of small requests beside large uploads, and of the take-over of a stuck upload."""
import json, os, subprocess, time

from .comparison import Row, column, interleave
from .programs import Failure, await_condition, empty_files
from .wire import VERSION, Connection, begin_upload, field

SENT = 300_000_000
PART = 64 << 20


def start(command):
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)


def beside_streams(programs, server, kind, name, **options):
    """Runs the load generator while 16 connections upload 32 files of 64 MiB, and returns its result."""
    large = "create" if server.name == "onward" else "put"
    before = server.cpu()
    processes = [start(programs.load_command(
        server, large, "stream-%", connections=16, requests=32, size=PART, file=programs.source(64)))]
    try:
        await_condition(lambda: processes[0].poll() is None and server.cpu() - before > 0.05, "16 uploads")
        processes.append(start(programs.load_command(server, kind, name, requests=100_000, **options)))
        if processes[0].wait(150):
            raise Failure("16 uploads failed")
        # The load generator ends early without an error.
        processes[1].terminate()
        output, _ = processes[1].communicate(timeout=150)
        if processes[1].returncode:
            raise Failure(f"{kind} {name} beside 16 uploads failed")
        return json.loads(output)
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
            process.stdout.close()


def streaming(bench):
    """Measures HEAD of an idle upload, and small uploads, beside 16 large uploads."""
    programs = bench.programs

    def measured(serve, measure):
        def run():
            os.sync()
            with serve() as server:
                result = measure(server)
            empty_files(server.root)
            return result
        return run

    def head(server):
        target = begin_upload(server.port, "idle") if server.name == "onward" else "/empty"
        # One request every 5 ms.
        return beside_streams(programs, server, "head", target, p=5000)

    def small_beside(server):
        return beside_streams(programs, server, "create", "small-%", connections=16, size=4096)

    def small_alone(server):
        return programs.load(server, "create", "small-%", connections=16, requests=400, size=4096)

    def relaxed():
        return programs.serve("--durability", "relaxed")

    results = interleave(bench.runs, {
        "durable": measured(programs.serve, head), "relaxed": measured(relaxed, head),
        "nginx": measured(programs.nginx, head),
        "floor": measured(lambda: programs.upload_floor("relaxed"), head), "beside": measured(programs.serve, small_beside),
        "alone": measured(programs.serve, small_alone)})
    for mode, target in ("relaxed", ["<=", 3]), ("durable", []):
        yield Row("streaming", f"HEAD of an idle upload beside 16 uploads, {mode}, p99", column(results[mode], "p99"), "ms",
                  "204 of nginx", column(results["nginx"], "p99"), *target)
    yield Row("streaming", "HEAD of an idle upload beside 16 uploads, relaxed, p99", column(results["relaxed"], "p99"), "ms",
              "204 of the floor", column(results["floor"], "p99"))
    yield Row("streaming", "4 KiB uploads, 16 connections, durable, beside 16 uploads of 64 MiB",
              column(results["beside"], "rate"), "/s", "without them", column(results["alone"], "rate"), is_rate=True)


def stuck(port):
    """Sends a part of an upload and leaves the connection open."""
    connection, block = Connection(port), bytes(1 << 20)
    connection.send("PUT", "/files/file", f"{VERSION}Upload-Complete: ?1\r\nContent-Length: {SENT + 1_000_000}\r\n")
    _, head = connection.head(104)
    left = SENT
    while left:
        left -= connection.socket.send(block[: min(left, len(block))])
    return connection, field(head, "Location")


def append(port, location, offset, content, expected):
    connection = Connection(port)
    begun = time.perf_counter()
    connection.send(
        "PATCH", location,
        f"{VERSION}Content-Type: application/partial-upload\r\nUpload-Offset: {offset}\r\nUpload-Complete: ?0\r\n"
        f"Content-Length: {len(content)}\r\n", content)
    head = connection.response(expected)
    elapsed = time.perf_counter() - begun
    connection.socket.close()
    return elapsed, head


def take_over(port, method):
    """Returns the milliseconds until the response, and until the old connection is closed."""
    old, location = stuck(port)
    begun = time.perf_counter()
    if method == "PATCH":
        # The first append has a wrong offset, the second one the offset in the response.
        latency, head = append(port, location, 0, b"x", 409)
    else:
        successor = Connection(port)
        begun = time.perf_counter()
        successor.send(method, location, VERSION)
        head = successor.response(204)
        latency = time.perf_counter() - begun
        successor.socket.close()
    old.await_end()
    closed = time.perf_counter() - begun
    if method != "DELETE":
        offset = int(field(head, "Upload-Offset"))
        if not 0 < offset <= SENT:
            raise Failure(f"offset {offset}")
        append(port, location, offset, b"x" * 1000, 204)
        cancelling = Connection(port)
        cancelling.send("DELETE", location, VERSION)
        cancelling.response(204)
        cancelling.socket.close()
    return {"latency": latency * 1000, "closed": closed * 1000}


def takeover(bench):
    """Measures the time of a request that takes over an upload whose client has sent 300 MB and then nothing more."""
    with bench.programs.serve() as server:
        take_over(server.port, "HEAD")
        results = {method: [] for method in ("HEAD", "PATCH", "DELETE")}
        for _ in range(bench.runs):
            for method in ["HEAD"] * 5 + ["PATCH", "DELETE"]:
                results[method].append(take_over(server.port, method))
    latencies = sorted(column(results["HEAD"], "latency"))
    yield Row("takeover", f"take-over by HEAD, p99 of {len(latencies)}", [latencies[len(latencies) * 99 // 100]], "ms",
              relation="<=", limit=10)
    for method in results:
        yield Row("takeover", f"take-over by {method}", column(results[method], "latency"), "ms")
    yield Row("takeover", "take-over by HEAD, until the old connection is closed", column(results["HEAD"], "closed"), "ms")
