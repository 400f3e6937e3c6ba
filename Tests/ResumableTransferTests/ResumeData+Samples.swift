import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

@testable import ResumableTransfer

extension ResumeRecord {
    /// The record of an upload, with every field set.
    static func uploadSample(
        request: TransferRequest = TransferRequest(
            "https://host.example/files/?key=private", method: .post,
            fields: ["Content-Type": "text/plain", "Prefer": "seven"]),
        hasTicket: Bool = false
    ) -> ResumeRecord {
        let limits = UploadLimits(maxSize: 1 << 40, minSize: 0, maxAppendSize: 1 << 20, minAppendSize: 5, maxAge: 60)
        let resumption = UploadResumption(
            uri: "https://host.example/uploads/capability", dialect: .interop8, acknowledged: 40, length: 100,
            limits: limits, expires: 1_800_000_000)
        let file = SourceRecord.File(
            path: "/tmp/source.bin", modified: 1_700_000_000_123_456_789, inode: 42, device: 66306, owner: 1000)
        let source = SourceRecord(file: file, size: 100, sample: String(repeating: "ab", count: 32))
        return ResumeRecord(
            id: UUID(), generation: 3, createdAt: 1_700_000_000, hasTicket: hasTicket, request: Request(request),
            content: .upload(UploadCheckpoint(resumption: resumption, source: source)))
    }

    static func downloadSample() -> ResumeRecord {
        ResumeRecord(
            id: UUID(), generation: 0, createdAt: 1_700_000_000, hasTicket: false,
            request: Request(TransferRequest("http://host.example/file")),
            content: .download(
                DownloadCheckpoint(
                    destination: "/tmp/file", partialName: FilePath(".file.\(UUID().uuidString).part"), inode: 7,
                    received: 10,
                    synchronized: 5, bootID: "boot", tailDigest: nil, entityTag: "\"a\"", total: 20)))
    }
}
