import Glibc

/// Properties of the terminal that a descriptor refers to.
package enum Terminal {
    /// Whether the descriptor refers to a terminal (isatty(3)).
    package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// The current number of columns; `nil` if it is unknown or there is no terminal.
    package static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}
