import CommandLineInterface

extension Onward {
    static let version = "0.1.0"

    /// The source of help, manual pages and completions.
    static let manual = ProgramManual(
        "onward", version: version, date: "2026-11-21", "move big files over HTTP without ever starting again",
        """
        Onward uploads and downloads big files over bad networks, and serves them. After an
        interruption (Ctrl-C, kill -9, a reboot) run the same command again to resume. It
        implements the IETF draft "Resumable Uploads for HTTP".
        """,
        commands: commands.map(\.page),
        conclusion: ManualSection(
            "Exit status",
            [.paragraph("Exit status of put, get, resume, status and cancel:")] + ClientManual.exitStatus.blocks),
        sections: [
            ClientManual.files,
            ManualSection(
                "Examples",
                [
                    .paragraph("Serve a directory on this machine; send a file there, and get it back:"),
                    .example(
                        """
                        onward serve --root ./onward-data
                        onward put big.bin http://127.0.0.1:8080/files/big.bin
                        onward get http://127.0.0.1:8080/files/big.bin -o copy.bin
                        """),
                ]),
        ])
}
