/// One line of a terminal that is written again and again.
struct TerminalLine: Sendable, Hashable {
    /// Columns of what stands there now; 0: nothing.
    private(set) var shown = 0

    /// What to write so that `text` takes the place of what stood there.
    /// - Parameter columns: of the window now.
    mutating func replace(with text: String, columns: Int) -> String {
        let erasure = erase(columns: columns)
        shown = DisplayText.width(text)
        return erasure + text
    }

    /// What to write so that nothing stands there.
    ///
    /// A window that has become narrower may have wrapped the old text: its first row lies above the cursor's.
    mutating func erase(columns: Int) -> String {
        guard shown > 0 else { return "" }
        let rows = columns > 0 ? (shown - 1) / columns : 0
        shown = 0
        return "\r" + (rows > 0 ? "\u{1B}[\(rows)A" : "") + "\u{1B}[J"
    }
}
