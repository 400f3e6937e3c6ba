import Glibc

/// The terminal behind a descriptor.
public enum Terminal {
    /// Whether the descriptor is one (isatty(3)).
    public static func isBehind(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Columns of the window, as of now; `nil` where the terminal does not know, or there is none.
    public static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}
