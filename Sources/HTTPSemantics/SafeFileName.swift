/// An untrusted file name, changed so that it is safe to store, show and download on any system.
///
/// The changes are made in this order:
/// 1. Control characters, NUL included, line and paragraph separators, zero-width spaces and bidirectional controls are
///    removed.
/// 2. All components of a POSIX or Windows path except the last one are removed, and a drive is removed ("C:x" becomes
///    "x"). A path that ends with a separator has no result.
/// 3. `< > : " | ? *`, which Windows cannot store (":" would name an alternate stream), become "_".
/// 4. White space is removed at the start, and white space and dots are removed at the end. An empty name, "." and ".."
///    have no result.
/// 5. Leading dots, which would hide the file, become one "_".
/// 6. The stem is cut so that the name has at most 255 bytes of UTF-8. An extension of up to 32 bytes, dot included, is
///    kept.
/// 7. A device name of Windows (CON, PRN, AUX, NUL, COM0…9, LPT0…9, CONIN$, CONOUT$), with or without an extension,
///    gets "_" as its first character, within the same length.
///
/// A name that is safe already stays unchanged. Percent-encoding is not decoded here, because ``ContentDisposition``
/// does that.
package struct SafeFileName: Hashable, Sendable {
    package let value: String

    /// The maximum number of bytes of UTF-8.
    package static let maxLength = 255
    /// The maximum number of bytes of an extension that is kept, dot included.
    package static let maxExtensionLength = 32

    /// Creates a safe name from an untrusted one; `nil` if no usable name remains.
    package init?(sanitizing name: String) {
        let visible = name.unicodeScalars.filter { !$0.isUnsafeInFileName }
        var scalars = Array(visible)
        if let separator = scalars.lastIndex(where: { $0 == "/" || $0 == "\\" }) {
            scalars.removeFirst(separator + 1)
        }
        if scalars.count >= 2, scalars[1] == ":", scalars[0].isASCII, scalars[0].properties.isAlphabetic {
            scalars.removeFirst(2)
        }
        scalars = scalars.map { "<>:\"|?*".unicodeScalars.contains($0) ? "_" : $0 }
        scalars = Array(scalars.drop(while: \.properties.isWhitespace))
        SafeFileName.trimEnd(of: &scalars)
        guard !scalars.isEmpty else { return nil }
        if scalars[0] == "." { scalars = ["_"] + scalars.drop { $0 == "." } }
        SafeFileName.shorten(&scalars)
        if SafeFileName.isDeviceName(scalars) {
            scalars.insert("_", at: 0)
            SafeFileName.shorten(&scalars)
        }
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        value = String(view)
    }

    private static func trimEnd(of scalars: inout [Unicode.Scalar]) {
        while let last = scalars.last, last == "." || last.properties.isWhitespace { scalars.removeLast() }
    }

    /// Returns whether Windows treats the name as a device. Windows compares the part before the first dot, without
    /// white space at its end, and treats superscript digits as digits.
    private static func isDeviceName(_ scalars: [Unicode.Scalar]) -> Bool {
        var stem = Array(scalars.prefix { $0 != "." })
        trimEnd(of: &stem)
        guard stem.count <= 7 else { return false }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: stem)
        let name = String(text).asciiLowercased
        if ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(name) { return true }
        guard stem.count == 4, let digit = stem.last, name.hasPrefix("com") || name.hasPrefix("lpt") else {
            return false
        }
        return "0123456789\u{B9}\u{B2}\u{B3}".unicodeScalars.contains(digit)
    }

    private static func shorten(_ scalars: inout [Unicode.Scalar]) {
        guard length(of: scalars) > maxLength else { return }
        var fileExtension: ArraySlice<Unicode.Scalar> = []
        if let dot = scalars.lastIndex(of: "."), dot > 0, length(of: scalars[dot...]) <= maxExtensionLength {
            fileExtension = scalars[dot...]
        }
        var room = maxLength - length(of: fileExtension)
        var stem = scalars.dropLast(fileExtension.count).prefix { scalar in
            room -= UTF8.width(scalar)
            return room >= 0
        }
        while let last = stem.last, last == "." || last.properties.isWhitespace { stem.removeLast() }
        scalars = Array(stem + fileExtension)
    }

    private static func length(of scalars: some Sequence<Unicode.Scalar>) -> Int {
        scalars.reduce(0) { $0 + UTF8.width($1) }
    }
}

extension SafeFileName: CustomStringConvertible {
    package var description: String { value }
}

extension Unicode.Scalar {
    /// Whether the character is invisible, or can make a name look like another one.
    fileprivate var isUnsafeInFileName: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F: true  // controls
        case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true  // bidirectional controls
        case 0x2028, 0x2029: true  // separators of lines and paragraphs
        case 0x200B, 0x2060, 0xFEFF: true  // zero-width, except the joiners of scripts and emoji
        default: false
        }
    }
}
