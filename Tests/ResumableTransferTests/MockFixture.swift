import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

/// A client whose requests a mock transport answers, with its own directory.
final class MockFixture: Sendable {
    let directory: TemporaryDirectory
    let client: TransferClient
    private let kept = Monitor<[MockRequest]>([])

    /// The requests so far, in order.
    var requests: [MockRequest] { kept.withLock { $0 } }

    init(
        _ change: (inout TransferClient.Configuration) -> Void = { _ in },
        answer: @escaping @Sendable (MockRequest) async throws -> MockResponse
    ) throws {
        directory = try TemporaryDirectory()
        var configuration = TransferClient.Configuration()
        configuration.storageDirectory = directory.path + "/storage"
        configuration.retry.delays = [.zero]
        change(&configuration)
        let kept = kept
        client = TransferClient(
            configuration,
            transport: MockTransport { request in
                kept.withLock { $0.append(request) }
                return try await answer(request)
            })
    }

    /// The names of the files below the storage directory.
    var storedNames: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.path + "/storage")) ?? []
    }
}

/// A file that a mock transport serves with ranges and conditions (RFC 9110 sections 13 and 14).
struct MockFile: Sendable {
    var bytes: [UInt8]
    var fields: Fields = ["ETag": "\"one\""]

    /// - Parameter cutAt: the number of bytes of content after which the connection is lost; `nil`: it is not lost.
    func response(to request: MockRequest, cutAt: Int? = nil) -> MockResponse {
        let isSame = request.fields["If-Range"].map { $0 == self.fields["ETag"] } ?? true
        guard isSame, let range = request.fields["Range"], let start = Int(range.dropFirst(6).dropLast()) else {
            return MockResponse(.ok, fields, content: bytes, cutAt: cutAt)
        }
        var fields = fields
        fields.append("Content-Range", "bytes \(start)-\(bytes.count - 1)/\(bytes.count)")
        return MockResponse(.partialContent, fields, content: Array(bytes[start...]), cutAt: cutAt)
    }
}

/// An upload resource of a mock transport.
final class MockUpload: Sendable {
    private let received = Monitor<[UInt8]>([])
    var bytes: [UInt8] { received.withLock { $0 } }

    /// - Parameter cutAt: the number of bytes of content after which the connection is lost; `nil`: it is not lost.
    func response(to request: MockRequest, cutAt: Int? = nil) async throws -> MockResponse {
        let version: Fields = ["Upload-Draft-Interop-Version": "8"]
        switch request.method {
        case .post, .put, .patch:
            if request.method != .patch {
                try request.sendInterim(.uploadResumptionSupported, version.adding(["Location": "/u/1"]))
            } else if request.fields["Upload-Offset"] != "\(bytes.count)" {
                return MockResponse(.conflict, state)
            }
            let content = try await request.readContent(atMost: cutAt ?? .max)
            received.withLock { $0 += content }
            if let cutAt, content.count == cutAt { throw MockFailure.connectionLost }
            let isComplete = request.fields["Upload-Complete"] == "?1"
            return isComplete ? MockResponse(.created, ["Upload-Complete": "?1"]) : MockResponse(.noContent, state)
        case .head: return MockResponse(.noContent, state)
        default: return MockResponse(.noContent)
        }
    }

    private var state: Fields {
        ["Upload-Offset": "\(bytes.count)", "Upload-Complete": "?0", "Upload-Limit": "min-size=0"]
    }
}

extension Fields {
    fileprivate func adding(_ others: Fields) -> Fields {
        var result = self
        for field in others { result.append(field.name, field.value) }
        return result
    }
}

/// Bytes that look random and are the same in every run.
func sampleBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) } }
    return Array(bytes.prefix(count))
}

/// The transfer error that `body` throws; `nil` if it throws none.
func transferError(_ body: () async throws -> Void) async -> TransferError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? TransferError
    }
}
