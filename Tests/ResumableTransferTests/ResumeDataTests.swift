import Foundation
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite struct ResumeDataTests {
    @Test("a written record is read back unchanged", arguments: [ResumeRecord.uploadSample(), .downloadSample()])
    func roundTrip(record: ResumeRecord) throws {
        let data = try ResumeData(record)
        let again = try ResumeData(data.data)
        #expect(again == data)
        #expect(again.record == record)
        #expect(data.data.starts(with: Array("RSMD".utf8) + [0, 1]))
        #expect(data.data.count < 2048)
    }

    @Test("a slice of a longer Data value is read like a complete value")
    func slice() throws {
        let data = try ResumeData(.uploadSample())
        let longer = Data([1, 2, 3]) + data.data
        #expect(try ResumeData(longer.dropFirst(3)) == data)
    }

    @Test("callers can read the content of resume data")
    func accessors() throws {
        let data = try ResumeData(.uploadSample())
        #expect(data.kind == .upload)
        #expect(data.path == "/tmp/source.bin")
        #expect(data.position == 40)
        #expect(data.total == 100)
        #expect(data.request.method == .post)
        #expect(data.request.fields["Prefer"] == "seven")
    }

    @Test("a checkpoint of a download that differs only in its bytes is saved twice a second, any other one at once")
    func checkpointInterval() throws {
        guard case .download(let saved) = ResumeRecord.downloadSample().content else { return }
        var next = saved
        next.received = 20
        next.synchronized = 20
        next.tailDigest = String(repeating: "ab", count: 32)
        #expect(!next.supersedes(saved, age: 499_999_999) && next.supersedes(saved, age: 500_000_000))
        #expect(!saved.supersedes(saved, age: .max))
        next.partialName = "another"
        #expect(next.supersedes(saved, age: 0))
    }

    @Test("CLI-31: resume data contains no credentials, and its description shows neither query nor upload resource")
    func secrets() throws {
        let request = TransferRequest(
            "https://me:pass@host.example/files/?key=private#part", method: .put,
            fields: [
                "Authorization": "Bearer SECRET", "Cookie": "SECRET", "Proxy-Authorization": "SECRET",
                "X-Auth-Token": "SECRET", "X-Api-Key": "SECRET", "Accept-Language": "de",
            ])
        let data = try ResumeData(.uploadSample(request: request))
        let text = String(decoding: data.data, as: UTF8.self)
        #expect(!text.contains("SECRET") && !text.contains("pass"))
        #expect(data.request.fields["Accept-Language"] == "de")
        #expect(data.request.uri == "https://host.example/files/?key=private")
        var dumped = ""
        dump(data, to: &dumped)
        for shown in [data.description, "\(data)", String(reflecting: data), dumped, "\(Optional(data) as Any)"] {
            #expect(!shown.contains("private") && !shown.contains("capability") && shown.contains("host.example"))
        }
    }

    @Test("a record that is too large is not issued as resume data")
    func tooLarge() {
        let request = TransferRequest(
            "http://host.example/", fields: ["Accept": String(repeating: "a", count: 65_000)])
        #expect(throws: TransferError.self) { try ResumeData(.uploadSample(request: request)) }
    }

    @Test(
        "invalid data causes an error with the code resumeDataInvalid",
        arguments: [
            Data(), Data("RSMD".utf8), Data("RSMD\0\u{1}".utf8), Data("RSMD\0\u{1}{}".utf8),
            Data("RSMD\0\u{2}{}".utf8), Data("RSMD\0\u{1}[[[[[[".utf8), Data("bplist00".utf8),
            Data(count: 65_537), Data("RSMD\0\u{1}".utf8) + Data(repeating: 0x5B, count: 60_000),
        ])
    func garbage(data: Data) {
        expectInvalid(data)
    }

    /// Changes that make the record invalid while its text stays valid JSON.
    @Test(
        "values that are invalid or contradict each other cause an error with the code resumeDataInvalid",
        arguments: [
            ("\"acknowledged\":40", "\"acknowledged\":101"), ("\"acknowledged\":40", "\"acknowledged\":-1"),
            ("\"acknowledged\":40", "\"acknowledged\":4.5"), ("\"length\":100", "\"length\":99"),
            ("\"length\":100", "\"length\":1000000000000000"), ("\"generation\":3", "\"generation\":-3"),
            ("https://host.example/uploads/capability", "file:///etc/passwd"),
            ("https://host.example/uploads/capability", "uploads/capability"),
            ("https://host.example/uploads/capability", "https://me:pass@host.example/uploads/capability"),
            ("/tmp/source.bin", "source.bin"), ("/tmp/source.bin", "/tmp/\\u0000"),
            ("\"Prefer\",\"seven\"", "\"Prefer\",\"seven\\r\\nX: y\""),
            ("\"Prefer\",\"seven\"", "\"Authorization\",\"seven\""), ("\"Prefer\",\"seven\"", "\"Prefer\""),
            ("\"POST\"", "\"PO ST\""), ("\"dialect\":8", "\"dialect\":9"), ("\"upload\":", "\"uploads\":"),
        ])
    func contradictions(change: (String, String)) throws {
        let text = String(decoding: try ResumeData(.uploadSample()).data, as: UTF8.self)
        #expect(text.contains(change.0))
        expectInvalid(Data(text.replacingOccurrences(of: change.0, with: change.1).utf8))
    }

    @Test("the name of the partial file cannot be a path", arguments: ["../x.part", "/x.part", "a/b.part", "x"])
    func partialName(name: FilePath) {
        var record = ResumeRecord.downloadSample()
        guard case .download(var download) = record.content else { return }
        download.partialName = name
        record.content = .download(download)
        #expect(!record.isValid)
    }

    @Test(
        "randomly damaged data causes an error with the code resumeDataInvalid or is read as a valid value",
        arguments: [UInt64](1...8))
    func fuzz(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let samples = try [ResumeData(.uploadSample()), ResumeData(.downloadSample())].map { Array($0.data) }
        for _ in 0..<400 {
            var bytes = samples[Int.random(in: 0..<samples.count, using: &generator)]
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let place = Int.random(in: 0..<max(1, bytes.count), using: &generator)
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes.removeSubrange(place...)
                case 2: bytes.insert(contentsOf: "\"{}[],:0-9eE.".utf8, at: place)
                case 3: bytes.remove(at: place)
                default: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
                }
                if bytes.isEmpty { break }
            }
            do throws(TransferError) {
                let data = try ResumeData(Data(bytes))
                #expect(data.record.isValid, "seed \(seed)")
            } catch {
                #expect(error.code == .resumeDataInvalid, "seed \(seed)")
                #expect(error.urlErrorCode == -1002)
            }
        }
    }

    private func expectInvalid(_ data: Data, sourceLocation: SourceLocation = #_sourceLocation) {
        do throws(TransferError) {
            _ = try ResumeData(data)
            Issue.record("the invalid data was read", sourceLocation: sourceLocation)
        } catch {
            #expect(error.code == .resumeDataInvalid, sourceLocation: sourceLocation)
        }
    }
}
