"""Compares requests through a route with nginx as a reverse proxy, and with a floor. The origin is another nginx."""
import os

from .comparison import Row, column, interleave
from .programs import DRAFT, curl, empty_files, timed


def gateway(bench):
    """Measures GET requests without content, and uploads of 1 GiB, resumable and plain."""
    programs = bench.programs
    source = programs.source(1024)
    upload = ["-X", "PUT", "-T", source]
    with programs.nginx() as origin:
        kinds = {
            "onward": lambda: programs.serve(
                "--durability", "relaxed", "--route", f"/app={origin.origin},access=open"),
            "nginx": lambda: programs.nginx(origin=origin), "floor": lambda: programs.gateway_floor(origin),
        }

        def get(start, connections):
            def measure():
                with start() as server:
                    # The connections to the origin are made before the measurement.
                    for requests in (10 * connections, 20_000):
                        result = programs.load(server, "get", "/app/hello", connections=connections, requests=requests)
                    return result
            return measure

        def put(start, *fields):
            fields = [part for field in fields for part in ("-H", field)]

            def measure():
                # The proxy and the origin store 1 GiB each.
                programs.warm_memory(3072)
                os.sync()
                with start() as server:
                    before = server.cpu()
                    seconds = timed(*curl(*upload, *fields, f"{server.origin}/app/large"))
                    result = {"seconds": seconds, "cpu": server.cpu() - before}
                empty_files(origin.root)
                return result
            return measure

        variants = {f"{c} {name}": get(start, c) for c in (16, 64) for name, start in kinds.items()}
        variants["resumable"] = put(kinds["onward"], *DRAFT)
        variants["plain"] = put(kinds["onward"])
        variants["large nginx"] = put(kinds["nginx"])
        results = interleave(bench.runs, variants)

    for connections in (16, 64):
        own = results[f"{connections} onward"]
        for reference, target in ("nginx", [">=", 0.3]), ("floor", []):
            other = results[f"{connections} {reference}"]
            yield Row("gateway", f"requests without content through a route, {connections} connections", column(own, "rate"),
                      "/s", reference, column(other, "rate"), *target, is_rate=True)
            yield Row("gateway", f"server's CPU time for each request through a route, {connections} connections",
                      column(own, "server_cpu"), "µs", reference, column(other, "server_cpu"))
    large = column(results["large nginx"], "seconds")
    yield Row("gateway", "1 GiB resumable upload through a route by curl, relaxed", column(results["resumable"], "seconds"),
              "s", "nginx", large, "<=", 1.6)
    yield Row("gateway", "1 GiB as a plain PUT through a route by curl", column(results["plain"], "seconds"), "s", "nginx",
              large)
