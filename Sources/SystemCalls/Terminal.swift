import Glibc

/// The terminal behind a descriptor.
package enum Terminal {
    /// Whether the descriptor is one (isatty(3)).
    package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Columns of the window, as of now; `nil` where the terminal does not know, or there is none.
    package static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}
