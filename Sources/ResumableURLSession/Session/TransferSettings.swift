import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// The settings of transfers that follow from the configuration of a session.
struct TransferSettings: Sendable {
    /// Foundation's default timeout: the seconds without a byte after which a request fails.
    static let defaultTimeout: TimeInterval = 60

    /// The configuration of transfers, with the additional header fields of the session.
    let transfers: TransferClient.Configuration
    let storages: SessionStorages
    private let timeout: TimeInterval
    private let proxies: [String: String]

    init(_ configuration: URLSessionConfiguration, transfers: TransferClient.Configuration) {
        storages = SessionStorages(configuration)
        timeout = configuration.timeoutIntervalForRequest
        proxies = TransferSettings.proxies(configuration.connectionProxyDictionary ?? [:])
        var transfers = transfers
        let added = (configuration.httpAdditionalHeaders ?? [:]).compactMap { name, value -> (String, String)? in
            (name.base as? String).map { ($0, "\(value)") }
        }
        for (name, value) in added.sorted(by: { $0.0 < $1.0 }) { transfers.fields.set(name, value) }
        self.transfers = transfers
    }

    /// The settings of the connections for the transfer of a request.
    func connection(for request: URLRequest?) -> ConnectionSettings {
        let scheme = request?.url?.scheme?.lowercased() ?? "http"
        return ConnectionSettings(
            stallTimeout: stallTimeout(request?.timeoutInterval ?? Self.defaultTimeout),
            proxy: proxies[scheme] ?? transfers.proxy)
    }

    /// The timeout of the request. If that is the default, the timeout of the session; if that is also the default, the
    /// timeout of `transfers`.
    private func stallTimeout(_ own: TimeInterval) -> Duration? {
        let seconds = own != Self.defaultTimeout ? own : timeout
        guard seconds != Self.defaultTimeout else { return transfers.stallTimeout }
        guard seconds > 0, seconds < 1e9 else { return nil }
        return .milliseconds(Int64(seconds * 1000))
    }

    /// The URI of the proxy for each scheme, from a dictionary in CFNetwork's format.
    static func proxies(_ dictionary: [AnyHashable: Any]) -> [String: String] {
        var proxies: [String: String] = [:]
        for (scheme, prefix) in [("http", "HTTP"), ("https", "HTTPS")] {
            guard let host = dictionary[prefix + "Proxy"] as? String, !host.isEmpty else { continue }
            if let isEnabled = dictionary[prefix + "Enable"], number(isEnabled) == 0 { continue }
            let port = dictionary[prefix + "Port"].flatMap { number($0) }
            // An IPv6 address has brackets in a URI (RFC 3986 section 3.2.2).
            let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
            proxies[scheme] = "http://\(name):\(port ?? 80)"
        }
        return proxies
    }

    private static func number(_ value: Any) -> Int? {
        switch value {
        case let value as Bool: value ? 1 : 0
        case let value as Int: value
        case let value as NSNumber: value.intValue
        case let value as String: Int(value)
        default: nil
        }
    }

    /// The default configuration of transfers: retries wait for seconds, not minutes, because Foundation
    /// reports failures soon.
    static var defaultTransfers: TransferClient.Configuration {
        var configuration = TransferClient.Configuration()
        // As in Apple's session, no other request precedes that of the application.
        configuration.creation = .optimistic
        configuration.retry.delays = [.zero, .milliseconds(500), .seconds(1), .seconds(2), .seconds(4), .seconds(8)]
        configuration.retry.maxRetriesWithoutProgress = 6
        configuration.retry.maxRetryAfter = .seconds(30)
        return configuration
    }
}
