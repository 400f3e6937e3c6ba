import SystemCalls
import TLS

/// A curl command that repeats a request.
struct CurlCommand {
    let text: String

    /// - Returns: `nil` if curl cannot send the request: if its content is incomplete, its version is not HTTP/1.1, or
    ///   it has no Host field.
    init?(_ request: Request, _ endpoint: Endpoint) {
        guard request.version == "HTTP/1.1", request.hasHost else { return nil }
        var parts = ["curl -i --http1.1 --path-as-is"]
        switch request.method {
        case "HEAD": parts.append("-I")
        default: parts.append("-X \(request.method)")
        }
        for (name, value) in request.fields {
            let shown = Credentials.shown(value, of: name)
            parts.append("-H " + Self.quoted(value.isEmpty ? "\(name);" : "\(name): \(shown)"))
        }
        var input = ""
        switch request.content {
        case .none: break
        case .bytes(let bytes):
            if bytes.isEmpty {
                parts.append("-H 'Content-Length: 0'")
            } else {
                input = "head -c \(bytes.count) /dev/urandom | "
                parts.append("--data-binary @-")
            }
        case .chunks(let chunks):
            input = "head -c \(chunks.reduce(0) { $0 + $1.count }) /dev/urandom | "
            parts.append("-H 'Transfer-Encoding: chunked' --data-binary @-")
        case .declared, .openChunks: return nil
        }
        if !input.isEmpty, !request.has("Content-Type") { parts.append("-H 'Content-Type:'") }
        if case .unix(let path) = endpoint.address { parts.append("--unix-socket " + Self.quoted(path)) }
        switch endpoint.trust {
        case .authorities(let path): parts.append("--cacert " + Self.quoted(path))
        case .anyCertificate: parts.append("--insecure")
        case .system, nil: break
        }
        parts.append(Self.quoted("\(endpoint.scheme)://\(endpoint.authority)\(request.target)"))
        text = input + parts.joined(separator: " ")
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
