import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport

@testable import ResumableTransfer
@testable import onward

extension FuzzTarget {
    /// Checks resume data: invalid data is rejected; valid data is written back unchanged, and its numbers are in range.
    static let resumeData = FuzzTarget(
        name: "resume-data",
        maxLength: 8192,
        dictionary: [
            "RSMD\u{0}\u{1}", "\"acknowledged\":", "\"generation\":", "\"received\":", "\"total\":", "null", "https://",
            "../",
            "\"upload\":", "\"download\":", "\"partialName\":", "999999999999999", "9223372036854775807", "\\u0000",
        ],
        seeds: { generator in records(&generator).compactMap { (try? ResumeData($0)).map { Array($0.data) } } },
        check: { input throws(Violation) in
            try checkResumeData(Data(input))
            try checkResumeData(Data("RSMD\u{0}\u{1}".utf8) + Data(input))
            if let ticket = try? JSONDecoder().decode(ResumeTicket.self, from: Data(input)) {
                try require(!ticket.fileName.contains("/"), "\(ticket.fileName) is no name")
            }
        })

    private static func checkResumeData(_ data: Data) throws(Violation) {
        let value: ResumeData
        do throws(TransferError) { value = try ResumeData(data) } catch {
            try require(error.code == .resumeDataInvalid, "\(error)")
            return
        }
        let again: ResumeData
        do throws(TransferError) { again = try ResumeData(value.record) } catch {
            throw Violation("\(value) cannot be written: \(error)")
        }
        try require(again.record == value.record, "\(value) differs after a round trip")
        try require(
            (try? ResumeData(again.data))?.record == value.record,
            "\(value) differs after a round trip through its bytes")
        try require(value.position >= 0 && value.total.map { $0 >= value.position } ?? true, "\(value)")
        if let path = value.path { try require(path.hasPrefix("/"), "\(path) is not absolute") }
        try require(value.request.fields.firstInvalid == nil, "\(value) would send an invalid field")
    }

    /// Checks the state files of the command line, and other text that it reads.
    static let savedTransfers = FuzzTarget(
        name: "saved-transfers",
        maxLength: 8192,
        dictionary: [
            "{\"version\":1", "{\"version\":2", "\"identity\":", "\"resumeData\":\"", "\"transfer\":{",
            "\"kind\":\"put\"", "\"path\":\"", "http://", "KiB",
            "T",
            "/../", "\u{1B}[31m", "\u{202E}", "99999999999999", "user:pw@", "?q", "#f",
        ],
        seeds: { generator in
            var seeds: [[UInt8]] = ["5G", "2KiB", "7d", "http://u:p@Host:80/a%2Fb/?q#f", "\u{1B}]0;x\u{7}"].map {
                Array($0.utf8)
            }
            for record in records(&generator) {
                guard let data = try? ResumeData(record) else { continue }
                let saved = SavedTransfer(
                    identity: TransferIdentity(
                        kind: data.kind == .upload ? .put : .get, path: "/tmp/ü.bin", method: "POST",
                        url: "http://localhost/files/"),
                    options: SavedTransfer.Options(tokenFile: "/t", appendSize: 5), sent: 7, savedAt: 8,
                    resumeData: data)
                if let bytes = try? saved.stored.encoded() { seeds.append(Array(bytes)) }
            }
            return seeds
        },
        check: { input throws(Violation) in
            if let saved = try? SavedTransfer.decode(Data(input), from: "x") {
                guard let data = try? saved.stored.encoded(), let again = try? SavedTransfer.decode(data, from: "x")
                else {
                    throw Violation("\(saved) cannot be written and read")
                }
                try require(again.resumeData.record == saved.resumeData.record, "\(saved) differs after a round trip")
                // Data of version 1 may be written in another form.
                var same = saved
                same.resumeData = again.resumeData
                try require(again == same, "\(saved) differs after a round trip")
                let name = FilePath(saved.identity.name) + StateFile.suffix
                try require(!name.bytes.contains(0x2F) && !name.bytes.contains(0), "\(name) is no name")
                try require(name.bytes.count <= 255, "\(name) is too long")
            }
            let text = InputReader(input).text
            if let bytes = try? Quantity.bytes(text) { try require(bytes >= 0, "\(bytes) bytes") }
            if let seconds = try? Quantity.seconds(text) { try require(seconds >= 0, "\(seconds) s") }
            if let url = try? TransferURL(text) {
                try require(!url.identity.contains("#"), "\(url.identity) has a fragment")
                if let name = url.fileName { try require(!name.utf8.contains(0x2F), "\(name) is no name") }
            }
            let shown = DisplayText.printable(text)
            try require(
                shown.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control },
                "a control character is not escaped")
            for columns in [0, 1, 2, 10] {
                try require(
                    DisplayText.width(DisplayText.truncated(shown, to: columns)) <= columns, "\(shown) is too wide")
            }
        })

    private static func records(_ generator: inout SeededGenerator) -> [ResumeRecord] {
        (0..<40).map { index in
            let acknowledged = Int64.random(in: 0...99, using: &generator)
            let content: ResumeRecord.Content
            if index % 2 == 0 {
                let file = SourceRecord.File(path: "/tmp/source.bin", modified: 1, inode: 42, device: 6, owner: 1000)
                content = .upload(
                    UploadCheckpoint(
                        resumption: UploadResumption(
                            uri: "http://localhost/uploads/x", dialect: generator.pick(Dialect.allCases),
                            acknowledged: acknowledged, length: index % 3 == 0 ? nil : 100,
                            limits: UploadLimits(maxSize: generator.pick([nil, 1 << 40]), maxAge: 60),
                            expires: 1_800_000_000),
                        source: SourceRecord(
                            file: index % 4 == 0 ? file : nil, size: index % 4 == 0 && index % 3 != 0 ? 100 : nil,
                            sample: String(repeating: "ab", count: 32))))
            } else {
                content = .download(
                    DownloadCheckpoint(
                        destination: "/tmp/file", partialName: FilePath(".file.\(fixedID.uuidString).part"), inode: 7,
                        received: acknowledged, synchronized: acknowledged / 2, bootID: "boot", entityTag: "\"a\"",
                        total: generator.pick([nil, 100])))
            }
            return ResumeRecord(
                id: fixedID, generation: index, createdAt: 1_700_000_000, hasTicket: index % 5 == 0,
                request: ResumeRecord.Request(
                    TransferRequest("http://localhost/files/a?q=1", method: .post, fields: ["X-Tenant": "seven"])),
                content: content)
        }
    }

    /// A fixed identifier, so that the seeds are the same in every run.
    private static let fixedID = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
}
