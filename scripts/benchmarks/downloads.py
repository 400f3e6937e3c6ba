"""Compares downloads of large and of small files with nginx, which uses sendfile."""
from .comparison import Row, column, interleave
from .programs import curl, timed

GIB = 1 << 30
FLOORS = {"floor": (), "complete floor": ("complete",)}


def downloads(bench):
    """Measures downloads of 1 GiB: complete, by Range, and over TLS; and of files of 1 KiB and 100 KiB with 64 connections."""
    programs = bench.programs
    source, tls = programs.source(1024), programs.certificate()
    kinds = {"onward": programs.serve, "nginx": programs.nginx}
    roots = {}
    for name, start in kinds.items():
        with start() as server:
            roots[name] = server.root
            programs.load(server, "put", "large", size=GIB, file=source)
            for size in (1 << 10, 100 << 10):
                programs.load(server, "put", f"{size}-%", connections=16, requests=1000, size=size)

    def measured(start, action, **options):
        def measure():
            with start(**options) as server:
                return action(server)
        return measure

    def by_curl(*options):
        def download(server):
            before = server.cpu()
            seconds = timed(*curl("--cacert", tls[0], *options, f"{server.url}large"))
            return {"seconds": seconds, "cpu": server.cpu() - before}
        return download

    def discarded(server):
        return programs.load(server, "get", "large", size=GIB)

    def many(size, requests):
        return lambda server: programs.load(
            server, "get", f"{size}-%", connections=64, requests=requests, size=size, m=1000)

    actions = {
        "complete": by_curl(), "range": by_curl("-r", f"{GIB // 4}-{GIB // 4 * 3 - 1}"), "discarded": discarded,
        "1 KiB": many(1 << 10, 12000), "100 KiB": many(100 << 10, 6000),
    }
    variants = {}
    for name, start in kinds.items():
        for action in actions:
            variants[f"{action} {name}"] = measured(start, actions[action], root=roots[name])
        variants[f"tls {name}"] = measured(start, by_curl(), root=roots[name], tls=tls)
    for action in ("1 KiB", "100 KiB"):
        for floor, options in FLOORS.items():
            variants[f"{action} {floor}"] = measured(
                lambda root, options=options: programs.download_floor(root, *options), actions[action], root=roots["nginx"])
    results = interleave(bench.runs, variants)

    def row(work, action, key, unit, relation="", limit=None, reference="nginx"):
        return Row("downloads", work, column(results[f"{action} onward"], key), unit, reference,
                   column(results[f"{action} {reference}"], key), relation, limit, is_rate=key == "rate")

    yield row("download of 1 GiB by curl", "complete", "seconds", "s", "<=", 1.05)
    yield row("download of 512 MiB by Range by curl", "range", "seconds", "s", "<=", 1.05)
    yield row("download of 1 GiB over TLS by curl", "tls", "seconds", "s", "<=", 1.2)
    yield row("download of 1 GiB by the load generator, which discards it", "discarded", "seconds", "s")
    yield row("server's CPU time for a download of 1 GiB", "complete", "cpu", "s")
    yield row("downloads of 1 KiB, 64 connections", "1 KiB", "rate", "/s", ">=", 0.4)
    yield row("downloads of 100 KiB, 64 connections", "100 KiB", "rate", "/s", ">=", 0.9)
    for size in ("1 KiB", "100 KiB"):
        yield row(f"server's CPU time for each download of {size}", size, "server_cpu", "µs")
    # The floors use libmicrohttpd with a thread for each connection. The difference is the work of Onward.
    for floor in FLOORS:
        yield row("downloads of 1 KiB, 64 connections", "1 KiB", "rate", "/s", reference=floor)
        yield row("downloads of 100 KiB, 64 connections", "100 KiB", "rate", "/s", reference=floor)
        yield row("server's CPU time for each download of 100 KiB", "100 KiB", "server_cpu", "µs", reference=floor)
        for work, key, unit in ("downloads of 100 KiB by the {}, 64 connections", "rate", "/s"), (
                "CPU time of the {} for each download of 100 KiB", "server_cpu", "µs"):
            yield Row("downloads", work.format(floor), column(results[f"100 KiB {floor}"], key), unit, "nginx",
                      column(results["100 KiB nginx"], key), is_rate=key == "rate")
