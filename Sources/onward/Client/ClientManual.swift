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
                ("69", "the server refused for good or lost what it had, or there is no such host"),
                ("70", "our fault"),
                ("74", "local input or output"),
                (
                    "75",
                    "not done for now: the same command goes on, or begins anew where nothing is\nkept; or it is running already"
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
                    What is needed to go on, a file for each transfer, readable by its owner alone and removed when
                    the transfer is done; ~/.local/state/onward where the variable is unset. No credentials are kept.
                    """
                )
            ])
        ])

    /// The names that `onward status` shows.
    static let states = Completion.lines(
        #"onward status --json 2>/dev/null | sed -n 's/^{"state":"\([^"\\]*\)".*/\1/p'"#)
}
