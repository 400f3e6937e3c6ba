import Foundation
import ResumableURLSession
import Testing

/// Calls that must compile without ambiguity for every type of session. No request is sent.
@Suite("Methods with the names of those in FoundationNetworking")
struct OverloadTests {
    private func asynchronous(
        _ session: URLSession, _ request: URLRequest, _ delegate: some URLSessionTaskDelegate,
        _ optional: (any URLSessionTaskDelegate)?
    ) async throws {
        let file = URL(fileURLWithPath: "/nowhere")
        let _: (Data, URLResponse) = try await session.upload(for: request, fromFile: file)
        let _: (Data, URLResponse) = try await session.upload(for: request, fromFile: file, delegate: delegate)
        let _: (Data, URLResponse) = try await session.upload(for: request, fromFile: file, delegate: optional)
        let _: (Data, URLResponse) = try await session.upload(for: request, fromFile: file, delegate: nil)
        let _: (Data, URLResponse) = try await session.upload(for: request, from: Data())
        let _: (Data, URLResponse) = try await session.upload(for: request, from: Data(), delegate: delegate)
        let _: (Data, URLResponse) = try await session.upload(resumeFrom: Data())
        let _: (Data, URLResponse) = try await session.upload(resumeFrom: Data(), delegate: delegate)
        let _: (Data, URLResponse) = try await session.upload(resumeFrom: Data(), delegate: nil)
        let _: (URL, URLResponse) = try await session.download(for: request)
        let _: (URL, URLResponse) = try await session.download(for: request, delegate: delegate)
        let _: (URL, URLResponse) = try await session.download(for: request, delegate: optional)
        let _: (URL, URLResponse) = try await session.download(from: file)
        let _: (URL, URLResponse) = try await session.download(from: file, delegate: delegate)
        let _: (URL, URLResponse) = try await session.download(resumeFrom: Data())
        let _: (URL, URLResponse) = try await session.download(resumeFrom: Data(), delegate: delegate)
        let _: (Data, URLResponse) = try await session.data(for: request)
    }

    private func asynchronous(
        _ session: ResumableURLSession, _ request: URLRequest, _ delegate: some URLSessionTaskDelegate,
        _ optional: (any URLSessionTaskDelegate)?
    ) async throws {
        let file = URL(fileURLWithPath: "/nowhere")
        let _: (Data, URLResponse) = try await session.upload(for: request, fromFile: file)
        let _: (Data, URLResponse) = try await session.upload(for: request, fromFile: file, delegate: delegate)
        let _: (Data, URLResponse) = try await session.upload(for: request, fromFile: file, delegate: optional)
        let _: (Data, URLResponse) = try await session.upload(for: request, from: Data())
        let _: (Data, URLResponse) = try await session.upload(resumeFrom: Data())
        let _: (URL, URLResponse) = try await session.download(for: request)
        let _: (URL, URLResponse) = try await session.download(from: file)
        let _: (URL, URLResponse) = try await session.download(from: file, delegate: optional)
        let _: (URL, URLResponse) = try await session.download(from: file, delegate: nil)
        let _: (URL, URLResponse) = try await session.download(for: request, delegate: delegate)
        let _: (URL, URLResponse) = try await session.download(resumeFrom: Data())
    }

    private func tasks(_ session: URLSession, _ request: URLRequest, _ url: URL) -> [URLSessionTask] {
        [
            session.uploadTask(with: request, fromFile: url),
            session.uploadTask(with: request, from: Data()),
            session.uploadTask(with: request, fromFile: url) { _, _, _ in },
            session.uploadTask(with: request, from: Data()) { _, _, _ in },
            session.uploadTask(with: request, from: nil) { _, _, _ in },
            session.uploadTask(withResumeData: Data()),
            session.uploadTask(withResumeData: Data()) { _, _, _ in },
            session.uploadTask(withResumeData: Data(), completionHandler: { _, _, _ in }),
            session.downloadTask(with: request),
            session.downloadTask(with: url),
            session.downloadTask(with: request) { _, _, _ in },
            session.downloadTask(with: url) { _, _, _ in },
            session.downloadTask(withResumeData: Data()),
            session.downloadTask(withResumeData: Data()) { _, _, _ in },
        ]
    }

    private func pausing(_ upload: URLSessionUploadTask, _ download: URLSessionDownloadTask) async {
        upload.cancel { _ in }
        upload.cancel(byProducingResumeData: { _ in })
        _ = await upload.cancelByProducingResumeData()
        upload.cancel()
        download.cancel { _ in }
        download.cancel(byProducingResumeData: { _ in })
        _ = await download.cancelByProducingResumeData()
        download.cancel()
    }

    @Test("every method that creates a task returns a suspended task of this module with a unique identifier")
    func factories() throws {
        let session = ResumableURLSession(configuration: .ephemeral)
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let tasks = tasks(session, URLRequest(url: url), url)
        #expect(Set(tasks.map(\.taskIdentifier)).count == tasks.count)
        #expect(!Set(tasks.map(\.taskIdentifier)).contains(session.dataTask(with: url).taskIdentifier))
        for task in tasks {
            #expect(task.state == .suspended && task.error == nil && task.response == nil)
            #expect(task.delegate == nil)
            #expect(task.priority == URLSessionTask.defaultPriority)
            #expect(String(reflecting: type(of: task)).hasPrefix("ResumableURLSession."))
        }
        session.invalidateAndCancel()
    }

    @Test("the shared session is always the same object, cannot be invalidated, and is resumable")
    func shared() throws {
        let session = ResumableURLSession.shared
        #expect(session === ResumableURLSession.shared && session is ResumableURLSession)
        session.invalidateAndCancel()
        session.finishTasksAndInvalidate()
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        #expect(session.downloadTask(with: url).originalRequest?.url == url)
    }
}
