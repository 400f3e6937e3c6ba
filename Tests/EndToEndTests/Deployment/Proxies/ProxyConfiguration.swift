import Foundation
import Testing

/// A configuration of `docker/proxies` with the ports and paths of one test.
struct ProxyConfiguration {
    let proxy: ReverseProxy
    let version: WireVersion
    /// The ports of the proxy and of the server behind it.
    let port: UInt16
    let server: UInt16
    /// The changes that a test makes in the configuration. The configuration must contain each text to be replaced.
    let changes: [(String, String)]
    /// The directory of the certificates and of the files that the proxy writes.
    let directory: String

    private struct Missing: Error { let text: String }

    /// The configuration with which the proxy starts.
    func text() throws -> String {
        guard let name = proxy.configurationName else {
            return "vcl 4.1; backend onward { .host = \"127.0.0.1\"; .port = \"\(server)\"; }\n"
                + "sub vcl_recv { return (pass); }\n"
        }
        let folder = (0..<5).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        var text = try String(contentsOf: folder.appending(path: "docker/proxies/" + name), encoding: .utf8)
        for (old, new) in changes + places {
            guard text.contains(old) else { throw Missing(text: old) }
            text = text.replacingOccurrences(of: old, with: new)
        }
        return frame.before + text + frame.after
    }

    /// The replacements of ports, paths and the version of HTTP.
    private var places: [(String, String)] {
        let http1 = version == .http1
        let files = ("/etc/onward/tls/", directory + "/")
        let backend = ("127.0.0.1:8080", "127.0.0.1:\(server)")
        return switch proxy {
        case .haproxy:
            [
                backend, files, ("bind :443", "bind 127.0.0.1:\(port)"),
                ("alpn h2,http/1.1", http1 ? "alpn http/1.1" : "alpn h2,http/1.1"),
            ]
        case .caddy: [backend, files, ("files.example {", "https://127.0.0.1:\(port) {")]
        case .nginx:
            [backend, files, ("listen 443 ssl http2", "listen 127.0.0.1:\(port) ssl" + (http1 ? "" : " http2"))]
        case .apache:
            [
                backend, files, ("*:443", "127.0.0.1:\(port)"),
                ("Protocols h2 http/1.1", http1 ? "Protocols http/1.1" : "Protocols h2 http/1.1"),
            ]
        case .nghttpx:
            [files, ("127.0.0.1,8080", "127.0.0.1,\(server)"), ("frontend=*,443", "frontend=127.0.0.1,\(port)")]
        case .varnish: []
        }
    }

    /// The text before and after the configuration. An installed proxy has this text in other files.
    private var frame: (before: String, after: String) {
        switch proxy {
        case .haproxy, .varnish: ("", "")
        case .nghttpx: ("", version == .http1 ? "\nnpn-list=http/1.1\n" : "\n")
        case .caddy:
            (
                "{\n\tadmin off\n\tauto_https disable_redirects\n"
                    + (version == .http1 ? "\tservers {\n\t\tprotocols h1\n\t}\n" : "") + "}\n", ""
            )
        case .nginx:
            (
                "daemon off; user root; pid \(directory)/pid; error_log stderr; events {} http { access_log off;\n"
                    + ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
                        "\($0)_temp_path \(directory)/\($0);\n"
                    }
                    .joined(), "}\n"
            )
        case .apache:
            (
                "Listen 127.0.0.1:\(port)\nServerRoot \(directory)\nServerName localhost\nPidFile \(directory)/pid\nDefaultRuntimeDir \(directory)\n"
                    + "ErrorLog \(directory)/log\nUser www-data\nGroup www-data\n"
                    + [
                        "mpm_event", "authz_core", "socache_shmcb", "ssl", "http2", "proxy", "proxy_http", "headers",
                        "reqtimeout",
                    ]
                    .map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so\n" }.joined(), ""
            )
        }
    }
}
