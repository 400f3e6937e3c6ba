"""Measures uploads to servers with a PostgreSQL database and an object storage, with one server and with three: what they need, and the
time beside a server with a data directory."""
import contextlib, json, os, pathlib, re, shutil, subprocess, time, urllib.request

from .comparison import Row, interleave
from .programs import Failure, accepts, await_condition, curl, free_port, run, stop, timed

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KEYS = {"AWS_ACCESS_KEY_ID": "ACCESSKEY", "AWS_SECRET_ACCESS_KEY": "SECRETKEY"}
# One GiB is uploaded in this number of files, one after the other.
FILES = 16


class Storage:
    """A PostgreSQL server and a SeaweedFS server."""

    def __init__(self, directory):
        self.directory, self.port, self.metrics_port, self.s3_port = directory, free_port(), free_port(), free_port()
        self.programs = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None)
        self.weed = ROOT / ".build/seaweedfs/bin/weed"
        if not self.programs or not self.weed.exists():
            raise Failure("PostgreSQL or SeaweedFS is missing: run scripts/system-packages scale and scripts/install-seaweedfs")
        self.processes = []

    def start(self):
        self.directory.mkdir()
        account = []
        if os.getuid() == 0:
            # PostgreSQL refuses to run as root.
            shutil.chown(self.directory, "postgres")
            account = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = self.directory / "database"
        run(*account, self.programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale")
        self.begin("database", *account, self.programs / "postgres", "-D", data, "-p", self.port, "-c", "listen_addresses=127.0.0.1",
                   "-c", f"unix_socket_directories={self.directory}", "-c", "shared_buffers=256MB", "-c", "autovacuum=off",
                   "-c", "max_wal_size=8GB", "-c", "checkpoint_timeout=1h")
        identities = self.directory / "identities.json"
        identities.write_text(json.dumps({"identities": [{"name": "bench", "actions": ["Admin", "Read", "Write", "List"], "credentials": [
            {"accessKey": KEYS["AWS_ACCESS_KEY_ID"], "secretKey": KEYS["AWS_SECRET_ACCESS_KEY"]}]}]}))
        (self.directory / "objects").mkdir()
        options = [f"-{name}.port={free_port()}" for name in ("master", "volume", "filer")]
        options += [f"-{name}.port.grpc={free_port()}" for name in ("master", "volume", "filer", "s3")]
        self.begin("storage", self.weed, "server", f"-dir={self.directory}/objects", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3",
                   f"-s3.port={self.s3_port}", f"-s3.config={identities}", "-s3.autoCreateBucket", "-s3.iam=false",
                   "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false", "-master.volumeSizeLimitMB=1024",
                   "-volume.max=100", "-volume.minFreeSpace=64MiB", f"-metricsPort={self.metrics_port}", *options)
        await_condition(lambda: accepts(self.port) and accepts(self.s3_port) and accepts(self.metrics_port), "the storage")
        await_condition(lambda: self.query("SELECT 1") == "1", "the database")

    def begin(self, name, *command):
        log = open(self.directory / f"{name}.log", "w")
        self.processes.append(subprocess.Popen([str(word) for word in command], stdout=log, stderr=log))

    def stop(self):
        for process in self.processes:
            if process is not self.processes[0]:
                process.kill()
            stop(process)
        # The files of the storage are few and large.
        for file in (self.directory / "objects").iterdir():
            if file.is_file():
                os.truncate(file, 0)

    def query(self, statement):
        with contextlib.suppress(Failure):
            return run(self.programs / "psql", "-qAtX", "-h", self.directory, "-p", self.port, "-U", "postgres", "-c", statement,
                       stderr=subprocess.DEVNULL).strip()

    def requests(self):
        """The number of S3 requests."""
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics").read().decode()
        return sum(float(value) for value in re.findall(r"^SeaweedFS_s3_request_total\{.*\} (\S+)$", text, re.M))

    def counts(self):
        # A session of PostgreSQL that is idle publishes its statistics after ten seconds.
        time.sleep(11)
        commits, log = self.query(
            "SELECT xact_commit, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') FROM pg_stat_database WHERE datname = 'postgres'"
        ).split("|")
        return {"time": time.monotonic(), "database transactions": int(commits), "bytes of the database's log": int(log),
                "S3 requests": self.requests()}


@contextlib.contextmanager
def serving(programs, storage, count):
    with contextlib.ExitStack() as stack:
        place = ["--catalog", f"postgresql://postgres@127.0.0.1:{storage.port}/postgres", "--blobs",
                 f"s3://bench?endpoint=http://127.0.0.1:{storage.s3_port}"]
        yield [stack.enter_context(programs.serve(storage=place, environment=KEYS)) for _ in range(count)]


def upload_file(programs, servers, name, mebibytes=1 << 10):
    """Uploads a file with curl and returns the seconds that this took."""
    server = servers[0]
    fields = ["-H", "Upload-Complete: ?1", "-H", f"Upload-Draft-Interop-Version: {server.interop}"]
    return timed(*curl("-T", programs.source(mebibytes), *fields, *server.curl_target(name)))


def upload_files(programs, servers, name):
    """Uploads one GiB in files of equal size, one after the other."""
    for number in range(FILES):
        upload_file(programs, servers[number % len(servers):], f"{name}-{number}", (1 << 10) // FILES)
    return 1


def upload_at_once(programs, servers, name, connections, requests, **options):
    """Uploads files over several connections, which are divided among the servers, and returns the number of files and the seconds."""
    commands = []
    for number, server in enumerate(servers):
        # The first servers get one connection more, if they cannot be divided equally.
        share = connections // len(servers) + (number < connections % len(servers))
        commands.append(programs.load_command(
            server, "create", f"{name}-{number}-%", connections=share, requests=share * (requests // connections), **options))
    begun = time.perf_counter()
    for process in [subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL) for command in commands]:
        if process.wait(600):
            raise Failure("an upload failed")
    return connections * (requests // connections), time.perf_counter() - begun


def upload_small(programs, servers, name):
    """Uploads files of 4 KiB over 12 connections."""
    return upload_at_once(programs, servers, name, 12, 1000, size=4096)[0]


WORK = {"uploaded GiB": upload_files, "4 KiB upload": upload_small}
# The few transactions of 16 large files cannot be distinguished from those that the servers make without requests.
KINDS = {"uploaded GiB": ["S3 requests", "bytes of the database's log"],
         "4 KiB upload": ["S3 requests", "database transactions", "bytes of the database's log"]}


def measure(programs, servers, storage, work):
    """Counts what the servers need for one unit of the work. What they need without work is subtracted."""
    WORK[work](programs, servers, "first")
    idle = [storage.counts(), storage.counts()] if storage else []
    cpu = sum(server.cpu() for server in servers)
    units = WORK[work](programs, servers, "second")
    found = {"CPU time of the servers": (sum(server.cpu() for server in servers) - cpu) / units}
    if storage:
        after = storage.counts()
        elapsed = after["time"] - idle[1]["time"]
        for name in ("S3 requests", "database transactions", "bytes of the database's log"):
            background = (idle[1][name] - idle[0][name]) / (idle[1]["time"] - idle[0]["time"])
            found[name] = (after[name] - idle[1][name] - background * elapsed) / units
            found[name + " each second without work"] = background
    return found


TIMES = {
    "1 GiB upload by curl": lambda programs, servers, name: upload_file(programs, servers, name),
    "64 uploads of 64 MiB at once": lambda programs, servers, name: upload_at_once(
        programs, servers, name, 64, 64, size=64 << 20, file=programs.source(64))[1],
    "1,200 uploads of 4 KiB, 12 connections": lambda programs, servers, name: upload_at_once(
        programs, servers, name, 12, 1200, size=4096)[1],
}


def store_directly(programs, storage, name):
    """Stores a file of 1 GiB as one object in the storage, without a server, and returns the seconds that this took."""
    keys = f"{KEYS['AWS_ACCESS_KEY_ID']}:{KEYS['AWS_SECRET_ACCESS_KEY']}"
    # This curl signs a field without a value wrongly, so Expect is not removed.
    return timed("curl", "-sS", "--fail", "-o", "/dev/null", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", keys, "-T",
                 programs.source(1 << 10), f"http://127.0.0.1:{storage.s3_port}/bench/{name}")


def seconds(bench, servers, storage):
    """Compares the times of uploads with those of a server with a data directory, of the storage alone, and of other servers that a person
    has started. The runs alternate."""
    programs, number = bench.programs, iter(range(1 << 30))

    def with_directory(work):
        with programs.serve() as server:
            elapsed = TIMES[work](programs, [server], "timed")
            for file in (server.root / "files").iterdir():
                os.truncate(file, 0)
            return elapsed

    for work in TIMES:
        def with_servers(servers):
            return TIMES[work](programs, servers, f"timed-{next(number)}")

        references = {"data directory": lambda: with_directory(work)}
        if work == "1 GiB upload by curl":
            references["object storage"] = lambda: store_directly(programs, storage, f"alone-{next(number)}")
        for peer in bench.peers:
            references[peer.name] = lambda peer=peer: with_servers([peer])
        found = interleave(bench.runs, {"shared": lambda: with_servers(servers), **references})
        name = f"{len(servers)} server" + ("s" if len(servers) > 1 else "")
        for reference in references:
            yield Row("scale", f"time of {work}, {name}", found["shared"], "s", reference, found[reference])


def scale(bench):
    """Counts S3 requests, transactions and CPU time for large and small uploads, with one server and with three, and measures the time,
    beside a data directory."""
    programs = bench.programs
    own = {}
    for work in WORK:
        with programs.serve() as server:
            own[work] = measure(programs, [server], None, work)
    for count in (1, 3):
        storage = Storage(programs.fresh("storage"))
        try:
            storage.start()
            with serving(programs, storage, count) as servers:
                await_condition(lambda: all(is_ready(server) for server in servers), "the servers")
                name = f"{count} server" + ("s" if count > 1 else "")
                for work in WORK:
                    found = measure(programs, servers, storage, work)
                    for kind in KINDS[work]:
                        yield Row("scale", f"{kind} for each {work}, {name}", [found[kind]], "")
                    yield Row("scale", f"CPU time of the servers for each {work}, {name}", [found["CPU time of the servers"]], "s",
                              "data directory", [own[work]["CPU time of the servers"]])
                yield Row("scale", f"database transactions each second without requests, {name}",
                          [found["database transactions each second without work"]], "")
                yield from seconds(bench, servers, storage)
        finally:
            storage.stop()


def is_ready(server):
    with contextlib.suppress(OSError):
        return urllib.request.urlopen(f"http://127.0.0.1:{server.port}/readyz").status == 200
