import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Programs of other projects transfer files through a proxy that breaks their connections to the server.
/// `make test-clients` installs the programs and runs these tests.
@Suite(
    "Clients of other projects", .serialized, .blocking,
    .enabled(if: getenv("ONWARD_CLIENTS") != nil, "make test-clients runs these tests"))
struct RealClientTests {
    private static let scripts = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/") + "/Clients"
    /// A sound file that ffmpeg can read: 44 bytes of header, then samples.
    private static let content = waveHeader(samples: samples.count) + samples
    private static let samples = Payload.bytes(6_000_000)

    /// A download by one of the programs.
    enum Download: String, CaseIterable, Sendable {
        case requests, rclone, lftp, aria2c, wget, axel, ffmpeg, chromium

        /// Chromium and lftp do not always continue by themselves after a reset.
        var cut: FaultProxy.Fault.Kind { [.chromium, .lftp].contains(self) ? .end : .reset }

        /// A browser would play a file named f.wav, so only ffmpeg gets this name.
        var fileName: String { self == .ffmpeg ? "f.wav" : "f.bin" }

        /// The program with its arguments; it writes the file `copy` or `download` in `directory`.
        func command(url: String, directory: String) -> (path: String, arguments: [String]) {
            let copy = directory + "/copy"
            let folder = String(url.dropLast(fileName.count))
            switch self {
            case .requests: return ("/usr/bin/python3", [RealClientTests.scripts + "/transfer.py", "get", url, copy])
            case .rclone:
                let options = ["--config", "/dev/null", "--low-level-retries", "10", "--http-url", folder]
                return ("/usr/bin/rclone", ["copyto"] + options + [":http:" + fileName, copy])
            case .lftp:
                let settings = "set net:max-retries 10; set net:reconnect-interval-base 1; set net:persist-retries 10; "
                return (
                    "/usr/bin/lftp", ["--norc", "-c", settings + "open '\(folder)'; get -c \(fileName) -o '\(copy)'"]
                )
            case .aria2c:
                let options = [
                    "--no-conf=true", "--file-allocation=none", "--max-tries=10", "--retry-wait=1", "-x", "1",
                ]
                return ("/usr/bin/aria2c", options + ["-d", directory, "-o", "copy", url])
            case .wget:
                return (
                    "/usr/bin/wget", ["--no-config", "--no-proxy", "-nv", "--waitretry=1", "-t", "10", "-O", copy, url]
                )
            case .axel: return ("/usr/bin/axel", ["-q", "-n", "2", "-o", copy, url])
            case .ffmpeg:
                let input = ["-reconnect", "1", "-reconnect_on_network_error", "1", "-reconnect_delay_max", "2"]
                return (
                    "/usr/bin/ffmpeg",
                    ["-nostdin", "-v", "warning"] + input + ["-i", url, "-c", "copy", "-f", "s16le", copy]
                )
            case .chromium: return ("/usr/bin/python3", [RealClientTests.scripts + "/chromium.py", url, directory])
            }
        }
    }

    @Test("a download is complete and unchanged although the connection breaks twice", arguments: Download.allCases)
    func download(_ download: Download) throws {
        try withServer { server in
            try server.place(Self.content, as: download.fileName)
            // The proxy ends each connection after this number of bytes: the third or fourth connection transfers the
            // last bytes. axel downloads with two connections at a time.
            let proxy = try FaultProxy(to: server.port) {
                FaultProxy.Fault(
                    kind: download.cut, direction: .toClient, after: download == .axel ? 1_300_000 : 2_500_000)
            }
            let directory = server.directory.path
            try "reconnect_delay = 1\n".write(toFile: directory + "/.axelrc", atomically: true, encoding: .utf8)
            let command = download.command(url: proxy.url + "/files/" + download.fileName, directory: directory)
            try #require(access(command.path, X_OK) == 0, "\(command.path) is not installed")
            let process = try ChildProcess(command.path, command.arguments, environment: ["HOME": directory])
            #expect(try process.awaitEnding(within: .seconds(150)) == .exited(0), "\(process.errorOutput.suffix(2000))")
            let name = download == .chromium ? "/download" : "/copy"
            let copy = FileManager.default.contents(atPath: directory + name).map { [UInt8]($0) } ?? []
            let isEqual = areEqual(copy, download == .ffmpeg ? Self.samples : Self.content)
            #expect(isEqual, "\(copy.count) bytes")
            #expect(proxy.cuts >= 2)
        }
    }

    @Test("requests (Python) uploads a file although the connection breaks twice")
    func upload() throws {
        try withServer { server in
            let source = server.directory.path + "/source"
            try Data(Self.content).write(to: URL(filePath: source))
            let proxy = try FaultProxy(upstream: server.port) { 2_500_000 }
            let arguments = [Self.scripts + "/transfer.py", "put", source, proxy.url + "/files/f.bin"]
            let process = try ChildProcess("/usr/bin/python3", arguments, environment: ["HOME": server.directory.path])
            #expect(try process.awaitEnding(within: .seconds(120)) == .exited(0), "\(process.errorOutput.suffix(2000))")
            #expect(areEqual(server.published("f.bin") ?? [], Self.content))
            #expect(proxy.cuts >= 2)
        }
    }

    // MARK: tus-js-client

    private struct Outcome: Decodable {
        let variant: String
        let url: String?
        let error: String?
    }

    /// Runs `tus.mjs`, which uploads with the given protocol of tus-js-client in several variants.
    /// - Returns: the outcome of each variant.
    private func outcomes(_ server: ServerProcess, protocol mode: String) throws -> [Outcome] {
        let checkout = try #require(getenv("ONWARD_TUS_JS").map { String(cString: $0) })
        let source = server.directory.path + "/source"
        try Data(Self.content).write(to: URL(filePath: source))
        let places = ["/usr/bin/node", "/usr/local/bin/node"]
        let node = try #require(places.first { access($0, X_OK) == 0 }, "node is not installed")
        let process = try ChildProcess(
            node,
            [
                "--import=\(Self.scripts)/tus-dependencies.mjs", Self.scripts + "/tus.mjs", checkout,
                server.url("/files/"), source, mode,
            ])
        #expect(try process.awaitEnding(within: .seconds(330)) == .exited(0), "\(process.errorOutput.suffix(2000))")
        return process.errorOutput.split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Outcome.self, from: Data($0.utf8))
        }
    }

    @Test(
        "VER-23 VER-24: every upload that tus-js-client reports as successful is published",
        .enabled(if: getenv("ONWARD_TUS_JS") != nil, "ONWARD_TUS_JS, the path of tus-js-client, is not set"),
        arguments: ["ietf-draft-03", "ietf-draft-05"])
    func tus(mode: String) throws {
        try withServer { server in
            let outcomes = try outcomes(server, protocol: mode)
            #expect(outcomes.count == 10)
            for outcome in outcomes where outcome.variant != "parallel" {
                #expect(outcome.url?.contains("/uploads/") == true, "\(outcome)")
            }
            let parallel = outcomes.first { $0.variant == "parallel" }
            #expect(parallel?.error?.contains("concatenation-not-supported") == true)
            let names = server.publishedNames()
            #expect(names.count == 9)
            for name in names {
                #expect(areEqual(server.published(name) ?? [], name == "empty.txt" ? [] : Self.content), "\(name)")
            }
            #expect(names.contains("größe.png") && names.contains("empty.txt"))
        }
    }

    @Test(
        "the error of tus-js-client in its default mode (tus 1.0) names the setting to change; nothing is uploaded",
        .enabled(if: getenv("ONWARD_TUS_JS") != nil, "ONWARD_TUS_JS, the path of tus-js-client, is not set"))
    func tusByDefault() throws {
        try withServer { server in
            for outcome in try outcomes(server, protocol: "tus-v1") {
                #expect(outcome.url == nil)
                #expect(outcome.error?.contains("ietf-draft-05") == true, "\(outcome)")
            }
            #expect(server.publishedNames().isEmpty)
            #expect(server.unfinished.isEmpty)
        }
    }

    /// The RIFF header of a sound file with samples of 16 bits, one channel and 44,100 samples a second.
    private static func waveHeader(samples count: Int) -> [UInt8] {
        func littleEndian(_ value: Int, _ bytes: Int) -> [UInt8] { (0..<bytes).map { UInt8(value >> (8 * $0) & 0xFF) } }
        return Array("RIFF".utf8) + littleEndian(36 + count, 4) + Array("WAVEfmt ".utf8) + littleEndian(16, 4)
            + littleEndian(1, 2)
            + littleEndian(1, 2) + littleEndian(44_100, 4) + littleEndian(88_200, 4) + littleEndian(2, 2)
            + littleEndian(16, 2) + Array("data".utf8)
            + littleEndian(count, 4)
    }
}
