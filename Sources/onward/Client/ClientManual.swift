import CommandLineInterface

/// What the manual pages of all client commands have.
enum ClientManual {
    static let exitStatus = ManualSection(
        "Exit status",
        [
            .terms([
                ("0", "done"),
                ("64", "wrong usage"),
                ("65", "the source has changed since its upload began"),
                ("66", "no such source, or it cannot be opened; no such state"),
                ("69", "the server refused permanently or lost acknowledged bytes, or the host does not exist"),
                ("70", "internal error"),
                ("74", "local I/O error"),
                (
                    "75",
                    "temporary failure: run the same command again to resume; or the\ntransfer is already running"
                ),
                ("77", "the server does not allow it"),
            ])
        ])

    static let files = ManualSection(
        "Files",
        [
            .terms([
                (
                    "$XDG_STATE_HOME/onward",
                    """
                    A state file for each interrupted transfer, readable by its owner only and removed when the
                    transfer is complete; ~/.local/state/onward if the variable is not set. It has no credentials.
                    """
                )
            ])
        ])

    /// The names that `onward status` shows.
    static let states = Completion.lines(
        #"onward status --json 2>/dev/null | sed -n 's/^{"state":"\([^"\\]*\)".*/\1/p'"#)
}
