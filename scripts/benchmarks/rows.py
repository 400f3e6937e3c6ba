"""Compares the cost of requests if there are a thousand and if there are a million rows and files."""
import contextlib, os, sqlite3, time

from .comparison import Row, column, interleave
from .programs import Failure, await_condition
from .wire import Connection, begin_upload

FEW = 1000
CREATED = 3000
EXPIRING = 2000


def get(port, target, fields=""):
    connection = Connection(port)
    connection.send("GET", target, f"Connection: close\r\n{fields}")
    head = connection.response()
    while received := connection.socket.recv(1 << 20):
        connection.data += received
    connection.socket.close()
    return head + connection.data.decode()


def multiply(root, count):
    """Copies the rows of one finished upload `d/f0`, with new keys and names, and creates the files.

    The schema is read from the catalog. In a key that contains the name of the file, this name is replaced by those of the new
    files. Every other unique value is replaced by a random one.
    """
    catalog = sqlite3.connect(root / "onward.sqlite", isolation_level=None)
    catalog.execute("PRAGMA synchronous = OFF")
    catalog.execute("BEGIN")
    tables = [name for name, in catalog.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        if table.startswith("sqlite_") or table in ("marks", "usage"):
            continue
        if catalog.execute(f"SELECT count(*) FROM {table}").fetchone()[0] != 1:
            continue
        columns = {name: (kind, key) for _, name, kind, _, _, key in catalog.execute(f"PRAGMA table_info({table})")}
        unique = {name for name, (_, key) in columns.items() if key}
        for index in catalog.execute(f"PRAGMA index_list({table})").fetchall():
            if index[2]:
                unique |= {row[2] for row in catalog.execute(f"PRAGMA index_info({index[1]})")}
        names, values = [], []
        for name, (kind, _) in columns.items():
            if name in unique and kind == "INTEGER":
                # This is the number of a row, which SQLite chooses.
                continue
            names.append(f'"{name}"')
            value = f't."{name}"'
            if name in unique:
                value = (f"CASE WHEN instr({value}, 'd/f0') THEN replace({value}, 'd/f0', 'd/f' || n.i) "
                         f"WHEN typeof({value}) = 'blob' THEN randomblob(length({value})) "
                         f"ELSE lower(hex(randomblob(length({value}) / 2))) END")
            values.append(value)
        catalog.execute(
            f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1}) "
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM n, {table} AS t")
    if "marks" in tables:
        # The next start counts everything again.
        catalog.execute("UPDATE marks SET value = 0 WHERE name = 'totals-saved'")
    catalog.execute("COMMIT")
    catalog.close()
    directory = os.open(root / "files" / "d", os.O_RDONLY)
    for number in range(1, count):
        os.close(os.open(f"f{number}", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory))
    os.close(directory)


def await_idle(server):
    """Waits until the checks after a start are complete: the server uses hardly any CPU time for two seconds."""
    used = [-1]

    def is_idle():
        used.append(server.cpu())
        return used[-1] - used[-2] < 0.02

    await_condition(is_idle, "the checks after the start", limit=300, interval=2)


def requests(programs, server):
    """Measures requests."""
    name = time.monotonic_ns()
    created = programs.load(server, "create", f"c{name}-%", connections=16, requests=CREATED, size=100)
    begun = time.perf_counter()
    for _ in range(10):
        if '"f1"' not in get(server.port, "/files/d/?limit=1000", "Accept: application/json\r\n"):
            raise Failure("no page of the listing")
    page = time.perf_counter() - begun
    head = programs.load(server, "head", begin_upload(server.port, "idle"), requests=4000)
    return {"creation": created["seconds"], "page": page, "HEAD": head["seconds"]}


def expiry(programs, server):
    """Measures the expiry of uploads, whose maximum age is four seconds. The requests are measured before it, so that the checkpoints
    that they cause are not counted here."""
    programs.load(server, "begin", f"e{time.monotonic_ns()}-%", connections=16, requests=EXPIRING)
    before = server.cpu()
    await_condition(lambda: not os.listdir(server.root / "uploads"), "expiry", interval=0.05)
    return {"expiry": server.cpu() - before}


def rows(bench):
    """Measures HEAD, creation, expiry, a page of a listing, and the start, with few and with many rows and files."""
    programs, options = bench.programs, ["--durability", "relaxed"]
    sizes, roots = (FEW, bench.rows), {}
    for count in sizes:
        with programs.serve(*options) as server:
            roots[count] = server.root
            programs.load(server, "create", "d/f0", size=1)
        multiply(roots[count], count)
        with programs.serve(*options, root=roots[count]) as server:
            await_condition(
                lambda: f'onward_uploads{{state="complete"}} {count}\n' in get(server.port, "/metrics"),
                f"{count} rows are counted", limit=300, interval=0.1)
    os.sync()

    def start(root):
        begun = time.perf_counter()
        with programs.serve(*options, root=root) as server:
            await_condition(lambda: " 200 " in get(server.port, "/readyz"), "ready")
            return {"start": time.perf_counter() - begun}

    with contextlib.ExitStack() as stack:
        servers = {}
        for count in sizes:
            # After a downtime longer than the maximum age nothing would expire for an hour.
            start(roots[count])
            servers[count] = stack.enter_context(programs.serve(*options, "--max-age", "4", root=roots[count]))
        for server in servers.values():
            await_idle(server)
            requests(programs, server)
            expiry(programs, server)
        results = interleave(bench.runs, {count: lambda c=count: requests(programs, servers[c]) for count in sizes})
        for server in servers.values():
            await_idle(server)
        expired = interleave(bench.runs, {count: lambda c=count: expiry(programs, servers[c]) for count in sizes})
    starts = interleave(bench.runs, {count: lambda c=count: start(roots[c]) for count in sizes})

    work = f"beside {bench.rows:,} rows and files"
    names = {
        "HEAD": "HEAD of an upload", "creation": f"{CREATED:,} uploads of 100 bytes, 16 connections, relaxed",
        "page": "page of 1,000 names of a directory", "expiry": f"expiry of {EXPIRING:,} uploads, CPU time",
    }
    for key, name in names.items():
        measured = expired if key == "expiry" else results
        yield Row("rows", f"{name}, {work}", column(measured[bench.rows], key), "s", f"{FEW:,} rows",
                  column(measured[FEW], key), "<=", 1.2)
    yield Row("rows", f"start after a clean stop, {work}", column(starts[bench.rows], "start"), "s", f"{FEW:,} rows",
              column(starts[FEW], "start"))
    yield Row("rows", f"start after a clean stop, {work}", column(starts[bench.rows], "start"), "s", relation="<=",
              limit=1)
