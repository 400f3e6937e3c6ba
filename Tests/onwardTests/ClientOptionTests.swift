import CommandLineInterface
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import Testing

@testable import onward

@Suite("Options of the client commands")
struct ClientOptionTests {
    private func parse(
        _ arguments: [String], _ options: [CommandOption<ClientSettings>] = ClientSettings.putOptions
    ) throws(OptionError) -> (ClientSettings, [String]) {
        var settings = ClientSettings()
        let operands = try OptionParser(options: options).operands(of: arguments, into: &settings)
        return (try settings.checked(), operands)
    }

    @Test("Options can be before, between and after the operands; after -- every argument is an operand")
    func places() throws {
        let (settings, operands) = try parse(["--json", "a", "--retries=3", "b", "--quiet", "--", "--digest", "-o"])
        #expect(settings.isJSON && settings.isQuiet && settings.retries == 3 && !settings.shouldSendDigest)
        #expect(operands == ["a", "b", "--digest", "-o"])
        #expect(try parse(["-"]).1 == ["-"])
    }

    @Test("Every option of put changes its setting")
    func put() throws {
        let (settings, _) = try parse([
            "--header", "X-One: 1", "--header", "X-Two:2 ", "--retries", "0", "--stall-timeout", "2m", "--limit-rate",
            "3MiB", "--cacert", "/tmp/ca.pem", "--restart", "--verbose", "--method", "PATCH", "--careful", "--interop",
            "6", "--append-size", "90M", "--digest", "--state", "/tmp/state", "--token-file", "/tmp/token",
        ])
        #expect(settings.fields["X-One"] == "1" && settings.fields.count == 2)
        #expect(settings.retries == 0 && settings.stallTimeout == 120 && settings.rateLimit == 3 << 20)
        #expect(settings.caFile == "/tmp/ca.pem" && settings.stateFile == "/tmp/state")
        #expect(settings.tokenFile == "/tmp/token" && settings.shouldRestart && settings.isVerbose)
        #expect(settings.method == .patch && settings.isCareful && settings.dialect == .interop6)
        #expect(settings.appendSize == 90_000_000 && settings.shouldSendDigest)
        #expect(try parse(["--interop", "rfc"]).0.dialect == .rfc)
        #expect(try parse(["-o", "x"], ClientSettings.getOptions).0.output == "x")
        #expect(try parse(["--output=x"], ClientSettings.getOptions).0.output == "x")
    }

    @Test("A path in a directory that does not exist is kept: opening the file reports that")
    func missingDirectory() throws {
        #expect(try parse(["--state", "/no/such/directory/x"]).0.stateFile == "/no/such/directory/x")
        #expect(try parse(["--cacert", "no/such/x"]).0.caFile?.isAbsolute == true)
    }

    @Test("The options of connections and of several files change their settings")
    func connections() throws {
        let (settings, _) = try parse([
            "-r", "--jobs", "4", "--netrc", "--cert", "/tmp/c.pem", "--key", "/tmp/k.pem", "--proxy", "http://p:1",
            "--connect-timeout", "5", "-4",
        ])
        #expect(settings.isRecursive && settings.jobs == 4 && settings.shouldUseNetrc && settings.connectTimeout == 5)
        #expect(settings.certificate == "/tmp/c.pem" && settings.key == "/tmp/k.pem")
        #expect(settings.proxy == "http://p:1" && settings.internetProtocol == .version4)
        #expect(try parse(["--recursive", "--ipv6"], ClientSettings.getOptions).0.internetProtocol == .version6)
        let saved = settings.saved
        let completed = ClientSettings().completed(by: saved)
        #expect(completed.shouldUseNetrc && completed.certificate == "/tmp/c.pem" && completed.key == "/tmp/k.pem")
        #expect(!settings.hasOtherCredentials(than: saved))
    }

    @Test("--checksum is a SHA-256 or SHA-512 in hexadecimal")
    func checksums() throws {
        let digits = String(repeating: "aB", count: 32)
        let (settings, _) = try parse(["--checksum", "sha256:" + digits], ClientSettings.getOptions)
        #expect(
            settings.checksum?.algorithm == .sha256 && settings.checksum?.bytes == Array(repeating: 0xAB, count: 32))
        #expect(try parse(["--checksum", "SHA512:" + digits + digits], ClientSettings.getOptions).0.checksum != nil)
        for text in [
            "", "sha256:", digits, "md5:" + digits, "sha256:" + digits.dropLast(), "sha512:" + digits,
            "sha256:x" + digits.dropLast(),
        ] {
            #expect(throws: OptionError.self) { try parse(["--checksum", text], ClientSettings.getOptions) }
        }
        #expect(throws: OptionError.self) {
            try parse(["-r", "--checksum", "sha256:" + digits], ClientSettings.getOptions)
        }
    }

    @Test(
        "-r needs the URL of a folder without query; --netrc contradicts a user in the URL",
        arguments: [
            ("-r", "http://h/a"), ("-r", "http://h/a/?q"), ("-r", "http://h/a/#f"), ("--netrc", "http://me:x@h/a/"),
        ])
    func urls(option: String, url: String) throws {
        let (settings, _) = try parse([option])
        #expect(throws: OptionError.self) { try settings.check(TransferURL(url)) }
        #expect(throws: Never.self) { try settings.check(TransferURL("http://h/a/")) }
    }

    @Test(
        "The error message contains the invalid argument",
        arguments: [
            (["--nonsense"], "--nonsense"), (["-x"], "-x"), (["--header", "no colon"], "no colon"),
            (["--header", "Bad Name: x"], "Bad Name"), (["--header", "X: a\r\nY: b"], "X"),
            (["--header", "Content-Length: 1"], "Content-Length"), (["--header", "upload-offset: 1"], "upload-offset"),
            (["--header", "Transfer-Encoding: x"], "Transfer-Encoding"), (["--retries", "-1"], "-1"),
            (["--retries", "many"], "many"), (["--stall-timeout", "0"], "--stall-timeout"),
            (["--stall-timeout", "soon"], "soon"), (["--limit-rate", "0"], "--limit-rate"),
            (["--append-size", "0"], "--append-size"), (["--append-size"], "value"), (["--method", "GET"], "GET"),
            (["--method", "A B"], "A B"), (["--interop", "2"], "'2'"), (["--interop", "9"], "'9'"),
            (["--quiet", "--verbose"], "--quiet"), (["--careful", "--plain"], "--plain"),
            (["--plain", "--append-size", "1M"], "--append-size"),
            (["--json=yes"], "--json"), (["--json", "--json"], "twice"), (["--state", ""], "--state"),
            (["--token-file", "/tmp/t", "--header", "Authorization: x"], "--token-file"),
            (["--netrc", "--token-file", "/tmp/t"], "--netrc"), (["--key", "/tmp/k"], "--cert"),
            (["--jobs", "0"], "--jobs"), (["--jobs", "2", "--limit-rate", "1M"], "--limit-rate"),
            (["--jobs", "2", "--verbose"], "--verbose"), (["--connect-timeout", "0"], "--connect-timeout"),
            (["-r", "--state", "/tmp/s"], "--state"), (["-r", "--method", "POST"], "POST"), (["-5"], "-5"),
            (["-4", "-6"], "--ipv4"),
        ])
    func wrong(arguments: [String], word: String) {
        do {
            _ = try parse(arguments)
            Issue.record("\(arguments) passed")
        } catch {
            #expect(error.message.contains(word), "\(error.message)")
        }
    }

    @Test("resume, status and cancel accept their documented options")
    func others() throws {
        #expect(
            ClientSettings.resumeOptions.map(\.name).sorted() == [
                "cacert", "cert", "connect-timeout", "header", "ipv4", "ipv6", "json", "key", "limit-rate", "netrc",
                "proxy", "quiet", "retries", "stall-timeout", "token-file",
            ])
        #expect(Set(ClientSettings.cancelOptions.map(\.name)).isSubset(of: ClientSettings.resumeOptions.map(\.name)))
        #expect(ClientSettings.statusOptions.map(\.name) == ["json"])
        let both = [
            "header", "token-file", "state", "retries", "stall-timeout", "limit-rate", "cacert", "restart", "verbose",
            "json", "quiet", "netrc", "cert", "key", "proxy", "connect-timeout", "ipv4", "ipv6", "recursive", "jobs",
        ]
        let put = ["method", "careful", "plain", "interop", "append-size", "digest"]
        #expect(Set(ClientSettings.putOptions.map(\.name)) == Set(both + put))
        #expect(Set(ClientSettings.getOptions.map(\.name)) == Set(both + ["output", "checksum"]))
    }

    @Test("Options in a state file apply if the command line does not set them")
    func completion() throws {
        let saved = SavedTransfer.Options(tokenFile: "/t", caFile: "/c", appendSize: 5)
        var settings = ClientSettings().completed(by: saved)
        #expect(settings.tokenFile == "/t" && settings.caFile == "/c" && settings.appendSize == 5)
        settings = try parse(["--header", "Authorization: x", "--cacert", "/tmp/d"]).0.completed(by: saved)
        #expect(settings.tokenFile == nil && settings.caFile == "/tmp/d")
    }
}

@Suite("URLs of the command line")
struct TransferURLTests {
    @Test(
        "Every text that is not an absolute http or https URL is refused",
        arguments: [
            "", "x", "/files/x", "localhost:8080/files/x", "ftp://h/x", "http://", "http:///x", "file:///etc/passwd",
            "http:x",
        ])
    func wrong(text: String) {
        #expect(throws: OptionError.self) { try TransferURL(text) }
    }

    @Test(
        "A URL whose path ends in / is a collection",
        arguments: [
            ("http://h", true), ("http://h/", true), ("http://h/a/?q", true), ("http://h/a", false),
            ("http://h/a?q=/", false),
        ])
    func collections(text: String, isCollection: Bool) throws {
        #expect(try TransferURL(text).isCollection == isCollection)
    }

    @Test("User, password and fragment are removed; a query is hidden")
    func secrets() throws {
        let url = try TransferURL("HTTP://me:secret@Host:81/a%20b?key=1#part")
        #expect(url.identity == "http://host:81/a%20b?key=1")
        #expect(url.shown == "http://host:81/a%20b?(hidden)")
        #expect(url.request.contains("me:secret"))
        #expect(url.hasCredentials)
        #expect(url.fileName == "a b")
    }

    @Test(
        "A file name from a URL does not lead out of the directory",
        arguments: ["http://h/a/..%2Fx", "http://h/%2e%2e", "http://h/a%00b"])
    func names(text: String) throws {
        let name = try TransferURL(text).fileName
        #expect(name.map { !$0.contains("/") && $0 != ".." && !$0.utf8.contains(0) } ?? true)
    }
}
