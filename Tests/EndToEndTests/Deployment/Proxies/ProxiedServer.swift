import ConformanceKit
import Foundation
import Glibc
import TestSupport
import Testing

/// A server behind a real proxy; both end with this object, and the proxy ends after five minutes at the latest.
final class ProxiedServer {
    let proxy: ReverseProxy
    let version: WireVersion
    let server: ServerProcess
    /// The URL of the proxy, without a slash at the end.
    let url: String
    /// The path of the proxy's certificate.
    let certificate: String
    private let identity: SelfSignedCertificate
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    /// - Parameters:
    ///   - changes: replacements in the configuration of the proxy.
    ///   - options: the options of `serve`.
    init(
        _ proxy: ReverseProxy, _ version: WireVersion, changes: [(String, String)] = [], options: [String] = []
    ) throws {
        self.proxy = proxy
        self.version = version
        identity = try SelfSignedCertificate()
        directory = try TemporaryDirectory()
        let files = FileManager.default
        for (source, name) in [(identity.certificate, "cert.pem"), (identity.key, "key.pem")] {
            try files.copyItem(atPath: source, toPath: directory.path + "/" + name)
        }
        let both = try [identity.certificate, identity.key].map { try String(contentsOfFile: $0, encoding: .utf8) }
        try both.joined().write(toFile: directory.path + "/site.pem", atomically: false, encoding: .utf8)
        certificate = identity.certificate
        let port = try FixedPort.next()
        url = "\(proxy == .varnish ? "http" : "https")://127.0.0.1:\(port)"
        // nghttpx passes on an X-Forwarded-Prefix of the client, so its configuration requires this option.
        let base = proxy == .nghttpx ? ["--public-url", url] : []
        server = try ServerProcess(["--allow-anonymous"] + base + options)
        let configuration = ProxyConfiguration(
            proxy: proxy, version: version, port: port, server: server.port, changes: changes, directory: directory.path
        )
        let path = directory.path + "/configuration"
        try configuration.text().write(toFile: path, atomically: false, encoding: .utf8)
        let arguments =
            switch proxy {
            case .haproxy: ["-db", "-f", path]
            case .caddy: ["run", "--adapter", "caddyfile", "--config", path]
            case .nginx: ["-e", "stderr", "-p", directory.path, "-c", path]
            case .apache: ["-f", path, "-DFOREGROUND"]
            case .nghttpx: ["--conf=" + path, "--single-process", "--no-ocsp"]
            case .varnish:
                [
                    "-F", "-j", "none", "-f", path, "-a", "127.0.0.1:\(port)", "-n", directory.path + "/v", "-s",
                    "malloc,32m",
                ]
            }
        // timeout(1) ends the proxy and its child processes even if this process is killed.
        process = try ChildProcess(
            "/usr/bin/timeout", ["-k", "5", "300", proxy.executable] + arguments,
            environment: ["HOME": directory.path, "XDG_DATA_HOME": directory.path, "XDG_CONFIG_HOME": directory.path])
        let isReady: Bool? = pollUntil(within: .seconds(60)) {
            process.ending != nil ? false : (try? LoopbackListener.connect(to: port)).map { _ in true }
        }
        guard isReady == true else {
            stop()
            throw TestFailure("\(proxy) does not start: \(process.errorOutput)")
        }
    }

    deinit { stop() }

    /// Ends both processes, and waits for them.
    func stop() {
        process.kill(SIGTERM)
        _ = try? process.awaitEnding()
        process.kill(SIGKILL)
        server.process.kill(SIGKILL)
    }

    /// The log of the proxy.
    var proxyLog: String {
        // Apache opens its log by its path, which is not possible for a socket, so its log is a file.
        let log = FileManager.default.contents(atPath: directory.path + "/log") ?? Data()
        return process.errorOutput + String(decoding: log, as: UTF8.self)
    }

    /// Writes a file that is removed with this object, and returns its path.
    func file(_ bytes: [UInt8], _ name: String = "content") throws -> String {
        let path = directory.path + "/" + name
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }

    // MARK: Received bytes

    /// The number of bytes of unfinished uploads on the server.
    var received: Int {
        let folder = server.root + "/uploads"
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []
        return names.reduce(0) { sum, name in
            var status = stat()
            guard stat(folder + "/" + name, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return sum }
            return sum + Int(status.st_size)
        }
    }

    /// Waits until the server has received `count` bytes of unfinished uploads.
    func awaitReceived(_ count: Int) throws {
        let found = pollUntil(within: .seconds(60)) { received >= count ? true : nil }
        guard found != nil else {
            throw WireFailure.timedOut("\(received) of \(count) bytes; server: \(server.log) proxy: \(proxyLog)")
        }
    }
}

/// Runs `body` with a server behind a proxy, ends both, and prints their logs if `body` fails.
func withProxy(
    _ proxy: ReverseProxy, _ version: WireVersion, changes: [(String, String)] = [], options: [String] = [],
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (ProxiedServer) throws -> Void
) throws {
    let proxied = try ProxiedServer(proxy, version, changes: changes, options: options)
    defer { proxied.stop() }
    do {
        try body(proxied)
    } catch {
        Issue.record(
            error, "server:\n\(proxied.server.log.suffix(3000))\nproxy:\n\(proxied.proxyLog.suffix(2000))",
            sourceLocation: sourceLocation)
    }
}
