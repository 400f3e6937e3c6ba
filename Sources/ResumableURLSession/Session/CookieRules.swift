import HTTPTransport
import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer

/// Sends and stores the cookies of one task, as the configuration and the request specify.
///
/// FoundationNetworking's storage compares only the host, and its parser ignores `Max-Age`, so paths, `Secure` and dates
/// are compared here, and `Set-Cookie` is parsed here.
struct CookieRules: Sendable {
    private let storage: HTTPCookieStorage?
    private let shouldSendCookies: Bool
    private let policy: HTTPCookie.AcceptPolicy
    private let mainDocumentURL: URL?

    /// - Parameter request: the request of the task; `nil`: its request is in its resume data.
    init(_ configuration: SessionStorages, request: URLRequest?) {
        storage = request?.httpShouldHandleCookies == false ? nil : configuration.cookies
        shouldSendCookies = configuration.shouldSendCookies
        policy = configuration.cookiePolicy
        mainDocumentURL = request?.mainDocumentURL
    }

    /// The value of `Cookie` for a request to this URL (RFC 6265 section 5.4); `nil`: there are no cookies for it.
    func field(for url: URL, now: Date = Date()) -> String? {
        guard shouldSendCookies, let storage else { return nil }
        let cookies = (storage.cookies(for: url) ?? []).filter { $0.belongs(to: url, now: now) }
        guard !cookies.isEmpty else { return nil }
        let sorted = cookies.sorted { ($1.path.utf8.count, $0.name) < ($0.path.utf8.count, $1.name) }
        return sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    /// Stores the cookies of a response, unless the policy rejects them.
    func store(_ fields: Fields, from url: URL, now: Date = Date()) {
        guard let storage, accepts(url) else { return }
        let cookies = fields.values("Set-Cookie").compactMap { HTTPCookie(setting: $0, from: url, now: now) }
        // The policy of the configuration replaces that of the storage.
        if !cookies.isEmpty { storage.setCookies(cookies, for: url, mainDocumentURL: nil) }
    }

    /// Whether cookies of this URL are stored. As in FoundationNetworking, a request without a main document accepts
    /// all of them.
    private func accepts(_ url: URL) -> Bool {
        switch policy {
        case .always: return true
        case .never: return false
        case .onlyFromMainDocumentDomain:
            guard let main = mainDocumentURL?.host?.lowercased() else { return true }
            guard let host = url.host?.lowercased() else { return false }
            return main == host || main.hasSuffix("." + host)
        }
    }
}

/// The storages and rules of a session's configuration.
struct SessionStorages: Sendable {
    let cookies: HTTPCookieStorage?
    let shouldSendCookies: Bool
    let cookiePolicy: HTTPCookie.AcceptPolicy
    let credentials: URLCredentialStorage?

    init(_ configuration: URLSessionConfiguration) {
        cookies = configuration.httpCookieStorage
        shouldSendCookies = configuration.httpShouldSetCookies
        cookiePolicy = configuration.httpCookieAcceptPolicy
        credentials = configuration.urlCredentialStorage
    }
}

extension HTTPCookie {
    /// Whether the cookie is sent to this URL, whose host the storage has compared.
    fileprivate func belongs(to url: URL, now: Date) -> Bool {
        if isSecure, url.scheme?.lowercased() != "https" { return false }
        if let expiresDate, expiresDate <= now { return false }
        if let portList, !portList.isEmpty, !portList.contains(where: { $0.intValue == RequestURI(url)?.port }) {
            return false
        }
        let requested = url.cookiePath
        return requested == path || requested.hasPrefix(path.hasSuffix("/") ? path : path + "/")
    }

    /// Parses the value of a `Set-Cookie` field (RFC 6265 section 5.2); `nil`: the cookie is ignored.
    convenience init?(setting value: String, from url: URL, now: Date) {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false)
        guard let host = url.host?.lowercased(), let first = parts.first, let equals = first.firstIndex(of: "=") else {
            return nil
        }
        let name = first[..<equals].trimmed
        guard !name.isEmpty else { return nil }
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: name, .value: first[first.index(after: equals)...].trimmed, .domain: host,
            .path: url.defaultCookiePath, .originURL: url,
        ]
        var age: Int64?
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = pair.count > 1 ? pair[1].trimmed : ""
            switch pair[0].trimmed.lowercased() {
            case "expires": properties[.expires] = value
            case "max-age": age = Int64(value) ?? age
            case "domain":
                guard let domain = Self.domain(value, of: host) else { return nil }
                properties[.domain] = domain
            case "path" where value.hasPrefix("/"): properties[.path] = value
            case "secure": properties[.secure] = "TRUE"
            case "httponly": properties[HTTPCookiePropertyKey(rawValue: "HttpOnly")] = "TRUE"
            default: continue
            }
        }
        if let age { properties[.expires] = now.addingTimeInterval(age <= 0 ? -1 : Double(min(age, 1 << 32))) }
        self.init(properties: properties)
    }

    /// The domain of a cookie whose attribute `Domain` is `value`; `nil` if the host does not belong to it, or if it has
    /// only one label, such as `com`.
    private static func domain(_ value: String, of host: String) -> String? {
        let domain = (value.hasPrefix(".") ? String(value.dropFirst()) : value).lowercased()
        if domain.isEmpty || domain == host { return domain.isEmpty || host.isAddress ? host : "." + domain }
        return domain.contains(".") && host.hasSuffix("." + domain) && !host.isAddress ? "." + domain : nil
    }
}

extension Substring {
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespaces) }
}

extension String {
    /// Whether a host is an IP address.
    fileprivate var isAddress: Bool { contains(":") || IPAddress(parsing: self) != nil }
}

extension URL {
    /// The path with its percent-encoding, as it is sent.
    fileprivate var cookiePath: String {
        let path = URLComponents(url: self, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? ""
        return path.hasPrefix("/") ? path : "/"
    }

    /// The path up to its last slash (RFC 6265 section 5.1.4).
    fileprivate var defaultCookiePath: String {
        let path = cookiePath
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }
}
