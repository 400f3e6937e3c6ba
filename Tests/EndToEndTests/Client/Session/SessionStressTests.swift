import ConformanceKit
import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: all operations at the same time", .blocking)
struct SessionStressTests {
    @Test(
        "tasks that are suspended, resumed and canceled at random, over connections that break, end once each",
        arguments: [UInt64](1...4))
    func random(seed: UInt64) async throws {
        try await withServer { server in
            var random = SeededGenerator(seed: seed)
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let session = fixture.session(recorder) { $0.retry.maxRetriesWithoutProgress = 20 }
            let proxy = try FaultProxy(
                to: server.port, seed: seed, bytes: 200_000...3_000_000, directions: [.toServer, .toClient])
            var uploads: [(task: URLSessionUploadTask, name: String, bytes: [UInt8])] = []
            var downloads: [(task: URLSessionDownloadTask, bytes: [UInt8])] = []
            for number in 0..<4 {
                let bytes = Payload.bytes(2_500_000, seed: seed * 10 + UInt64(number))
                let request = try SessionFixture.request(proxy.url + "/files/up\(number)", "PUT")
                let file = try fixture.file(bytes, "source\(number)")
                uploads.append((session.uploadTask(with: request, fromFile: file), "up\(number)", bytes))
                try server.publish(bytes, as: "down\(number)")
                let source = try #require(URL(string: proxy.url + "/files/down\(number)"))
                downloads.append((session.downloadTask(with: source), bytes))
            }
            var made = 8
            for _ in 0..<60 {
                let number = Int.random(in: 0..<4, using: &random)
                let isUpload = Bool.random(using: &random)
                let task: URLSessionTask = isUpload ? uploads[number].task : downloads[number].task
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<9: task.resume()
                case 9..<15: task.suspend()
                case 15..<17:
                    if isUpload {
                        guard let data = await uploads[number].task.cancelByProducingResumeData() else { continue }
                        uploads[number].task = session.uploadTask(withResumeData: data)
                        made += 1
                    } else {
                        guard let data = await downloads[number].task.cancelByProducingResumeData() else { continue }
                        downloads[number].task = session.downloadTask(withResumeData: data)
                        made += 1
                    }
                default: Deadline.pause(.milliseconds(Int64.random(in: 1...10, using: &random)))
                }
            }
            // The remaining tasks run to their end.
            for number in 0..<4 {
                for task in [uploads[number].task, downloads[number].task] {
                    for _ in 0..<70 where task.state == .suspended { task.resume() }
                }
            }
            for (task, name, bytes) in uploads {
                #expect(
                    recorder.receivesEvent(task) { if case .completed = $0 { true } else { false } }, "seed \(seed)")
                guard task.error == nil else {
                    #expect((task.error as? URLError)?.code == .cancelled, "seed \(seed)")
                    continue
                }
                expectSame(server.published(name) ?? [], bytes, "seed \(seed)")
            }
            for (task, bytes) in downloads {
                #expect(
                    recorder.receivesEvent(task) { if case .completed = $0 { true } else { false } }, "seed \(seed)")
                guard task.error == nil else {
                    #expect((task.error as? URLError)?.code == .cancelled, "seed \(seed)")
                    continue
                }
                let files = recorder.events(of: task).compactMap { event -> [UInt8]? in
                    if case .file(let content, _) = event { content } else { nil }
                }
                #expect(files.count == 1, "seed \(seed)")
                expectSame(files.first ?? [], bytes, "seed \(seed)")
            }
            let endings = recorder.events().filter { if case .completed = $0 { true } else { false } }
            session.finishTasksAndInvalidate()
            let isInvalid = recorder.receivesEvent(nil) { if case .invalid = $0 { true } else { false } }
            #expect(isInvalid, "seed \(seed)")
            #expect(endings.count == made, "seed \(seed)")
        }
    }
}
