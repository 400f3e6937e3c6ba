"""Compares the client with curl. Both use the same server."""
import contextlib, itertools, os, pathlib, re, subprocess

from .comparison import Row, column, interleave
from .programs import DRAFT, Failure, empty_files, run, timed

FILES, FILE_SIZE = 1000, 100_000


def resident(*command):
    """Returns the peak of a program's resident memory in MiB."""
    process, peak = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL), 0
    while process.poll() is None:
        # The maximum in the resource usage would include that of this program before exec.
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            found = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())
            peak = max(peak, int(found.group(1)) if found else 0)
            process.wait(0.02)
    if process.returncode:
        raise Failure(f"{command[1]}: status {process.returncode}")
    return peak / 1024


def client(bench):
    """Measures the upload and the download of 1 GiB, 1,000 files of 100 kB by one command, and the memory for 5 GiB."""
    programs, onward = bench.programs, bench.onward
    os.environ["XDG_STATE_HOME"] = str(programs.fresh("state"))
    source = programs.source(1024)
    folder = programs.fresh("files")
    folder.mkdir()
    files = [folder / f"{number:04}" for number in range(FILES)]
    for file in files:
        file.write_bytes(os.urandom(FILE_SIZE))
    fields = [part for field in (*DRAFT, "Expect:") for part in ("-H", field)]

    def curl_files(server):
        config = programs.fresh("config")
        config.write_text("".join(
            f'upload-file = "{file}"\nurl = "{server.url}curl/"\noutput = "/dev/null"\n' for file in files))
        return ["curl", "-sS", "--no-progress-meter", "--fail", "--parallel", *fields, "-K", config]

    order = itertools.cycle([1, -1])

    def measure():
        seconds = {}
        copy = programs.fresh("copy")
        with programs.serve() as server:
            commands = {
                "curl up": ["curl", "-sS", "--fail", "-T", source, *fields, f"{server.url}curl-1"],
                "onward up": [onward, "put", "--quiet", source, f"{server.url}onward-1"],
                "curl down": ["curl", "-sS", "--fail", "-o", f"{copy}-curl", f"{server.url}curl-1"],
                "onward down": [onward, "get", "--quiet", f"{server.url}curl-1", "-o", f"{copy}-onward"],
                # curl leaves the file in the page cache; the client makes it durable.
                "durable down": [
                    "sh", "-c", f"curl -sS --fail -o '{copy}-durable' {server.url}curl-1 && sync '{copy}-durable'"],
                "curl files": curl_files(server),
                "onward files": [onward, "put", "--quiet", *files, f"{server.url}onward/"],
                # The load generator saves each URL: the minimum work of a client that sends no file twice after a crash.
                "floor files": programs.load_command(
                    server, "create", "/files/floor/", 16, FILES, FILE_SIZE, M="POST", a=programs.fresh("list")),
            }
            # The order of the commands alternates between the runs.
            names, step = list(commands), next(order)
            for name in (name for part in (names[:2], names[2:5], names[5:]) for name in part[::step]):
                os.sync()
                programs.warm_memory(1536)
                seconds[name] = timed(*commands[name])
            for name in ("curl", "onward", "floor"):
                if len(os.listdir(server.root / "files" / name)) != FILES:
                    raise Failure(f"{name} has not uploaded all files")
        empty_files(server.root)
        for name in ("curl", "onward", "durable"):
            os.truncate(f"{copy}-{name}", 0)
        return seconds

    results = interleave(bench.runs, {"all": measure})["all"]
    for key, work in [("up", "upload of 1 GiB by the client"), ("down", "download of 1 GiB by the client"),
                      ("files", "1,000 files of 100 kB by one `onward put`")]:
        yield Row("client", work, column(results, f"onward {key}"), "s",
                  "curl --parallel" if key == "files" else "curl", column(results, f"curl {key}"), "<=", 1.05)
    yield Row("client", "download of 1 GiB by the client", column(results, "onward down"), "s",
              "curl + sync", column(results, "durable down"))
    work, floor = "1,000 files of 100 kB by the load generator, which saves each URL", column(results, "floor files")
    yield Row("client", work, floor, "s", "curl --parallel", column(results, "curl files"))
    yield Row("client", "1,000 files of 100 kB by one `onward put`", column(results, "onward files"), "s",
              "load generator, which saves each URL", floor)
    with programs.serve() as server:
        large, copy = programs.fresh("large"), programs.fresh("copy")
        with open(large, "wb") as file:
            file.truncate(5 << 30)
        memory = resident(onward, "put", "--quiet", large, f"{server.url}large")
        yield Row("client", "resident memory of `onward put` for 5 GiB", [memory], "MiB")
        memory = resident(onward, "get", "--quiet", f"{server.url}large", "-o", copy)
        yield Row("client", "resident memory of `onward get` for 5 GiB", [memory], "MiB")
        os.truncate(copy, 0)
    empty_files(server.root)


def folders(bench):
    """Measures the transfer of a folder with 10,000 files of 10 kB by one command."""
    programs, onward = bench.programs, bench.onward
    os.environ["XDG_STATE_HOME"] = str(programs.fresh("state"))
    count, size = 10_000, 10_000
    folder = programs.fresh("folder")
    names = [f"{number // 1000}/{number:05}" for number in range(count)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(os.urandom(size))

    def curl_files(lines):
        config = programs.fresh("config")
        config.write_text("".join(lines))
        return ["curl", "-sS", "--no-progress-meter", "--fail", "--parallel", "--create-dirs", "-H", "Expect:", "-K", config]

    order = itertools.cycle([1, -1])

    def measure():
        copy, seconds = programs.fresh("copy"), {}
        with programs.serve() as server:
            puts = (f'upload-file = "{folder}/{name}"\nurl = "{server.url}curl/{name}"\n' for name in names)
            gets = (f'url = "{server.url}curl/{name}"\noutput = "{copy}-curl/{name}"\n' for name in names)
            commands = {
                "curl up": curl_files(puts),
                "onward up": [onward, "put", "--quiet", "-r", folder, f"{server.url}onward/"],
                "curl down": curl_files(gets),
                "onward down": [onward, "get", "--quiet", "-r", f"{server.url}curl/", f"{copy}-onward"],
            }
            step = next(order)
            for direction in ("up", "down"):
                for program in ("curl", "onward")[::step]:
                    os.sync()
                    seconds[f"{program} {direction}"] = timed(*commands[f"{program} {direction}"])
            for root in (server.root / "files/curl", server.root / "files/onward", f"{copy}-curl", f"{copy}-onward"):
                if sum(len(files) for _, _, files in os.walk(root)) != count:
                    raise Failure(f"{root} does not have all files")
        return seconds

    results = interleave(bench.runs, {"all": measure})["all"]
    for direction, command in (("up", "onward put -r"), ("down", "onward get -r")):
        rates = {name: [count / value for value in column(results, f"{name} {direction}")] for name in ("onward", "curl")}
        yield Row("folders", f"10,000 files of 10 kB by one `{command}`", rates["onward"], "files/s", "curl --parallel",
                  rates["curl"], ">=", 0.9, is_rate=True)
