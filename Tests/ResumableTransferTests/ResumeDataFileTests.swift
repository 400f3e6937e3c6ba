import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("Resume data in files") struct ResumeDataFileTests {
    let directory: TemporaryDirectory
    let path: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        path = FilePath(directory.path + "/saved")
    }

    private func code(_ body: () throws -> Void) -> TransferError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? TransferError)?.code
        }
    }

    @Test("a written file is read back unchanged, only its owner has access to it, and it replaces the earlier file")
    func roundTrip() throws {
        let first = try ResumeData(.uploadSample())
        let second = try ResumeData(.downloadSample())
        umask(0)
        defer { umask(0o022) }
        try first.write(to: path)
        #expect(try ResumeData(contentsOf: path) == first)
        try second.write(to: URL(filePath: path.repairedText))
        #expect(try ResumeData(contentsOf: URL(filePath: path.repairedText)) == second)
        #expect(try path.status().permissions == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["saved"])
    }

    @Test("a symbolic link is replaced, and its target is not changed")
    func link() throws {
        let target = try directory.file("target", [1])
        symlink(target, path.repairedText)
        try ResumeData(.uploadSample()).write(to: path)
        #expect(FileManager.default.contents(atPath: target) == Data([1]))
        var status = stat()
        #expect(lstat(path.repairedText, &status) == 0 && status.st_mode & S_IFMT == S_IFREG)
    }

    @Test(
        "paths with any bytes and names of the maximum length can be used",
        arguments: [FilePath([0x67, 0xF6]), FilePath(String(repeating: "n", count: 255))])
    func names(name: FilePath) throws {
        let data = try ResumeData(.uploadSample())
        let file = FilePath(directory.path).appending(name)
        try data.write(to: file)
        #expect(try ResumeData(contentsOf: file) == data)
    }

    @Test("every failure throws an error with a code and a cause, and no file is left")
    func errors() throws {
        let data = try ResumeData(.uploadSample())
        let nowhere = FilePath(directory.path + "/nowhere/saved")
        #expect(code { try data.write(to: nowhere) } == .storageUnusable)
        #expect(code { try data.write(to: FilePath(directory.path)) } == .storageUnusable)
        #expect(code { try data.write(to: FilePath(path.bytes + [0, 0x78])) } == .storageUnusable)
        #expect(code { try data.write(to: #require(URL(string: "https://h/x"))) } == .storageUnusable)
        do throws(TransferError) {
            _ = try ResumeData(contentsOf: path)
        } catch {
            #expect(error.code == .storageUnusable && error.underlying as? Errno == .noSuchFile)
        }
        #expect(code { _ = try ResumeData(contentsOf: FilePath(directory.path)) } == .storageUnusable)
        mkfifo(directory.path + "/fifo", 0o600)
        #expect(code { _ = try ResumeData(contentsOf: FilePath(directory.path + "/fifo")) } == .storageUnusable)
        for content in [[], Array("RSMD".utf8), [UInt8](repeating: 0, count: 65_537)] {
            let file = try directory.file("damaged", content)
            #expect(code { _ = try ResumeData(contentsOf: FilePath(file)) } == .resumeDataInvalid)
        }
        #expect(Set(try FileManager.default.contentsOfDirectory(atPath: directory.path)) == ["fifo", "damaged"])
    }

    @Test("several threads that write the same file leave the complete content of one of them")
    func concurrent() async throws {
        let all = try (0..<8).map { _ in try ResumeData(.uploadSample()) }
        let path = path
        try await withThrowingTaskGroup(of: Void.self) { group in
            for data in all { group.addTask { for _ in 0..<20 { try data.write(to: path) } } }
            try await group.waitForAll()
        }
        #expect(all.contains(try ResumeData(contentsOf: path)))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["saved"])
    }

    @Test("resume data is encoded as one value, and damaged data causes a decoding error that contains the cause")
    func coding() throws {
        struct Job: Codable, Equatable {
            var title: String
            var data: ResumeData
        }
        for record in [ResumeRecord.uploadSample(), .downloadSample()] {
            let job = Job(title: "film", data: try ResumeData(record))
            let text = try JSONEncoder().encode(job)
            #expect(String(decoding: text, as: UTF8.self).contains(#""data":""#))
            #expect(try JSONDecoder().decode(Job.self, from: text) == job)
            let list = try PropertyListEncoder().encode([job.data])
            #expect(try PropertyListDecoder().decode([ResumeData].self, from: list) == [job.data])
        }
        do {
            _ = try JSONDecoder().decode(ResumeData.self, from: Data(#""UlNNRA==""#.utf8))
            Issue.record("the damaged data was decoded")
        } catch DecodingError.dataCorrupted(let context) {
            #expect((context.underlyingError as? TransferError)?.code == .resumeDataInvalid)
        }
    }
}
