import CommandLineInterface

extension OnwardConformance {
    /// The source of the help, the manual pages and the completions.
    static let manual = ProgramManual(
        "onward-conformance", version: "0.2.0", date: "2026-11-22",
        "verify implementations of Resumable Uploads for HTTP",
        """
        Tests implementations of the IETF draft "Resumable Uploads for HTTP" over the network.
        Each case lists the requirements that it covers. For each failure the report shows the
        bytes that prove it.
        """,
        commands: [ServerCommand.page, ClientCommand.page, ProxyCommand.page, MatrixCommand.page, list],
        conclusion: ManualSection(
            "Exit status", [.paragraph("Exit status of server and client:")] + exitStatus.blocks))

    static let list = ManualPage(
        "list", "list all cases and the requirements that each covers", usage: ["list"],
        "Lists all cases with the requirements that each covers, and the requirements that no case covers.")

    static let exitStatus = ManualSection(
        "Exit status",
        [
            .terms([
                ("0", "no MUST failed; with --strict, no SHOULD failed either"),
                ("1", "a MUST failed; with --strict, a MUST or a SHOULD failed"),
                ("2", "the test or one of its cases could not run, or a file could not be read or written"),
                ("74", "standard output could not be written"),
            ])
        ])
}

extension ServerCommand {
    static let page = ManualPage(
        "server", "test the server that accepts uploads at URL", usage: ["server [OPTIONS] [URL]"],
        """
        Tests the server that accepts uploads at URL, or the one that --start starts.
        {name} in URL is replaced by a new name in each request that creates an upload.
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
        "client", "test a client with scripted servers, correct and faulty",
        usage: ["client [OPTIONS]"],
        """
        Tests a client with scripted servers, correct and faulty. The commands given with --command
        and --get-command must contain {file} and {url}. They may contain {state}: a directory in
        which the client stores the data that it needs to resume; each scenario has its own. A
        command has to end with 0 if the transfer succeeded, and with another status if it failed.
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
        "proxy", "test how the proxy at URL handles uploads", usage: ["proxy [OPTIONS] URL"],
        """
        Tests the proxy at URL. With --upstream-port this command is also the server behind the
        proxy; otherwise it uses the server that is deployed behind the proxy. The report shows
        how the proxy handles interim responses, content, interruptions, and responses that the
        server sends before it has received all content. The report ends with the
        recommended settings.

        Exit status: 0 uploads work, possibly with these settings; 1 they do not work; 2 the
        proxy could not be tested.
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
        "matrix", "write a table in Markdown from reports in JSON",
        usage: ["matrix [NAME=]FILE..."],
        """
        Writes a table in Markdown with one column for each FILE and one row for each section of
        the draft. FILE is a report that server or client wrote with --json. NAME is the heading
        of its column [default: the URL or the command in the report].
        """)
}
