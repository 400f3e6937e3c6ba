import FoundationEssentials
import Testing

/// A reverse proxy of Debian, with its configuration in `docker/proxies`.
enum ReverseProxy: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case haproxy, caddy, nginx, apache, nghttpx
    /// No configuration of Varnish is recommended.
    case varnish

    /// The proxies that docs/operating.md recommends.
    static let recommended: [ReverseProxy] = [.haproxy, .caddy, .nginx, .apache, .nghttpx]

    var testDescription: String { rawValue }

    /// Whether the tests start proxies: `make test-proxies` installs them.
    static let areEnabled = ProcessInfo.processInfo.environment["ONWARD_PROXIES"] == "1"

    var executable: String {
        switch self {
        case .haproxy: "/usr/sbin/haproxy"
        case .caddy: "/usr/bin/caddy"
        case .nginx: "/usr/sbin/nginx"
        case .apache: "/usr/sbin/apache2"
        case .nghttpx: "/usr/sbin/nghttpx"
        case .varnish: "/usr/sbin/varnishd"
        }
    }

    /// The file name of the proxy's configuration under `docker/proxies`.
    var configurationName: String? {
        switch self {
        case .haproxy: "haproxy.cfg"
        case .caddy: "Caddyfile"
        case .nginx: "nginx.conf"
        case .apache: "apache.conf"
        case .nghttpx: "nghttpx.conf"
        case .varnish: nil
        }
    }
}

/// The version of HTTP between a client and a proxy.
enum WireVersion: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case http1 = "HTTP/1.1"
    case http2 = "HTTP/2"

    var testDescription: String { rawValue }
    /// The option of curl for the version.
    var option: String { self == .http1 ? "--http1.1" : "--http2" }
}
