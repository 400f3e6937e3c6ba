import ConformanceKit
import Glibc
import TLS
import TestSupport

/// Options of the server, and the cases that run against a server with these options.
enum TestedConfiguration: String, Sendable, CaseIterable {
    case standard, limits, minSize, version3, version4, version5, version6, version7, rfc, put, tokens, origins,
        smallDisk

    /// Whether this process can mount a disk for a server with a data directory.
    static var canMountDisk: Bool { geteuid() == 0 && !SharedStorage.isSelected }

    static var possible: [Self] { allCases.filter { $0 != .smallDisk || canMountDisk } }

    /// The reports of this test run. Each configuration runs once.
    static let reports = Reports<Self, RunReport> { try await $0.run() }

    private var options: [String] {
        switch self {
        case .limits:
            ["--max-size", "100000", "--max-append-size", "50000", "--min-append-size", "20", "--max-age", "3"]
        case .minSize: ["--min-size", "100"]
        case .rfc: ["--announce-without-version"]
        case .origins: ["--cors-origin", "'*'"]
        case .standard, .version3, .version4, .version5, .version6, .version7, .put, .tokens, .smallDisk: []
        }
    }

    /// Shell patterns of the cases to run; empty for all cases.
    private var only: [String] {
        switch self {
        case .standard: []
        case .limits: ["4.1.4/*", "4.2/*", "4.4/*", "4.3/*"]
        case .minSize: ["4.1.4/*"]
        case .version3, .version4, .version5, .version6, .version7: ["4.*", "5/*", "7/*", "9651/*", "B/*"]
        case .rfc: ["4.*", "5/*", "7/*", "B/*", "9651/*", "10/*"]
        case .put: ["4.*", "14/*", "restart/*"]
        case .tokens: ["4.2/*", "4.4/*", "4.6/*", "13/*", "restart/offset-kept"]
        case .origins: ["4.2/*", "cors/*"]
        case .smallDisk: ["4.2/*", "4.4/*", "restart/*"]
        }
    }

    private var profiles: [Profile] {
        switch self {
        case .version3: [.interop(3)]
        case .version4: [.interop(4)]
        case .version5: [.interop(5)]
        case .version6: [.interop(6)]
        case .version7: [.interop(7)]
        case .rfc: [.rfc]
        default: []
        }
    }

    /// Starts a server and runs the cases.
    func run() async throws -> RunReport {
        guard self == .tokens else { return try await run(settings(), options) }
        return try await run(trusting: nil, only: only)
    }

    /// Runs cases over TLS for two principals.
    /// - Parameter trust: the certificates that the client trusts; `nil` for the certificate of the server.
    func run(trusting trust: TLSTrust?, only: [String]) async throws -> RunReport {
        let identity = try SelfSignedCertificate(.ecdsa)
        let directory = try TemporaryDirectory()
        let tokens = try directory.file("tokens", "one first-token\ntwo second-token\n".utf8)
        var settings = settings(scheme: "https")
        settings.only = only
        settings.trust = trust ?? .authorities(path: identity.certificate)
        settings.fields = [("Authorization", "Bearer first-token")]
        settings.otherFields = [("Authorization", "Bearer second-token")]
        defer { withExtendedLifetime((identity, directory)) {} }
        return try await run(
            settings, ["--tls-cert", identity.certificate, "--tls-key", identity.key, "--token-file", tokens])
    }

    private func settings(scheme: String = "http") -> ServerSettings {
        let path = self == .put ? "/files/{name}" : "/files/"
        var settings = ServerSettings(url: "\(scheme)://127.0.0.1:{port}\(path)")
        if self == .put { settings.method = "PUT" }
        if self == .smallDisk { settings.diskSize = 64 << 20 }
        settings.only = only
        settings.profiles = profiles
        settings.timeout = .seconds(20)
        return settings
    }

    private func run(_ settings: ServerSettings, _ options: [String]) async throws -> RunReport {
        let onward = try ExecutableLocation.onward()
        return try await onThread {
            var settings = settings
            guard SharedStorage.isSelected else {
                let command = "exec \(onward) serve --root {root} --listen 127.0.0.1:{port} --min-free 0"
                settings.startCommand = ([command] + options).joined(separator: " ")
                return try ServerRun(settings).run()
            }
            let storage = try SharedStorage()
            let ports = try (0..<SharedStorage.nodes).map { _ in try FixedPort.next() }
            let proxy = try FaultProxy(toEach: ports)
            defer { withExtendedLifetime((storage, proxy)) {} }
            settings.startCommand = Self.command(
                onward, storage, ports, options, scheme: settings.url.prefix { $0 != ":" })
            settings.url = settings.url.replacing("{port}", with: "\(proxy.port)")
            return try ServerRun(settings).run()
        }
    }

    /// A command that starts servers with one storage. The last server listens on `{port}`: when the harness can
    /// connect to it, the other servers are ready.
    private static func command(
        _ onward: String, _ storage: SharedStorage, _ ports: [UInt16], _ options: [String], scheme: some StringProtocol
    ) -> String {
        let serve = ([onward, "serve"] + storage.options.map { "'\($0)'" } + options).joined(separator: " ")
        // A server that was killed would hold its uploads for the lifetime of its session.
        let endSessions = "\(storage.database.command) -c \"UPDATE onward.node SET alive_until = '-infinity'\""
        var lines = storage.environment.map { "export \($0.key)=\($0.value)" }
        lines.append("\(endSessions) || true")
        lines += ports.map { "\(serve) --listen 127.0.0.1:\($0) &" }
        lines += ports.map { "until curl -sfk \(scheme)://127.0.0.1:\($0)/readyz; do sleep 0.05; done" }
        lines.append("exec \(serve) --listen 127.0.0.1:{port}")
        return lines.joined(separator: "\n")
    }
}

/// Reports by configuration. A configuration runs once, when a test first needs its report. Only one configuration runs
/// at a time.
actor Reports<Configuration: Hashable & Sendable, Report: Sendable> {
    private let run: @Sendable (Configuration) async throws -> Report
    private var tasks: [Configuration: Task<Report, any Error>] = [:]
    private var last: Task<Report, any Error>?

    init(_ run: @escaping @Sendable (Configuration) async throws -> Report) { self.run = run }

    func report(of configuration: Configuration) async throws -> Report {
        if let task = tasks[configuration] { return try await task.value }
        let task = Task { [run, last] in
            _ = await last?.result
            return try await run(configuration)
        }
        tasks[configuration] = task
        last = task
        return try await task.value
    }
}
