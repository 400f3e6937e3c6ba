"""Counts system calls, synchronizations, context switches and allocations of the server, for one client in sequence."""
import mmap, pathlib, re, signal, subprocess

from .comparison import Row
from .programs import await_condition
from .wire import VERSION, Connection, begin_upload

# sync_file_range only starts to write.
SYNCHRONIZATIONS = ("fsync", "fdatasync", "syncfs")
TARGETS = {
    ("system calls", "4 KiB upload", "relaxed"): 40, ("allocations", "4 KiB upload", "relaxed"): 120,
    ("synchronizations", "4 KiB upload", "durable"): 3,
}


def system_calls(process, action, log):
    """Returns the number of each system call of a process during the action."""
    with open(log, "w") as output:
        tracer = subprocess.Popen(
            ["strace", "-f", "-c", "-U", "calls,name", "-p", str(process), "-o", f"{log}.counts"], stderr=output)
    try:
        # strace reports each thread that it has attached to.
        threads = len(list(pathlib.Path(f"/proc/{process}/task").iterdir()))
        await_condition(lambda: re.search(rf"attached with {threads} threads", pathlib.Path(log).read_text()), "strace")
        action()
        tracer.send_signal(signal.SIGINT)
        tracer.wait(60)
    finally:
        tracer.kill()
        tracer.wait(10)
    text = pathlib.Path(f"{log}.counts").read_text()
    return {name: int(number) for number, name in re.findall(r"^ *(\d+) (\w+)$", text, re.M) if name != "total"}


def switches(process):
    text = "".join((task / "status").read_text() for task in pathlib.Path(f"/proc/{process}/task").iterdir())
    return sum(map(int, re.findall(r"voluntary_ctxt_switches:\s+(\d+)", text)))


def exchange(connection, method, target, fields="", content=b""):
    connection.send(method, target, f"{VERSION}{fields}", content)
    connection.response()


def counts(bench):
    """Measures the cost of one small upload, of one uploaded MiB and of one HEAD, durable and relaxed."""
    programs = bench.programs

    def upload(connection, name, size):
        exchange(connection, "PUT", f"/files/{name}", f"Upload-Complete: ?1\r\nContent-Length: {size}\r\n", bytes(size))

    for mode, durability in ("durable", "acknowledged"), ("relaxed", "relaxed"):
        counter = programs.fresh("allocations")
        counter.write_bytes(bytes(8))
        environment = {"LD_PRELOAD": str(programs.directory / "allocations.so"), "ALLOCATION_COUNT": str(counter)}
        with open(counter, "r+b") as file, programs.serve("--durability", durability, environment=environment) as server:
            memory = mmap.mmap(file.fileno(), 8)
            idle = begin_upload(server.port, "idle")
            process = server.process.pid
            # The connection stays open, because the counts of an ended thread are lost.
            connection = Connection(server.port)

            def small(name):
                for number in range(100):
                    upload(connection, f"{name}-{number}", 4096)

            def head(name):
                for _ in range(100):
                    exchange(connection, "HEAD", idle)

            actions = {"4 KiB upload": (100, small), "HEAD": (100, head),
                       "uploaded MiB": (64, lambda name: upload(connection, name, 64 << 20))}
            for work, (number, action) in actions.items():
                name = work.replace(" ", "-")
                action(f"{name}-1")
                before = int.from_bytes(memory[:8], "little"), switches(process)
                action(f"{name}-2")
                after = int.from_bytes(memory[:8], "little"), switches(process)
                calls = system_calls(process, lambda: action(f"{name}-3"), programs.fresh("strace"))
                values = {
                    "system calls": sum(calls.values()),
                    "synchronizations": sum(calls.get(call, 0) for call in SYNCHRONIZATIONS),
                    "allocations": after[0] - before[0], "context switches": after[1] - before[1],
                }
                for kind, value in values.items():
                    limit = TARGETS.get((kind, work, mode))
                    yield Row("counts", f"{kind} for each {work}, {mode}", [value / number], "",
                              relation="<=" if limit else "", limit=limit)
