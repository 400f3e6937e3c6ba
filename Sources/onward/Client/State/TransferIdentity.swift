import Digests
import HTTPSemantics
import SystemCalls

/// The properties that identify a command: its source or target, method and URL.
struct TransferIdentity: Sendable, Hashable, Codable {
    enum Kind: String, Sendable, Hashable, Codable { case put, get }

    let kind: Kind
    /// The absolute path of the source or target.
    let path: FilePath
    let method: String
    /// The URL without user, password and fragment.
    let url: String

    static func put(_ path: FilePath, _ url: TransferURL, method: Method) -> TransferIdentity {
        TransferIdentity(kind: .put, path: path, method: method.rawValue, url: url.identity)
    }

    static func get(_ url: TransferURL, to path: FilePath) -> TransferIdentity {
        TransferIdentity(kind: .get, path: path, method: Method.get.rawValue, url: url.identity)
    }

    /// The last component of the path.
    var fileName: FilePath { path.withoutTrailingSlashes.lastComponent }

    /// The name of the command's state: the file's name, without special characters, and a digest of the identity.
    var name: String {
        let plain = fileName.repairedText.unicodeScalars.prefix(40).map { scalar in
            let isPlain =
                scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "._-".unicodeScalars.contains(scalar)
            return isPlain ? Character(scalar) : "_"
        }
        // A name with a leading dash would be read as an option, and a file with a leading dot is hidden.
        let start = String(plain).drop { $0 == "." || $0 == "-" }
        let parts = [Array(kind.rawValue.utf8), path.bytes, Array(method.utf8), Array(url.utf8)]
        return "\(start.isEmpty ? "file" : start)-\(Self.digest(parts))"
    }

    /// 32 bits of SHA-256 over the parts, each with its length before it.
    static func digest(_ parts: [[UInt8]]) -> String {
        var digest = RunningDigest(.sha256)
        for part in parts {
            (Array("\(part.count):".utf8) + part).withUnsafeBytes { digest.update($0) }
        }
        return Array(digest.finalized().prefix(4)).hexadecimal
    }
}
