import Foundation
import HTTPSemantics
import SystemCalls

// Foundation returns an empty path for a file URL whose bytes are not UTF-8.
extension FilePath {
    /// The path of a file URL, byte for byte.
    package init(_ url: URL) {
        let encoded = Array(url.absoluteURL.path(percentEncoded: true).utf8)
        var bytes: [UInt8] = []
        var index = 0
        while index < encoded.count {
            // A slash and a NUL cannot be in a name: Foundation leaves their escapes as they are, too.
            if encoded[index] == UInt8(ascii: "%"), index + 2 < encoded.count,
                let byte = UInt8(String(decoding: encoded[(index + 1)...(index + 2)], as: UTF8.self), radix: 16),
                byte != 0, byte != UInt8(ascii: "/")
            {
                bytes.append(byte)
                index += 3
            } else {
                bytes.append(encoded[index])
                index += 1
            }
        }
        self = FilePath(bytes).withoutTrailingSlashes
    }

    /// The file URL of an absolute path.
    package var fileURL: URL {
        if let text { return URL(fileURLWithPath: text, isDirectory: false) }
        let encoded = bytes.percentEncoded { $0 == UInt8(ascii: "/") || $0.isUnreserved }
        return URL(string: "file://" + encoded) ?? URL(fileURLWithPath: repairedText, isDirectory: false)
    }
}
