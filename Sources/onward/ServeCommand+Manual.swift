import CommandLineInterface

extension ServeCommand {
    static let page = ManualPage(
        "serve", "serve resumable uploads, and downloads with ranges", usage: ["serve [OPTIONS]"],
        """
        Serves resumable uploads, and downloads with ranges. Every option has an
        environment variable, for example ONWARD_MAX_SIZE for --max-size. Sizes have units
        K M G T (powers of 1000) and KiB MiB GiB TiB (of 1024), durations s m h d.

        SIGTERM and SIGINT stop the server; SIGHUP makes it read the certificate, the key, the
        token file and the secrets of events again.

        Exit status: 0 stopped as requested; 64 wrong usage; 69 cannot listen on an address; 71 the
        system cannot provide something that the server needs, such as a thread; 74 unusable data
        directory; 75 another process uses the data. 'man onward-serve' has more details.
        """,
        options: ServeSettings.options.map(\.manual),
        sections: [
            ManualSection(
                "Data directory",
                [
                    .terms([
                        ("files/", "published files under their own names"),
                        ("uploads/", "the bytes of unfinished uploads"),
                        ("onward.sqlite", "the catalog: the state of uploads and files"),
                        ("retained/", "requests to applications whose outcome is unknown"),
                    ])
                ]),
            ManualSection(
                "Routes",
                [
                    .paragraph(
                        """
                        --route PATH=ORIGIN,SETTING,... forwards all requests to PATH and below to an application. A resumable
                        upload is forwarded when it is complete, as one ordinary request. ORIGIN is http://HOST:PORT,
                        https://HOST:PORT or unix:/PATH. In the file of --routes-file each line is a route, spaces may replace
                        the commas, and # begins a comment. The settings are:
                        """),
                    .terms([
                        (
                            "access=open",
                            "all clients may use the route; without it, --token-file or --auth-url authorizes them"
                        ),
                        (
                            "repeat=safe",
                            """
                            a complete upload may be sent more than once, with the same Idempotency-Key; without this setting
                            the upload is sent again only after a response with 503
                            """
                        ),
                        (
                            "handover=DIR",
                            """
                            the application gets the path of a complete upload in Onward-Path instead of its content, and can
                            move the file to another place before it responds. DIR is an absolute path in the mount of the data directory;
                            it belongs to the user of the server and to a group of the application, with mode 2710
                            """
                        ),
                        (
                            "timeout=DURATION",
                            "maximum time in which no byte moves between the server and the application [default: 60s]"
                        ),
                        (
                            "retry=DURATION",
                            """
                            maximum time for which a request waits if the application cannot be reached or responds with 503
                            [default: 10s]
                            """
                        ),
                    ]),
                ]),
            ManualSection(
                "Checks before publication",
                [
                    .paragraph(
                        """
                        --check DESTINATION,SETTING,... passes each complete file of /files/ to a program or a URL before the
                        file appears. DESTINATION is the absolute path of a program, or a URL (http, https, or
                        unix:/SOCKET:/PATH). A program gets the file on standard input, and a description of the file in
                        variables ONWARD_CHECK_...; a URL gets the file with POST. Exit status 0, or a status of 2xx, accepts the
                        file. Exit status 1 with a reason on standard output, a status of 422, or a problem document with
                        another 4xx (except 401, 407, 408, 425 and 429) refuses the file, which is removed. In all other
                        cases the check has failed: the file of a resumable upload is kept, and is checked again when the
                        client repeats its request. The settings are:
                        """),
                    .terms([
                        (
                            "timeout=DURATION",
                            "maximum time of a check, and of the wait for other checks [default: 60s]"
                        ),
                        ("max=N", "maximum number of checks at the same time [default: 8]"),
                    ]),
                ]),
            ManualSection(
                "Events",
                [
                    .paragraph(
                        """
                        --events DESTINATION,SETTING,... reports changes of uploads. DESTINATION is a URL (http, https, or
                        unix:/SOCKET:/PATH) or the absolute path of a program. A URL gets a CloudEvent with the fields of
                        Standard Webhooks. A program gets the CloudEvent on standard input, and ends with status 0 if it has
                        received the event. An event can be delivered more than once. The settings are:
                        """),
                    .terms([
                        ("timeout=DURATION", "maximum time of one attempt [default: 30s]"),
                        (
                            "retry=DURATION",
                            "time after which an event that cannot be delivered is set aside [default: 24h]"
                        ),
                        ("keep=DURATION", "time after which an event is dropped [default: 7d]"),
                        ("max=N", "maximum number of events; the oldest are dropped [default: 1000000]"),
                        ("source=URI", "attribute source of the CloudEvents [default: onward]"),
                    ]),
                    .paragraph("'onward events' lists, retries and drops events that could not be delivered."),
                ]),
            ManualSection(
                "Signals",
                [
                    .terms([
                        (
                            "SIGTERM, SIGINT",
                            """
                            make received content of unfinished uploads durable, close their connections, wait for responses in
                            progress up to --drain-timeout, and exit; a second signal exits at once. Clients resume after
                            the restart.
                            """
                        ),
                        ("SIGHUP", "read the certificate, the key, the token file and the secrets of events again"),
                    ])
                ]),
            ManualSection(
                "Exit status",
                [
                    .terms([
                        ("0", "stopped as requested"),
                        (
                            "64",
                            """
                            wrong usage; an unusable file that an option names (token file, certificate, key, secrets of events,
                            routes, programs of --check and --events); or an address that other machines can reach, without any
                            of --token-file, --auth-url, --route, --routes-file and --allow-anonymous
                            """
                        ),
                        ("69", "cannot listen on an address"),
                        ("71", "the system cannot provide something that the server needs, such as a thread"),
                        (
                            "74",
                            """
                            unusable data directory, unusable directory of handover=, or with --catalog a database that cannot
                            be used, for example because a newer version has changed its tables
                            """
                        ),
                        (
                            "75",
                            """
                            another server uses the data directory, or with --catalog a running 'onward migrate --back' uses
                            the data
                            """
                        ),
                    ])
                ]),
            ManualSection(
                "Examples",
                [
                    .paragraph("Behind a proxy with TLS, for clients with a token:"),
                    .example(
                        """
                        onward serve --root /srv/onward --token-file /etc/onward/tokens --max-size 100G --quota 1T
                        """),
                ]),
        ])
}
