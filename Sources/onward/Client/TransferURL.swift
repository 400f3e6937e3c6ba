import CommandLineInterface
import Foundation
import HTTPSemantics

/// The URL of a command line.
struct TransferURL: Sendable, Hashable {
    /// As it is asked for, with user and password.
    let request: String
    /// Without user, password and fragment: what is kept, and by what commands are known again.
    let identity: String
    /// For people: without a query, too.
    let shown: String
    /// Whether it names a collection, into which is posted.
    let isCollection: Bool
    /// Its last segment, where that can be a file's name.
    let fileName: String?
    let hasCredentials: Bool

    init(_ text: String) throws(OptionError) {
        guard var components = URLComponents(string: text), let scheme = components.scheme?.lowercased(),
            scheme == "http" || scheme == "https", let host = components.host, !host.isEmpty
        else {
            throw OptionError("'\(text)' is not a URL such as http://host/files/name")
        }
        request = text
        hasCredentials = components.user != nil
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
        fileName =
            isCollection ? nil : last.removingPercentEncoding.flatMap { SafeFileName(sanitizing: $0)?.description }
    }

    /// What may be seen of a URL: a query may be a password.
    static func shown(_ text: String) -> String {
        guard var components = URLComponents(string: text) else { return "(hidden)" }
        let hasQuery = components.percentEncodedQuery != nil
        components.percentEncodedQuery = nil
        components.user = nil
        components.password = nil
        return (components.string ?? "") + (hasQuery ? "?(hidden)" : "")
    }
}
