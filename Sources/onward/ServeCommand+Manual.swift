import CommandLineInterface

extension ServeCommand {
    static let page = ManualPage(
        "serve", "serve resumable uploads and Range downloads", usage: ["serve [OPTIONS]"],
        """
        Serves resumable uploads and Range downloads. Every option has an environment
        variable: --max-size is ONWARD_MAX_SIZE. Sizes have units K M G T (powers of
        1000) and KiB MiB GiB TiB (of 1024), durations s m h d.
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
                    ])
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
                        ("SIGHUP", "read the certificate, the key and the token file again"),
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
                            wrong usage, an unusable token file, or an address beyond this machine with neither
                            --token-file nor --allow-anonymous
                            """
                        ),
                        ("69", "cannot listen on an address"),
                        ("71", "the system cannot provide something that the server needs, such as a thread"),
                        ("74", "unusable data directory"),
                        ("75", "another server uses the data directory"),
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
