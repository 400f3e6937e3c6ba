import Testing

/// The messages about a server that cannot be reached name the server and the reason.
@Suite("Commands: servers that cannot be reached", .blocking)
struct UnreachableTests {
    @Test("put, get and health report the host, the port and the reason", arguments: ["put", "get", "health"])
    func refused(_ command: String) throws {
        let home = try CommandHome()
        let url = "http://127.0.0.1:1/files/x?secret=1"
        let words: [String] =
            switch command {
            case "put": ["put", "--retries", "0", try home.file([1, 2, 3]), url]
            case "get": ["get", "--retries", "0", "-o", home.path + "/x", url]
            default: ["health", url]
            }
        let run = try home.run(words)
        try run.expect(75)
        #expect(run.errors.contains("127.0.0.1:1 ") && run.errors.contains("Connection refused"), "\(run.errors)")
        #expect(!run.errors.contains("secret"))
    }

    @Test(
        "The report of every interruption has host, port and reason, in text and in JSON", arguments: [[], ["--json"]])
    func interrupted(_ options: [String]) throws {
        let home = try CommandHome()
        let run = try home.run(
            ["put", "--retries", "1"] + options + [try home.file([1, 2, 3]), "http://[::1]:1/files/x"])
        try run.expect(75)
        let text = options.isEmpty ? run.errors : run.output
        let lines = text.split(separator: "\n").filter { $0.contains("[::1]:1 ") }
        #expect(lines.count >= 2, "\(text)")
    }

    @Test("The message about an unknown host contains the host")
    func unknownHost() throws {
        let home = try CommandHome()
        let run = try home.run("get", "--retries", "0", "-o", home.path + "/x", "http://nowhere.invalid/files/x")
        #expect(run.ending == .exited(75) || run.ending == .exited(69))
        #expect(run.errors.contains("the host nowhere.invalid could not be found"), "\(run.errors)")
    }
}
