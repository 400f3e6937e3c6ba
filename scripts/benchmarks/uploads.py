"""Compares small and large uploads with nginx, which never synchronizes, with `cp`, and with the floors."""
import base64, hashlib, os, time

from .comparison import Row, best, column, interleave
from .programs import DRAFT, Failure, curl, empty_files, run, timed

RELAXED = ["--durability", "relaxed"]
GIB = 1 << 30


def small(bench):
    """Measures uploads of 4 KiB, each of which creates a file: rates with 64, 16 and 1 connections, and the server's CPU time."""
    programs, size = bench.programs, 4096

    def upload(server, connections, requests):
        kind = "put" if server.name == "nginx" else "create"
        name = f"small-{time.monotonic_ns()}-%"
        programs.load(server, kind, "w" + name, connections=connections, requests=4 * connections, size=size)
        return programs.load(server, kind, name, connections=connections, requests=requests, size=size)

    # Before each run everything is written to the disk: a synchronization also writes what earlier runs have left.
    def of(start, *numbers):
        def measure():
            os.sync()
            with start() as server:
                return upload(server, *numbers)
        return measure

    def floor_run(requests, connections, mode):
        os.sync()
        return programs.floor(requests, size, connections, mode)

    def floor(connections, requests):
        return lambda: max(
            (floor_run(requests, connections, mode) for mode in ("fdatasync", "syncfs")), key=lambda result: result["rate"])

    def relaxed_server():
        return programs.serve(*RELAXED)

    variants = {}
    for connections, durable, relaxed in [(64, 1500, 4000), (16, 800, 4000), (1, 100, 1000)]:
        variants[f"durable {connections}"] = of(programs.serve, connections, durable)
        variants[f"floor {connections}"] = floor(connections, durable // 2)
        variants[f"HTTP floor {connections}"] = of(lambda: programs.small_upload_floor("durable"), connections, durable)
        variants[f"relaxed {connections}"] = of(relaxed_server, connections, relaxed)
        variants[f"nginx {connections}"] = of(programs.nginx, connections, 2 * relaxed)
        variants[f"HTTP floor relaxed {connections}"] = of(
            lambda: programs.small_upload_floor("relaxed"), connections, relaxed)
        variants[f"floor relaxed {connections}"] = lambda c=connections, n=2 * relaxed: floor_run(n, c, "relaxed")
        for peer in bench.peers:
            variants[f"{peer.name} {connections}"] = lambda p=peer, c=connections, n=relaxed: upload(p, c, n)
    variants["complete floor"] = of(lambda: programs.small_upload_floor("relaxed", "complete"), 16, 4000)
    results = interleave(bench.runs, variants)

    def row(work, name, key, reference, others, **options):
        return Row("small", work, column(results[name], key), "/s" if key == "rate" else "µs", reference,
                   column(results[others], key), is_rate=key == "rate", **options)

    for connections in (64, 16, 1):
        plural = "connections" if connections > 1 else "connection"
        target = {"relation": ">=", "limit": 0.7} if connections == 64 else {}
        work = f"4 KiB uploads, {connections} {plural}, durable"
        yield row(work, f"durable {connections}", "rate", "floor", f"floor {connections}", **target)
        yield row(work, f"durable {connections}", "rate", "HTTP floor", f"HTTP floor {connections}")
        yield row(f"4 KiB uploads by the HTTP floor, {connections} {plural}, durable", f"HTTP floor {connections}", "rate",
                  "floor", f"floor {connections}")
    for connections in (64, 16, 1):
        plural = "connections" if connections > 1 else "connection"
        target = {"relation": ">=", "limit": 0.4} if connections == 16 else {}
        work, name = f"4 KiB uploads, {connections} {plural}, relaxed", f"relaxed {connections}"
        yield row(work, name, "rate", "nginx", f"nginx {connections}", **target)
        yield row(work, name, "rate", "HTTP floor", f"HTTP floor relaxed {connections}")
        for peer in bench.peers:
            target = {"relation": ">=", "limit": 1} if connections == 16 else {}
            yield row(work, name, "rate", peer.name, f"{peer.name} {connections}", **target)
    yield row("4 KiB uploads, 64 connections, relaxed", "relaxed 64", "rate", "relaxed floor", "floor relaxed 64")
    work = "server's CPU time for each 4 KiB upload, 16 connections, relaxed"
    yield row(work, "relaxed 16", "server_cpu", "nginx", "nginx 16", relation="<=", limit=1.6)
    yield row(work, "relaxed 16", "server_cpu", "HTTP floor", "HTTP floor relaxed 16")
    # The complete floor publishes each batch before it begins the next one, so only its CPU time is comparable.
    yield row(work, "relaxed 16", "server_cpu", "complete floor", "complete floor")
    for reference, name in ("HTTP floor", "HTTP floor relaxed 16"), ("complete floor", "complete floor"):
        yield Row("small", f"CPU time of the {reference} for each 4 KiB upload, 16 connections, relaxed",
                  column(results[name], "server_cpu"), "µs", "nginx", column(results["nginx 16"], "server_cpu"))
    for peer in bench.peers:
        yield row(work, "relaxed 16", "server_cpu", peer.name, f"{peer.name} 16", relation="<=", limit=1)
    yield Row("small", "CPU time of the load generator for each 4 KiB upload",
              column(results["relaxed 16"], "client_cpu"), "µs", "that of the server",
              column(results["relaxed 16"], "server_cpu"))


def large(bench):
    """Measures an upload of 1 GiB in one request, and 64 concurrent uploads of 64 MiB."""
    programs = bench.programs
    source, part = programs.source(1024), programs.source(64)
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read())
    digest = f"Repr-Digest: sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    tls = programs.certificate()

    def settle(root):
        # The pages of one run are not written during the next one.
        if root:
            empty_files(root)
        os.sync()

    def measured(start, size, action, count=1, **options):
        def measure():
            # Half of the size more, for what the kernel and the programs use.
            programs.warm_memory((size * count >> 20) * 3 // 2)
            os.sync()
            with start(**options) as server:
                cpu = server.cpu()
                seconds = action(server)
                cpu = server.cpu() - cpu
                if server.root and server.name != "floor" and (server.root / "files" / "large-0").stat().st_size != size:
                    raise Failure("the file has a wrong size")
            settle(server.root)
            return {"seconds": seconds, "cpu": cpu}
        return measure

    def by_curl(start, *fields, **options):
        fields = [part for field in fields for part in ("-H", field)]

        def upload(server):
            trust = ["--cacert", tls[0]] if options else []
            return timed(*curl(*trust, "-T", source, *fields, *server.curl_target("large-0")))
        return measured(start, GIB, upload, **options)

    def by_load(start, connections):
        def upload(server):
            return programs.load(
                server, "put" if server.name in ("nginx", "floor") else "create", "large-%", connections=connections,
                requests=connections, size=GIB if connections == 1 else 64 << 20,
                file=source if connections == 1 else part)["seconds"]
        return measured(start, GIB if connections == 1 else 64 << 20, upload, count=connections)

    def copy():
        programs.warm_memory(1536)
        os.sync()
        target = programs.fresh("copy")
        target.mkdir()
        begun = time.perf_counter()
        run("cp", source, target / "copy")
        run("sync", target / "copy")
        seconds = time.perf_counter() - begun
        settle(target)
        return {"seconds": seconds}

    def relaxed(**options):
        return programs.serve(*RELAXED, **options)

    def digest_alone():
        return {"seconds": timed(programs.directory / "upload_floor", "digest")}

    variants = {
        "nginx": by_curl(programs.nginx),
        "relaxed": by_curl(relaxed, *DRAFT),
        "durable": by_curl(programs.serve, *DRAFT),
        "plain": by_curl(programs.serve),
        "digest": by_curl(relaxed, *DRAFT, digest),
        "copy": copy,
        "tls": by_curl(relaxed, *DRAFT, tls=tls),
        "nginx tls": by_curl(programs.nginx, tls=tls),
        "load": by_load(relaxed, 1),
        "nginx load": by_load(programs.nginx, 1),
        "many": by_load(relaxed, 64),
        "nginx many": by_load(programs.nginx, 64),
        "floor many": by_load(lambda: programs.upload_floor("relaxed"), 64),
        "digest alone": digest_alone,
        "floor tls": by_curl(lambda tls: programs.upload_floor("tls", tls), tls=tls),
    }
    for mode in ("relaxed", "durable", "digest"):
        variants[f"floor {mode}"] = by_curl(lambda mode=mode: programs.upload_floor(mode))
    for peer in bench.peers:
        version = f"Upload-Draft-Interop-Version: {peer.interop}"
        variants[peer.name] = by_curl(peer.started, "Upload-Complete: ?1", version)
        variants[f"{peer.name} many"] = by_load(peer.started, 64)
    results = interleave(bench.runs, variants)

    def seconds(name):
        return column(results[name], "seconds")

    names = ["nginx", *(peer.name for peer in bench.peers)]
    reference = "nginx" if len(names) == 1 else "best of " + ", ".join(names)
    fastest = best(*(seconds(name) for name in names), is_rate=False)
    fastest_many = best(*(seconds(f"{name} many") for name in names), is_rate=False)
    yield Row("large", "1 GiB upload by curl, relaxed", seconds("relaxed"), "s", reference, fastest, "<=", 0.9)
    yield Row("large", "1 GiB upload by curl, durable", seconds("durable"), "s", "cp + sync", seconds("copy"), "<=", 1.1)
    yield Row("large", "1 GiB upload by curl, durable", seconds("durable"), "s", reference, fastest)
    yield Row("large", "1 GiB upload by curl, durable", seconds("durable"), "s", "floor", seconds("floor durable"))
    yield Row("large", "the floor's 1 GiB upload by curl, durable", seconds("floor durable"), "s", "cp + sync", seconds("copy"))
    yield Row("large", "1 GiB as a plain PUT by curl, durable", seconds("plain"), "s", "nginx", seconds("nginx"))
    yield Row("large", "1 GiB upload by curl with Repr-Digest, relaxed", seconds("digest"), "s", "without it", seconds("relaxed"),
              "<=", 1.3)
    yield Row("large", "1 GiB upload by curl with Repr-Digest, relaxed", seconds("digest"), "s", "floor",
              seconds("floor digest"))
    yield Row("large", "the floor's 1 GiB upload by curl with a digest", seconds("floor digest"), "s", "without it",
              seconds("floor relaxed"))
    # With any number of processors, the digest needs at least this time.
    yield Row("large", "SHA-256 of 1 GiB in memory, without an upload", seconds("digest alone"), "s",
              "1 GiB upload by curl, relaxed", seconds("relaxed"))
    yield Row("large", "1 GiB upload over TLS by curl, relaxed", seconds("tls"), "s", "nginx", seconds("nginx tls"),
              "<=", 1)
    yield Row("large", "1 GiB upload over TLS by curl, relaxed", seconds("tls"), "s", "floor", seconds("floor tls"))
    yield Row("large", "the floor's 1 GiB upload over TLS by curl", seconds("floor tls"), "s", "nginx", seconds("nginx tls"))
    yield Row("large", "64 uploads of 64 MiB at once, relaxed", [4096 / value for value in seconds("many")], "MiB/s",
              reference, [4096 / value for value in fastest_many], ">=", 1.1, is_rate=True)
    yield Row("large", "64 uploads of 64 MiB at once, relaxed", [4096 / value for value in seconds("many")], "MiB/s",
              "floor", [4096 / value for value in seconds("floor many")], is_rate=True)
    yield Row("large", "the floor's 64 uploads of 64 MiB at once", [4096 / value for value in seconds("floor many")], "MiB/s",
              "nginx", [4096 / value for value in seconds("nginx many")], is_rate=True)
    yield Row("large", "1 GiB upload by the load generator (sendfile), relaxed", seconds("load"), "s", "nginx",
              seconds("nginx load"))
    for suffix, what in ("", "by curl"), (" load", "by the load generator"):
        own = results["load" if suffix else "relaxed"]
        yield Row("large", f"server's CPU time for a 1 GiB upload {what}, relaxed", column(own, "cpu"), "s", "nginx",
                  column(results[f"nginx{suffix}"], "cpu"))
