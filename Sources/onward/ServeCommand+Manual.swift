import CommandLineInterface

extension ServeCommand {
    static let page = ManualPage(
        "serve", "serve resumable uploads and Range downloads", usage: ["serve [OPTIONS]"],
        """
        Serves resumable uploads and Range downloads. Every option is also a variable of
        the environment: --max-size is ONWARD_MAX_SIZE. Sizes take K M G T (powers of
        1000) and KiB MiB GiB TiB (of 1024), durations s m h d.
        """,
        options: ServeSettings.options.map(\.manual),
        sections: [
            ManualSection(
                "Data directory",
                [
                    .terms([
                        ("files/", "what was published: plain files under their own names"),
                        ("uploads/", "the bytes of unfinished uploads"),
                        ("onward.sqlite", "their state"),
                    ])
                ]),
            ManualSection(
                "Signals",
                [
                    .terms([
                        (
                            "SIGTERM, SIGINT",
                            """
                            make durable what unfinished uploads have sent, close their connections, give answers under way
                            --drain-timeout, and end; a second one ends at once. Clients go on after the restart.
                            """
                        ),
                        ("SIGHUP", "reads certificate, key and token file again"),
                    ])
                ]),
            ManualSection(
                "Exit status",
                [
                    .terms([
                        ("0", "stopped as asked"),
                        (
                            "64",
                            """
                            wrong usage, a token file that cannot be used, or an address beyond this machine with neither
                            --token-file nor --allow-anonymous
                            """
                        ),
                        ("69", "an address cannot be listened on"),
                        ("71", "the system refuses what the server needs, such as a thread"),
                        ("74", "the data directory cannot be used"),
                        ("75", "another server uses the data directory"),
                    ])
                ]),
            ManualSection(
                "Examples",
                [
                    .paragraph("Behind a proxy that speaks TLS, for those who have a token:"),
                    .example(
                        """
                        onward serve --root /srv/onward --token-file /etc/onward/tokens --max-size 100G --quota 1T
                        """),
                ]),
        ])
}
