import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The command line of `onward serve`.
@Suite("Usage", .blocking)
struct UsageTests {
    @Test("--help lists every option by group, names the environment variables and ends with 0")
    func help() throws {
        for flag in ["--help", "-h"] {
            let run = try OnwardRun(["serve", flag])
            #expect(run.ending == .exited(0))
            for text in [
                "usage: onward serve", "ONWARD_", "General", "Limits", "Timeouts", "Access", "Logging", "--root DIR",
                "--listen HOST:PORT", "--max-connections N", "--max-size SIZE", "--min-size SIZE",
                "--max-append-size SIZE", "--min-append-size SIZE", "--max-age DURATION", "--keep-completed DURATION",
                "--max-uploads N", "--quota SIZE", "--min-free SIZE", "--header-timeout DURATION",
                "--idle-timeout DURATION", "--allow-anonymous", "--cors-origin ORIGIN", "--inline",
                "--cache-control VALUE", "Browsers", "--durability",
                "--log-format", "--log-level", "--announce-without-version", "[default: 127.0.0.1:8080]",
                "[default: ./onward-data]",
            ] {
                #expect(run.output.contains(text), "\(text)")
            }
            #expect(run.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
        }
        // A command with --help never fails, whatever other options are given.
        #expect(try OnwardRun(["serve", "--max-size", "junk", "--help"]).ending == .exited(0))
    }

    @Test("onward --help and --version end with 0; no command, or an unknown one, ends with 64")
    func commands() throws {
        for arguments in [["--help"], ["help"], ["-h"]] {
            let run = try OnwardRun(arguments)
            #expect(run.ending == .exited(0))
            #expect(run.output.contains("onward serve"))
        }
        let version = try OnwardRun(["--version"])
        #expect(version.ending == .exited(0))
        #expect(version.output.hasPrefix("onward "))
        #expect(try OnwardRun([]).ending == .exited(64))
        let unknown = try OnwardRun(["sevre"])
        #expect(unknown.ending == .exited(64))
        #expect(unknown.output.contains("command 'sevre'"))
        try OnwardRun(["--sevre"]).expect(64, "option '--sevre'")
        for version in ["version", "--version"] { try OnwardRun([version, "put"]).expect(64, "'put'") }
        #expect(try OnwardRun(["version", "--help"]).output.hasPrefix("usage: onward version\n"))
    }

    @Test("onward help COMMAND prints the help of the command, and ends with 64 if there is no such command")
    func helpOfCommand() throws {
        for command in ["put", "get", "resume", "status", "cancel", "serve", "health", "check"] {
            let run = try OnwardRun(["help", command])
            #expect(run.ending == .exited(0))
            #expect(run.output == (try OnwardRun([command, "--help"]).output))
        }
        try OnwardRun(["help", "nope"]).expect(64, "'nope'", "--help")
        try OnwardRun(["help", "put", "get"]).expect(64, "'get'")
        for option in ["--help", "-h"] {
            let run = try OnwardRun(["help", option])
            #expect(run.ending == .exited(0) && run.output.contains("onward help COMMAND"), "\(run.output)")
        }
    }

    @Test("onward manual lists and prints files, and reports a name that it does not have")
    func manual() throws {
        let list = try OnwardRun(["manual"])
        #expect(list.ending == .exited(0) && list.output.contains("man/man1/onward-put.1\n"))
        #expect(try OnwardRun(["manual", "man/man1/onward-put.1"]).output.hasPrefix(".TH ONWARD"))
        let help = try OnwardRun(["manual", "--help"])
        #expect(help.ending == .exited(0) && help.output.hasPrefix("usage: onward manual [FILE]\n"), "\(help.output)")
        try OnwardRun(["manual", "nope"]).expect(64, "there is no file 'nope'", "'onward manual' lists the files")
        try OnwardRun(["manual", "a", "b"]).expect(64, "unexpected 'b'")
    }

    @Test("onward migrate names the directory that it cannot use")
    func migration() throws {
        let directory = try TemporaryDirectory()
        let run = try OnwardRun(
            ["migrate", "--catalog", "postgresql://onward@127.0.0.1:1/onward"],
            environment: ["ONWARD_ROOT": directory.path, "ONWARD_BLOBS": "s3://onward?endpoint=http://127.0.0.1:1"])
        run.expect(74, "onward migrate: \(directory.path) cannot be used: it is not a data directory of onward")
    }

    @Test("check, events and outcomes use the storage that the variables of serve or their own options name")
    func storageVariables() throws {
        let directory = try TemporaryDirectory()
        let root = directory.path + "/nothing"
        // Only options that serve has, too, have a variable.
        let other = ["ONWARD_JSON": "on", "ONWARD_ALL": "on", "ONWARD_DIGESTS": "on"]
        let shared = [
            "ONWARD_CATALOG": "postgresql://onward@127.0.0.1:1/onward",
            "ONWARD_BLOBS": "s3://onward?endpoint=http://127.0.0.1:1",
        ]
        for command in [["check"], ["events", "list"], ["outcomes", "list"]] {
            func expect(
                _ status: Int32, _ word: String, _ variables: [String: String], _ options: String...
            ) throws {
                try OnwardRun(command + options, environment: other.merging(variables) { $1 })
                    .expect(status, "onward \(command[0]): ", word)
            }
            try expect(74, "\(root) cannot be used", ["ONWARD_ROOT": root])
            try expect(75, "127.0.0.1:1/onward", shared)
            try expect(64, "cannot be combined", shared.merging(["ONWARD_ROOT": root]) { $1 })
            try expect(74, "\(root) cannot be used", shared, "--root", root)
            // The remaining option of a shared storage can be a variable.
            var variables = shared
            variables["ONWARD_ROOT"] = root
            try expect(75, "127.0.0.1:1/onward", variables, "--catalog", "postgresql://onward@127.0.0.1:1/onward")
        }
    }

    @Test("serve prints commands that upload and download a file")
    func printedCommands() throws {
        for options in [[], ["--own-prefix", "/.onward"]] {
            let home = try CommandHome()
            let content = Payload.bytes(1000)
            _ = try home.file(content)
            let server = try ServerProcess(options, startedBy: ["/bin/sh", "-c", #"exec "$0" "$@" 1>&2"#])
            let text = try server.awaitLog(" -C - -o copy.bin")
            let commands = text.split(separator: "\n")
                .filter { $0.hasPrefix("  ") && !$0.contains("curl") && !$0.contains("Upload-Complete") }
            #expect(commands.count == 2, "\(text)")
            try OnwardRun(
                shell: "cd \(home.path) && { \(commands.joined(separator: " && ")); } 1>&2", [],
                environment: ["HOME": home.path]
            ).expectSuccess()
            #expect(FileManager.default.contents(atPath: home.path + "/copy.bin").map { [UInt8]($0) } == content)
            #expect(try server.stop() == .exited(0))
        }
    }

    @Test("onward outcomes list --json prints JSON also for a request that cannot be read")
    func unreadableOutcome() throws {
        let directory = try TemporaryDirectory()
        _ = try directory.file("onward.sqlite", [])
        try FileManager.default.createDirectory(
            atPath: directory.path + "/retained", withIntermediateDirectories: false)
        _ = try directory.file("retained/0af3", [1])
        let list = ["outcomes", "list", "--root", directory.path]
        #expect(try OnwardRun(list).output == "0af3 is in use or cannot be read\n")
        #expect(
            try OnwardRun(list + ["--json"]).output
                == #"{"upload":"0af3","message":"it is in use or cannot be read"}"# + "\n")
    }

    @Test("An unknown environment variable ONWARD_… gets a warning and has no effect")
    func misspelt() throws {
        try withServer(environment: ["ONWARD_ALOW_ANONYMOUS": "1"]) { server in
            #expect(server.log.contains("ONWARD_ALOW_ANONYMOUS"))
        }
    }

    @Test("A wrong command line ends with 64 and a message that names the mistake; no file is created")
    func wrong() throws {
        let directory = try TemporaryDirectory()
        let root = directory.path + "/data"
        let cases: [(arguments: [String], words: [String])] = [
            (["--nonsense"], ["--nonsense"]), (["--nonsense=1"], ["--nonsense"]), (["stray"], ["'stray'"]),
            (["--"], ["'--'"]), (["-x"], ["'-x'"]), (["--listen"], ["--listen", "value"]),
            (["--listen", "here"], ["'here'"]),
            (["--listen", "127.0.0.1:99999"], ["99999"]), (["--listen", "127.0.0.1:-1"], ["-1"]),
            (["--listen", "127.0.0.1:"], ["127.0.0.1:"]), (["--listen", ":8080"], [":8080"]),
            (["--listen", "unix:"], ["path"]), (["--max-connections", "0"], ["--max-connections"]),
            (["--max-connections", "many"], ["'many'"]), (["--allow-anonymous=yes"], ["--allow-anonymous"]),
            (["--max-size", "1K", "--max-size", "2K"], ["--max-size", "twice"]),
            (["--durability", "maybe"], ["'maybe'"]),
            (["--log-format", "xml"], ["'xml'"]), (["--log-level", "loud"], ["'loud'"]), (["--root", ""], ["--root"]),
            (["--cors-origin", "app.example"], ["'app.example'"]),
            (["--cors-origin", "https://app.example/"], ["--cors-origin"]),
            (["--cors-origin", "https://app.example/x"], ["--cors-origin"]),
            (["--idle-timeout", "9999999999"], ["--idle-timeout", "too large"]),
            (["--header-timeout", "999999999999d"], ["--header-timeout", "too large"]),
            (["--max-size", "10MB"], ["10MB", "500M"]),
            (["--max-size", "5", "--min-size", "6"], ["--min-size", "--max-size"]),
            (["--max-append-size", "5", "--min-append-size", "6"], ["--min-append-size"]),
            (["--cache-control", ""], ["--cache-control", "max-age=3600"]),
            (["--cache-control", "max-age=1; public"], ["--cache-control", "max-age=1; public"]),
            (["--cache-control", "public"], ["--cache-control", "public", "--public-read"]),
            (
                ["--cache-control", "s-maxage=5", "--allow-anonymous"],
                ["--cache-control", "s-maxage", "--public-read"]
            ),
            (["--inline=maybe"], ["--inline"]),
        ]
        for (arguments, words) in cases {
            let run = try OnwardRun(
                ["serve", "--root", root].filter { _ in !arguments.contains("--root") } + arguments)
            run.expect(64)
            for word in words { #expect(run.output.contains(word), "\(word) in: \(run.output)") }
            #expect(run.output.contains("--help"))
        }
        #expect(!FileManager.default.fileExists(atPath: root))
    }

    @Test("An invalid size or duration ends with 64, on the command line and in the environment")
    func garbage() throws {
        let directory = try TemporaryDirectory()
        let root = ["serve", "--root", directory.path + "/data"]
        for value in [
            "", "x", "-1", "1.5M", "1 M", "1MB", "0x10", "K", "٣", "99999999999999999999", "1000T", "16777216TiB", "0",
        ] {
            let run = try OnwardRun(root + ["--max-size", value])
            run.expect(64, "--max-size")
        }
        for value in ["", "soon", "-5s", "1.5h", "5w", "1h30m", "99999999999999999999d", "0"] {
            let run = try OnwardRun(root + ["--idle-timeout", value])
            run.expect(64, "--idle-timeout")
        }
        for (variable, value) in [
            ("ONWARD_MAX_SIZE", "big"), ("ONWARD_IDLE_TIMEOUT", "soon"), ("ONWARD_LISTEN", "127.0.0.1:0 nowhere"),
            ("ONWARD_ALLOW_ANONYMOUS", "perhaps"), ("ONWARD_LOG_FORMAT", "xml"), ("ONWARD_MAX_CONNECTIONS", "-1"),
        ] {
            let run = try OnwardRun(root, environment: [variable: value])
            run.expect(64, variable)
        }
        #expect(!FileManager.default.fileExists(atPath: directory.path + "/data"))
    }

    /// The limits that a server announces.
    private func limits(_ options: [String], _ environment: [String: String] = [:]) throws -> [String: Int64] {
        let server = try ServerProcess(options, environment: environment)
        return try #require(try server.exchange(Request("OPTIONS", "*")).limits)
    }

    @Test("Sizes accept K M G T and KiB MiB GiB TiB, durations s m h d; bare numbers are bytes and seconds")
    func quantities() throws {
        let first = try limits([
            "--max-size", "1T", "--min-size=3", "--max-append-size", "5MiB", "--min-append-size", "1K", "--max-age",
            "2d",
        ])
        #expect(
            first == [
                "max-size": 1_000_000_000_000, "min-size": 3, "max-append-size": 5 << 20, "min-append-size": 1000,
                "max-age": 172_800,
            ])
        let second = try limits([
            "--max-size", "2TiB", "--min-size", "7kib", "--max-append-size", "3G", "--min-append-size", "2M",
            "--max-age", "90m",
        ])
        #expect(
            second == [
                "max-size": 2 << 40, "min-size": 7 << 10, "max-append-size": 3_000_000_000,
                "min-append-size": 2_000_000,
                "max-age": 5400,
            ])
        let third = try limits(["--max-size", "4GiB", "--max-age", "3600"])
        #expect(third == ["max-size": 4 << 30, "max-age": 3600])
        #expect(try limits(["--max-age", "2h"])["max-age"] == 7200)
    }

    @Test("LIM-20: every option has an environment variable; the command line has precedence")
    func environment() throws {
        let environment = ["ONWARD_MAX_SIZE": "1MiB", "ONWARD_MAX_AGE": "1h", "ONWARD_MIN_SIZE": "10"]
        let announced = try limits([], environment)
        #expect(announced == ["max-size": 1 << 20, "max-age": 3600, "min-size": 10])
        let mixed = try limits(["--max-size", "2MiB"], environment)
        #expect(mixed == ["max-size": 2 << 20, "max-age": 3600, "min-size": 10])
        // If the option is given, the variable is not even read.
        let replaced = try limits(["--max-size", "3MiB"], ["ONWARD_MAX_SIZE": "junk"])
        #expect(replaced["max-size"] == 3 << 20)

        let directory = try TemporaryDirectory()
        let process = try ServerProcess.run(
            [],
            environment: [
                "ONWARD_ROOT": directory.path + "/data", "ONWARD_LISTEN": "127.0.0.1:0 127.0.0.1:0",
                "ONWARD_MIN_FREE": "0", "ONWARD_LOG_FORMAT": "json", "ONWARD_ALLOW_ANONYMOUS": "on",
            ])
        let log = try process.awaitErrorOutput { text in
            text.split(separator: "listening on").count == 3 && text.hasSuffix("\n") ? text : nil
        }
        #expect(log.hasPrefix("{"))
        #expect(FileManager.default.fileExists(atPath: directory.path + "/data/files"))
        process.kill(SIGTERM)
        #expect(try process.awaitEnding() == .exited(0))
    }
}
