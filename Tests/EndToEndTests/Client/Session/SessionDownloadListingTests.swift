import ConformanceKit
import Foundation
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

/// The listings of Apple's article "Pausing and resuming downloads", unchanged.
private final class DownloadArticle: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
    // Used by the test, and by the serial delegate queue while the test waits.
    var urlSession: URLSession = .shared
    var downloadTask: URLSessionDownloadTask?
    var resumeData: Data?
    var content: Data?
    var offsets: [Int64] = []
    let isPaused = Monitor(false)
    let isComplete = Monitor(false)

    func pause(_ downloadTask: URLSessionDownloadTask) {
        downloadTask.cancel { resumeDataOrNil in
            defer { self.isPaused.raise() }
            guard let resumeData = resumeDataOrNil else {
                // download can't be resumed; remove from UI if necessary
                return
            }
            self.resumeData = resumeData
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        defer { isComplete.raise() }
        guard let error = error else {
            // Handle success case.
            return
        }
        let userInfo = (error as NSError).userInfo
        if let resumeData = userInfo[NSURLSessionDownloadTaskResumeData] as? Data {
            self.resumeData = resumeData
        }
        // Perform any other error handling.
    }

    func resume() {
        guard let resumeData = resumeData else {
            // inform the user the download can't be resumed
            return
        }
        let downloadTask = urlSession.downloadTask(withResumeData: resumeData)
        downloadTask.resume()
        self.downloadTask = downloadTask
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        content = try? Data(contentsOf: location)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        offsets.append(fileOffset)
    }
}

@Suite("Session: the article on pausing and resuming downloads", .blocking)
struct SessionDownloadListingTests {
    @Test("listings 1 and 3: a download is paused, and a task with its resume data downloads the remaining bytes")
    func pauseAndResume() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let bytes = Payload.bytes(6_000_000)
            try server.publish(bytes, as: "a.bin")
            let proxy = try StallingProxy(to: server, after: 2_000_000)
            let article = DownloadArticle()
            article.urlSession = fixture.session(article)
            let task = article.urlSession.downloadTask(with: try proxy.url("/files/a.bin"))
            task.resume()
            #expect(eventually { task.countOfBytesReceived > 500_000 })
            article.pause(task)
            #expect(article.isPaused.awaitAndReset() && article.isComplete.awaitAndReset())
            let data = try #require(article.resumeData)
            #expect((task.error as? URLError)?.code == .cancelled)
            #expect((task.error as? URLError)?.downloadTaskResumeData == data)
            proxy.release()
            article.resume()
            #expect(article.isComplete.awaitAndReset())
            #expect(article.downloadTask?.error == nil)
            let offset = try #require(article.offsets.first)
            #expect(article.offsets.count == 1 && offset >= 500_000 && offset < 6_000_000)
            expectSame([UInt8](article.content ?? Data()), bytes)
            #expect(fixture.stored.isEmpty)
        }
    }

    @Test("listing 2: the error of a failed download contains its resume data")
    func recover() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let bytes = Payload.bytes(6_000_000)
            try server.publish(bytes, as: "a.bin")
            let isDown = Monitor(true)
            let connections = Monitor(0)
            let proxy = try FaultProxy(to: server.port) {
                guard isDown.withLock({ $0 }) else { return nil }
                let isFirst = connections.withLock { count in
                    count += 1
                    return count == 1
                }
                return FaultProxy.Fault(direction: .toClient, after: isFirst ? 2_000_000 : 10)
            }
            let article = DownloadArticle()
            article.urlSession = fixture.session(article)
            let task = article.urlSession.downloadTask(with: try #require(URL(string: proxy.url + "/files/a.bin")))
            task.resume()
            #expect(article.isComplete.awaitAndReset())
            #expect((task.error as? URLError)?.code == .networkConnectionLost)
            #expect(article.resumeData != nil && article.content == nil)
            isDown.withLock { $0 = false }
            article.resume()
            #expect(article.isComplete.awaitAndReset())
            #expect(article.downloadTask?.error == nil)
            expectSame([UInt8](article.content ?? Data()), bytes)
        }
    }
}

/// A proxy that passes a number of bytes of each connection to the client and then stalls the connection.
final class StallingProxy: Sendable {
    private let proxy: FaultProxy
    private let isHolding: Monitor<Bool>

    init(to server: ServerProcess, after count: Int) throws {
        let isHolding = Monitor(true)
        self.isHolding = isHolding
        proxy = try FaultProxy(to: server.port) {
            guard isHolding.withLock({ $0 }) else { return nil }
            return FaultProxy.Fault(kind: .stall, direction: .toClient, after: count)
        }
    }

    /// Connections that start after this call are not stalled.
    func release() { isHolding.withLock { $0 = false } }

    func url(_ path: String) throws -> URL { try #require(URL(string: proxy.url + path)) }
}
