import ConformanceKit
import SystemCalls

/// The secrets that tests have sent to each server. A server must neither store nor log them.
package enum SentSecrets {
    private static let names: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth-token", "x-access-token",
    ]
    private static let sent = Monitor<[String: Set<String>]>([:])

    static func record(_ request: Request, to authority: String) {
        for (name, value) in request.fields where names.contains(name.lowercased()) {
            // The scheme is not recorded. A short value is not recorded either, because it may be a common word.
            let secret = value.split(separator: " ").last.map(String.init) ?? value
            if secret.utf8.count >= 16 { sent.withLock { _ = $0[authority, default: []].insert(secret) } }
        }
    }

    /// Returns the secrets for one server, and removes them from the record.
    package static func collect(for authority: String) -> Set<String> {
        sent.withLock { $0.removeValue(forKey: authority) } ?? []
    }
}
