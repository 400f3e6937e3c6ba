/// One word of a command line as the system passed it: bytes, which need not be UTF-8.
package struct CommandArgument: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { bytes = Array(text.utf8) }

    /// The arguments of this process. `CommandLine.arguments` would replace bytes that are not UTF-8.
    package static var all: [CommandArgument] {
        let count = Int(CommandLine.argc)
        return UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: count).compactMap { word in
            guard let word else { return nil }
            var bytes: [UInt8] = []
            var next = word
            while next.pointee != 0 {
                bytes.append(UInt8(bitPattern: next.pointee))
                next += 1
            }
            return CommandArgument(bytes)
        }
    }

    /// The bytes as a string; `nil` if they are not UTF-8.
    package var text: String? { String(validating: bytes, as: UTF8.self) }

    package var isEmpty: Bool { bytes.isEmpty }

    func hasPrefix(_ prefix: String) -> Bool { bytes.starts(with: prefix.utf8) }

    /// - Throws: `OptionError` if it is not UTF-8.
    package func requireText() throws(OptionError) -> String {
        guard let text else { throw OptionError("'\(self)' is not UTF-8") }
        return text
    }
}

extension CommandArgument: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.init(text) }
}

extension CommandArgument: CustomStringConvertible {
    /// The text for messages, with U+FFFD in place of bytes that are not UTF-8.
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}
