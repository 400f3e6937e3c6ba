import Foundation
import Glibc
import HTTPSemantics
import TransferServer
import UploadStorage

/// A server in this process with a separate data directory, next to a file that no request may read.
final class ServerUnderTest {
    /// A token that allows reading, which the seeds contain.
    static let readerToken = "reader-of-the-fuzzed-server"
    /// The content of the file next to the data directory.
    private static let canary = "content-outside-the-root"
    /// The content of the published file.
    private static let published = "what-was-published-before"
    /// A placeholder in inputs. It is replaced by the path of an upload that has received four bytes.
    static let uploadMark = Array("/uploads/@U".utf8)
    private static let names = ProcessInfo.processInfo.processIdentifier

    let isGuarded: Bool
    /// The number of processed inputs.
    private(set) var count = 0
    private let directory: String
    private let store: UploadStore
    private let server: Server
    private let wire: WireConversation
    /// A token that no input contains; `nil` if the server has no tokens.
    private let writerToken: String?
    private var upload: [UInt8]?

    init(isGuarded: Bool) throws {
        self.isGuarded = isGuarded
        let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        directory = "\(base)/onward-fuzz-\(Self.names)-\(UInt64.random(in: 0...(.max)))"
        let files = FileManager.default
        for name in ["data/files", "outside"] {
            try files.createDirectory(atPath: "\(directory)/\(name)", withIntermediateDirectories: true)
        }
        try Data(Self.canary.utf8).write(to: URL(filePath: "\(directory)/outside/x"))
        try Data(Self.published.utf8).write(to: URL(filePath: "\(directory)/data/files/a.txt"))
        try files.createSymbolicLink(atPath: "\(directory)/data/files/link", withDestinationPath: "../../outside")
        try files.createSymbolicLink(atPath: "\(directory)/data/files/leaf", withDestinationPath: "../../outside/x")
        store = try Self.store(at: directory)
        wire = WireConversation(path: "\(directory)/socket")
        var configuration = ServerConfiguration(
            listeners: [.unix(path: wire.path)], headerTimeout: .seconds(10), idleTimeout: .seconds(10),
            drainTimeout: .seconds(5), logLevel: .error)
        if isGuarded {
            let token = "\(UInt64.random(in: 0...(.max)))-\(UInt64.random(in: 0...(.max)))"
            configuration.authorizer = TokenAuthorizer(
                try TokenList(parsing: "writer \(token)\nreader \(Self.readerToken) read\n"))
            writerToken = token
        } else {
            writerToken = nil
        }
        server = Server(
            configuration: configuration, store: store, handlers: [("files", FilesHandler(store: store))])
        try server.startBlocking()
    }

    private static func store(at directory: String) throws -> UploadStore {
        try UploadStore.open(
            root: "\(directory)/data", configuration: StoreConfiguration(durability: .relaxed, minFree: 0))
    }

    /// Stops the server, verifies that its directory can be opened again, and removes the directory.
    func end() throws(Violation) {
        server.stopBlocking()
        store.close()
        do {
            try Self.store(at: directory).close()
            try FileManager.default.removeItem(atPath: directory)
        } catch {
            throw Violation("the data directory cannot be opened again: \(error)")
        }
    }

    /// Sends one input and checks the responses and the files.
    func process(_ input: [UInt8]) throws(Violation) {
        count += 1
        let (sent, hasUpload) = try filledIn(input)
        let plain = sent.filter { $0 != WireConversation.separator }
        let isCut = CutRequest.isCut(plain)
        let before = isCut || isGuarded ? try contents() : [:]

        let received = try wire.exchange(sent)
        let answers = try WireAnswers(received, mayOmitContent: plain.contains("HEAD"))
        try require(!received.contains(Self.canary) || plain.contains(Self.canary), "a file outside the root was read")

        let health = try wire.exchange(Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        try require(health.starts(with: Array("HTTP/1.1 200 ".utf8)), "the server does not work after the input")
        try checkSurroundings()
        if isCut {
            try require(!answers.statuses.contains { (200..<300).contains($0) }, "\(answers) to a request that was cut")
        }
        if isCut || isGuarded {
            try require(try contents() == before, "files were changed")
        }
        if isGuarded {
            let mayRead = plain.contains(Self.readerToken)
            try require(mayRead || !received.contains(Self.published), "a file was read without a token")
            try checkRefusals(answers, plain, hasUpload: hasUpload)
        }
        if !isGuarded && hasUpload { upload = nil }
    }

    /// Checks that requests without a token are refused, and that the token for reading changes nothing.
    private func checkRefusals(
        _ answers: WireAnswers, _ input: [UInt8], hasUpload: Bool
    ) throws(Violation) {
        let isOpen = ["OPTIONS", "healthz", "readyz", Self.readerToken].contains(where: input.contains)
        if !isOpen {
            try require(!answers.statuses.contains { (200..<400).contains($0) }, "\(answers) without a token")
        }
        guard hasUpload, let upload else { return }
        let state = try wire.exchange(
            Array("HEAD ".utf8) + upload + Array(" HTTP/1.1\r\nHost: localhost\r\n\(authorization)\r\n".utf8))
        try require(
            String(decoding: state, as: UTF8.self).lowercased().contains("\r\nupload-offset: 4\r\n"),
            "the upload of another principal was changed")
    }

    private var authorization: String { writerToken.map { "Authorization: Bearer \($0)\r\n" } ?? "" }

    /// Returns the input with the path of an existing upload instead of the placeholder.
    private func filledIn(_ input: [UInt8]) throws(Violation) -> (input: [UInt8], hasUpload: Bool) {
        var result: [UInt8] = []
        var remaining = input[...]
        while let range = remaining.firstRange(of: Self.uploadMark) {
            result += remaining[..<range.lowerBound]
            result += try uploadPath()
            remaining = remaining[range.upperBound...]
        }
        return (result + remaining, remaining.startIndex > 0)
    }

    private func uploadPath() throws(Violation) -> [UInt8] {
        if let upload { return upload }
        let answer = try wire.exchange(
            Array(
                ("PUT /files/half.bin HTTP/1.1\r\nHost: localhost\r\nUpload-Complete: ?0\r\nContent-Length: 4\r\n"
                    + "Upload-Draft-Interop-Version: 8\r\n\(authorization)\r\nhalf").utf8))
        let text = String(decoding: answer, as: UTF8.self)
        guard let start = text.range(of: "/uploads/")?.lowerBound else {
            throw Violation("no upload can be created: \(text)")
        }
        let path = Array(text[start...].utf8.prefix { $0 > 0x20 })
        upload = path
        return path
    }

    /// Returns size, inode and time of every published file and, if the server has tokens, of every upload.
    private func contents() throws(Violation) -> [String: [Int]] {
        let files = try contents(of: "files")
        return isGuarded ? files.merging(try contents(of: "uploads")) { first, _ in first } : files
    }

    private func contents(of part: String) throws(Violation) -> [String: [Int]] {
        let root = "\(directory)/data/\(part)"
        guard let names = try? FileManager.default.subpathsOfDirectory(atPath: root) else {
            throw Violation("\(root) cannot be listed")
        }
        var contents: [String: [Int]] = [:]
        for name in names {
            var status = stat()
            guard lstat("\(root)/\(name)", &status) == 0, status.st_mode & S_IFMT != S_IFDIR else { continue }
            contents["\(part)/\(name)"] = [
                Int(status.st_size), Int(status.st_ino), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            ]
        }
        return contents
    }

    private func checkSurroundings() throws(Violation) {
        let files = FileManager.default
        try require(
            Set((try? files.contentsOfDirectory(atPath: directory)) ?? []) == ["data", "outside", "socket"],
            "there is a new file next to the data directory")
        try require((try? files.contentsOfDirectory(atPath: "\(directory)/outside")) == ["x"], "a link was followed")
        try require(
            files.contents(atPath: "\(directory)/outside/x") == Data(Self.canary.utf8), "a link's target was changed")
    }
}

extension [UInt8] {
    /// Returns whether the collection contains the bytes of `text`.
    fileprivate func contains(_ text: String) -> Bool { firstRange(of: Array(text.utf8)) != nil }
}
