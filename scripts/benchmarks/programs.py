"""Runs the programs of the benchmarks: servers in separate processes, the load generator, and compiled C files."""
import contextlib, json, os, pathlib, re, shutil, socket, subprocess, threading, time, urllib.parse

SOURCES = pathlib.Path(__file__).parent
DRAFT = ["Upload-Complete: ?1", "Upload-Draft-Interop-Version: 8"]


class Failure(Exception):
    pass


def run(*command, limit=300, **options):
    """Runs a program to its end and returns its standard output."""
    command = [str(part) for part in command]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit, **options)
    if result.returncode:
        raise Failure(f"{' '.join(command)[:500]}: status {result.returncode}")
    return result.stdout


def timed(*command, **options):
    """Runs a program and returns the seconds that it took."""
    begun = time.perf_counter()
    run(*command, **options)
    return time.perf_counter() - begun


def await_condition(condition, what, limit=60, interval=0.005):
    """Waits until the condition returns a value that is not None or False, and returns it."""
    deadline, pause = time.monotonic() + limit, threading.Event()
    while True:
        value = condition()
        if value is not None and value is not False:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {limit} s")
        pause.wait(interval)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def accepts(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True


class Server:
    """A server and its resources. `port` is the port for HTTP or, if the server uses TLS, for HTTPS."""

    def __init__(self, name, port, pids, prefix="/files/", interop=8, method="PUT", host="127.0.0.1", scheme="http"):
        self.name, self.port, self.find_pids, self.prefix = name, port, pids, prefix
        self.interop, self.method, self.address = interop, method, f"{host}:{port}"
        self.origin = f"{scheme}://{self.address}"
        self.url = self.origin + prefix

    def target(self, name):
        """Returns the target of an upload or a download. A server that chooses the names has one target for all uploads."""
        return self.prefix if self.method == "POST" else self.prefix + name

    def url_of(self, name):
        return self.origin + self.target(name)

    def curl_target(self, name):
        """Returns the arguments of curl for the target of an upload. Without them curl adds the name of the file to a target that ends
        with a slash."""
        return ["-X", self.method, "--request-target", self.target(name), self.url_of(name)]

    def cpu(self):
        """Returns the seconds of CPU time that all processes of the server have used."""
        # The clock of a process: see clock_getcpuclockid(3). The numbers in /proc have a resolution of 10 ms.
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self.find_pids())

    def status(self, name):
        """Returns the sum of a number in /proc/PID/status, such as VmRSS, over all processes."""
        texts = (pathlib.Path(f"/proc/{pid}/status").read_text() for pid in self.find_pids())
        return sum(int(re.search(rf"{name}:\s+(\d+)", text).group(1)) for text in texts)


class Programs:
    """Starts servers below one directory and measures with the load generator."""

    def __init__(self, directory, onward, access_log):
        self.directory, self.onward, self.access_log = pathlib.Path(directory), onward, access_log
        self.number = 0
        programs = [("load", []), ("floor", ["-fopenmp", "-lsqlite3"]), ("download_floor", ["-lmicrohttpd"]),
                    ("upload_floor", ["-lnettle", "-lgnutls"]), ("small_upload_floor", ["-lmicrohttpd", "-lsqlite3"]),
                    ("gateway_floor", ["-lmicrohttpd", "-lcurl"])]
        for name, libraries in programs:
            run("cc", "-O2", "-Wall", "-Werror", "-o", self.directory / name, SOURCES / f"{name}.c", *libraries)
        run("cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self.directory / "allocations.so",
            SOURCES / "allocations.c")

    def fresh(self, name):
        """Returns the path of a directory that does not exist. Nothing in it is removed before the end."""
        self.number += 1
        return self.directory / f"{self.number:04}-{name}"

    @contextlib.contextmanager
    def serve(self, *options, root=None, tls=None, wrapper=(), environment=None, storage=None):
        """Runs `onward serve` in a new data directory, in `root`, or with the options `storage`."""
        root = root or self.fresh("onward")
        storage = storage or ["--root", root, "--min-free", "0"]
        certificate = ["--tls-cert", tls[0], "--tls-key", tls[1]] if tls else []
        command = [
            *wrapper, self.onward, "serve", *storage, "--listen", "127.0.0.1:0", "--log-level",
            "info" if self.access_log else "warning", *certificate, *options]
        # Standard error is a file, so that the server never waits for a reader.
        log_name = self.fresh("onward.log")
        with open(log_name, "w") as log:
            process = subprocess.Popen(
                [str(part) for part in command], stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, **(environment or {})})
        try:
            # The first line of standard output has the URL.
            found = re.search(r" at https?://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            if not found:
                raise Failure(f"{self.onward} did not start: {log_name.read_text()[:2000]}")
            server = Server("onward", int(found.group(1)), lambda: [process.pid], scheme="https" if tls else "http")
            server.root, server.process = root, process
            yield server
            if process.poll() is not None:
                raise Failure(f"the server ended: {log_name.read_text()[-2000:]}")
        finally:
            stop(process)

    @contextlib.contextmanager
    def nginx(self, tls=None, root=None, origin=None):
        """Runs nginx with WebDAV in a new directory: two processes, a body buffer of 1 MiB, nothing synchronized. With an
        `origin`, requests below /app are forwarded to it on connections that stay open."""
        root = root or self.fresh("nginx")
        (root / "files").mkdir(parents=True, exist_ok=True)
        port = free_port()
        certificate = f"ssl_certificate {tls[0]}; ssl_certificate_key {tls[1]};" if tls else ""
        paths = "".join(
            f"{kind}_temp_path {root}/temporary;" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        forward = origin and "proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\";"
        configuration = self.fresh("nginx.conf")
        configuration.write_text(f"""
            daemon off; {"user root;" if os.getuid() == 0 else ""} worker_processes 2; worker_rlimit_nofile 65536;
            pid {configuration}.pid; error_log {configuration}.log;
            events {{ worker_connections 16384; }}
            http {{
                access_log {f"{configuration}.access" if self.access_log else "off"};
                {f"upstream app {{ server {origin.address}; keepalive 128; keepalive_requests 100000000; }}" if origin else ""}
                sendfile on; keepalive_requests 100000000; client_max_body_size 0; client_body_buffer_size 1m;
                client_body_timeout 600s; {paths}
                server {{
                    listen 127.0.0.1:{port} {"ssl" if tls else ""} backlog=16384; root {root}; {certificate}
                    location /files/ {{ dav_methods PUT; create_full_put_path on; }}
                    location = /empty {{ return 204; }}
                    location = /app/hello {{ {forward or 'return 200 "hello of the application";'} }}
                    location /app/ {{ {forward or f"root {root}/files; dav_methods PUT; create_full_put_path on;"} }}
                }}
            }}""")
        process = subprocess.Popen(
            [shutil.which("nginx") or "/usr/sbin/nginx", "-c", str(configuration), "-e", f"{configuration}.log"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def pids():
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            return [process.pid, *map(int, children.split())]

        try:
            await_condition(lambda: process.poll() is None and accepts(port), f"nginx: see {configuration}.log")
            server = Server("nginx", port, pids, scheme="https" if tls else "http")
            server.root = root
            yield server
        finally:
            stop(process)

    @contextlib.contextmanager
    def download_floor(self, root, *options):
        """Runs a server that only sends the files below `root`; with the option `complete` it also does all other work that
        is required."""
        with self.serving("download_floor", root, *options) as server:
            yield server

    @contextlib.contextmanager
    def gateway_floor(self, origin):
        """Runs a server that only forwards GET requests to an origin."""
        with self.serving("gateway_floor", origin.origin) as server:
            yield server

    @contextlib.contextmanager
    def upload_floor(self, mode, tls=()):
        """Runs a server that only stores content in a new directory: `relaxed`, `durable`, with a `digest`, or over `tls`."""
        root = self.fresh("upload-floor")
        root.mkdir()
        with self.serving("upload_floor", root, mode, *tls, scheme="https" if tls else "http") as server:
            server.root = root
            yield server

    @contextlib.contextmanager
    def small_upload_floor(self, mode, *options):
        """Runs a server that only publishes small files in a new directory, and adds a row for each; with the option
        `complete` it also does all other work that is required."""
        root = self.fresh("small-upload-floor")
        root.mkdir()
        with self.serving("small_upload_floor", root, mode, *options) as server:
            yield server

    @contextlib.contextmanager
    def serving(self, name, *arguments, scheme="http"):
        """Runs a compiled program that serves at the port that is its first argument."""
        port = free_port()
        process = subprocess.Popen([self.directory / name, str(port), *arguments])
        try:
            await_condition(lambda: process.poll() is None and accepts(port), name)
            yield Server("floor", port, lambda: [process.pid], scheme=scheme)
        finally:
            stop(process)

    def load(self, server, kind, name, **options):
        """Runs the load generator. The result also has the server's CPU time for each request, in microseconds."""
        command = self.load_command(server, kind, name, **options)
        before = server.cpu()
        result = json.loads(run(*command, limit=200))
        result["server_cpu"] = (server.cpu() - before) * 1e6 / result["requests"]
        result["client_cpu"] = result["cpu"] * 1e6 / result["requests"]
        return result

    def load_command(self, server, kind, name, connections=1, requests=1, size=0, fields=(), file=None, **letters):
        target = name if name.startswith("/") else server.target(name)
        command = [self.directory / "load", "-c", connections, "-n", requests, "-s", size, "-M", server.method,
                   "-v", server.interop]
        for field in fields:
            command += ["-H", field]
        if file:
            command += ["-f", file]
        for letter, value in letters.items():
            command += [f"-{letter}", value]
        return command + [kind, server.address, target]

    def floor(self, requests, size, batch, mode):
        # With this setting, threads that wait use no CPU time.
        return json.loads(run(self.directory / "floor", self.fresh("floor"), requests, size, batch, mode,
                              env={**os.environ, "OMP_WAIT_POLICY": "passive"}))

    def certificate(self):
        """Returns the paths of a self-signed certificate and its key."""
        certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        if not key.exists():
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
                stderr=subprocess.DEVNULL)
        return certificate, key

    def source(self, mebibytes):
        """Returns the path of a file with arbitrary bytes, which is in the page cache."""
        path = self.directory / f"source-{mebibytes}"
        if not path.exists():
            with open(path, "wb") as file:
                for _ in range(mebibytes):
                    file.write(os.urandom(1 << 20))
        return path

    def warm_memory(self, mebibytes):
        """Uses memory for a file and frees it. A virtual machine may have returned its free memory to the host. To get it
        back takes longer than a copy of the same size, and would slow down the program that is measured first."""
        path = self.directory / "memory"
        with open(path, "wb", buffering=0) as file:
            for _ in range(mebibytes):
                file.write(bytes(1 << 20))
        os.truncate(path, 0)


class Peer(Server):
    """A server that this program does not start. An option names it: NAME[@INTEROP]=URL."""

    def __init__(self, text):
        found = re.fullmatch(r"([\w.-]+?)(?:@(\d))?=(http://([\d.]+):(\d+)(/\S*/))", text)
        if not found:
            raise Failure(f"{text} is not NAME[@INTEROP]=http://ADDRESS:PORT/COLLECTION/")
        name, interop, _, host, port, prefix = found.groups()
        # Uploads are posted to the collection.
        super().__init__(name, int(port), self.listeners, prefix, int(interop or 8), "POST", host)
        self.root = None

    def listeners(self):
        """Returns the processes that listen on the port; none if they belong to another user or run on another machine."""
        sockets = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == self.port:
                    sockets.add(f"socket:[{fields[9]}]")
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if any(os.readlink(link) in sockets for link in (process / "fd").iterdir()):
                    found.append(process.name)
        return found


def stop(process):
    """Ends a process that this program started."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    if process.stdout:
        process.stdout.close()


def empty_files(root):
    """Truncates large files, so that there is space for the next run. Their inodes stay in use."""
    for path in pathlib.Path(root).rglob("*"):
        if path.is_file() and path.stat().st_size > 1 << 20 and "sqlite" not in path.name:
            os.truncate(path, 0)


def curl(*arguments):
    # Without this option curl may send Expect, and wait for a response to it.
    return ["curl", "-H", "Expect:", "-sS", "--fail", "--http1.1", "-o", "/dev/null", *arguments]
