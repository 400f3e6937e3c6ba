import CommandLineInterface

extension Onward {
    static let version = "0.1.0"

    /// What help, manual pages and completions are made of.
    static let manual = ProgramManual(
        "onward", version: version, date: "2026-11-21", "move big files over HTTP without ever starting again",
        """
        Onward uploads and downloads big files over bad networks, and serves them. Run the same
        command again and it goes on where it stopped: after Ctrl-C, after kill -9, after a
        reboot. It speaks the IETF draft "Resumable Uploads for HTTP".
        """,
        commands: commands.map(\.page),
        conclusion: ManualSection(
            "Exit status",
            [.paragraph("What put, get, resume, status and cancel end with:")] + ClientManual.exitStatus.blocks),
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
