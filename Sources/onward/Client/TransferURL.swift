import CommandLineInterface
import Foundation
import HTTPSemantics
import SystemCalls

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

    /// Returns the argument with each byte after the host that is not ASCII percent-encoded. The bytes are neither
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
