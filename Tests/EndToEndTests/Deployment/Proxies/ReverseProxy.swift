import FoundationEssentials
import Testing

/// A reverse proxy of Debian with its configuration under `docker/proxies`.
enum ReverseProxy: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case haproxy, caddy, nginx, apache, nghttpx
    /// Without a configuration to recommend.
    case varnish

    /// Those that are recommended.
    static let recommended: [ReverseProxy] = [.haproxy, .caddy, .nginx, .apache, .nghttpx]

    var testDescription: String { rawValue }

    /// Whether the tests are to start proxies at all: `make test-proxies` installs them.
    static let areWanted = ProcessInfo.processInfo.environment["ONWARD_PROXIES"] == "1"

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

    /// Its configuration's name under `docker/proxies`.
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

/// The version of HTTP that a client speaks to a proxy.
enum WireVersion: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case http1 = "HTTP/1.1"
    case http2 = "HTTP/2"

    var testDescription: String { rawValue }
    /// curl's option for it.
    var option: String { self == .http1 ? "--http1.1" : "--http2" }
}
