import CommandLineInterface
import Digests
import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// The content of a state file: an interrupted transfer, with the members that identify its command and the options for
/// its resumption.
struct SavedTransfer: Sendable, Hashable {
    /// The options of the command. A command that resumes or cancels the transfer uses them in place of options that it
    /// does not have.
    struct Options: Sendable, Hashable, Codable {
        var tokenFile: FilePath?
        var caFile: FilePath?
        var appendSize: Int64?
        /// Whether the transfer has `--netrc`: `true`, or `nil` for other transfers and for states of earlier versions.
        var shouldUseNetrc: Bool?
        var certificate: FilePath?
        var key: FilePath?

        private enum CodingKeys: String, CodingKey {
            case tokenFile, caFile, appendSize, certificate, key
            case shouldUseNetrc = "usesNetrc"
        }

        /// A description of the credentials of the transfer, for messages.
        var credentials: String {
            if shouldUseNetrc == true { return "--netrc" }
            return tokenFile.map { "--token-file \(ProgressMessages.shellWord($0))" }
                ?? "those of the --header or URL of the earlier command, if it had any; they are not saved"
        }
    }

    var identity: TransferIdentity
    var options: Options
    /// The position up to which an upload has sent bytes; the server may have received fewer.
    var sent: Int64?
    /// The time of this save, in seconds since 1970.
    var savedAt: Int64
    /// The resume data. It has no ticket, because the lock of the command ensures that only one process at a time uses
    /// it.
    var resumeData: ResumeData
}

/// The form of a ``StoredTransfer``, with two more members. State files and the lists of sent files have this form.
extension SavedTransfer: Codable {
    private enum CodingKeys: String, CodingKey { case identity, options }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let stored = try StoredTransfer(from: decoder)
        self.init(
            identity: try container.decode(TransferIdentity.self, forKey: .identity),
            options: try container.decode(Options.self, forKey: .options), sent: stored.sent,
            savedAt: stored.savedAt, resumeData: stored.resumeData)
    }

    func encode(to encoder: any Encoder) throws {
        try StoredTransfer(resumeData, sent: sent, savedAt: savedAt).encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(identity, forKey: .identity)
        try container.encode(options, forKey: .options)
    }
}

extension SavedTransfer {
    /// - Parameter path: the path of the file, for the error.
    /// - Throws: `damaged` if `stored` is not the state of a command.
    init(_ stored: StoredTransfer, from path: FilePath) throws(StateError) {
        guard let identity = try? stored.member("identity", as: TransferIdentity.self),
            let options = try? stored.member("options", as: Options.self),
            stored.resumeData.kind == (identity.kind == .put ? .upload : .download)
        else { throw .damaged(path, reason: "is damaged") }
        self.init(
            identity: identity, options: options, sent: stored.sent, savedAt: stored.savedAt,
            resumeData: stored.resumeData)
    }

    /// Reads the content of a state file.
    /// - Parameter path: the path of the file, for the error.
    /// - Throws: `damaged` if the bytes are not the state of a command in a supported version.
    static func decode(_ data: Data, from path: FilePath) throws(StateError) -> SavedTransfer {
        try SavedTransfer(StoredTransfer.decode(data, from: path), from: path)
    }

    /// The content of the state file.
    var stored: StoredTransfer {
        var stored = StoredTransfer(resumeData, sent: sent, savedAt: savedAt)
        stored.setCommand(identity, options)
        return stored
    }
}

extension StoredTransfer {
    /// Sets the members that only the state files of the command line have.
    mutating func setCommand(_ identity: TransferIdentity, _ options: SavedTransfer.Options) {
        setMember("identity", to: identity)
        setMember("options", to: options)
    }
}

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

/// The URL of a command line.
struct TransferURL: Sendable, Hashable {
    /// The URL of requests, with user and password.
    let request: String
    /// The URL without user, password and fragment: it is saved, and identifies commands.
    let identity: String
    /// The URL for messages, without the query.
    let shown: String
    /// Whether the URL is that of a collection, to which files are posted.
    let isCollection: Bool
    /// The last segment of the path, if it is a valid file name.
    let fileName: String?
    let hasCredentials: Bool
    let hasQueryOrFragment: Bool

    init(_ argument: CommandArgument) throws(OptionError) { try self.init(Self.encoded(argument)) }

    init(_ text: String) throws(OptionError) {
        guard var components = URLComponents(string: text), let scheme = components.scheme?.lowercased(),
            scheme == "http" || scheme == "https", let host = components.host, !host.isEmpty
        else {
            throw OptionError("'\(text)' is not a URL such as http://host/files/name")
        }
        request = text
        hasCredentials = components.user != nil
        hasQueryOrFragment = components.query != nil || components.fragment != nil
        components.user = nil
        components.password = nil
        components.fragment = nil
        components.scheme = scheme
        components.host = host.lowercased()
        identity = components.string ?? text
        shown = TransferURL.shown(identity)
        let path = components.percentEncodedPath
        isCollection = path.isEmpty || path.hasSuffix("/")
        let last = path.split(separator: "/").last.map(String.init) ?? ""
        // A name that is not UTF-8 stays percent-encoded, as in the URL.
        fileName = isCollection ? nil : SafeFileName(sanitizing: last.removingPercentEncoding ?? last)?.description
    }

    /// Returns the argument, in which all non-ASCII bytes after the host are percent-encoded. The bytes are neither
    /// repaired nor normalized.
    private static func encoded(_ argument: CommandArgument) throws(OptionError) -> String {
        let bytes = argument.bytes
        guard let start = bytes.firstRange(of: Array("://".utf8))?.upperBound else { return try argument.requireText() }
        let host = bytes[start...].prefix { !"/?#".utf8.contains($0) }
        let remainder = FilePath(bytes[host.endIndex...].flatMap { $0 < 0x80 ? [$0] : Array(percentEscaped($0).utf8) })
        return try CommandArgument(Array(bytes[..<host.endIndex])).requireText() + remainder.repairedText
    }

    /// The URL of an entry of this collection, which has neither query nor fragment.
    /// - Parameters:
    ///   - path: the path of the entry relative to the collection. All bytes that could have another meaning in a URL
    ///     are percent-encoded.
    ///   - isFolder: whether the entry is a folder, whose URL ends in "/".
    func entry(_ path: FilePath, isFolder: Bool = false) -> (request: String, identity: String) {
        let encoded = path.bytes.percentEncoded { $0.isUnreserved || $0 == UInt8(ascii: "/") }
        let end = encoded + (isFolder && !path.isEmpty ? "/" : "")
        func joined(_ text: String) -> String { (text.hasSuffix("/") ? text : text + "/") + end }
        return (joined(request), joined(identity))
    }

    /// Returns a URL for messages, in which the query is hidden because it may contain a password.
    static func shown(_ text: String) -> String {
        guard var components = URLComponents(string: text) else { return "(hidden)" }
        let hasQuery = components.percentEncodedQuery != nil
        components.percentEncodedQuery = nil
        components.user = nil
        components.password = nil
        return (components.string ?? "") + (hasQuery ? "?(hidden)" : "")
    }
}

private func percentEscaped(_ byte: UInt8) -> String { CollectionOfOne(byte).percentEncoded { _ in false } }
