import CommandLineInterface

extension OnwardConformance {
    /// What help, manual pages and completions are made of.
    static let manual = ProgramManual(
        "onward-conformance", version: "0.1.0", date: "2026-11-21",
        "verify implementations of Resumable Uploads for HTTP",
        """
        Verifies implementations of the IETF draft "Resumable Uploads for HTTP" from outside, by
        cases that each name the requirements they stand for, and shows the bytes that prove a
        failure.
        """,
        commands: [ServerCommand.page, ClientCommand.page, ProxyCommand.page, MatrixCommand.page, list],
        conclusion: exitStatus)

    static let list = ManualPage(
        "list", "all cases, and the requirements that each covers", usage: ["list"],
        "Lists all cases, the requirements that each covers, and those that none does.")

    static let exitStatus = ManualSection(
        "Exit status",
        [
            .terms([
                ("0", "no MUST failed (--strict: no SHOULD)"), ("1", "one did"), ("2", "it could not be verified"),
                ("74", "standard output could not be written"),
            ])
        ])
}

extension ServerCommand {
    static let page = ManualPage(
        "server", "verify the server that takes uploads at URL", usage: ["server [OPTIONS] [URL]"],
        """
        Verifies the server that takes uploads at URL, or the one that --start starts.
        {name} in URL is replaced by another name for every creation.
        """,
        options: ServerOptions.table.map(\.manual),
        sections: [
            OnwardConformance.exitStatus,
            ManualSection(
                "Examples",
                [
                    .example(
                        """
                        onward-conformance server http://127.0.0.1:8080/files/
                        onward-conformance server --html report.html \\
                          --start 'exec onward serve --root {root} --listen 127.0.0.1:{port}'
                        """)
                ]),
        ])
}

extension ClientCommand {
    static let page = ManualPage(
        "client", "verify a client, with scripted servers, good and bad",
        usage: ["client [OPTIONS]"],
        """
        Verifies a client with scripted servers, good and bad. In its commands {file} and {url}
        are replaced, and {state} by a directory that lives as long as a scenario: what the
        command has to remember from run to run belongs there. It ends with 0 where the
        transfer succeeded.
        """,
        options: ClientOptions.table.map(\.manual),
        sections: [
            OnwardConformance.exitStatus,
            ManualSection(
                "Examples",
                [
                    .example(
                        """
                        onward-conformance client \\
                          --command 'XDG_STATE_HOME={state} onward put {file} {url}'
                        """)
                ]),
        ])
}

extension ProxyCommand {
    static let page = ManualPage(
        "proxy", "report what the proxy at URL does to uploads, and which settings fit", usage: ["proxy [OPTIONS] URL"],
        """
        Puts the proxy at URL between a client and a server of its own (--upstream-port), or
        asks a server that is deployed behind it, and reports what becomes of interim responses,
        bodies, aborts and early answers. The answer ends with the settings that fit.
        """,
        options: ProxyOptions.table.map(\.manual),
        sections: [
            ManualSection(
                "Examples",
                [
                    .example(
                        """
                        onward-conformance proxy --upstream-port 8080 http://127.0.0.1:80/
                        onward-conformance proxy https://files.example/files/
                        """)
                ])
        ])
}

extension MatrixCommand {
    static let page = ManualPage(
        "matrix", "subjects against sections in Markdown, from reports in JSON",
        usage: ["matrix [NAME=]FILE..."],
        """
        Writes a table in Markdown that has the subjects of the reports in its columns and the
        sections of the draft in its lines.
        """)
}
