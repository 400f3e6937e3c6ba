"""Measures memory and CPU time of the server for thousands of slow uploads."""
import threading, time

from .comparison import Row, column, interleave
from .wire import VERSION, Connection, field

SECONDS = 6


def begin(server, number):
    connection = Connection(server.port)
    draft = f"{VERSION}Upload-Complete: ?1\r\n" if server.name == "onward" else ""
    connection.send("PUT", f"/files/slow-{number}", f"{draft}Content-Length: 1000000\r\n")
    if draft:
        connection.head(104)
    return connection


def begin_on_used_connection(server, number):
    connection = Connection(server.port)
    connection.send("PUT", f"/files/slow-{number}", f"{VERSION}Upload-Complete: ?0\r\nContent-Length: 0\r\n")
    location = field(connection.response(201), "Location")
    connection.send(
        "PATCH", location,
        f"{VERSION}Upload-Complete: ?1\r\nUpload-Offset: 0\r\nContent-Type: application/partial-upload\r\n"
        "Content-Length: 1000000\r\n")
    return connection


def slow(bench):
    """Measures uploads that send one byte a second, as the first and as a later request of their connections."""
    programs, count = bench.programs, bench.slow_uploads

    def measured(start, begin):
        def measure():
            with start() as server:
                before = server.status("VmRSS")
                connections = [begin(server, number) for number in range(count)]
                pause, cpu, begun = threading.Event(), server.cpu(), time.monotonic()
                for second in range(SECONDS):
                    for number, connection in enumerate(connections):
                        connection.socket.sendall(b"x")
                        # Each upload sends one byte a second. The uploads send at different times of the second.
                        if number % 100 == 99:
                            pause.wait(max(0, begun + second + number / count - time.monotonic()))
                    pause.wait(max(0, begun + second + 1 - time.monotonic()))
                cpu = server.cpu() - cpu
                resident = server.status("VmRSS")
                for connection in connections:
                    connection.socket.close()
                return {"memory": (resident - before) / count, "cpu": cpu}
        return measure

    def own():
        return programs.serve("--durability", "relaxed", "--max-connections", str(count + 100), "--idle-timeout", "600")

    results = interleave(min(bench.runs, 3), {
        "onward": measured(own, begin), "nginx": measured(programs.nginx, begin),
        "floor": measured(lambda: programs.upload_floor("relaxed"), begin),
        "later": measured(own, begin_on_used_connection)})
    work = f"{count} uploads of one byte a second"
    yield Row("slow", f"{work}, resident memory of the server for each", column(results["onward"], "memory"), "KiB",
              relation="<=", limit=40)
    yield Row("slow", f"{work}, each not the first request of its connection, memory for each",
              column(results["later"], "memory"), "KiB")
    yield Row("slow", f"{work}, the server's CPU time", column(results["onward"], "cpu"), "s", "nginx",
              column(results["nginx"], "cpu"), "<=", 3)
    # A thread for each connection, which only receives and writes each byte.
    yield Row("slow", f"{work}, the CPU time of the floor", column(results["floor"], "cpu"), "s", "nginx",
              column(results["nginx"], "cpu"))
    yield Row("slow", f"{work}, the server's CPU time", column(results["onward"], "cpu"), "s", "floor",
              column(results["floor"], "cpu"))
